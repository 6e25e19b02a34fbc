//! The end of a session, where only the house can show it: who hears of it when, and two that want it at
//! a time.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::FutureExt as _;
use futures_util::future::join;
use sessionplane_core::contract::fleet::{CreateSession, DeleteAnswer, DeleteSession, Fleet as _};
use sessionplane_core::contract::{CallOptions, Parent};
use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::ids::{SessionId, SessionRef};
use sessionplane_core::ports::repository::Repository as _;
use sessionplane_server::adapters::memory::{CommitStep, MemoryStore, Passing};
use sessionplane_server::app::App;
use sessionplane_server::app::face::Faces as _;

use super::crew;
use crate::house::{agents, owner, ports};
use crate::suite::desk::{named, with_id, within};
use crate::suite::fleet::crew::{Crew, labels, new, relabel};
use crate::suite::hands::set_thinking;
use crate::suite::lineage::branch;
use crate::suite::world::quick;

/// Of two deletions that wait for one commit, each is judged by the revision that it was meant for.
#[tokio::test]
async fn c61_a_deletion_is_judged_by_its_own_etag_whoever_waits_behind_it() {
    let (house, crew) = crew(quick());
    let id = crew.create(new("docs")).await.id;
    let seen = crew.get("docs").await.metadata_revision;
    crew.update("docs", relabel("a=b")).await;
    let desk = crew.desk("docs");
    let mut held = house.gate.hold(|step, _| step == CommitStep::BeforeSync);
    let choosing = desk.try_dispatch(set_thinking(None), Some("choose"), None);
    let end = |etag, call: &'static str| {
        let request = DeleteSession {
            session: SessionRef::Id(id),
            etag,
            abort: false,
        };
        crew.end(request, Some(call))
    };
    let ends = async {
        held.reached().await;
        let (mut mistaken, mut meant) =
            (Box::pin(end(Some(seen), "one")), Box::pin(end(None, "two")));
        // Both wait for the commit that is held; the one that is mistaken came first.
        for end in [&mut mistaken, &mut meant] {
            for _ in 0..100 {
                assert!(end.as_mut().now_or_never().is_none());
                tokio::task::yield_now().await;
            }
        }
        house.gate.open();
        held.release();
        join(mistaken, meant).await
    };
    let (chosen, (mistaken, meant)) = join(choosing, ends).await;
    chosen.expect("chosen");
    let mistaken = mistaken.expect_err("it is not what it was");
    assert_eq!(mistaken.reason, Reason::EtagMismatch);
    assert_eq!(meant, Ok(DeleteAnswer::Deleted));
    assert_eq!(house.store().session(id).await, Ok(None));
}

/// C1, C2: what a session was to branch off is deleted between the look at it and the commit. That is told
/// like a parent that never was: whoever repeats would be told no more.
#[tokio::test(flavor = "multi_thread")]
async fn c01_c02_a_branch_off_a_session_that_was_just_deleted_is_refused_by_name() {
    for invokes in [false, true] {
        let (house, crew) = crew(quick());
        let parent = crew.desk("parent");
        parent.run("say \"x\"").await;
        let off = Parent {
            session: named("parent"),
            entry: None,
        };
        let mut held = house
            .gate
            .hold(|at, commit| at == CommitStep::BeforeSync && commit.create.is_some());
        let branching = {
            let crew = Crew {
                world: crew.world.clone(),
            };
            let (invoke, create) = (
                branch(&named("child"), &off.session, None),
                CreateSession {
                    parent: Some(off),
                    ..new("child")
                },
            );
            tokio::spawn(async move {
                if invokes {
                    let caller = crew.world.caller();
                    let invoked = caller.invoke(invoke, with_id(Some("one"))).await;
                    return invoked.map(drop);
                }
                crew.try_create(create, Some("one")).await.map(drop)
            })
        };
        held.reached().await;
        let deleted = crew.try_delete(named("parent"), false, None).await;
        assert_eq!(deleted, Ok(DeleteAnswer::Deleted));
        held.release();
        let refused = within("its answer", branching).await.expect("no panic");
        let refused = refused.expect_err("there is nothing to branch off");
        assert_eq!(
            (refused.reason, refused.outcome),
            (Reason::NoSuchSession, Outcome::Refused),
            "{refused:?}"
        );
        let fields: Vec<_> = refused.violations.iter().map(|it| &*it.field).collect();
        assert_eq!(fields, ["parent_session"]);
        // The name is free, and the same id is judged afresh.
        let made = crew.try_create(new("child"), Some("one")).await;
        made.expect("created");
    }
}

/// C2: a change that was accepted is told as that, though the session is deleted before its caller looks.
#[tokio::test]
async fn c02_a_change_is_told_although_its_session_is_deleted_before_the_answer_is_read() {
    let (house, crew) = crew(quick());
    crew.create(new("docs")).await;
    let mut held = house.gate.hold_any(|step, passing| {
        step == CommitStep::BeforeSync && matches!(passing, Passing::Metadata(_))
    });
    let update = crew.try_update("docs", relabel("a=b"), None, None);
    let mut update = Box::pin(update);
    tokio::select! {
        biased;
        answered = &mut update => panic!("it is held: {answered:?}"),
        () = held.reached() => {}
    }
    house.gate.open();
    held.release();
    // Nobody reads the answer meanwhile.
    let deleted = crew.try_delete(named("docs"), false, None).await;
    assert_eq!(deleted, Ok(DeleteAnswer::Deleted));
    let updated = update.await.expect("it was changed");
    assert_eq!(updated.labels, labels(&["a=b"]));
}

/// What wakes who waits for a deletion: by then nobody finds the session.
struct Peek {
    app: App,
    id: SessionId,
    found: Mutex<Vec<Result<SessionId, Reason>>>,
}

impl Wake for Peek {
    fn wake(self: Arc<Self>) {
        let caller = self.app.as_caller(owner());
        let get = caller.get_session(SessionRef::Id(self.id), CallOptions::default());
        let got = get
            .now_or_never()
            .expect("the store does not make anybody wait");
        let got = got.map(|it| it.id).map_err(|error| error.reason);
        self.found.lock().expect("no panic").push(got);
    }
}

#[tokio::test]
async fn c61_who_hears_that_a_session_is_deleted_finds_it_nowhere() {
    let store = Arc::new(MemoryStore::default());
    let (ports, _life) = ports(store.clone(), store);
    let app = App::new(ports.clone(), agents(&ports), quick());
    let caller = app.as_caller(owner());
    let made = caller.create_session(new("docs"), CallOptions::default());
    let id = made.await.expect("created").id;
    let request = DeleteSession {
        session: SessionRef::Id(id),
        etag: None,
        abort: false,
    };
    let peek = Arc::new(Peek {
        app: app.clone(),
        id,
        found: Mutex::default(),
    });
    let waker = Waker::from(peek.clone());
    let mut delete = caller.delete_session(request, CallOptions::default());
    let deleted = within("deleted", async {
        loop {
            if let Poll::Ready(answer) = delete.as_mut().poll(&mut Context::from_waker(&waker)) {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(deleted.await, Ok(DeleteAnswer::Deleted));
    let found = peek.found.lock().expect("no panic").pop();
    assert_eq!(found, Some(Err(Reason::NoSuchSession)));
}
