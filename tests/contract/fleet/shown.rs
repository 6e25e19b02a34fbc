//! What of a session is shown, to whom and when, while other things happen to it.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{join, join_all};
use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::{CreateSession, Fleet as _, SessionOrder, UpdateSession};
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_server::adapters::memory::CommitStep;
use sessionplane_server::app::config::AppConfig;
use sessionplane_server::app::face::Faces as _;

use super::crew;
use crate::gate::{admits, only};
use crate::house::owner;
use crate::suite::desk::{named, within};
use crate::suite::fleet::crew::{Lookout, labels, names, new, relabel, rename};
use crate::suite::world::quick;

/// A page that is full of bytes where the paused ones end loses nothing of what follows.
#[tokio::test]
async fn c47_c60_a_page_that_is_full_at_the_end_of_a_section_goes_on_with_the_next() {
    let (_house, crew) = crew(quick());
    let texts: Vec<_> = (0..32)
        .map(|it| format!("l{it}={}", "x".repeat(128)))
        .collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let heavy = |name: &str, paused| CreateSession {
        labels: labels(&texts),
        paused,
        ..new(name)
    };
    let first = crew.create(heavy("p-0", true)).await;
    let fill = 1024 * 1024 / first.weight();
    for number in 1..fill {
        crew.create(heavy(&format!("p-{number}"), true)).await;
    }
    for number in 0..3 {
        crew.create(heavy(&format!("d-{number}"), false)).await;
    }
    let listed = crew.list_by("", SessionOrder::Attention, 1000).await;
    let dormant = listed.iter().filter(|it| it.phase == Phase::Dormant);
    assert_eq!((listed.len(), dormant.count()), (fill + 3, 3));
}
