//! The store's own record, a session's rows, its addresses and its lease.

use std::collections::BTreeMap;
use std::sync::Arc;

use sessionplane::store::v1 as form;
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue, Labels, Priority};
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::ids::{
    AgentName, ExternalKey, SessionId, SessionName, TenantId, WorkspaceName,
};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::place::{Checkout, Directory, Place};
use sessionplane_core::domain::run::{Failure, RunOutcome, Settlement};
use sessionplane_core::domain::session::{LastRun, Lineage, SessionHead, SessionRecord};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::lease_store::HeldLease;
use sessionplane_core::ports::repository::DeletedSession;

use crate::adapters::sled::tally::Tally;

use super::{
    Link, Stored, Unreadable, bytes, link, maybe, maybe_run, optional, part, required, run_form,
    run_id, session_id, unknown,
};

/// The store's own record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::adapters::sled) struct Meta {
    /// The version of the stored forms.
    pub(in crate::adapters::sled) format_version: u32,
    /// Identifies the store.
    pub(in crate::adapters::sled) store_id: u128,
    /// How often the store was opened, this time included.
    pub(in crate::adapters::sled) boots: u32,
}

impl Stored for Meta {
    type Form = form::MetaRecord;
    fn form(&self) -> Self::Form {
        form::MetaRecord {
            format_version: self.format_version,
            store_id: self.store_id.to_be_bytes().to_vec(),
            boots: self.boots,
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            format_version: form.format_version,
            store_id: u128::from_be_bytes(bytes(&form.store_id, "store_id")?),
            boots: form.boots,
        })
    }
}

/// The newest round, and what the store holds after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::adapters::sled) struct RoundRow {
    /// Its number.
    pub(in crate::adapters::sled) number: u64,
    /// What the store holds; none before format 3.
    pub(in crate::adapters::sled) tally: Option<Tally>,
}

impl Stored for RoundRow {
    type Form = form::RoundRecord;
    fn form(&self) -> Self::Form {
        form::RoundRecord {
            number: self.number,
            keys: self.tally.map_or(0, |tally| tally.keys),
            sum: self
                .tally
                .map(|tally| tally.sum.to_be_bytes().to_vec())
                .unwrap_or_default(),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let tally = |sum: &[u8]| {
            Ok::<_, Unreadable>(Tally {
                keys: form.keys,
                sum: u128::from_be_bytes(bytes(sum, "sum")?),
            })
        };
        let counted = (!form.sum.is_empty()).then_some(&form.sum[..]);
        Ok(Self {
            number: form.number,
            tally: counted.map(tally).transpose()?,
        })
    }
}

impl Stored for SessionRecord {
    type Form = form::SessionRecord;
    fn form(&self) -> Self::Form {
        // What was never changed is written as it was before there was anything to change.
        let first = (self.created_at, 1);
        let changed = Some(&self.metadata).filter(|it| (it.updated_at, it.revision) != first);
        form::SessionRecord {
            id: self.id.to_bytes().to_vec(),
            tenant: self.tenant.to_string(),
            name: self.metadata.name.as_ref().map(ToString::to_string),
            external_key: self.external_key.as_ref().map(ToString::to_string),
            agent: self.agent.to_string(),
            created_at_ms: self.created_at.as_millis(),
            lineage: self.lineage.as_ref().map(Stored::form),
            labels: label_forms(&self.metadata.labels),
            priority: i32::from(self.metadata.priority.get()),
            paused: self.metadata.paused,
            updated_at_ms: changed.map_or(0, |it| it.updated_at.as_millis()),
            metadata_revision: changed.map_or(0, |it| it.revision),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let metadata = Metadata {
            name: optional(form.name.as_ref(), SessionName::parse)?,
            labels: labels(&form.labels)?,
            priority: Priority::parse(form.priority.into())?,
            paused: form.paused,
            updated_at: Timestamp::from_millis(form.updated_at_ms.max(form.created_at_ms)),
            revision: form.metadata_revision.max(1),
        };
        Ok(Self {
            metadata,
            id: session_id(&form.id)?,
            tenant: TenantId::parse(&form.tenant)?,
            external_key: optional(form.external_key.as_ref(), ExternalKey::parse)?,
            agent: AgentName::parse(&form.agent)?,
            created_at: Timestamp::from_millis(form.created_at_ms),
            lineage: maybe(form.lineage)?,
        })
    }
}

impl Stored for Metadata {
    type Form = form::Metadata;
    fn form(&self) -> Self::Form {
        form::Metadata {
            name: self.name.as_ref().map(ToString::to_string),
            labels: label_forms(&self.labels),
            priority: i32::from(self.priority.get()),
            paused: self.paused,
            updated_at_ms: self.updated_at.as_millis(),
            revision: self.revision,
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            name: optional(form.name.as_ref(), SessionName::parse)?,
            labels: labels(&form.labels)?,
            priority: Priority::parse(form.priority.into())?,
            paused: form.paused,
            updated_at: Timestamp::from_millis(form.updated_at_ms),
            revision: form.revision,
        })
    }
}

fn label_forms(labels: &Labels) -> BTreeMap<String, String> {
    let text = |(key, value): (&LabelKey, &LabelValue)| {
        (key.as_str().to_owned(), value.as_str().to_owned())
    };
    labels.iter().map(text).collect()
}

fn labels(forms: &BTreeMap<String, String>) -> Result<Labels, Unreadable> {
    let parsed = forms.iter().map(|(key, value)| {
        Ok::<_, Unreadable>((LabelKey::parse(key)?, LabelValue::parse(value)?))
    });
    let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
    Labels::of(parsed).map_err(|_| unknown("labels"))
}

impl Stored for Place {
    type Form = form::Place;
    fn form(&self) -> Self::Form {
        form::Place {
            workspace: self.workspace.to_string(),
            directory: self.directory.to_string(),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            workspace: WorkspaceName::parse(&form.workspace)?,
            directory: Directory::parse(&form.directory)?,
        })
    }
}

impl Stored for Checkout {
    type Form = form::Checkout;
    fn form(&self) -> Self::Form {
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        form::Checkout {
            branch: text(&self.branch),
            commit: text(&self.commit),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            branch: form.branch.map(Into::into),
            commit: form.commit.map(Into::into),
        })
    }
}

impl Stored for Lineage {
    type Form = form::Lineage;
    fn form(&self) -> Self::Form {
        form::Lineage {
            parent: self.parent.to_bytes().to_vec(),
            entry: self.entry.map(|id| id.form()),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            parent: session_id(&form.parent)?,
            entry: maybe(form.entry)?,
        })
    }
}

/// A session's head as it is stored.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::adapters::sled) struct HeadRow {
    /// The head.
    pub(in crate::adapters::sled) head: SessionHead,
    /// The checksum of the last entry's record; 0 before the first.
    pub(in crate::adapters::sled) entries_checksum: u32,
    /// The digest of the last entry's record; none where that has none.
    pub(in crate::adapters::sled) entries_digest: Option<Link>,
}

impl Stored for HeadRow {
    type Form = form::SessionHead;
    fn form(&self) -> Self::Form {
        let head = &self.head;
        form::SessionHead {
            token: head.token.0,
            entries: head.entries,
            leaf: head.leaf.map(|id| id.form()),
            audits: head.audits,
            last_run: head.last_run.as_ref().map(Stored::form),
            usage: Some(head.usage.form()),
            entries_checksum: self.entries_checksum,
            path: Some(head.path.form()),
            chosen: Some(head.chosen.form()),
            entries_digest: self.entries_digest.map(|link| link.to_vec()),
            place: head.place.as_ref().map(Stored::form),
            checkout: head.checkout.as_ref().map(Stored::form),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let head = SessionHead {
            token: LeaseToken(form.token),
            entries: form.entries,
            leaf: maybe(form.leaf)?,
            audits: form.audits,
            last_run: maybe(form.last_run)?,
            usage: part(form.usage, "usage")?,
            path: maybe(form.path)?.unwrap_or_default(),
            chosen: maybe(form.chosen)?.unwrap_or_default(),
            place: maybe(form.place)?,
            checkout: maybe(form.checkout)?,
        };
        Ok(Self {
            head,
            entries_checksum: form.entries_checksum,
            entries_digest: link(form.entries_digest.as_deref(), "entries_digest")?,
        })
    }
}

impl Stored for Settlement {
    type Form = form::Settlement;
    fn form(&self) -> Self::Form {
        use form::settlement::Outcome;
        let outcome = match &self.outcome {
            RunOutcome::Completed => Outcome::Completed(form::Completed {}),
            RunOutcome::Aborted => Outcome::Aborted(form::Aborted {}),
            RunOutcome::Failed(failure) => Outcome::Failed(form::Failure {
                code: failure.code.clone(),
                details: failure.details.clone(),
                retryable: failure.retryable,
            }),
        };
        form::Settlement {
            at_ms: self.at.as_millis(),
            outcome: Some(outcome),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        use form::settlement::Outcome;
        let outcome = match required(form.outcome, "outcome")? {
            Outcome::Completed(_) => RunOutcome::Completed,
            Outcome::Aborted(_) => RunOutcome::Aborted,
            Outcome::Failed(failure) => RunOutcome::Failed(Failure {
                code: failure.code,
                details: failure.details,
                retryable: failure.retryable,
            }),
        };
        Ok(Self {
            at: Timestamp::from_millis(form.at_ms),
            outcome,
        })
    }
}

impl Stored for LastRun {
    type Form = form::LastRun;
    fn form(&self) -> Self::Form {
        let settlement = Settlement {
            at: self.settled_at,
            outcome: self.outcome.clone(),
        };
        form::LastRun {
            run: self.run.to_bytes().to_vec(),
            settlement: Some(settlement.form()),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let settlement: Settlement = part(form.settlement, "settlement")?;
        Ok(Self {
            run: run_id(&form.run)?,
            outcome: settlement.outcome,
            settled_at: settlement.at,
        })
    }
}

impl Stored for Usage {
    type Form = form::Usage;
    fn form(&self) -> Self::Form {
        form::Usage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cached_tokens: self.cached_tokens,
            cost_usd: self.cost_usd,
        }
    }
    fn read(usage: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            cost_usd: usage.cost_usd,
        })
    }
}

/// The session behind a name or an external key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::adapters::sled) struct Address(pub(in crate::adapters::sled) SessionId);

impl Stored for Address {
    type Form = form::SessionAddress;
    fn form(&self) -> Self::Form {
        form::SessionAddress {
            session: self.0.to_bytes().to_vec(),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        session_id(&form.session).map(Self)
    }
}

impl Stored for DeletedSession {
    type Form = form::DeletedSession;
    fn form(&self) -> Self::Form {
        form::DeletedSession {
            session: self.session.to_bytes().to_vec(),
            entries: self.entries,
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            session: session_id(&form.session)?,
            entries: form.entries,
        })
    }
}

impl Stored for HeldLease {
    type Form = form::LeaseRecord;
    fn form(&self) -> Self::Form {
        form::LeaseRecord {
            session: self.session.to_bytes().to_vec(),
            run: run_form(self.holder.run()),
            token: self.token.0,
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            session: session_id(&form.session)?,
            holder: maybe_run(&form.run)?.into(),
            token: LeaseToken(form.token),
        })
    }
}
