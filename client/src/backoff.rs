//! How long to wait between attempts. Values only; nothing here waits.

use std::time::Duration;

use crate::clock::{bounded, jittered};

/// Growing, jittered, bounded delays; none is longer than a year.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// Most attempts in a row, the first one included; at least 1.
    pub attempts: u32,
    /// The delay after the first failure. Doubles with each further one.
    pub first: Duration,
    /// No delay grows beyond this, unless the server asks for a longer one.
    pub longest: Duration,
}

impl Backoff {
    /// For calls: 4 attempts, 50 ms to 1 s.
    pub const CALLS: Self = Self {
        attempts: 4,
        first: Duration::from_millis(50),
        longest: Duration::from_secs(1),
    };
    /// For streams that are taken up again: 60 attempts, 50 ms to 5 s; together two to four and a
    /// half minutes of waiting.
    pub const STREAMS: Self = Self {
        attempts: 60,
        first: Duration::from_millis(50),
        longest: Duration::from_secs(5),
    };

    /// How long to wait after the `failures`-th failure in a row, counted from 1; `None` when
    /// there is no further attempt. Never shorter than what the server asked for.
    #[must_use]
    pub fn delay(&self, failures: u32, asked: Option<Duration>) -> Option<Duration> {
        if failures >= self.attempts.max(1) {
            return None;
        }
        let doublings = failures.saturating_sub(1).min(31);
        let grown = self.first.saturating_mul(1 << doublings).min(self.longest);
        Some(jittered(grown).max(bounded(asked.unwrap_or_default())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_stay_bounded_and_end() {
        let backoff = Backoff::CALLS;
        for (failures, least, most) in [(1, 25, 50), (2, 50, 100), (3, 100, 200)] {
            let delay = backoff.delay(failures, None).unwrap().as_millis();
            assert!((least..=most).contains(&delay), "{failures}: {delay}");
        }
        assert_eq!(backoff.delay(4, None), None);
        let late = Backoff::STREAMS.delay(59, None).unwrap();
        assert!(late <= Backoff::STREAMS.longest, "{late:?}");
    }

    #[test]
    fn a_delay_that_nobody_can_wait_for_is_a_year() {
        let endless = Backoff {
            attempts: u32::MAX,
            first: Duration::MAX,
            longest: Duration::MAX,
        };
        let delay = endless.delay(1, Some(Duration::MAX)).unwrap();
        assert_eq!(delay, crate::clock::LONGEST);
    }

    #[test]
    fn streams_wait_for_two_to_four_and_a_half_minutes_in_all() {
        let all = (1..60).map(|failures| Backoff::STREAMS.delay(failures, None).unwrap());
        let minutes = all.sum::<Duration>().as_secs_f64() / 60.0;
        assert!((2.0..4.5).contains(&minutes), "{minutes}");
        assert_eq!(Backoff::STREAMS.delay(60, None), None);
    }

    #[test]
    fn the_servers_wish_is_honoured() {
        let asked = Duration::from_secs(7);
        assert_eq!(Backoff::CALLS.delay(1, Some(asked)), Some(asked));
    }
}
