//! The exclusive right to write one session, as a number that only grows.

use std::fmt;

/// A fencing token. Tokens grow per run and per start of the store, so that a writer that slept
/// through its own replacement can be told apart at the write.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LeaseToken(pub u64);

impl fmt::Display for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a commit proves its right to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseClause {
    /// Takes the lease with this commit. Refused while another token holds it, while a run that was
    /// cut is not settled, and when a newer token was ever used on the session.
    Acquire(LeaseToken),
    /// Writes under a lease that must still be held.
    Hold(LeaseToken),
    /// Writes under a lease that must still be held, and gives it up with the same commit.
    Release(LeaseToken),
    /// Recovery: takes over a lease that no live writer holds, writes once, and leaves it free.
    /// Refused where the records name another run than the commit's as the one that was cut.
    Recover(LeaseToken),
}

impl LeaseClause {
    /// The token that the commit is written under.
    #[must_use]
    pub fn token(self) -> LeaseToken {
        match self {
            Self::Acquire(token)
            | Self::Hold(token)
            | Self::Release(token)
            | Self::Recover(token) => token,
        }
    }
}
