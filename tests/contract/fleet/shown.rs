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

/// What the snapshot told of a session from its rows is newer than a change that was told before.
#[tokio::test]
async fn c47_no_change_that_follows_a_snapshot_is_older_than_what_that_told() {
    let config = AppConfig {
        idle_channels: 1,
        ..quick()
    };
    let (_house, crew) = crew(config);
    crew.create(new("docs")).await;
    let mut lookout = crew.watch("").await;
    let changed = crew.update("docs", relabel("a=b")).await;
    // Others come, until the channel that told the change has made room for theirs.
    within("a channel that goes", async {
        for number in 0.. {
            crew.create(new(&format!("s-{number}"))).await;
            if crew.get("docs").await.since.is_none() {
                return;
            }
        }
    })
    .await;
    lookout.snapshot().await;
    let told = lookout.of("docs").map(|it| it.revision);
    assert!(told > Some(changed.revision));
    // Whatever of it comes after that: a lookout takes no older one.
    crew.create(new("last")).await;
    lookout.until(|it| it.of("last").is_some()).await;
    let bookmark = lookout.bookmark.clone();
    let mut again = crew.watch_from("", bookmark).await;
    again.seen = lookout.seen;
    crew.update("last", relabel("a=b")).await;
    let labelled = |it: &Lookout| it.of("last").is_some_and(|it| !it.labels.is_empty());
    again.until(labelled).await;
}

/// A session that is found before its creation is told is not shown otherwise than it is.
#[tokio::test]
async fn c39_c46_a_change_does_not_overtake_what_creates_its_session() {
    let (house, crew) = crew(quick());
    let mut held = house.gate.hold(only(CommitStep::AfterSync, admits));
    let desk = crew.desk("docs");
    let running = desk.invoke("say \"x\"\nhang");
    let changing = async {
        held.reached().await;
        let mut changing = Box::pin(crew.update("docs", relabel("a=b")));
        for _ in 0..100 {
            assert!(changing.as_mut().now_or_never().is_none(), "not yet");
            tokio::task::yield_now().await;
        }
        house.gate.open();
        held.release();
        changing.await
    };
    let (run, changed) = join(running, changing).await;
    assert_eq!(changed.active_run, Some(run.id));
    assert_eq!(changed.phase, Phase::Working);
    desk.abort().await;
    run.finish().await;
}

/// Changes that always follow one another keep no server from its stop.
#[tokio::test]
async fn c63_a_session_that_is_changed_all_the_time_is_stopped() {
    let (house, crew) = crew(quick());
    crew.create(new("docs")).await;
    let (caller, app) = (house.app().as_caller(owner()), house.app());
    let changing = (0..4).map(|number| {
        let request = move |turn| UpdateSession {
            session: named("docs"),
            change: relabel(&format!("l{number}=v{turn}")),
            etag: None,
        };
        let caller = &caller;
        async move {
            for turn in 0.. {
                let update = caller.update_session(request(turn), CallOptions::default());
                if let Err(error) = update.await {
                    return error.outcome;
                }
            }
            unreachable!("it goes on until it is refused")
        }
    });
    let stopping = async {
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        app.stop().await;
    };
    let both = within("a stop", join(stopping, join_all(changing))).await;
    assert_eq!(both.1.len(), 4);
}

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

/// What others do to a session that hangs is nothing that it shows.
#[tokio::test(start_paused = true)]
async fn c46_a_session_that_hangs_stays_stalled_however_it_is_renamed_and_steered() {
    let config = AppConfig {
        stalled_after: Duration::from_secs(30),
        ..quick()
    };
    let (_house, crew) = crew(config);
    let desk = crew.desk("docs");
    let run = desk.invoke("say \"x\"\nhang").await;
    let mut stalled = crew.watch("stalled = true").await;
    stalled.until(|it| it.of("docs").is_some()).await;
    let since = crew.get("docs").await.stalled_since;
    assert!(since.is_some());
    crew.update("docs", rename("papers")).await;
    let desk = crew.desk("papers");
    desk.follow_up("and then?").await;
    let after = crew.get("papers").await;
    assert_eq!((after.stalled_since, after.queued), (since, 1));
    desk.abort().await;
    run.finish().await;
    assert_eq!(crew.get("papers").await.stalled_since, None);
}

/// One session whose records are damaged is refused by name, and keeps nobody from the others.
#[tokio::test]
async fn c44_a_run_that_cannot_be_settled_hides_its_own_session_from_lists_and_no_other() {
    let (house, crew) = crew(quick());
    let run = crew.desk("cut").invoke("hang").await;
    for name in ["one", "two"] {
        crew.create(new(name)).await;
    }
    house.refusal.damage(run.id);
    house.reopen();
    let named = crew.try_get(named("cut")).await.expect_err("it is refused");
    assert_eq!(named.reason, Reason::StoreFailed);
    assert!(named.message.contains("cannot be settled"), "{named}");
    for order in [
        SessionOrder::Id,
        SessionOrder::Name,
        SessionOrder::Attention,
    ] {
        let mut names = names(&crew.list_by("", order, 1).await);
        names.sort();
        assert_eq!(names, ["one", "two"], "{order:?}");
    }
    let mut lookout = crew.watch("").await;
    assert_eq!(lookout.snapshot().await, ["one", "two"]);
}

/// Runs, unless `SESSIONPLANE_SETTLED` names another number, such as `25000`.
fn settling() -> usize {
    let asked = std::env::var("SESSIONPLANE_SETTLED").ok();
    asked.and_then(|it| it.parse().ok()).unwrap_or(240)
}

/// Whoever has heard a run's end finds its session working nowhere: the index by phase has no lag.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c46_b30_a_run_that_has_settled_is_listed_as_running_by_nobody() {
    const SESSIONS: usize = 12;
    let (_house, crew) = crew(quick());
    let working = |number: usize| {
        let (crew, name) = (&crew, format!("s-{number}"));
        async move {
            let desk = crew.desk(&name);
            for _ in 0..settling() / SESSIONS {
                let run = desk.invoke("say \"x\"").await;
                let id = run.id;
                run.finish().await;
                let listed = crew.names("phase = WORKING").await;
                assert!(!listed.contains(&name), "{name} in {listed:?}");
                let shown = crew.get(&name).await;
                assert_eq!(shown.last_run.map(|it| it.run), Some(id));
            }
        }
    };
    let all = join_all((0..SESSIONS).map(working));
    within("all have settled", all).await;
    assert_eq!(
        crew.names("NOT phase = READY AND NOT phase = DORMANT")
            .await,
        [""; 0]
    );
}
