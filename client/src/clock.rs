//! The one place of the SDK that reads a clock and draws chance. Nothing here decides anything.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sessionplane_core::domain::ids::{RequestId, RunId};
use sessionplane_core::domain::time::Timestamp;

/// The longest time that anything waits, a year: libraries below add times to the present one, and
/// some of them panic where that is too much.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A time that a caller gave, at most [`LONGEST`].
pub(crate) fn bounded(time: Duration) -> Duration {
    time.min(LONGEST)
}

/// The wall time.
#[expect(
    clippy::disallowed_methods,
    reason = "a caller's process has no context to take a clock from; only ids and ages are made of it"
)]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp::from_millis(since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }))
}

/// The monotonic time, to tell a connection that lasted from one that broke at once.
#[expect(
    clippy::disallowed_methods,
    reason = "tests own the runtime's time, which this reads"
)]
pub(crate) fn instant() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// Makes a request id: the text of a new ULID.
#[must_use]
pub fn mint_request_id() -> RequestId {
    // A run id is a ULID; borrowing its mint keeps the text form in one place.
    let ulid = RunId::mint(now(), rand::random()).to_string();
    match RequestId::parse(&ulid) {
        Ok(id) => id,
        Err(error) => unreachable!("a ULID is printable ASCII: {error}"),
    }
}

/// A delay between one half of `delay` and the whole of it.
pub(crate) fn jittered(delay: Duration) -> Duration {
    bounded(delay).mul_f64(rand::random_range(0.5..=1.0))
}
