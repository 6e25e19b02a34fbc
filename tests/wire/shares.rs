//! What one principal takes of what all have together: others are still let in.

use bytes::Bytes;
use sessionplane::v1 as wire;
use sessionplane_core::domain::ids::RunId;
use sessionplane_server::grpc::server::Config;
use tokio::task::JoinSet;
use tonic::{Code, Status};

use crate::credentials::{mint, start_with};
use crate::server::{Caller, Running, soon, told};

const GET_STATE: &str = "/sessionplane.v1.SessionControl/GetState";
const WAIT_RUN: &str = "/sessionplane.v1.Invoke/WaitRun";
/// The session `a`.
const SESSION_A: [u8; 5] = [0x0a, 0x03, 0x12, 0x01, b'a'];

fn overloaded(status: &Status) -> bool {
    told(status) == ("OVERLOADED".to_owned(), "refused".to_owned())
}

/// `ci`, as soon as the server knows its token.
async fn holder(server: &Running) -> Caller {
    let (_id, token) = mint(server.directory.path(), None);
    let holder = server.holder(&token).await;
    soon(async {
        while holder
            .call(GET_STATE, &SESSION_A)
            .await
            .status()
            .await
            .code()
            != Code::Ok
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
    holder
}

#[tokio::test]
async fn c60_one_principal_leaves_others_room_for_their_calls() {
    let config = Config {
        max_calls: 4,
        ..Config::default()
    };
    let server = start_with(tempfile::tempdir().unwrap(), config).await;
    let holder = holder(&server).await;
    // A little of a message, over as many connections as one likes.
    let mut half_sent = JoinSet::new();
    for _ in 0..8 {
        let caller = holder.header("grpc-timeout", "5S");
        half_sent.spawn(async move {
            let beginning = Bytes::from_static(&[0, 0]);
            caller
                .call_unfinished(GET_STATE, beginning)
                .await
                .status()
                .await
        });
    }
    for _ in 0..5 {
        let refused = soon(half_sent.join_next()).await.unwrap().unwrap();
        assert!(overloaded(&refused), "{refused:?}");
        for part in ["3 calls", "principal ci", "limits.max_calls"] {
            assert!(refused.message().contains(part), "{refused:?}");
        }
    }
    let owner = server.owner().await;
    let answered = owner.call(GET_STATE, &SESSION_A).await.status().await;
    assert_eq!(answered.code(), Code::Ok, "{answered:?}");
    // What was given back can be taken again.
    half_sent.shutdown().await;
    drop(holder);
    let again = crate::credentials::mint(server.directory.path(), None).1;
    let again = server.holder(&again).await;
    soon(async {
        while again
            .call(GET_STATE, &SESSION_A)
            .await
            .status()
            .await
            .code()
            != Code::Ok
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn c60_the_waits_of_one_principal_are_bounded_and_take_nobody_elses() {
    let config = Config {
        max_waits: 2,
        ..Config::default()
    };
    let server = start_with(tempfile::tempdir().unwrap(), config).await;
    let holder = holder(&server).await;
    server.fake.hang();
    let request = wire::WaitRunRequest {
        run_id: RunId::from_bytes([1; 16]).to_string(),
    };
    let mut waits = JoinSet::new();
    let wait = |waits: &mut JoinSet<Status>, caller: Caller| {
        let request = request.clone();
        waits.spawn(async move { caller.ask(WAIT_RUN, &request).await.status().await });
    };
    for _ in 0..3 {
        wait(&mut waits, holder.clone());
    }
    let refused = soon(waits.join_next()).await.unwrap().unwrap();
    assert!(overloaded(&refused), "{refused:?}");
    for part in ["2 waits", "principal ci", "limits.max_waits"] {
        assert!(refused.message().contains(part), "{refused:?}");
    }
    wait(
        &mut waits,
        server.owner().await.header("grpc-timeout", "200m"),
    );
    let waited = soon(waits.join_next()).await.unwrap().unwrap();
    assert_eq!(waited.code(), Code::DeadlineExceeded, "it was let in");
}
