//! A signed statement of where a chain stood: kept elsewhere, it is the witness that a chain was not
//! cut or written anew since. What is signed, and what a chain must fit; the signature itself is made
//! and checked by whoever has the means.
//!
//! What must never enter: a key.

use super::canonical::Fields;
use super::chain::Link;
use crate::domain::provenance::Digest;

/// Goes first in what is signed.
const SIGNED: &[u8] = b"sessionplane.checkpoint.v1\0";

/// What a checkpoint states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckpointBody {
    /// Whose chain.
    pub tenant: String,
    /// The newest record then.
    pub seq: u64,
    /// Its hash.
    pub hash: Digest,
    /// When, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// Which key signs: the first 8 bytes of the SHA-256 of the public key, in hexadecimal digits.
    pub key_id: String,
}

impl CheckpointBody {
    /// The bytes that are signed: the encoding of `docs/audit.md`.
    #[must_use]
    pub fn signed(&self) -> Vec<u8> {
        let mut fields = Fields(SIGNED.to_vec());
        fields.text(1, Some(&self.tenant));
        fields.number(2, Some(self.seq));
        fields.bytes(3, Some(&self.hash.0));
        fields.number(4, Some(self.time_ms));
        fields.text(5, Some(&self.key_id));
        fields.0
    }
}

/// A checkpoint with its signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// What it states.
    pub body: CheckpointBody,
    /// Ed25519, over [`CheckpointBody::signed`].
    pub signature: [u8; 64],
}

/// Why a chain is not the one that a checkpoint saw.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WitnessFlaw {
    /// The chain ends before it.
    #[error(
        "the chain ends with record {end}, and a checkpoint saw record {seen}: its end was cut off"
    )]
    Cut {
        /// The last record of the chain.
        end: u64,
        /// The record that the checkpoint saw.
        seen: u64,
    },
    /// The record has another hash.
    #[error("record {seq} is not the one that a checkpoint saw: the chain was written anew")]
    Rewritten {
        /// The record.
        seq: u64,
    },
}

/// Whether a verified chain is the one that a checkpoint saw. `hash` is that of the chain's record
/// `seq`; `None` where the chain, which ends with record `end`, has none of that number.
///
/// # Errors
/// When it is not.
pub fn witness(seen: Link, hash: Option<Digest>, end: u64) -> Result<(), WitnessFlaw> {
    match hash {
        None => Err(WitnessFlaw::Cut {
            end,
            seen: seen.seq,
        }),
        Some(hash) if hash != seen.hash => Err(WitnessFlaw::Rewritten { seq: seen.seq }),
        Some(_) => Ok(()),
    }
}
