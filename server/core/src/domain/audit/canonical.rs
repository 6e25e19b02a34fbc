//! The one encoding that records are hashed in: `sessionplane.audit.v1`, documented in
//! `docs/audit.md` with vectors in `docs/audit-vectors.json`, which a second implementation checks.
//!
//! A field is a tag (1 byte), a length (4 bytes, big-endian) and a value. Tags increase; only that of
//! a list occurs more than once, in the list's order. What is absent is left out, and a list that is
//! empty; numbers are 8 bytes, big-endian. So each record has one encoding, and no two have the same.
//!
//! A field may be added, with a higher tag; nothing that is here may ever change.

use sha2::{Digest as _, Sha256};

use super::record::ChainRecord;
use crate::domain::ids::{RunId, SessionId, TenantId};
use crate::domain::provenance::Digest;

/// Goes first in what a record's hash is of.
pub const DOMAIN: &[u8] = b"sessionplane.audit.v1\0";
/// Goes first in what stands for the hash of the record before a chain's first.
pub const GENESIS: &[u8] = b"sessionplane.audit.v1.genesis\0";

/// What stands for the hash of the record before the first one of a tenant's chain in a store.
#[must_use]
pub fn genesis(store_id: u128, tenant: &TenantId) -> Digest {
    let mut digest = Sha256::new();
    digest.update(GENESIS);
    digest.update(store_id.to_be_bytes());
    digest.update(tenant.as_str().as_bytes());
    Digest(digest.finalize().into())
}

/// The hash of a record that follows the one with hash `previous`.
#[must_use]
pub fn seal(previous: Digest, record: &ChainRecord) -> Digest {
    let mut digest = Sha256::new();
    digest.update(DOMAIN);
    digest.update(previous.0);
    digest.update(encode(record));
    Digest(digest.finalize().into())
}

/// The canonical encoding of a record.
#[must_use]
pub fn encode(record: &ChainRecord) -> Vec<u8> {
    let mut fields = Fields(Vec::with_capacity(512));
    let ChainRecord {
        seq,
        time_ms,
        tenant,
        principal,
        credential,
        via,
        action,
        session,
        decision,
        policies,
        request_digest,
        bytes,
        request_id,
        trace_id,
        outcome,
        run,
        entries,
        message,
        series,
        ordinal,
        sandbox,
        peer,
        reason,
        count,
        last_time_ms,
    } = record;
    fields.number(1, Some(*seq));
    fields.number(2, Some(*time_ms));
    fields.text(3, Some(tenant));
    fields.text(4, principal.as_ref());
    fields.text(5, credential.as_ref());
    fields.text(6, via.as_ref());
    fields.text(7, Some(action));
    fields.bytes(8, session.map(SessionId::to_bytes).as_ref());
    fields.text(9, Some(decision));
    for policy in policies {
        fields.text(10, Some(policy));
    }
    fields.bytes(11, request_digest.map(|digest| digest.0).as_ref());
    fields.number(12, Some(*bytes));
    fields.text(13, request_id.as_ref());
    fields.text(14, trace_id.as_ref());
    fields.text(15, Some(outcome));
    fields.bytes(16, run.map(RunId::to_bytes).as_ref());
    for entry in entries {
        fields.number(17, Some(*entry));
    }
    fields.bytes(18, message.as_ref());
    fields.text(19, series.as_ref());
    fields.number(20, *ordinal);
    fields.text(21, sandbox.as_ref());
    fields.text(22, peer.as_ref());
    fields.text(23, reason.as_ref());
    fields.number(24, *count);
    fields.number(25, *last_time_ms);
    fields.0
}

/// Fields one after the other.
pub(super) struct Fields(pub(super) Vec<u8>);

impl Fields {
    pub(super) fn bytes<const N: usize>(&mut self, tag: u8, value: Option<&[u8; N]>) {
        if let Some(value) = value {
            self.field(tag, value);
        }
    }

    pub(super) fn text(&mut self, tag: u8, value: Option<&String>) {
        if let Some(value) = value {
            self.field(tag, value.as_bytes());
        }
    }

    pub(super) fn number(&mut self, tag: u8, value: Option<u64>) {
        if let Some(value) = value {
            self.field(tag, &value.to_be_bytes());
        }
    }

    fn field(&mut self, tag: u8, value: &[u8]) {
        // No text of a record comes near it; one that did would be told as longer than it is.
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
        self.0.push(tag);
        self.0.extend_from_slice(&length.to_be_bytes());
        self.0.extend_from_slice(value);
    }
}
