//! Points in time and lengths of time.

use std::time::Duration;

use sessionplane_core::domain::time::Timestamp;

/// A point in time.
pub(crate) fn timestamp(at: Timestamp) -> prost_types::Timestamp {
    let millis = at.as_millis();
    prost_types::Timestamp {
        seconds: i64::try_from(millis / 1000).unwrap_or(i64::MAX),
        nanos: i32::try_from(millis % 1000).unwrap_or(0) * 1_000_000,
    }
}

/// A length of time. Those beyond what the wire can say become the longest it can.
pub(crate) fn duration(length: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(length.subsec_nanos()).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_become_seconds_and_nanoseconds() {
        let wire = timestamp(Timestamp::from_millis(1_700_000_000_123));
        assert_eq!((wire.seconds, wire.nanos), (1_700_000_000, 123_000_000));
        let wire = duration(Duration::from_millis(2_500));
        assert_eq!((wire.seconds, wire.nanos), (2, 500_000_000));
    }
}
