//! Every RPC that the descriptors have, each in four cases. One that is added and has no row fails here.

use std::collections::BTreeSet;

use bytes::Bytes;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use sessionplane::FILE_DESCRIPTOR_SET;
use sessionplane::v1 as wire;
use sessionplane::v1::invoke_event::Event;
use tonic::{Code, Status};

use crate::world::{World, by_id, event, invoke, named, soon};

/// Who may.
const OPERATOR: &str = "team/ada/operator";
/// Who may everything there.
const ADMIN: &str = "team/root/admin";
/// Who knows that there is something, and may only look on.
const OBSERVER: &str = "team/eve/observer";
/// Who is of the tenant, and may nothing.
const NOBODY: &str = "team/mallory/";
/// Who may everything, in another tenant.
const STRANGER: &str = "others/root/admin";

/// What a caller is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    /// It is done, or shown.
    Done,
    /// The call is taken, and nothing of the session is told.
    Nothing,
    /// There is no such thing.
    Unknown,
    /// It may not.
    Denied,
}

/// A session, and what there is of it.
struct Scene {
    session: String,
    name: String,
    run: String,
}

/// An RPC: its request, and what who may not, who may only look on and who is of another tenant are told.
/// Who may is told that it is done.
struct Row {
    path: &'static str,
    request: fn(&Scene) -> Vec<u8>,
    nobody: Told,
    observer: Told,
    stranger: Told,
    /// Who may.
    allowed: &'static str,
}

impl Row {
    /// Only who administers may.
    fn of_admins(mut self) -> Self {
        self.allowed = ADMIN;
        self
    }
}

const fn row(path: &'static str, request: fn(&Scene) -> Vec<u8>, told: [Told; 3]) -> Row {
    let [nobody, observer, stranger] = told;
    Row {
        path,
        request,
        nobody,
        observer,
        stranger,
        allowed: OPERATOR,
    }
}

/// Reads a session.
const READS: [Told; 3] = [Told::Unknown, Told::Done, Told::Unknown];
/// Changes a session.
const WRITES: [Told; 3] = [Told::Unknown, Told::Denied, Told::Unknown];
/// Tells of all sessions that its caller may see.
const LISTS: [Told; 3] = [Told::Nothing, Told::Done, Told::Nothing];

/// The table.
#[allow(clippy::too_many_lines, reason = "a table")]
fn rows() -> Vec<Row> {
    vec![
        row(
            "Invoke/Invoke",
            |it| invoke(&it.name, "hi").encode_to_vec(),
            WRITES,
        ),
        row(
            "Invoke/GetRun",
            |it| {
                let run_id = it.run.clone();
                wire::GetRunRequest { run_id }.encode_to_vec()
            },
            READS,
        ),
        row(
            "Invoke/WaitRun",
            |it| {
                let run_id = it.run.clone();
                wire::WaitRunRequest { run_id }.encode_to_vec()
            },
            READS,
        ),
        row(
            "Invoke/ListRuns",
            |it| {
                let session = by_id(&it.session);
                wire::ListRunsRequest {
                    session,
                    ..Default::default()
                }
                .encode_to_vec()
            },
            READS,
        ),
        row(
            "SessionControl/Dispatch",
            |it| {
                let abort = wire::dispatch_request::Command::Abort(wire::Abort::default());
                wire::DispatchRequest {
                    session: by_id(&it.session),
                    command: Some(abort),
                    ..Default::default()
                }
                .encode_to_vec()
            },
            WRITES,
        ),
        row(
            "SessionControl/GetCapabilities",
            |it| {
                let session = by_id(&it.session).unwrap();
                let target = wire::get_capabilities_request::Target::Session(session);
                wire::GetCapabilitiesRequest {
                    target: Some(target),
                }
                .encode_to_vec()
            },
            READS,
        ),
        row(
            "SessionControl/ListCommands",
            |it| {
                let session = by_id(&it.session).unwrap();
                let target = wire::list_commands_request::Target::Session(session);
                wire::ListCommandsRequest {
                    target: Some(target),
                    ..Default::default()
                }
                .encode_to_vec()
            },
            READS,
        ),
        row(
            "SessionControl/GetState",
            |it| {
                let session = by_id(&it.session);
                wire::GetStateRequest {
                    session,
                    min_position: None,
                }
                .encode_to_vec()
            },
            READS,
        ),
        row(
            "SessionControl/ListEntries",
            |it| {
                let session = by_id(&it.session);
                wire::ListEntriesRequest {
                    session,
                    ..Default::default()
                }
                .encode_to_vec()
            },
            READS,
        ),
        row(
            "SessionControl/Events",
            |it| {
                let session = by_id(&it.session);
                wire::EventsRequest {
                    session,
                    ..Default::default()
                }
                .encode_to_vec()
            },
            READS,
        ),
        // What is created is of the caller's own tenant: there the name is free.
        row(
            "Fleet/CreateSession",
            |it| {
                let name = format!("{}-b", it.name);
                wire::CreateSessionRequest {
                    name,
                    ..Default::default()
                }
                .encode_to_vec()
            },
            [Told::Denied, Told::Denied, Told::Nothing],
        ),
        row(
            "Fleet/GetSession",
            |it| {
                let session = by_id(&it.session);
                wire::GetSessionRequest { session }.encode_to_vec()
            },
            READS,
        ),
        row(
            "Fleet/ListSessions",
            |_| wire::ListSessionsRequest::default().encode_to_vec(),
            LISTS,
        ),
        row(
            "Fleet/WatchSessions",
            |_| wire::WatchSessionsRequest::default().encode_to_vec(),
            LISTS,
        ),
        row(
            "Fleet/ListInteractions",
            |_| wire::ListInteractionsRequest::default().encode_to_vec(),
            LISTS,
        ),
        row(
            "Fleet/UpdateSession",
            |it| {
                wire::UpdateSessionRequest {
                    session: by_id(&it.session),
                    update_mask: Some(prost_types::FieldMask {
                        paths: vec!["priority".to_owned()],
                    }),
                    priority: 3,
                    ..Default::default()
                }
                .encode_to_vec()
            },
            WRITES,
        ),
        row(
            "Fleet/PauseSession",
            |it| {
                let session = by_id(&it.session);
                wire::PauseSessionRequest {
                    session,
                    ..Default::default()
                }
                .encode_to_vec()
            },
            WRITES,
        ),
        row(
            "Fleet/ResumeSession",
            |it| {
                let session = by_id(&it.session);
                wire::ResumeSessionRequest {
                    session,
                    ..Default::default()
                }
                .encode_to_vec()
            },
            WRITES,
        ),
        row(
            "Fleet/ChangeDirectory",
            |it| {
                wire::ChangeDirectoryRequest {
                    session: by_id(&it.session),
                    workspace: "main".to_owned(),
                    directory: ".".to_owned(),
                    ..Default::default()
                }
                .encode_to_vec()
            },
            WRITES,
        ),
        row(
            "Fleet/DeleteSession",
            |it| {
                let session = by_id(&it.session);
                wire::DeleteSessionRequest {
                    session,
                    abort: true,
                    ..Default::default()
                }
                .encode_to_vec()
            },
            WRITES,
        ),
        row(
            "Audit/ListAuditRecords",
            |_| wire::ListAuditRecordsRequest::default().encode_to_vec(),
            [Told::Denied, Told::Denied, Told::Nothing],
        )
        .of_admins(),
        row(
            "Audit/WatchAudit",
            |_| wire::WatchAuditRequest::default().encode_to_vec(),
            [Told::Denied, Told::Denied, Told::Nothing],
        )
        .of_admins(),
    ]
}

/// Every method of ours that the descriptors have.
fn methods() -> BTreeSet<String> {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let ours = set.file.iter().filter(|file| !file.service.is_empty());
    let services = ours.flat_map(|file| {
        assert_eq!(file.package(), "sessionplane.v1", "{}", file.name());
        &file.service
    });
    let methods = services.flat_map(|service| {
        let of = service.name();
        service
            .method
            .iter()
            .map(move |method| format!("{of}/{}", method.name()))
    });
    methods.collect()
}

#[test]
fn c55_every_rpc_has_a_row() {
    let rows = rows();
    let told: BTreeSet<String> = rows.iter().map(|row| row.path.to_owned()).collect();
    assert_eq!(told.len(), rows.len(), "no RPC has two");
    assert_eq!(told, methods());
}

/// A session in which a run has asked something, after one that has settled.
async fn scene(world: &World, number: usize) -> Scene {
    let name = format!("scene-{number}");
    let session = world.create(OPERATOR, &name, &[]).await;
    let path = "/sessionplane.v1.Invoke/Invoke";
    let settled = world.begin(
        Some(OPERATOR),
        path,
        invoke(&name, "hi").encode_to_vec().into(),
    );
    let mut settled = settled.await.unwrap();
    let mut run = String::new();
    while let Some(message) = soon(settled.message()).await.unwrap() {
        if let Some(Event::Accepted(accepted)) = event(message) {
            run = accepted.run_id;
        }
    }
    let asking = "ask ok confirm \"Go on?\"\nwait-answers";
    let asked = world.begin(
        Some(OPERATOR),
        path,
        invoke(&name, asking).encode_to_vec().into(),
    );
    let mut asked = asked.await.unwrap();
    while let Some(message) = soon(asked.message()).await.unwrap() {
        if matches!(event(message), Some(Event::InteractionRequested(_))) {
            break;
        }
    }
    Scene { session, name, run }
}

fn told(answer: &Result<Bytes, Status>, scene: &Scene) -> Told {
    match answer {
        Ok(bytes) => {
            let id = scene.session.as_bytes();
            let tells = bytes.windows(id.len()).any(|part| part == id);
            if tells { Told::Done } else { Told::Nothing }
        }
        Err(status) => match status.code() {
            Code::NotFound => Told::Unknown,
            Code::PermissionDenied => Told::Denied,
            code => panic!("{code:?}: {status:?}"),
        },
    }
}

#[tokio::test]
async fn c54_c55_every_rpc_is_refused_to_who_may_not_have_it_and_given_to_who_may() {
    let world = World::new().await;
    for (number, row) in rows().iter().enumerate() {
        let scene = scene(&world, number).await;
        let path = format!("/sessionplane.v1.{}", row.path);
        let ask = async |who| world.call(who, &path, (row.request)(&scene).into()).await;
        for anonymous in [None, Some("team/ada"), Some("")] {
            let refused = ask(anonymous).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{path}: {refused:?}");
        }
        for (who, expected) in [
            (NOBODY, row.nobody),
            (STRANGER, row.stranger),
            (OBSERVER, row.observer),
        ] {
            let answer = ask(Some(who)).await;
            let mut found = told(&answer, &scene);
            // What has no word of the session in its answer is done all the same.
            if expected == Told::Done && found == Told::Nothing {
                found = Told::Done;
            }
            assert_eq!(found, expected, "{path} as {who}: {answer:?}");
        }
        let allowed = ask(Some(row.allowed)).await;
        if let Err(status) = &allowed {
            // This server has no workspaces, which is said only to who may go there.
            let no_workspace = row.path == "Fleet/ChangeDirectory";
            assert!(
                no_workspace && status.code() == Code::InvalidArgument,
                "{path}: {status:?}"
            );
        }
    }
}

#[tokio::test]
async fn c04_a_session_that_is_hidden_is_answered_like_one_that_is_not_there_to_the_byte() {
    let world = World::new().await;
    let there = scene(&world, 1).await;
    let absent = Scene {
        session: "01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned(),
        name: "scene-9".to_owned(),
        run: "01ARZ3NDEKTSV4RRFFQ69G5FAW".to_owned(),
    };
    for row in rows() {
        let path = format!("/sessionplane.v1.{}", row.path);
        for who in [NOBODY, STRANGER] {
            // What is made in the caller's own tenant, or begins a stream of it, is another each time.
            let of_the_tenant = row.path == "Fleet/CreateSession" || row.path.starts_with("Audit/");
            if row.nobody == Told::Nothing || of_the_tenant {
                continue;
            }
            let hidden = world
                .call(Some(who), &path, (row.request)(&there).into())
                .await;
            let missing = world
                .call(Some(who), &path, (row.request)(&absent).into())
                .await;
            let (hidden, missing) = (hidden.unwrap_err(), missing.unwrap_err());
            assert_eq!(hidden.code(), missing.code(), "{path} as {who}");
            assert_eq!(hidden.message(), missing.message(), "{path} as {who}");
            assert_eq!(hidden.details(), missing.details(), "{path} as {who}");
        }
    }
    // By name as by id.
    let request = |name: &str| {
        wire::GetSessionRequest {
            session: named(name),
        }
        .encode_to_vec()
    };
    let path = "/sessionplane.v1.Fleet/GetSession";
    let hidden = world
        .call(Some(NOBODY), path, request(&there.name).into())
        .await;
    let missing = world
        .call(Some(NOBODY), path, request(&absent.name).into())
        .await;
    let (hidden, missing) = (hidden.unwrap_err(), missing.unwrap_err());
    assert_eq!(hidden.message(), missing.message());
    assert_eq!(hidden.details(), missing.details());
}
