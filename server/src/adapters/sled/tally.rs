//! A sum over all that the store holds, kept with every round, so that whoever reads everything can
//! tell that nothing is missing, old or foreign: sled may lose a change in the middle of its log
//! without a word (decision 0009).
//!
//! Each value carries a checksum over its key and itself, which every read looks at. The sum is over
//! keys and those checksums; a changed value takes its former term out and puts its new one in. It
//! guards against accidents: whoever forges a store on purpose can forge the sum.

use sha2::{Digest as _, Sha256};

use super::frame;

/// How many keys there are, and their sum.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Tally {
    /// The keys.
    pub(super) keys: u64,
    /// The sum, modulo 2^128.
    pub(super) sum: u128,
}

impl Tally {
    /// Takes a value in.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.keys = self.keys.wrapping_add(1);
        self.sum = self.sum.wrapping_add(term(key, value));
    }

    /// Takes a value out.
    pub(super) fn remove(&mut self, key: &[u8], value: &[u8]) {
        self.keys = self.keys.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(term(key, value));
    }
}

/// The first half of the SHA-256 of the key's length, the key, the value's length and its guard.
fn term(key: &[u8], value: &[u8]) -> u128 {
    let mut digest = Sha256::new();
    digest.update((key.len() as u64).to_be_bytes());
    digest.update(key);
    digest.update((value.len() as u64).to_be_bytes());
    digest.update(&value[..value.len().min(frame::GUARD)]);
    let digest: [u8; 32] = digest.finalize().into();
    digest
        .first_chunk()
        .map_or(0, |half| u128::from_be_bytes(*half))
}
