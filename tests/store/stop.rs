//! A probe that holds the committer at a step until the test lets it go on.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::Poll;
use std::time::Duration;

use sessionplane_server::adapters::sled::{RoundProbe, RoundStep};
use tokio::sync::watch;

/// No test holds a round longer; beyond it something hangs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Holds a round at a step.
pub(crate) struct Stop {
    state: Mutex<State>,
    changed: Condvar,
    held: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    at: Option<RoundStep>,
    held: bool,
}

impl Stop {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            held: watch::Sender::new(false),
        })
    }

    /// Holds the next round that comes to this step.
    pub(crate) fn arm(&self, step: RoundStep) {
        self.state.lock().unwrap().at = Some(step);
    }

    /// Waits until a round is held.
    pub(crate) async fn reached(&self) {
        let mut held = self.held.subscribe();
        let reached = tokio::time::timeout(DEADLINE, held.wait_for(|held| *held)).await;
        reached.expect("no round came to the step").unwrap();
    }

    /// Lets the held round go on.
    pub(crate) fn release(&self) {
        self.state.lock().unwrap().held = false;
        self.held.send_replace(false);
        self.changed.notify_all();
    }
}

impl RoundProbe for Stop {
    fn at(&self, step: RoundStep) -> Result<(), String> {
        let mut state = self.state.lock().unwrap();
        if state.at != Some(step) {
            return Ok(());
        }
        state.at = None;
        state.held = true;
        self.held.send_replace(true);
        let (state, waited) = self
            .changed
            .wait_timeout_while(state, DEADLINE, |state| state.held)
            .unwrap();
        drop(state);
        if waited.timed_out() {
            return Err("the test never released the round".to_owned());
        }
        Ok(())
    }
}

/// Polls a call once, so that its request is in the queue; the call goes on when awaited.
pub(crate) async fn begun<F: Future>(call: F) -> Pin<Box<F>> {
    let mut call = Box::pin(call);
    poll_fn(|context| {
        assert!(
            call.as_mut().poll(context).is_pending(),
            "it was answered at once"
        );
        Poll::Ready(())
    })
    .await;
    call
}
