//! An orderly end: bounded whatever clients do, and honest about what it cut.

use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane_client::contract::{Agent as _, CallOptions};
use sessionplane_client::detached;
use sessionplane_client::domain::error::Outcome;
use sessionplane_client::domain::ids::{SessionName, SessionRef};

use crate::daemon::{Daemon, Home, Started};

/// The bounds of a stop are 6 s together; the rest is for a busy machine.
const DRAIN: Duration = Duration::from_secs(20);
/// Where nothing ends by itself: a second for the runs, five for the rest, and what is conceded.
const STUCK: Duration = Duration::from_millis(6200);

#[tokio::test]
async fn b59_a_start_that_hangs_can_be_stopped() {
    let home = Home::new();
    let daemon = home.begin("store::opening=sleep(600000)").await;
    daemon.terminate();
    assert_eq!(daemon.ended(DRAIN).await.code(), Some(0), "{}", home.said());
    home.start().await;
}

/// A server whose store hangs in the middle of a commit.
async fn with_a_store_that_hangs(home: &Home) -> Daemon {
    let hangs = Some("store::before-sync=sleep(600000)");
    let Started::Ready(daemon) = home.try_start(hangs).await else {
        panic!("it did not start; it said:\n{}", home.said());
    };
    let at = SessionRef::Name(SessionName::parse("stuck").unwrap());
    let request = detached(at, "hang".to_owned());
    let options = CallOptions {
        deadline: Some(Duration::from_secs(2)),
        ..CallOptions::default()
    };
    // Nothing tells of a commit that hangs but the answer that does not come.
    let stuck = match daemon.client().invoke(request, options).await {
        Ok(mut stream) => stream.next().await.expect("an end").map(drop),
        Err(error) => Err(error),
    };
    assert_eq!(stuck.unwrap_err().outcome, Outcome::Unknown);
    daemon
}

#[tokio::test]
async fn b59_a_store_that_hangs_does_not_keep_the_process() {
    let home = Home::new();
    let daemon = with_a_store_that_hangs(&home).await;
    daemon.terminate();
    let ended = daemon.ended(STUCK).await;
    assert_eq!(ended.code(), Some(0), "{}", home.said());
    assert!(
        home.said().contains("did not close in time"),
        "{}",
        home.said()
    );
    home.start().await;
}

#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let home = Home::new();
    let daemon = with_a_store_that_hangs(&home).await;
    daemon.terminate();
    home.until_said("a second signal ends").await;
    daemon.terminate();
    let ended = daemon.ended(DRAIN).await;
    assert_eq!(ended.code(), Some(130), "{}", home.said());
    assert!(!home.said().contains("in time"), "{}", home.said());
    home.start().await;
}
