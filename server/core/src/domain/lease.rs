//! The exclusive right to write one session, as a number that only grows.

use std::fmt;

use super::ids::RunId;

/// A fencing token. Tokens grow per run and per start of the store, so that a writer that slept
/// through its own replacement can be told apart at the write.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LeaseToken(pub u64);

/// Bits that number the tokens of one start. 2^40 last for three years at 10,000 a second; every run,
/// and every session that is read cold, takes one. The 24 bits above count the starts.
const NUMBER_BITS: u32 = 40;

impl LeaseToken {
    /// Token `number` (from 1) of start `start` (from 1); none where either is spent. Those of one
    /// start are above all of the starts before it, also above those that an earlier server minted
    /// with 32 bits for each.
    #[must_use]
    pub fn minted(start: u32, number: u64) -> Option<Self> {
        let fits = number >> NUMBER_BITS == 0 && u64::from(start) >> (u64::BITS - NUMBER_BITS) == 0;
        fits.then_some(Self(u64::from(start) << NUMBER_BITS | number))
    }

    /// The start that it is of; 0 for tokens that an earlier server minted.
    #[must_use]
    pub fn start(self) -> u32 {
        // 24 bits are left of 64.
        u32::try_from(self.0 >> NUMBER_BITS).unwrap_or(u32::MAX)
    }
}

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
    /// Takes the lease with this commit. Refused while another token holds it, while a run that was
    /// cut is not settled, and when a newer token was ever used on the session.
    Acquire(LeaseToken),
    /// Writes under a lease that must still be held.
    Hold(LeaseToken),
    /// Writes under a lease that must still be held, and gives it up with the same commit.
    Release(LeaseToken),
    /// Takes a lease that no live writer holds, writes once, and leaves it free: the end of what a
    /// crash cut; every change of settings or of the leaf; and an admission whose abort is in the
    /// same commit. Refused where the records name another holder than the commit's as the one that
    /// was cut.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c41_the_tokens_of_a_start_are_above_all_former_ones_and_do_not_run_out() {
        let minted = |start, number| LeaseToken::minted(start, number);
        let last = minted(1, (1 << 40) - 1);
        assert!(minted(1, 1) < minted(1, 1 << 32) && minted(1, 1 << 32) < last);
        assert!(last < minted(2, 1) && last.is_some());
        assert_eq!(minted(1, 1 << 40), None);
        assert!(minted((1 << 24) - 1, 1).is_some());
        assert_eq!(minted(1 << 24, 1), None);
        // As they were minted before.
        let former = LeaseToken(7 << 32 | 0xffff_ffff);
        assert!(minted(8, 1) > Some(former));
    }
}
