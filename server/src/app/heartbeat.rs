//! The sign of life of a stream that has nothing to tell.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::clock::{BoxFuture, Clock};

/// Comes when nothing else was sent for an interval.
pub(crate) struct Heartbeat {
    clock: Arc<dyn Clock>,
    interval: Duration,
    timer: BoxFuture<()>,
    /// How much the stream had told when it had nothing more to tell, and when that was.
    quiet: Option<(u64, Timestamp)>,
}

impl Heartbeat {
    /// The first one comes at the earliest after one interval.
    pub(crate) fn new(clock: Arc<dyn Clock>, interval: Duration) -> Self {
        Self {
            timer: clock.sleep(interval),
            clock,
            interval,
            quiet: None,
        }
    }

    /// Ready when it is time for one. The stream has told `told` events, and asks whenever it has
    /// nothing more. Its timer is not touched by an event, which would cost every event of every
    /// observer a timer: one that comes too early waits for the rest.
    pub(crate) fn poll_due(&mut self, told: u64, cx: &mut Context<'_>) -> Poll<()> {
        let since = match self.quiet {
            Some((before, since)) if before == told => since,
            _ => self.clock.now(),
        };
        self.quiet = Some((told, since));
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let now = self.clock.now();
            let left = self.interval.saturating_sub(now.since(since));
            if left.is_zero() {
                self.quiet = Some((told, now));
                self.timer = self.clock.sleep(self.interval);
                return Poll::Ready(());
            }
            self.timer = self.clock.sleep(left);
        }
    }
}
