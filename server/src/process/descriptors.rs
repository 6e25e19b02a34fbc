//! How many files and connections this process may have open.
//!
//! What must never enter: what they are used for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open descriptors as far as this user may, and returns it. `None`: there is
/// no limit.
pub(super) fn raise() -> Option<u64> {
    let now = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: now.maximum,
        maximum: now.maximum,
    };
    match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => now.maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files stays as it is");
            now.current
        }
    }
}
