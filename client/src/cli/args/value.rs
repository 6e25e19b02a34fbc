//! Counts and times as a command line writes them, with words for what is none.

use std::ffi::OsStr;
use std::num::IntErrorKind;
use std::time::Duration;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use sessionplane_core::domain::event::EVENT_TYPES;

use crate::clock::LONGEST;

/// Reads a count.
pub(super) fn count(text: &str) -> Result<u32, String> {
    whole(text, 0)
}

/// Reads a count of at least one.
pub(super) fn count_from_one(text: &str) -> Result<u32, String> {
    whole(text, 1)
}

fn whole(text: &str, least: u32) -> Result<u32, String> {
    let most = u32::MAX;
    match text.parse::<u32>() {
        Ok(count) if count >= least => Ok(count),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
            Err(format!("is too large; the largest is {most}"))
        }
        _ => Err(format!("must be a whole number, {least} or more")),
    }
}

/// Reads a duration: a number and `ms`, `s`, `m` or `h`; a bare number is seconds. At most a year.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("write a number and ms, s, m or h, for example 30s".to_owned()),
    };
    if number.is_empty() {
        return Err("must begin with a number, for example 30s".to_owned());
    }
    // Only digits are left: what cannot be read as a number is too large for one.
    let number = number.parse::<u64>().ok();
    let millis = number.and_then(|number| number.checked_mul(factor));
    match millis.map(Duration::from_millis) {
        Some(Duration::ZERO) => Err("must be more than nothing".to_owned()),
        Some(time) if time <= LONGEST => Ok(time),
        _ => Err(format!(
            "is too long; the longest is {}h",
            LONGEST.as_secs() / 3600
        )),
    }
}

/// Reads a type of events. Those that are known are offered, and no other one is refused: a newer
/// server may have more.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventType;

impl TypedValueParser for EventType {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(EVENT_TYPES.into_iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_is_too_large_says_what_the_largest_is() {
        assert_eq!(count("4294967295"), Ok(u32::MAX));
        for (read, least) in [(count as fn(&str) -> _, 0), (count_from_one, 1)] {
            let large = read("99999999999").unwrap_err();
            assert_eq!(large, "is too large; the largest is 4294967295");
            let none = read("many").unwrap_err();
            assert_eq!(none, format!("must be a whole number, {least} or more"));
        }
        assert!(count_from_one("0").is_err());
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        for bad in ["", "s", "0s", "-1s", "1.5s", "5 s", "99999999999999999999h"] {
            assert!(duration(bad).is_err(), "{bad:?} was accepted");
        }
        assert_eq!(duration("8760h"), Ok(LONGEST));
        for long in ["99999999999999999999s", "18446744073709551615h", "8761h"] {
            assert!(duration(long).unwrap_err().contains("too long"), "{long}");
        }
        assert_eq!(duration("0s").unwrap_err(), "must be more than nothing");
    }
}
