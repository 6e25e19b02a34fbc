//! Log lines that anybody can cause: told once in a while, with how often there was reason to.
//!
//! What must never enter: what is told.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::now;

/// How often at most.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Tells of one kind of thing.
#[derive(Default)]
pub(crate) struct Seldom(Mutex<Untold>);

#[derive(Default)]
struct Untold {
    told: Option<Instant>,
    times: u64,
}

impl Seldom {
    /// It happened. `tell` is given how often since it was told last, and is called if that is long
    /// enough ago.
    pub(crate) fn tell(&self, tell: impl FnOnce(u64)) {
        // Nothing under the lock can panic and leave it half changed.
        let mut untold = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        untold.times += 1;
        if untold.told.is_some_and(|told| told.elapsed() < TELL_EVERY) {
            return;
        }
        untold.told = Some(now());
        let times = std::mem::take(&mut untold.times);
        drop(untold);
        tell(times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_happens_often_is_told_seldom_and_counted() {
        let seldom = Seldom::default();
        let mut told = Vec::new();
        for after in [0, 1, 8, 1, 30] {
            tokio::time::advance(Duration::from_secs(after)).await;
            seldom.tell(|times| told.push(times));
        }
        assert_eq!(told, [1, 3, 1]);
    }
}
