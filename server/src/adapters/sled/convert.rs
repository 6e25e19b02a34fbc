//! Stored forms to domain types and back, one file per noun.
//!
//! Writing cannot fail. Reading can: what does not parse is damage, and the message says which
//! field. Keys, checksums and sled must never enter.

mod audit;
mod binding;
mod chain;
mod data;
mod entry;
#[cfg(test)]
mod frozen;
mod interaction;
mod provenance;
mod run;
mod session;
mod settings;

use sessionplane::store::v1 as form;
use sessionplane_core::domain::ids::{EntryId, IdError, InputId, RunId, SessionId};

use super::chain::Link;

pub(super) use chain::{ChainEnd, ChainLink, Linked, Place, SealedAudit};
pub(super) use entry::ChainedEntry;
pub(super) use session::{Address, HeadRow, Meta, RoundRow};

/// What is wrong with a stored form.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unreadable(String);

impl From<IdError> for Unreadable {
    fn from(error: IdError) -> Self {
        Self(error.to_string())
    }
}

/// A type with a stored form.
pub(super) trait Stored: Sized {
    /// The stored form.
    type Form;
    /// To the stored form.
    fn form(&self) -> Self::Form;
    /// From the stored form.
    fn read(form: Self::Form) -> Result<Self, Unreadable>;
}

/// A type that is stored as one record.
pub(super) trait Record: Stored<Form: prost::Message + Default> {}

impl<T: Stored<Form: prost::Message + Default>> Record for T {}

/// A part that must be there.
fn part<T: Stored>(form: Option<T::Form>, field: &str) -> Result<T, Unreadable> {
    T::read(required(form, field)?)
}

/// A part that may be absent.
fn maybe<T: Stored>(form: Option<T::Form>) -> Result<Option<T>, Unreadable> {
    form.map(T::read).transpose()
}

fn required<T>(value: Option<T>, field: &str) -> Result<T, Unreadable> {
    value.ok_or_else(|| Unreadable(format!("{field} is missing")))
}

fn unknown(field: &str) -> Unreadable {
    Unreadable(format!("{field} has an unknown value"))
}

fn bytes<const N: usize>(value: &[u8], field: &str) -> Result<[u8; N], Unreadable> {
    value
        .try_into()
        .map_err(|_| Unreadable(format!("{field} has {} bytes, not {N}", value.len())))
}

/// A link of an entry's chain, where there is one.
fn link(value: Option<&[u8]>, field: &str) -> Result<Option<Link>, Unreadable> {
    value.map(|value| bytes(value, field)).transpose()
}

fn session_id(value: &[u8]) -> Result<SessionId, Unreadable> {
    bytes(value, "session").map(SessionId::from_bytes)
}

fn run_id(value: &[u8]) -> Result<RunId, Unreadable> {
    bytes(value, "run").map(RunId::from_bytes)
}

/// A run as stored where there may be none: no bytes are none.
fn run_form(run: Option<RunId>) -> Vec<u8> {
    run.map(|run| run.to_bytes().to_vec()).unwrap_or_default()
}

fn maybe_run(value: &[u8]) -> Result<Option<RunId>, Unreadable> {
    (!value.is_empty()).then(|| run_id(value)).transpose()
}

fn optional<T, E: Into<Unreadable>>(
    value: Option<&String>,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, Unreadable> {
    value
        .map(|text| parse(text))
        .transpose()
        .map_err(Into::into)
}

impl Stored for EntryId {
    type Form = form::EntryId;
    fn form(&self) -> Self::Form {
        form::EntryId {
            session: self.session.to_bytes().to_vec(),
            seq: self.seq,
        }
    }
    fn read(id: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            session: session_id(&id.session)?,
            seq: id.seq,
        })
    }
}

impl Stored for InputId {
    type Form = form::InputId;
    fn form(&self) -> Self::Form {
        form::InputId {
            run: self.run.to_bytes().to_vec(),
            ordinal: self.ordinal,
        }
    }
    fn read(id: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            run: run_id(&id.run)?,
            ordinal: id.ordinal,
        })
    }
}
