//! Tokens of configured principals on the wire: who holds one, and what ends with it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::ports::clock::Clock;
use sessionplane_server::adapters::authn::{
    Grant, Identities, OwnerToken, Registered, TokenBook, TokenId, Tokens,
};
use sessionplane_server::adapters::clock::TokioClock;
use sessionplane_server::grpc::listener::Listener;
use sessionplane_server::grpc::server::Config;
use tempfile::TempDir;
use tonic::{Code, Status};

use crate::fake;
use crate::server::{Caller, Running, framed, soon, told};
use crate::streams::{invoke, observe};

const GET_STATE: &str = "/sessionplane.v1.SessionControl/GetState";
/// The session `a`.
const SESSION_A: [u8; 5] = [0x0a, 0x03, 0x12, 0x01, b'a'];
/// What C55 allows.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

fn ci() -> Registered {
    Registered {
        id: PrincipalId::parse("ci").unwrap(),
        tenant: TenantId::parse("team").unwrap(),
        kind: PrincipalKind::Service,
        groups: [String::from("operator")].into(),
    }
}

/// Makes a token as `sessiond token create` does, beside the server.
pub(crate) fn mint(data_dir: &Path, lifetime: Option<Duration>) -> (TokenId, String) {
    let grant = Grant {
        holder: ci(),
        groups: None,
        ceiling: Trust::Relayed,
        lifetime,
    };
    let now = TokioClock::start().now();
    let (record, token) = TokenBook::of(data_dir).create(&grant, now).unwrap();
    (record.id, token.reveal().to_owned())
}

async fn start(directory: TempDir) -> Running {
    start_with(directory, Config::default()).await
}

/// A server that knows the owner and `ci`.
pub(crate) async fn start_with(directory: TempDir, config: Config) -> Running {
    let clock = Arc::new(TokioClock::start());
    let owner = OwnerToken::open(directory.path()).unwrap();
    let tokens = Tokens::open(directory.path(), [ci()], clock).unwrap();
    let identities = Arc::new(Identities::new(owner, tokens));
    let followed = identities.clone();
    tokio::spawn(async move { followed.follow().await });
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).await;
    Running::on(listener.unwrap(), directory, config, identities)
}

async fn get_state(caller: &Caller) -> Status {
    caller.call(GET_STATE, &SESSION_A).await.status().await
}

#[tokio::test]
async fn c54_a_token_made_beside_the_server_lets_its_principal_in_and_no_text_like_it() {
    let server = start(tempfile::tempdir().unwrap()).await;
    let (id, token) = mint(server.directory.path(), None);
    let holder = server.holder(&token).await;
    soon(async {
        while get_state(&holder).await.code() != Code::Ok {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let (caller, _options) = server.fake.asked();
    let principal = &caller.principal;
    assert_eq!(principal.id.as_str(), "ci");
    assert_eq!(principal.tenant.as_str(), "team");
    assert_eq!(principal.ceiling, Trust::Relayed);
    assert_eq!(&*principal.credential, format!("token:{id}"));

    let last = token.chars().last().unwrap();
    let other = if last == 'x' { 'y' } else { 'x' };
    let mut words = Vec::new();
    for wrong in [
        // Another secret, another id, too long, too short, no token, and something very long.
        format!("{}{other}", &token[..token.len() - 1]),
        token.replacen(id.as_str(), "00000000", 1),
        format!("{token}x"),
        token[..token.len() - 1].to_owned(),
        "x".to_owned(),
        "x".repeat(10_000),
    ] {
        let status = get_state(&server.holder(&wrong).await).await;
        assert_eq!(status.code(), Code::Unauthenticated);
        assert_eq!(
            told(&status),
            ("UNAUTHENTICATED".to_owned(), "refused".to_owned())
        );
        words.push(status.message().to_owned());
    }
    words.dedup();
    assert_eq!(
        words.len(),
        1,
        "the same words whatever is wrong: {words:?}"
    );
    assert_eq!(get_state(&server.owner().await).await.code(), Code::Ok);
}

#[tokio::test]
async fn c55_what_a_revoked_token_has_open_ends_within_five_seconds_and_calls_at_once_after() {
    let directory = tempfile::tempdir().unwrap();
    OwnerToken::open(directory.path()).unwrap();
    let ((id, token), (_, other)) = (mint(directory.path(), None), mint(directory.path(), None));
    let server = start(directory).await;
    let holder = server.holder(&token).await;
    let untouched = [
        observe(&server.holder(&other).await).await,
        observe(&server.owner().await).await,
    ];
    let streams = [invoke(&holder).await, observe(&holder).await];
    server.fake.until_open(4).await;
    server.fake.hang();
    let waiting = open_wait(&holder);
    soon(async {
        while server.fake.times_asked() < 5 {
            tokio::task::yield_now().await;
        }
    })
    .await;

    let now = TokioClock::start().now();
    let book = TokenBook::of(server.directory.path());
    assert!(book.revoke(&id, now).unwrap());
    let ended = tokio::time::timeout(ENDS_WITHIN, async {
        let mut ended = Vec::new();
        for stream in streams {
            ended.push(stream.status().await);
        }
        (ended, waiting.await.unwrap())
    });
    let (ended, waited) = ended.await.expect("in time");
    for status in ended {
        assert_eq!(
            (status.code(), told(&status)),
            (
                Code::Unauthenticated,
                ("UNAUTHENTICATED".to_owned(), "stream_ended".to_owned())
            )
        );
        assert!(status.message().contains("was revoked"), "{status:?}");
        assert!(!status.message().contains(&token), "{status:?}");
    }
    assert_eq!(waited.code(), Code::Unauthenticated);
    // The server ended it, not the caller: a CANCEL run is not cancelled for it.
    let (caller, _options) = server.fake.asked();
    assert!(caller.server_ends.is_set());
    let status = get_state(&holder).await;
    assert_eq!(status.code(), Code::Unauthenticated);
    server.fake.until_open(2).await;
    drop(untouched);
}

#[tokio::test]
async fn c55_a_call_whose_message_is_still_to_come_ends_with_its_token() {
    let directory = tempfile::tempdir().unwrap();
    OwnerToken::open(directory.path()).unwrap();
    let (id, token) = mint(directory.path(), None);
    let server = start(directory).await;
    let holder = server.holder(&token).await;
    let paths = [
        GET_STATE,
        "/sessionplane.v1.SessionControl/Dispatch",
        "/sessionplane.v1.Invoke/Invoke",
    ];
    let calls = paths.map(|path| {
        let holder = holder.clone();
        tokio::spawn(async move {
            let begun = framed(0, &SESSION_A).slice(..6);
            holder.call_unfinished(path, begun).await.status().await
        })
    });
    // All of them have begun once a later call on their connection is answered.
    assert_eq!(get_state(&holder).await.code(), Code::Ok);
    let now = TokioClock::start().now();
    let book = TokenBook::of(server.directory.path());
    assert!(book.revoke(&id, now).unwrap());
    for call in calls {
        let status = tokio::time::timeout(ENDS_WITHIN, call).await;
        let status = status.expect("in time").unwrap();
        assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
        assert!(status.message().contains("was revoked"), "{status:?}");
    }
    assert_eq!(server.fake.times_asked(), 1);
}

fn open_wait(holder: &Caller) -> tokio::task::JoinHandle<Status> {
    let waits = holder.clone();
    tokio::spawn(async move {
        let run_id = fake::run().to_string();
        let request = sessionplane::v1::WaitRunRequest { run_id };
        let path = "/sessionplane.v1.Invoke/WaitRun";
        waits.ask(path, &request).await.status().await
    })
}

#[tokio::test]
async fn c55_what_an_expired_token_has_open_ends_with_it() {
    let directory = tempfile::tempdir().unwrap();
    OwnerToken::open(directory.path()).unwrap();
    let lifetime = Duration::from_secs(2);
    let (_, token) = mint(directory.path(), Some(lifetime));
    let server = start(directory).await;
    let holder = server.holder(&token).await;
    let stream = observe(&holder).await;
    let status = tokio::time::timeout(lifetime + ENDS_WITHIN, stream.status()).await;
    let status = status.expect("in time");
    assert_eq!(status.code(), Code::Unauthenticated);
    assert!(status.message().contains("has expired"), "{status:?}");
    assert_eq!(get_state(&holder).await.code(), Code::Unauthenticated);
}
