//! What must always be true, as numbered predicates with one home.
//!
//! [`check`] judges one state of the session state machine (I01 to I22); [`Trace`] judges what a
//! shell made of it: commits, events, hand-overs and answers (T01 to T26). Debug builds of the
//! server (`check`), the seeded driver, property tests and reviews all use these same predicates;
//! `docs/invariants.md` lists them. A predicate says what is wrong and never mends it.
//!
//! What must never enter: a decision, an effect, or a rule that only a test knows.

mod state;
mod trace;

pub use state::check;
pub use trace::Trace;

/// A predicate that did not hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{rule} does not hold: {text}")]
pub struct Violation {
    /// The predicate's number, as `docs/invariants.md` lists it.
    pub rule: &'static str,
    /// What was found instead, for a developer.
    pub text: String,
}

/// Whether one predicate holds.
type Held = Result<(), Violation>;

fn ensure(holds: bool, rule: &'static str, text: impl FnOnce() -> String) -> Held {
    if holds {
        Ok(())
    } else {
        Err(Violation { rule, text: text() })
    }
}
