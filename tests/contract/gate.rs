//! The door in front of the memory store: counts commits, and holds or breaks the one a test picks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::input::{InputFate, InputRecord};
use sessionplane_core::domain::lease::LeaseClause;
use sessionplane_server::adapters::memory::{CommitGate, CommitStep, Passing};
use tokio::sync::watch;

use crate::suite::desk::within;

type Picks = Box<dyn Fn(CommitStep, Passing<'_>) -> bool + Send + Sync>;

/// What becomes of a commit that a trap picked.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Verdict {
    Waits,
    Passes,
    Breaks(String),
    Panics,
}

struct Trap {
    picks: Picks,
    reached: watch::Sender<u64>,
    verdict: watch::Receiver<Verdict>,
}

/// The door.
#[derive(Default)]
pub(crate) struct Gate {
    trap: Mutex<Option<Arc<Trap>>>,
    kept: AtomicU64,
}

/// A trap that is set. While it is, every commit that it picks waits.
pub(crate) struct Held {
    reached: watch::Receiver<u64>,
    verdict: watch::Sender<Verdict>,
}

impl Gate {
    /// How many commits were kept, changes of metadata and deletions among them.
    pub(crate) fn kept(&self) -> u64 {
        self.kept.load(Ordering::SeqCst)
    }

    /// Removes the trap.
    pub(crate) fn open(&self) {
        *self.trap.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Holds every commit that `picks` picks from now on, instead of those of an earlier trap.
    pub(crate) fn hold(
        &self,
        picks: impl Fn(CommitStep, &Commit) -> bool + Send + Sync + 'static,
    ) -> Held {
        self.hold_any(move |step, passing| {
            passing.commit().is_some_and(|commit| picks(step, commit))
        })
    }

    /// The same for whatever passes.
    pub(crate) fn hold_any(
        &self,
        picks: impl Fn(CommitStep, Passing<'_>) -> bool + Send + Sync + 'static,
    ) -> Held {
        let (reached, told) = watch::channel(0);
        let (verdict, heard) = watch::channel(Verdict::Waits);
        let trap = Trap {
            picks: Box::new(picks),
            reached,
            verdict: heard,
        };
        *self.trap.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(trap));
        Held {
            reached: told,
            verdict,
        }
    }
}

/// Whether a commit admits a run.
pub(crate) fn admits(_: CommitStep, commit: &Commit) -> bool {
    matches!(commit.lease, LeaseClause::Acquire(_))
}

/// Whether a commit settles a run that is driven.
pub(crate) fn settles(_: CommitStep, commit: &Commit) -> bool {
    matches!(commit.lease, LeaseClause::Release(_))
}

/// Whether a commit settles a run that nobody drives any more.
pub(crate) fn recovers(_: CommitStep, commit: &Commit) -> bool {
    matches!(commit.lease, LeaseClause::Recover(_))
}

/// Whether a commit accepts an input.
pub(crate) fn accepts_input(_: CommitStep, commit: &Commit) -> bool {
    let pending = |input: &InputRecord| input.fate == InputFate::Pending;
    commit.inputs.iter().any(pending)
}

/// Only before, or only after, the commit is kept.
pub(crate) fn only(
    step: CommitStep,
    picks: impl Fn(CommitStep, &Commit) -> bool + Send + Sync + 'static,
) -> impl Fn(CommitStep, &Commit) -> bool + Send + Sync + 'static {
    move |at, commit| at == step && picks(at, commit)
}

impl Held {
    /// Waits until a commit stands at the door.
    pub(crate) async fn reached(&mut self) {
        let reached = self.reached.wait_for(|count| *count > 0);
        within("a held commit", reached).await.expect("a gate");
    }

    /// Lets what was held pass, and everything after it.
    pub(crate) fn release(self) {
        self.verdict.send_replace(Verdict::Passes);
    }

    /// The task that waits for the commit meets a bug.
    pub(crate) fn panic(self) {
        self.verdict.send_replace(Verdict::Panics);
    }

    /// The device fails under what was held.
    pub(crate) fn fail(self, reason: &str) {
        self.verdict
            .send_replace(Verdict::Breaks(reason.to_owned()));
    }
}

#[async_trait]
impl CommitGate for Gate {
    async fn pass(&self, step: CommitStep, passing: Passing<'_>) -> Result<(), String> {
        let trap = self
            .trap
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(trap) = trap.filter(|trap| (trap.picks)(step, passing)) {
            trap.reached.send_modify(|count| *count += 1);
            let mut heard = trap.verdict.clone();
            let verdict = heard.wait_for(|verdict| *verdict != Verdict::Waits).await;
            // A trap that was dropped without a word lets everything pass.
            match verdict.as_deref() {
                Ok(Verdict::Breaks(reason)) => return Err(reason.clone()),
                Ok(Verdict::Panics) => panic!("a bug, on purpose"),
                _ => {}
            }
        }
        if step == CommitStep::AfterSync {
            self.kept.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}
