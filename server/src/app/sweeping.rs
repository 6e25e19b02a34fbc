//! Forgets request bindings whose time is over, a few at a time and never all the time.
//!
//! What must never enter: what a binding is and how one is forgotten, which are the store's.

use std::time::Duration;

use super::context::App;

/// How often old request bindings are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// Bindings that one pass forgets at most; the next pass goes on.
const SWEEP_AT_MOST: usize = 1000;
/// Rests as long as a pass took, in these times, before the next one of a row: after a day at rest a
/// million may be due at once, and writes and reads wait behind whoever forgets them.
const SWEEP_REST: u32 = 3;

impl App {
    /// Forgets request bindings whose time is over, for as long as it is polled.
    pub async fn forget_bindings(&self) {
        let clock = &self.context.ports.clock;
        loop {
            let began = clock.now();
            let swept = self.sweep_bindings(SWEEP_AT_MOST).await;
            match &swept {
                Ok(0 | SWEEP_AT_MOST) => {}
                Ok(count) => tracing::info!(count, "forgot old request bindings"),
                Err(error) => {
                    tracing::warn!(%error, "request bindings could not be swept; trying again later");
                }
            }
            let took = clock.now().as_millis().saturating_sub(began.as_millis());
            let more = matches!(swept, Ok(SWEEP_AT_MOST));
            clock
                .sleep(sweep_again_after(Duration::from_millis(took), more))
                .await;
        }
    }
}

/// How long the next pass waits after one that took so long, and after which there may be more: a busy
/// server binds faster than one pass an interval forgets.
fn sweep_again_after(took: Duration, more: bool) -> Duration {
    if more {
        took.saturating_mul(SWEEP_REST).min(SWEEP_EVERY)
    } else {
        SWEEP_EVERY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c03_a_row_of_passes_rests_longer_than_it_works_and_none_rests_longer_than_without_a_row() {
        let ms = Duration::from_millis;
        assert_eq!(sweep_again_after(ms(50), true), ms(150));
        assert_eq!(sweep_again_after(Duration::MAX, true), SWEEP_EVERY);
        assert_eq!(sweep_again_after(ms(50), false), SWEEP_EVERY);
    }
}
