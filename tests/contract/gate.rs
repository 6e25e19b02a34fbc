//! The door in front of the memory store: counts commits, and holds or breaks the one a test picks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sessionplane_core::domain::commit::Commit;
use sessionplane_server::adapters::memory::{CommitGate, CommitStep};
use tokio::sync::watch;

use crate::suite::desk::within;

type Picks = Box<dyn Fn(CommitStep, &Commit) -> bool + Send + Sync>;

/// What becomes of a commit that a trap picked.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Verdict {
    Waits,
    Passes,
    Breaks(String),
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
    /// How many commits were kept.
    pub(crate) fn kept(&self) -> u64 {
        self.kept.load(Ordering::SeqCst)
    }

    /// Holds every commit that `picks` picks from now on, instead of those of an earlier trap.
    pub(crate) fn hold(
        &self,
        picks: impl Fn(CommitStep, &Commit) -> bool + Send + Sync + 'static,
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

impl Held {
    /// Waits until a commit stands at the door.
    pub(crate) async fn reached(&mut self) {
        let reached = self.reached.wait_for(|count| *count > 0);
        within("a held commit", reached).await.expect("a gate");
    }

    /// How many commits came to the door.
    pub(crate) fn count(&self) -> u64 {
        *self.reached.borrow()
    }

    /// Lets what was held pass, and everything after it.
    pub(crate) fn release(self) {
        self.verdict.send_replace(Verdict::Passes);
    }

    /// The device fails under what was held.
    pub(crate) fn fail(self, reason: &str) {
        self.verdict
            .send_replace(Verdict::Breaks(reason.to_owned()));
    }
}

#[async_trait]
impl CommitGate for Gate {
    async fn pass(&self, step: CommitStep, commit: &Commit) -> Result<(), String> {
        let trap = self
            .trap
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(trap) = trap.filter(|trap| (trap.picks)(step, commit)) {
            trap.reached.send_modify(|count| *count += 1);
            let mut heard = trap.verdict.clone();
            let verdict = heard.wait_for(|verdict| *verdict != Verdict::Waits).await;
            // A trap that was dropped without a word lets everything pass.
            if let Ok(Verdict::Breaks(reason)) = verdict.as_deref() {
                return Err(reason.clone());
            }
        }
        if step == CommitStep::AfterSync {
            self.kept.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}
