//! The fleet on the wire: what a malformed request is told, what a client reads of an answer, and how
//! a watch ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use prost::Message;
use sessionplane::v1 as wire;
use sessionplane_client::{Client, ClientOptions, Token};
use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::{
    ChangeDirectory, ChangeDirectoryAnswer, CreateSession, DeleteAnswer, DeleteSession, Fleet,
    ListInteractions, ListSessions, SessionOrder, SessionWatchItem, UpdateSession, WatchSessions,
};
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::fleet::metadata::MetadataChange;
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::place::Directory;
use sessionplane_server::grpc::listener::Address;
use tonic::Code;
use tonic_types::StatusExt;

use crate::fake::fleet::whole;
use crate::fake::session;
use crate::server::{Answer, Caller, Running, soon, told};

const WATCH: &str = "/sessionplane.v1.Fleet/WatchSessions";

fn docs() -> wire::SessionRef {
    let name = wire::session_ref::Ref::Name("docs".into());
    wire::SessionRef { r#ref: Some(name) }
}

async fn ask<M: Message>(caller: &Caller, method: &str, message: &M) -> Answer {
    let path = format!("/sessionplane.v1.Fleet/{method}");
    caller.ask(&path, message).await
}

/// Asserts that a request is refused by the field, with words that name the limit or the way out.
async fn refused<M: Message>(caller: &Caller, method: &str, message: &M, field: &str, way: &str) {
    let status = ask(caller, method, message).await.status().await;
    assert_eq!(status.code(), Code::InvalidArgument, "{method}: {field}");
    assert_eq!(told(&status).1, "refused", "{method}");
    let violations = status.get_details_bad_request().expect("names the field");
    assert_eq!(violations.field_violations[0].field, field, "{method}");
    assert!(status.message().contains(way), "{}", status.message());
}

/// Puts something wrong into a request.
type Spoil = fn(&mut wire::CreateSessionRequest);

fn labels(keys: impl IntoIterator<Item = String>) -> HashMap<String, String> {
    keys.into_iter().map(|key| (key, "x".to_owned())).collect()
}

#[tokio::test]
async fn c01_a_new_session_that_cannot_be_is_refused_with_field_limit_and_way_out() {
    let server = Running::start().await;
    let caller = server.owner().await;
    let cases: [(Spoil, &str, &str); 9] = [
        (
            |new| new.request_id = "two words".into(),
            "request_id",
            "1-128 printable",
        ),
        (|new| new.name = "No Name".into(), "name", "1-63 characters"),
        (
            |new| new.external_key = "k".repeat(257),
            "external_key",
            "the limit is 256",
        ),
        (
            |new| new.labels = labels(["Team".to_owned()]),
            "labels",
            "1-63 characters",
        ),
        (
            |new| new.labels = labels((0..33).map(|n| format!("l{n}"))),
            "labels",
            "the limit is 32",
        ),
        (|new| new.priority = 101, "priority", "-100 to 100"),
        (|new| new.directory = "../x".into(), "directory", "upwards"),
        (
            |new| new.worktree_branch = "-x".into(),
            "worktree_branch",
            "name of a branch",
        ),
        (
            |new| new.parent_session = Some(wire::SessionRef { r#ref: None }),
            "parent_session",
            "external_key",
        ),
    ];
    for (spoil, field, way) in cases {
        let mut message = wire::CreateSessionRequest::default();
        spoil(&mut message);
        refused(&caller, "CreateSession", &message, field, way).await;
    }
    assert!(!server.fake.was_asked());
}

#[tokio::test]
async fn c01_every_other_request_of_the_fleet_is_refused_by_field_too() {
    let server = Running::start().await;
    let caller = server.owner().await;
    let list = wire::ListSessionsRequest {
        page_size: 1001,
        ..Default::default()
    };
    refused(&caller, "ListSessions", &list, "page_size", "1 to 1000").await;
    let list = wire::ListSessionsRequest {
        order_by: "age".into(),
        ..Default::default()
    };
    refused(&caller, "ListSessions", &list, "order_by", "`attention`").await;
    let asked = wire::ListInteractionsRequest {
        page_size: -1,
        ..Default::default()
    };
    refused(
        &caller,
        "ListInteractions",
        &asked,
        "page_size",
        "1 to 1000",
    )
    .await;
    let update = wire::UpdateSessionRequest {
        session: Some(docs()),
        ..Default::default()
    };
    refused(
        &caller,
        "UpdateSession",
        &update,
        "update_mask",
        "`labels.KEY`",
    )
    .await;
    let delete = wire::DeleteSessionRequest {
        session: Some(docs()),
        etag: "x".into(),
        ..Default::default()
    };
    refused(&caller, "DeleteSession", &delete, "etag", "as it was told").await;
    let to = wire::ChangeDirectoryRequest {
        session: Some(docs()),
        ..Default::default()
    };
    refused(&caller, "ChangeDirectory", &to, "directory", "`.`").await;
    for method in [
        "GetSession",
        "UpdateSession",
        "DeleteSession",
        "ChangeDirectory",
        "PauseSession",
        "ResumeSession",
    ] {
        // All of them have the session in their first field.
        let nobody = wire::GetSessionRequest::default();
        refused(&caller, method, &nobody, "session", "external_key").await;
    }
    assert!(!server.fake.was_asked());
}

#[tokio::test]
async fn c40_what_a_command_changes_names_that_command() {
    let server = Running::start().await;
    let caller = server.owner().await;
    let update = wire::UpdateSessionRequest {
        session: Some(docs()),
        update_mask: Some(prost_types::FieldMask {
            paths: vec!["model_override".into()],
        }),
        ..Default::default()
    };
    let status = ask(&caller, "UpdateSession", &update).await.status().await;
    let expected = ("USE_COMMAND".to_owned(), "refused".to_owned());
    assert_eq!(told(&status), expected);
    assert!(status.message().contains("`set_model`"), "{status:?}");
    assert!(!server.fake.was_asked());
}

fn client(server: &Running) -> Arc<Client> {
    let Address::Tcp(address) = &server.address else {
        panic!("it listens on TCP");
    };
    let options = ClientOptions::new(format!("http://{address}").parse().unwrap());
    let token = Token::parse(&server.token).unwrap();
    Arc::new(Client::connect(options.token(token)).unwrap())
}

#[tokio::test]
async fn c45_a_client_reads_every_field_of_a_session_as_it_was_told() {
    let server = Running::start().await;
    let client = client(&server);
    let (docs, none) = (SessionRef::Id(session()), CallOptions::default);
    assert_eq!(client.get_session(docs.clone(), none()).await, Ok(whole()));
    let created = client
        .create_session(CreateSession::default(), none())
        .await;
    assert_eq!(created, Ok(whole()));
    let update = UpdateSession {
        session: docs.clone(),
        change: MetadataChange {
            name: Some(None),
            ..Default::default()
        },
        etag: Some(12),
    };
    assert_eq!(client.update_session(update, none()).await, Ok(whole()));
    assert_eq!(
        client.pause_session(docs.clone(), none()).await,
        Ok(whole())
    );
    assert_eq!(client.resume_session(docs, none()).await, Ok(whole()));
    let list = ListSessions {
        filter: "name = \"a*\"".to_owned(),
        order: SessionOrder::IdDescending,
        ..Default::default()
    };
    let page = client.list_sessions(list, none()).await.unwrap();
    assert_eq!(page.sessions, [whole()]);
    assert_eq!(page.next.as_deref(), Some("name = \"a*\"|id desc"));
    let asked = client
        .list_interactions(ListInteractions::default(), none())
        .await;
    let asked = asked.unwrap();
    assert_eq!(asked.interactions[0].interaction, whole().questions[0]);
    assert_eq!(
        (asked.interactions[0].session, asked.next),
        (session(), None)
    );
}

#[tokio::test]
async fn c53_a_client_reads_what_became_of_a_move_and_of_a_deletion() {
    let server = Running::start().await;
    let client = client(&server);
    let docs = SessionRef::Id(session());
    let to = |workspace: Option<&str>| ChangeDirectory {
        session: docs.clone(),
        workspace: workspace.map(|name| name.parse().unwrap()),
        directory: Directory::root(),
    };
    let moved = client.change_directory(to(Some("home")), CallOptions::default());
    let expected = ChangeDirectoryAnswer::Moved {
        session: Box::new(whole()),
        sandbox: SandboxLevel::Confined,
    };
    assert_eq!(moved.await, Ok(expected));
    let stayed = client
        .change_directory(to(None), CallOptions::default())
        .await;
    assert!(
        matches!(stayed, Ok(ChangeDirectoryAnswer::Rejected(_))),
        "{stayed:?}"
    );
    let delete = |abort| DeleteSession {
        session: docs.clone(),
        etag: None,
        abort,
    };
    let busy = client
        .delete_session(delete(false), CallOptions::default())
        .await;
    assert!(matches!(busy, Ok(DeleteAnswer::Rejected(_))), "{busy:?}");
    let gone = client
        .delete_session(delete(true), CallOptions::default())
        .await;
    assert_eq!(gone, Ok(DeleteAnswer::Deleted));
}

#[tokio::test]
async fn c47_a_client_reads_every_item_of_a_watch() {
    let server = Running::start().await;
    let request = WatchSessions {
        filter: String::new(),
        bookmark: Some("b1".to_owned()),
    };
    let client = client(&server);
    let items = client.watch_sessions(request, CallOptions::default());
    let items: Vec<_> = soon(items.await.unwrap().take(3).collect()).await;
    let expected = [
        SessionWatchItem::BookmarkExpired,
        SessionWatchItem::Changed {
            sessions: vec![whole()],
            gone: vec![session()],
        },
        SessionWatchItem::Bookmark("b1".to_owned()),
    ];
    assert_eq!(items, expected.map(Ok));
}

async fn watch(caller: &Caller) -> Answer {
    let request = wire::WatchSessionsRequest::default();
    let mut answer = caller.ask(WATCH, &request).await;
    for _ in 0..3 {
        let item = answer.message::<wire::WatchSessionsResponse>().await.item;
        assert!(item.is_some());
    }
    answer
}

#[tokio::test]
async fn c35_a_watcher_that_is_too_slow_is_told_so_and_its_stream_is_let_go_of() {
    let server = Running::start().await;
    let slow = CallError::stream_ended(Reason::ObserverTooSlow, "resume from the last bookmark");
    server.fake.break_streams_with(slow);
    let caller = server.owner().await;
    let status = watch(&caller).await.status().await;
    assert_eq!(status.code(), Code::Aborted);
    let expected = ("OBSERVER_TOO_SLOW".to_owned(), "stream_ended".to_owned());
    assert_eq!(told(&status), expected);
    server.fake.until_open(0).await;
}

#[tokio::test]
async fn c47_a_watch_whose_caller_leaves_is_let_go_of() {
    let server = Running::start().await;
    let caller = server.owner().await;
    let answer = watch(&caller).await;
    server.fake.until_open(1).await;
    drop(answer);
    server.fake.until_open(0).await;
}

#[tokio::test]
async fn c63_the_face_leaves_a_watch_to_the_application_until_the_connection_ends_in_words() {
    let mut server = Running::start().await;
    server.fake.works(true);
    let caller = server.owner().await;
    let mut answer = watch(&caller).await;
    server.stop();
    let early = tokio::time::timeout(Duration::from_secs(1), answer.next()).await;
    assert!(early.is_err(), "it goes on");
    server.fake.works(false);
    let status = soon(answer.status()).await;
    let expected = ("SERVER_DRAINING".to_owned(), "stream_ended".to_owned());
    assert_eq!(told(&status), expected);
    drop(caller);
    server.stopped().await;
}
