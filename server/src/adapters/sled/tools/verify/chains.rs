//! Chains of audit records: links one after the other, each of what it says, to the end that is noted.

use std::collections::BTreeMap;

use sessionplane_core::domain::audit::{Link, Sealed, Verifier, genesis};
use sessionplane_core::domain::ids::{SessionId, TenantId};

use super::lookup::{Verdict, parsed};
use crate::adapters::sled::committer::Direct;
use crate::adapters::sled::convert::{ChainEnd, ChainLink, Linked};
use crate::adapters::sled::keys;
use crate::adapters::sled::seal;

/// Where the chain stands that is being read, and where the others ended.
pub(super) struct Chains {
    store_id: u128,
    at: Option<(TenantId, Verifier)>,
    ended: BTreeMap<TenantId, Link>,
    /// Something is wrong with one of them, or with what a link is of.
    pub(super) broken: bool,
}

impl Chains {
    pub(super) fn of(store_id: u128) -> Self {
        Self {
            store_id,
            at: None,
            ended: BTreeMap::new(),
            broken: false,
        }
    }

    /// The next link. Where something is wrong with it, the one after it is held to what this one
    /// says that it is, so that each fault is told once.
    pub(super) fn link(
        &mut self,
        source: &Direct<'_>,
        key: &[u8],
        payload: &[u8],
    ) -> (Option<SessionId>, Verdict) {
        let Some((tenant, Some(seq))) = keys::chained(key) else {
            return (None, Err("no server writes such a key".to_owned()));
        };
        let row: ChainLink = match parsed(key, payload) {
            Ok(row) => row,
            Err(problem) => return (None, Err(problem)),
        };
        let session = match &row.of {
            Linked::Write(place) => Some(place.session),
            Linked::Refused(refusal) => refusal.session,
        };
        let mut verifier = self.take(&tenant);
        let mut unread = false;
        let verdict = match seal::linked(source, seq, &row.of) {
            Ok(Ok(record)) => {
                let previous = verifier.at().hash;
                let hash = row.hash;
                let next = verifier.next(&Sealed {
                    record,
                    previous,
                    hash,
                });
                next.map_err(|broken| broken.flaw.to_string())
            }
            Ok(Err(problem)) => Err(problem),
            // That is told at its own place.
            Err(_) => {
                unread = true;
                Ok(())
            }
        };
        self.broken |= unread || verdict.is_err();
        let at = Link {
            seq,
            hash: row.hash,
        };
        if verifier.at() != at {
            verifier = Verifier::after(tenant.as_str(), at);
        }
        self.at = Some((tenant, verifier));
        (session, verdict)
    }

    /// A link that cannot be read: what follows it is not held to anything that it says.
    pub(super) fn skip(&mut self, key: &[u8]) {
        self.broken = true;
        if let Some((tenant, Some(seq))) = keys::chained(key) {
            let verifier = Verifier::unanchored(tenant.as_str(), seq);
            self.at = Some((tenant, verifier));
        }
    }

    /// What stands before the next link of a tenant's chain.
    fn take(&mut self, tenant: &TenantId) -> Verifier {
        if let Some((at, verifier)) = self.at.take() {
            if at == *tenant {
                return verifier;
            }
            self.ended.insert(at, verifier.at());
        }
        let hash = genesis(self.store_id, tenant);
        Verifier::after(tenant.as_str(), Link { seq: 0, hash })
    }

    /// The end of a chain as it is noted. Ends come after all links.
    pub(super) fn end(&mut self, key: &[u8], payload: &[u8]) -> Verdict {
        self.close();
        let Some((tenant, None)) = keys::chained(key) else {
            return Err("no server writes such a key".to_owned());
        };
        let ChainEnd(end) = parsed(key, payload)?;
        let Some(at) = self.ended.remove(&tenant) else {
            return Err(format!("it names record {}, and there is none", end.seq));
        };
        let ends = Verifier::after(tenant.as_str(), at).ends(end);
        ends.map_err(|broken| broken.to_string())
    }

    /// Chains that end without a note of it.
    pub(super) fn unended(&mut self) -> Vec<String> {
        self.close();
        let unended = std::mem::take(&mut self.ended).into_keys();
        unended
            .map(|tenant| keys::describe(&keys::chain_end(&tenant)))
            .collect()
    }

    fn close(&mut self) {
        if let Some((tenant, verifier)) = self.at.take() {
            self.ended.insert(tenant, verifier.at());
        }
    }
}
