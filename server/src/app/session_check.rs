//! What the machine leaves behind, judged by the numbered invariants in debug builds.
//!
//! A state that breaks one is a bug: it is told to the log with its number, and the session's task
//! panics before it acts on it. A release build judges nothing.

use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::invariants::{self, Violation};
use sessionplane_core::domain::lifecycle::Session;

/// Judges a state, in debug builds.
pub(super) fn judge(session: &Session) {
    if cfg!(debug_assertions) {
        hold(session.id(), invariants::check(session));
    }
}

fn hold(session: SessionId, judged: Result<(), Violation>) {
    if let Err(violation) = judged {
        tracing::error!(%session, rule = violation.rule, %violation, "a bug: an invariant is broken");
        panic!("{violation}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "I05 does not hold")]
    fn a_broken_invariant_ends_the_task() {
        let violation = Violation {
            rule: "I05",
            text: "two inputs are handed".to_owned(),
        };
        hold(SessionId::from_bytes([1; 16]), Err(violation));
    }
}
