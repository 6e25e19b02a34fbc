//! The exclusive right to write one session, as a number that only grows.

use std::fmt;

use super::ids::RunId;

/// A fencing token. Tokens grow per run and per start of the store, so that a writer that slept
/// through its own replacement can be told apart at the write.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LeaseToken(pub u64);

impl fmt::Display for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a lease is held for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Holder {
    /// A run.
    Run(RunId),
    /// A boundary mutation: a compaction, or a change that is applied in one commit.
    Boundary,
}

impl Holder {
    /// The run, if it is one.
    #[must_use]
    pub fn run(self) -> Option<RunId> {
        match self {
            Self::Run(run) => Some(run),
            Self::Boundary => None,
        }
    }
}

impl From<RunId> for Holder {
    fn from(run: RunId) -> Self {
        Self::Run(run)
    }
}

impl From<Option<RunId>> for Holder {
    fn from(run: Option<RunId>) -> Self {
        run.map_or(Self::Boundary, Self::Run)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(run) => write!(f, "run {run}"),
            Self::Boundary => f.write_str("a boundary mutation"),
        }
    }
}

/// How a commit proves its right to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseClause {
    /// Takes the lease with this commit. Refused while another token holds it, and when a newer
    /// token was ever used on the session.
    Acquire(LeaseToken),
    /// Writes under a lease that must still be held.
    Hold(LeaseToken),
    /// Writes under a lease that must still be held, and gives it up with the same commit.
    Release(LeaseToken),
    /// Recovery: takes over a lease that no live writer holds, writes once, and leaves it free.
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
