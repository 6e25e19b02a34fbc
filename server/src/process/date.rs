//! Times as people read them: UTC, by the calendar.

use std::time::Duration;

use sessionplane_core::domain::time::{Timestamp, date_of};

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// `2026-11-30`.
#[must_use]
pub fn day(at: Timestamp) -> String {
    let days = at.as_millis() / 1000 / DAY_SECONDS;
    let (year, month, day) = date_of(i64::try_from(days).unwrap_or(i64::MAX));
    format!("{year:04}-{month:02}-{day:02}")
}

/// `2026-11-30T09:05:00Z`.
#[must_use]
pub fn moment(at: Timestamp) -> String {
    let seconds = at.as_millis() / 1000 % DAY_SECONDS;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", day(at))
}

/// `20261130T090500Z`, as a part of a file's name.
#[must_use]
pub fn compact(at: Timestamp) -> String {
    moment(at).replace(['-', ':'], "")
}

/// How long ago something was: `12m ago`, `3h ago`, `45d ago`.
#[must_use]
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    match now.since(at).as_secs() {
        0..60 => "just now".to_owned(),
        seconds @ 60..3600 => format!("{}m ago", seconds / 60),
        seconds if seconds < 2 * DAY_SECONDS => format!("{}h ago", seconds / 3600),
        seconds => format!("{}d ago", seconds / DAY_SECONDS),
    }
}

/// A length like `90d`, `12h`, `15m` or `30s`.
///
/// # Errors
/// What is wrong with it, and the way out.
pub fn length(text: &str) -> Result<Duration, String> {
    let wrong = || "must be a number and one of d, h, m, s, like 90d".to_owned();
    let unit = match text.chars().last() {
        Some('d') => DAY_SECONDS,
        Some('h') => 3600,
        Some('m') => 60,
        Some('s') => 1,
        _ => return Err(wrong()),
    };
    let count = &text[..text.len() - 1];
    if count.is_empty() || !count.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let count: u64 = count.parse().map_err(|_| wrong())?;
    let seconds = count.checked_mul(unit).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_by_the_calendar() {
        for (seconds, told) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_796_029_500, "2026-11-30T09:05:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(moment(Timestamp::from_millis(seconds * 1000)), told);
        }
        let at = Timestamp::from_millis(1_796_029_500_000);
        assert_eq!(compact(at), "20261130T090500Z");
    }

    #[test]
    fn what_is_past_is_told_by_its_largest_unit() {
        let now = Timestamp::from_millis(1_796_029_500_000);
        for (seconds, told) in [
            (0, "just now"),
            (59, "just now"),
            (60, "1m ago"),
            (3599, "59m ago"),
            (3600, "1h ago"),
            (47 * 3600, "47h ago"),
            (48 * 3600, "2d ago"),
            (3660 * DAY_SECONDS, "3660d ago"),
        ] {
            let at = Timestamp::from_millis(now.as_millis() - seconds * 1000);
            assert_eq!(ago(at, now), told);
        }
        assert_eq!(ago(now.after(Duration::from_secs(9)), now), "just now");
    }

    #[test]
    fn lengths_are_a_number_and_a_unit() {
        assert_eq!(length("90d"), Ok(Duration::from_secs(90 * DAY_SECONDS)));
        assert_eq!(length("12h"), Ok(Duration::from_secs(43_200)));
        assert_eq!(length("15m"), Ok(Duration::from_secs(900)));
        assert_eq!(length("30s"), Ok(Duration::from_secs(30)));
        for wrong in [
            "",
            "d",
            "90",
            "9 d",
            "-1d",
            "1.5h",
            "99999999999999999999d",
            "1ü",
        ] {
            assert!(length(wrong).is_err(), "{wrong}");
        }
    }
}
