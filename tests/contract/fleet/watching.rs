//! What watches of the fleet hold, however many there are and however little of them is read.

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use sessionplane_core::contract::fleet::{
    Fleet as _, SessionOrder, SessionWatchItem, WatchSessions,
};
use sessionplane_core::contract::{CallOptions, ResultStream};
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::ids::PrincipalId;
use sessionplane_server::app::config::AppConfig;
use sessionplane_server::app::face::Faces as _;

use super::crew;
use crate::house::{House, owner};
use crate::suite::desk::within;
use crate::suite::fleet::crew::{Crew, labels, names, new, relabel, rename};
use crate::suite::world::quick;

/// Sessions and ids of one item at most.
const MOST: usize = 128;

type Watch = ResultStream<SessionWatchItem>;

async fn watch(house: &House, principal: &str) -> Result<Watch, CallError> {
    let mut caller = owner();
    caller.principal.id = PrincipalId::parse(principal).expect("a principal");
    let request = WatchSessions {
        filter: String::new(),
        bookmark: None,
    };
    let fleet = house.app().as_caller(caller);
    fleet.watch_sessions(request, CallOptions::default()).await
}

fn is_full(refused: Result<Watch, CallError>, parts: [&str; 2]) {
    let refused = refused.err().expect("there is no place");
    assert_eq!(
        (refused.reason, refused.outcome),
        (Reason::LimitReached, Outcome::Refused)
    );
    for part in parts.into_iter().chain(["ListSessions"]) {
        assert!(refused.message.contains(part), "{refused}");
    }
}

#[tokio::test]
async fn c60_watches_are_bounded_for_each_caller_and_in_all() {
    let config = AppConfig {
        max_watches: 3,
        max_watches_per_principal: 2,
        ..quick()
    };
    let (house, _crew) = crew(config);
    let first = watch(&house, "one").await.expect("a place");
    let _second = watch(&house, "one").await.expect("a place");
    let full = watch(&house, "one").await;
    is_full(full, ["limits.max_watches_per_principal", "is 2"]);
    let third = watch(&house, "two").await.expect("another's place");
    let full = watch(&house, "three").await;
    is_full(full, ["limits.max_watches ", "is 3"]);
    // Who is refused takes nothing, and who leaves gives it back.
    drop(third);
    let _third = watch(&house, "three").await.expect("a place");
    drop(first);
    let _again = watch(&house, "one").await.expect("a place");
}

async fn many(crew: &Crew, count: usize, label: &str) {
    let made = (0..count).map(|number| {
        let mut request = new(&format!("s-{number}"));
        request.labels = labels(&[label]);
        crew.create(request)
    });
    join_all(made).await;
}

/// What is told of many that changed while nobody read comes in items that are bounded, ids among them,
/// and a bookmark after the last.
#[tokio::test(flavor = "multi_thread")]
async fn c35_c60_what_gathers_for_a_watcher_comes_in_bounded_items() {
    let (_house, crew) = crew(quick());
    let count = 2 * MOST + 44;
    many(&crew, count, "team=net").await;
    let mut lookout = crew.watch("labels.team = net").await;
    lookout.snapshot().await;
    assert_eq!(lookout.seen.len(), count);
    let bookmark = lookout.bookmark.clone();
    join_all((0..count).map(|number| {
        let crew = &crew;
        async move {
            crew.update(&format!("s-{number}"), relabel("team=docs"))
                .await
        }
    }))
    .await;
    let mut watch = crew
        .try_watch("labels.team = net", bookmark)
        .await
        .expect("a watch");
    let (mut left, mut whole) = (0, false);
    while !(left == count && whole) {
        let item = within("the next item", watch.next()).await;
        match item.expect("it goes on").expect("no error") {
            SessionWatchItem::Changed { sessions, gone } => {
                assert!(sessions.len() + gone.len() <= MOST, "{}", gone.len());
                left += gone.len();
                whole = false;
            }
            SessionWatchItem::Bookmark(_) => {
                assert!(left == 0 || left == count, "only after all that was read");
                whole = true;
            }
            SessionWatchItem::BookmarkExpired => panic!("it is kept"),
        }
    }
}

/// A search that finds nothing for long says that it goes on, or who waits would take it for dead.
#[tokio::test(flavor = "multi_thread")]
async fn c47_a_snapshot_that_finds_little_says_that_it_goes_on() {
    let (_house, crew) = crew(quick());
    // More than are looked at for one page.
    many(&crew, 2050, "team=net").await;
    let mut watch = crew
        .try_watch("NOT labels.team = net", None)
        .await
        .expect("a watch");
    let mut items = Vec::new();
    loop {
        let item = within("the next item", watch.next()).await;
        let item = item.expect("it goes on").expect("no error");
        if matches!(item, SessionWatchItem::Bookmark(_)) {
            break;
        }
        items.push(item);
    }
    let [SessionWatchItem::Changed { sessions, gone }] = &items[..] else {
        panic!("{items:?}");
    };
    assert!(sessions.is_empty() && gone.is_empty());
}

/// What changes while a long snapshot is read does not end it, however much that is: it follows the last
/// page, before the bookmark.
#[tokio::test(flavor = "multi_thread")]
async fn c47_a_snapshot_is_not_overtaken_by_what_changes_meanwhile() {
    let config = AppConfig {
        fleet_changes: 16,
        ..quick()
    };
    let (_house, crew) = crew(config);
    many(&crew, 2 * MOST + 1, "team=net").await;
    let mut lookout = crew.watch("labels.team = net").await;
    let mut turns = 0;
    // Three pages, and fewer changes than are kept between each two.
    while lookout.bookmark.is_none() {
        lookout.step().await.expect("it goes on");
        if turns < 3 {
            for number in 0..5 {
                let name = format!("s-{}", 5 * turns + number);
                crew.update(&name, rename(&format!("x-{name}"))).await;
            }
            crew.update(&format!("s-{}", 20 + turns), relabel("team=docs"))
                .await;
        }
        turns += 1;
    }
    assert!(turns > 3, "there are three pages and more: {turns}");
    lookout.until(|it| it.gone.len() >= 3).await;
    let mut listed = names(&crew.list_by("labels.team = net", SessionOrder::Id, 0).await);
    listed.sort();
    assert_eq!(lookout.names(), listed);
}
