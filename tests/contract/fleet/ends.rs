//! The end of a session, where only the house can show it: who hears of it when, and two that want it at
//! a time.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::FutureExt as _;
use futures_util::future::join;
use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::{DeleteAnswer, DeleteSession, Fleet as _};
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::ids::{SessionId, SessionRef};
use sessionplane_core::ports::repository::Repository as _;
use sessionplane_server::adapters::memory::{CommitStep, MemoryStore};
use sessionplane_server::app::App;
use sessionplane_server::app::face::Faces as _;

use super::crew;
use crate::house::{agents, owner, ports};
use crate::suite::desk::within;
use crate::suite::fleet::crew::{new, relabel};
use crate::suite::hands::set_thinking;
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
