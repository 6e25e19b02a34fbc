//! Whether records are a tenant's chain, told one after the other: the first that is not what was
//! sealed is named.
//!
//! What must never enter: where records come from.

use super::canonical::seal;
use super::record::ChainRecord;
use crate::domain::provenance::Digest;

/// A place in a chain: a record's number and its hash. Number 0 stands before the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The record's number.
    pub seq: u64,
    /// Its hash; the genesis before the first.
    pub hash: Digest,
}

/// A record as it was sealed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sealed {
    /// The record.
    pub record: ChainRecord,
    /// The hash of the one before it.
    pub previous: Digest,
    /// Its own.
    pub hash: Digest,
}

impl Sealed {
    /// Its place.
    #[must_use]
    pub fn link(&self) -> Link {
        Link {
            seq: self.record.seq,
            hash: self.hash,
        }
    }
}

/// What is wrong with a record.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Flaw {
    /// Records are missing before it, or it is out of its place.
    #[error("record {expected} is missing: record {found} stands in its place")]
    Missing {
        /// The number that was to come.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// It is of another tenant's chain.
    #[error("it is of the tenant {found}, not of {expected}")]
    OtherTenant {
        /// Whose chain it is.
        expected: String,
        /// Whose record it is.
        found: String,
    },
    /// It follows another record than the one before it.
    #[error("it does not follow the record before it")]
    NotLinked,
    /// Its hash is not that of what it says.
    #[error("it was changed: its hash is not that of what it says")]
    Changed,
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// The chain ends before it.
    #[error("it is missing: the chain ends before it")]
    CutOff,
    /// The chain goes on beyond what it is to end with.
    #[error("it is beyond the end of the chain, which is record {end}")]
    Beyond {
        /// The last record of the chain.
        end: u64,
    },
    /// It has another hash than the end of the chain that is known.
    #[error("it is not the record that the chain is known to end with")]
    OtherEnd,
}

/// The first bad record of a chain.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("record {seq}: {flaw}")]
pub struct Broken {
    /// Its number, or the one that it was to have.
    pub seq: u64,
    /// What is wrong.
    pub flaw: Flaw,
}

/// Reads a chain, record after record.
#[derive(Clone, Debug)]
pub struct Verifier {
    tenant: String,
    at: Link,
    /// Whether the hash of the record before the next one is known.
    anchored: bool,
}

impl Verifier {
    /// Of a chain from a place on, whose hash is trusted: the genesis, or one that was verified.
    #[must_use]
    pub fn after(tenant: &str, at: Link) -> Self {
        Self {
            tenant: tenant.to_owned(),
            at,
            anchored: true,
        }
    }

    /// Of a part of a chain, that begins after record `seq`: the hash of that one is taken from the
    /// first record, so that only what comes after it is proven to belong together.
    #[must_use]
    pub fn unanchored(tenant: &str, seq: u64) -> Self {
        Self {
            tenant: tenant.to_owned(),
            at: Link {
                seq,
                hash: Digest([0; 32]),
            },
            anchored: false,
        }
    }

    /// The last record that was found good.
    #[must_use]
    pub fn at(&self) -> Link {
        self.at
    }

    /// The next record.
    ///
    /// # Errors
    /// What is wrong with it. Nothing that comes after it proves anything then.
    pub fn next(&mut self, sealed: &Sealed) -> Result<(), Broken> {
        let Sealed {
            record,
            previous,
            hash,
        } = sealed;
        let expected = self.at.seq + 1;
        let broken = |flaw| {
            Err(Broken {
                seq: expected,
                flaw,
            })
        };
        if record.seq != expected {
            return broken(Flaw::Missing {
                expected,
                found: record.seq,
            });
        }
        if record.tenant != self.tenant {
            return broken(Flaw::OtherTenant {
                expected: self.tenant.clone(),
                found: record.tenant.clone(),
            });
        }
        if self.anchored && *previous != self.at.hash {
            return broken(Flaw::NotLinked);
        }
        if seal(*previous, record) != *hash {
            return broken(Flaw::Changed);
        }
        self.anchored = true;
        self.at = sealed.link();
        Ok(())
    }

    /// No record comes any more, and the chain is known to end with `end`.
    ///
    /// # Errors
    /// When it does not.
    pub fn ends(&self, end: Link) -> Result<(), Broken> {
        let at = self.at;
        if at.seq < end.seq {
            return Err(Broken {
                seq: at.seq + 1,
                flaw: Flaw::CutOff,
            });
        }
        if at.seq > end.seq {
            return Err(Broken {
                seq: end.seq + 1,
                flaw: Flaw::Beyond { end: end.seq },
            });
        }
        if at.hash != end.hash {
            return Err(Broken {
                seq: at.seq,
                flaw: Flaw::OtherEnd,
            });
        }
        Ok(())
    }
}
