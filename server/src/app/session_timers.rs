//! The running delays of one session.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use sessionplane_core::domain::lifecycle::{EngineTag, Timer};
use sessionplane_core::ports::clock::{BoxFuture, Clock};

/// At most one running delay of each kind.
#[derive(Default)]
pub(crate) struct SessionTimers {
    running: Vec<(Timer, EngineTag, BoxFuture<()>)>,
}

impl SessionTimers {
    pub(crate) fn start(
        &mut self,
        clock: &Arc<dyn Clock>,
        tag: EngineTag,
        timer: Timer,
        after: Duration,
    ) {
        self.cancel(timer);
        self.running.push((timer, tag, clock.sleep(after)));
    }

    pub(crate) fn cancel(&mut self, timer: Timer) {
        self.running.retain(|(kind, ..)| *kind != timer);
    }

    /// The next delay that is over. Cancel-safe; pending while none runs.
    pub(crate) async fn next(&mut self) -> (Timer, EngineTag) {
        poll_fn(|cx| {
            let over = self
                .running
                .iter_mut()
                .position(|(_, _, delay)| delay.as_mut().poll(cx).is_ready());
            match over {
                Some(at) => {
                    let (timer, tag, _) = self.running.swap_remove(at);
                    Poll::Ready((timer, tag))
                }
                None => Poll::Pending,
            }
        })
        .await
    }
}
