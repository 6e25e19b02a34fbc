//! Times and durations in words.

use std::time::Duration;

use sessionplane_core::domain::time::{Timestamp, date_of};

/// RFC 3339 in UTC with milliseconds.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    let millis = at.as_millis();
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = date_of(i64::try_from(days).unwrap_or(i64::MAX));
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, milli) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// How long something took, in at most two units.
pub(crate) fn age(took: Duration) -> String {
    let seconds = took.as_secs();
    match seconds {
        0..60 => format!("{seconds}.{} s", took.subsec_millis() / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// How long ago something was, in whole units of one kind and at most four characters up to 999 days.
pub(crate) fn ago(past: Duration) -> String {
    let seconds = past.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// How long something took, as [`ago`] says it, and short times to a tenth of a second.
pub(crate) fn brief(took: Duration) -> String {
    match took.as_secs() {
        seconds @ 0..10 => format!("{seconds}.{}s", took.subsec_millis() / 100),
        _ => ago(took),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_calendars_do() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_000, "2024-02-29T23:59:59.000Z"),
            (1_767_225_600_000, "2026-01-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Timestamp::from_millis(millis)), expected);
        }
    }

    #[test]
    fn an_age_in_a_table_has_one_unit() {
        for (seconds, expected) in [(10, "10s"), (61, "1m"), (7300, "2h"), (90_000, "1d")] {
            let time = Duration::from_secs(seconds);
            assert_eq!(
                (brief(time), ago(time)),
                (expected.to_owned(), expected.to_owned())
            );
        }
        for (millis, expected) in [(0, "0.0s"), (740, "0.7s"), (1600, "1.6s"), (9990, "9.9s")] {
            assert_eq!(brief(Duration::from_millis(millis)), expected);
            assert_eq!(
                ago(Duration::from_millis(millis)),
                format!("{}s", millis / 1000)
            );
        }
    }

    #[test]
    fn durations_have_at_most_two_units() {
        let said = |millis| age(Duration::from_millis(millis));
        assert_eq!(said(940), "0.9 s");
        assert_eq!(said(83_000), "1 min 23 s");
        assert_eq!(said(7_380_000), "2 h 3 min");
    }
}
