//! One logical call has one request id, however often it is sent.

use sessionplane_client::contract::{
    Agent as _, CallOptions, DispatchRequest, SessionControl as _,
};
use sessionplane_client::detached;
use sessionplane_client::domain::command::Command;
use sessionplane_client::domain::ids::{RequestId, is_ulid_shaped};
use tonic::{Code, Status};

use super::fake::{Fake, Stage, Step, soon};
use super::wire;

fn abort() -> DispatchRequest {
    DispatchRequest {
        session: wire::docs(),
        command: Command::Abort,
        expected_run: None,
    }
}

#[tokio::test]
async fn c03_a_dispatch_keeps_its_id_over_its_retries() {
    let fake = Fake::start(Stage {
        dispatches: [
            Err(Status::unavailable("a proxy")),
            Err(wire::ours(Code::Unavailable, "OVERLOADED", "refused")),
            Ok(wire::dispatch_accepted()),
            Ok(wire::dispatch_accepted()),
        ]
        .into(),
        ..Stage::default()
    })
    .await;
    let client = fake.client();
    for _ in 0..2 {
        soon(client.dispatch(abort(), CallOptions::default()))
            .await
            .unwrap();
    }
    let ids: Vec<_> = fake.look(|stage| {
        stage
            .dispatched
            .iter()
            .map(|d| d.request_id.clone())
            .collect()
    });
    assert!(is_ulid_shaped(&ids[0]), "{ids:?}");
    assert_eq!((&ids[0], &ids[0]), (&ids[1], &ids[2]), "one call, one id");
    assert_ne!(ids[0], ids[3], "another call, another id");
}

#[tokio::test]
async fn c03_an_invoke_keeps_its_id_over_its_retries() {
    let steps = vec![
        Step::Send(wire::accepted(false)),
        Step::Send(wire::completed()),
    ];
    let fake = Fake::start(Stage {
        invokes: [Err(Status::unavailable("a proxy")), Ok(steps)].into(),
        ..Stage::default()
    })
    .await;
    let request = detached(wire::docs(), "hi".to_owned());
    let client = fake.client();
    let opened = soon(client.invoke(request, CallOptions::default())).await;
    assert!(opened.is_ok());
    fake.look(|stage| {
        assert_eq!(stage.invoked.len(), 2);
        assert_eq!(stage.invoked[0], stage.invoked[1]);
        assert!(is_ulid_shaped(&stage.invoked[0].request_id));
    });
}

#[tokio::test]
async fn c03_a_callers_own_id_is_sent_as_it_is() {
    let fake = Fake::start(Stage {
        dispatches: [Ok(wire::dispatch_accepted())].into(),
        ..Stage::default()
    })
    .await;
    let options = CallOptions {
        request_id: Some(RequestId::parse("build-7").unwrap()),
        deadline: None,
    };
    soon(fake.client().dispatch(abort(), options))
        .await
        .unwrap();
    assert_eq!(
        fake.look(|stage| stage.dispatched[0].request_id.clone()),
        "build-7"
    );
}
