//! C13 over a connection that grows old: the server ends its streams, and no caller has left.

use std::time::Duration;

use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::limits::Limits;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_server::app::config::AppConfig;
use sessionplane_server::grpc::server::Config;

use super::remote::WithFace;
use crate::suite::desk::{Ask, Desk};
use crate::suite::disconnects::{outcome, patient};
use crate::suite::world::Worlds as _;

#[tokio::test]
async fn c13_a_stream_that_ends_with_its_old_connection_is_no_cancellation() {
    let face = Config {
        max_connection_age: Some(Duration::from_secs(1)),
        max_connection_age_grace: Duration::ZERO,
        ..Config::default()
    };
    // Without any grace, a caller that leaves takes its run with it at once.
    let limits = Limits {
        cancel_grace: Duration::ZERO,
        ..patient().limits
    };
    let config = AppConfig {
        limits,
        ..patient()
    };
    let world = WithFace(face).make(config).await;
    let desk = Desk::new(&world, "old-connection");
    let run = desk.invoke(Ask::new("wait-steer").cancel().id("one")).await;
    let id = run.id;
    let error = run.error().await;
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::ServerDraining, Outcome::StreamEnded)
    );
    desk.steer("say \"still here\"").await;
    assert_eq!(outcome(&desk.settled(id).await), &RunOutcome::Completed);
}
