//! Points in time, as facts that come from outside. Nothing here reads a clock.

use std::time::Duration;

/// Milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// From milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }
    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }
    /// The time `by` later, saturating.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)),
        )
    }
    /// How long after `earlier` this is; zero when it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// Year, month (1 to 12) and day (1 to 31) of a day that is counted from 1970-01-01, in the Gregorian
/// calendar: the days of Howard Hinnant's `civil_from_days`. Years begin in March there, so that a leap
/// day is the last of its year, and eras of 400 years are all alike. Days that are out of all reason are
/// taken for the last one that is not.
#[must_use]
pub fn date_of(day: i64) -> (i64, i64, i64) {
    const REASON: i64 = 1 << 40;
    let shifted = day.clamp(-REASON, REASON) + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_its_date() {
        for (day, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (20_787, (2026, 11, 30)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date_of(day), date, "{day}");
        }
        assert!(date_of(i64::MAX) > date_of(0) && date_of(i64::MIN) < date_of(0));
    }
}
