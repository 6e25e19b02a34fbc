//! Chains of audit records.

use sessionplane::store::v1 as form;
use sessionplane_core::domain::audit::{
    AuditRecord, Link, Refusal, RefusalKind, Refused, Series, Via,
};
use sessionplane_core::domain::ids::{PrincipalId, SessionId, TenantId};
use sessionplane_core::domain::provenance::Digest;
use sessionplane_core::domain::time::Timestamp;

use super::{Stored, Unreadable, bytes, optional, required, session_id, unknown};

/// An audit record with its number in its tenant's chain; none before it is sealed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::adapters::sled) struct SealedAudit {
    pub(in crate::adapters::sled) record: AuditRecord,
    pub(in crate::adapters::sled) seq: Option<u64>,
}

impl Stored for SealedAudit {
    type Form = form::AuditRecord;
    fn form(&self) -> Self::Form {
        form::AuditRecord {
            seq: self.seq,
            ..self.record.form()
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let seq = form.seq;
        Ok(Self {
            record: AuditRecord::read(form)?,
            seq,
        })
    }
}

/// Where a session's audit record lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::adapters::sled) struct Place {
    pub(in crate::adapters::sled) session: SessionId,
    pub(in crate::adapters::sled) series: Series,
    pub(in crate::adapters::sled) ordinal: u64,
}

/// What a link of a chain is of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::adapters::sled) enum Linked {
    /// A session's record, which lies elsewhere.
    Write(Place),
    /// Refusals.
    Refused(Refusal),
}

/// A link of a chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::adapters::sled) struct ChainLink {
    pub(in crate::adapters::sled) hash: Digest,
    pub(in crate::adapters::sled) of: Linked,
}

impl Stored for ChainLink {
    type Form = form::ChainLink;
    fn form(&self) -> Self::Form {
        let of = match &self.of {
            Linked::Write(place) => form::chain_link::Of::Write(form::AuditPlace {
                session: place.session.to_bytes().to_vec(),
                ordinal: place.ordinal,
                metadata: place.series == Series::Metadata,
            }),
            Linked::Refused(refusal) => form::chain_link::Of::Refusal(refusal.form()),
        };
        form::ChainLink {
            hash: self.hash.0.to_vec(),
            of: Some(of),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let of = match required(form.of, "of")? {
            form::chain_link::Of::Write(place) => Linked::Write(Place {
                session: session_id(&place.session)?,
                series: if place.metadata {
                    Series::Metadata
                } else {
                    Series::Session
                },
                ordinal: place.ordinal,
            }),
            form::chain_link::Of::Refusal(refusal) => Linked::Refused(Refusal::read(refusal)?),
        };
        Ok(Self {
            hash: Digest(bytes(&form.hash, "hash")?),
            of,
        })
    }
}

/// The newest link of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::adapters::sled) struct ChainEnd(pub(in crate::adapters::sled) Link);

impl Stored for ChainEnd {
    type Form = form::ChainEnd;
    fn form(&self) -> Self::Form {
        form::ChainEnd {
            seq: self.0.seq,
            hash: self.0.hash.0.to_vec(),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self(Link {
            seq: form.seq,
            hash: Digest(bytes(&form.hash, "hash")?),
        }))
    }
}

impl Stored for Refusal {
    type Form = form::RefusalRecord;
    fn form(&self) -> Self::Form {
        let (principal, credential, peer) = match &self.who {
            Refused::Known {
                principal,
                credential,
            } => (Some(principal.to_string()), credential.to_string(), None),
            Refused::Peer(peer) => {
                let peer = peer.as_ref().map(ToString::to_string);
                (None, String::new(), peer)
            }
            Refused::Nobody => (None, String::new(), None),
        };
        form::RefusalRecord {
            tenant: self.tenant.to_string(),
            first_at_ms: self.first_at.as_millis(),
            last_at_ms: self.last_at.as_millis(),
            kind: self.kind.as_str().to_owned(),
            principal,
            credential,
            peer,
            via: self.via.map(|via| via.to_string()),
            action: self.action.to_string(),
            reason: self.reason.to_string(),
            session: self.session.map(|id| id.to_bytes().to_vec()),
            policies: self.policies.to_vec(),
            count: self.count,
            somebody: matches!(self.who, Refused::Peer(_)),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let principal = optional(form.principal.as_ref(), PrincipalId::parse)?;
        let who = match (principal, form.somebody) {
            (Some(principal), _) => Refused::Known {
                principal,
                credential: form.credential.into(),
            },
            (None, true) => Refused::Peer(form.peer.map(Into::into)),
            (None, false) => Refused::Nobody,
        };
        let kind = RefusalKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == form.kind)
            .ok_or_else(|| unknown("kind"))?;
        let via = form.via.as_deref();
        Ok(Self {
            tenant: TenantId::parse(&form.tenant)?,
            first_at: Timestamp::from_millis(form.first_at_ms),
            last_at: Timestamp::from_millis(form.last_at_ms),
            kind,
            who,
            via: via
                .map(|word| Via::parse(word).ok_or_else(|| unknown("via")))
                .transpose()?,
            action: form.action.into(),
            reason: form.reason.into(),
            session: form.session.as_deref().map(session_id).transpose()?,
            policies: form.policies.into(),
            count: form.count,
        })
    }
}
