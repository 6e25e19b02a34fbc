//! What the public descriptors promise, walked field by field.

use prost::Message;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet};
use sessionplane::FILE_DESCRIPTOR_SET;
use tonic::Code;

use crate::server::Running;

const PACKAGE: &str = "sessionplane.v1";

/// The files of the public package.
pub(crate) fn public_files() -> Vec<FileDescriptorProto> {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let public = set
        .file
        .into_iter()
        .filter(|file| file.package() == PACKAGE);
    let files: Vec<_> = public.collect();
    assert!(files.len() > 5, "the descriptors are there");
    files
}

/// Every method as `/package.Service/Method`.
pub(crate) fn methods() -> Vec<String> {
    let files = public_files();
    let services = files.iter().flat_map(|file| &file.service);
    let paths: Vec<_> = services
        .flat_map(|service| {
            let name = service.name();
            service
                .method
                .iter()
                .map(move |method| format!("/{PACKAGE}.{name}/{}", method.name()))
        })
        .collect();
    assert!(paths.len() >= 7, "{paths:?}");
    paths
}

fn messages(files: &[FileDescriptorProto]) -> Vec<&DescriptorProto> {
    let mut waiting: Vec<_> = files.iter().flat_map(|file| &file.message_type).collect();
    let mut all = Vec::new();
    while let Some(message) = waiting.pop() {
        waiting.extend(&message.nested_type);
        all.push(message);
    }
    all
}

fn enums(files: &[FileDescriptorProto]) -> Vec<&EnumDescriptorProto> {
    let top = files.iter().flat_map(|file| &file.enum_type);
    top.chain(
        messages(files)
            .into_iter()
            .flat_map(|message| &message.enum_type),
    )
    .collect()
}

#[test]
fn c28_no_field_of_the_neutral_contract_carries_what_belongs_to_a_host_or_an_engine() {
    const FORBIDDEN: [&str; 12] = [
        "path",
        "cwd",
        "dir",
        "directory",
        "workdir",
        "url",
        "uri",
        "endpoint",
        "token",
        "secret",
        "engine",
        "provider",
    ];
    // A place in a list is named so in every paged API and gives no right; that an answer is not to
    // be shown is said by a flag. A directory beneath a named workspace is no path of a host, and the
    // fleet is where sessions have one.
    const HARMLESS: [(&str, &str); 4] = [
        ("InputShape", "secret"),
        ("SessionPlace", "directory"),
        ("CreateSessionRequest", "directory"),
        ("ChangeDirectoryRequest", "directory"),
    ];
    let files = public_files();
    for message in messages(&files) {
        for field in &message.field {
            if HARMLESS.contains(&(message.name(), field.name()))
                || matches!(field.name(), "page_token" | "next_page_token")
            {
                continue;
            }
            let word = field
                .name()
                .split('_')
                .find(|word| FORBIDDEN.contains(word));
            assert_eq!(word, None, "{}.{}", message.name(), field.name());
        }
    }
}

#[tokio::test]
async fn c64_every_method_of_the_descriptors_is_served() {
    let server = Running::start().await;
    let caller = server.owner().await;
    for path in methods() {
        // No message: an empty one is a request that some of them take.
        let status = caller.call(&path, &[0xff]).await.status().await;
        assert_eq!(status.code(), Code::InvalidArgument, "{path}");
        let unknown = caller.call(&format!("{path}x"), &[]).await.status().await;
        assert_eq!(unknown.code(), Code::Unimplemented, "{path}x");
    }
}

#[test]
fn c64_every_enum_starts_with_unspecified() {
    let files = public_files();
    let enums = enums(&files);
    assert!(enums.len() > 5);
    for declared in enums {
        let zero = declared
            .value
            .iter()
            .find(|value| value.number() == 0)
            .expect("a zero");
        assert!(zero.name().ends_with("_UNSPECIFIED"), "{}", declared.name());
    }
}

#[test]
fn c64_every_list_is_paged() {
    let files = public_files();
    let all = messages(&files);
    let field = |message: &str, field: &str| {
        let message = all.iter().find(|known| known.name() == message);
        message.is_some_and(|message| message.field.iter().any(|known| known.name() == field))
    };
    let lists: Vec<_> = methods()
        .into_iter()
        .filter_map(|path| path.split("/List").nth(1).map(ToOwned::to_owned))
        .collect();
    assert!(!lists.is_empty());
    for list in lists {
        assert!(
            field(&format!("List{list}Request"), "page_size"),
            "List{list} has no page size"
        );
        let more = ["has_more", "next_page_token"];
        let response = format!("List{list}Response");
        assert!(
            more.iter().any(|more| field(&response, more)),
            "List{list} hides that more is there"
        );
    }
}

#[test]
fn the_private_records_are_not_described() {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let private = set
        .file
        .iter()
        .find(|file| file.package().contains("store"));
    assert!(private.is_none());
}
