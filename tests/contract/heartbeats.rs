//! C33 on a clock that the test owns: heartbeats are for silence.

use std::time::Duration;

use sessionplane_core::contract::EventItem;
use sessionplane_server::app::config::AppConfig;
use tokio::time::Instant;

use super::house::InProcess;
use crate::suite::desk::{Ask, Desk};
use crate::suite::world::{Worlds as _, quick};

const INTERVAL: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
#[allow(clippy::disallowed_methods, reason = "the test owns this clock")]
async fn c33_a_heartbeat_comes_when_nothing_else_was_sent_for_its_interval() {
    let config = AppConfig {
        heartbeat: INTERVAL,
        ..quick()
    };
    let world = InProcess.make(config).await;
    let desk = Desk::new(&world, "quiet");
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    let _run = desk.invoke(Ask::new("say-words 5 every 7s\nhang")).await;
    // The stream and what was sent on it, each with its time.
    let (mut last, mut heartbeats) = (Instant::now(), 0);
    while heartbeats < 3 {
        match watch.item().await.expect("an item").expect("no status") {
            EventItem::Heartbeat(_) => {
                heartbeats += 1;
                let quiet = last.elapsed();
                let late = quiet.saturating_sub(INTERVAL);
                assert!(quiet >= INTERVAL, "after {quiet:?}");
                assert!(late < Duration::from_secs(1), "after {quiet:?}");
            }
            EventItem::Event(_) => {
                assert_eq!(heartbeats, 0, "events came every 7 s");
            }
            other => panic!("{other:?}"),
        }
        last = Instant::now();
    }
}
