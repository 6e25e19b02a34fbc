//! C32, C36: what every observer is told, whatever it asked for.

use futures_util::StreamExt as _;
use sessionplane_core::contract::{
    CallOptions, EventFilter, EventItem, EventsRequest, ListEntriesRequest,
};
use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::ports::lease_store::LeaseStore as _;

use sessionplane_server::app::config::AppConfig;

use crate::house::House;
use crate::suite::desk::{Desk, steer, within};
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

/// C31 C36: entries that are counted and not there end the stream, and are not looked for without
/// end.
#[tokio::test(flavor = "multi_thread")]
async fn c31_c36_a_backfill_that_finds_nothing_ends() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "emptied");
    desk.run("say \"x\"").await;
    house.refusal.empty();
    let request = EventsRequest {
        session: desk.session.clone(),
        resume: None,
        entries_since: None,
        filter: EventFilter::default(),
    };
    let caller = desk.caller();
    let stream = within("events", caller.events(request, CallOptions::default())).await;
    let items: Vec<_> = within("its end", stream.expect("opened").collect()).await;
    let [Ok(EventItem::Subscribed { .. }), Err(error)] = &items[..] else {
        panic!("{items:?}");
    };
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::StoreFailed, Outcome::StreamEnded)
    );
    assert!(error.message.contains("the server's log"), "{error}");
    let request = ListEntriesRequest {
        session: desk.session.clone(),
        since: None,
        page_size: 0,
    };
    let page = caller.list_entries(request, CallOptions::default()).await;
    let page = page.expect_err("nothing to go on from");
    assert_eq!(page.reason, Reason::StoreFailed);
}

/// C60: the observers of one session are bounded; one that is one too many is told by what, and one
/// that leaves makes room.
#[tokio::test(flavor = "multi_thread")]
async fn c60_one_observer_too_many_is_refused_by_the_name_of_the_limit() {
    let house = House::new(AppConfig {
        max_observers: 2,
        ..quick()
    });
    let desk = Desk::new(&house.world(), "watched");
    desk.run("say \"x\"").await;
    let (first, _second) = (desk.watch().await, desk.watch().await);
    let request = EventsRequest {
        session: desk.session.clone(),
        resume: None,
        entries_since: None,
        filter: EventFilter::default(),
    };
    let caller = desk.caller();
    let third = caller.events(request.clone(), CallOptions::default()).await;
    let error = third.err().expect("one too many");
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::LimitReached, Outcome::Refused)
    );
    for part in ["limits.max_observers_per_session", "is 2", "GetState"] {
        assert!(error.message.contains(part), "{error}");
    }
    let other = Desk::new(&house.world(), "another");
    other.run("say \"x\"").await;
    other.watch().await;
    drop(first);
    let third = caller.events(request, CallOptions::default()).await;
    assert!(third.is_ok(), "one left");
}
