//! C32, C36: what every observer is told, whatever it asked for.

use sessionplane_core::contract::EventFilter;
use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::ports::lease_store::LeaseStore as _;

use crate::house::House;
use crate::suite::desk::{Desk, steer};
use crate::suite::watch::types;
use crate::suite::world::quick;

/// C32 C36: that nobody serves the session any more is told through every filter.
#[tokio::test(flavor = "multi_thread")]
async fn c32_c36_the_end_of_serving_passes_every_filter() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "told");
    desk.run("say \"x\"").await;
    let nothing = EventFilter {
        types: ["weather_changed".to_owned()].into(),
        no_thinking: true,
    };
    let mut watch = desk.watch_for(nothing, None, None).await;
    let run = desk.invoke("think \"hm\"\nsay \"x\"\nwait-steer").await;
    let revoked = house.store().revoke(run.session).await;
    revoked.expect("revoked");
    let answer = desk.try_dispatch(steer("say \"y\""), None, None).await;
    answer.expect_err("its commit was refused");
    let (events, error) = watch.error().await;
    assert_eq!(types(&events), ["serving_error"]);
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::ServingLost, Outcome::StreamEnded)
    );
}
