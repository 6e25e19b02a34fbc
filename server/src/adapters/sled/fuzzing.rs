//! What lies in a store's file, and in an export: a disk, a backup and a transfer may have changed it.

use ::sled::IVec;
use prost::Message as _;
use sessionplane_core::domain::audit::AuditRecord;
use sessionplane_core::domain::binding::Binding;
use sessionplane_core::domain::input::InputRecord;
use sessionplane_core::domain::interaction::Interaction;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::SessionRecord;
use sessionplane_core::ports::lease_store::HeldLease;
use sessionplane_core::ports::repository::ReadError;

use super::convert::{ChainedEntry, Record};
use super::frame::{self, Source};
use super::tools;

const KEY: &[u8] = b"m";

/// A store of one value.
struct One(IVec);

impl Source for One {
    fn raw(&self, key: &[u8]) -> Result<Option<IVec>, ReadError> {
        Ok((key == KEY).then(|| self.0.clone()))
    }
}

/// A value: one that opens is one that is written so.
pub(crate) fn value(bytes: &[u8]) {
    let value = IVec::from(bytes);
    if let Ok(Some(payload)) = frame::open(&One(value.clone()), KEY, value) {
        let written = frame::values(KEY.to_vec(), &payload, || 1);
        assert_eq!(written.first().map(|(_, value)| &**value), Some(bytes));
    }
}

/// A record of the kind that the first byte says. One that is read is read again from what is written of
/// it.
pub(crate) fn record(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    match kind % 8 {
        0 => read::<Binding>(bytes),
        1 => read::<ChainedEntry>(bytes),
        2 => read::<AuditRecord>(bytes),
        3 => read::<RunRecord>(bytes),
        4 => read::<InputRecord>(bytes),
        5 => read::<SessionRecord>(bytes),
        6 => read::<HeldLease>(bytes),
        _ => read::<Interaction>(bytes),
    }
}

fn read<T: Record>(bytes: &[u8]) {
    let Ok(form) = T::Form::decode(bytes) else {
        return;
    };
    if let Ok(record) = T::read(form) {
        let written = record.form().encode_to_vec();
        let again = T::Form::decode(&*written).ok().map(T::read);
        let same = again.and_then(Result::ok);
        assert_eq!(same.map(|it| it.form().encode_to_vec()), Some(written));
    }
}

/// A line of an export.
pub(crate) fn line(bytes: &[u8]) {
    tools::fuzzing::line(bytes);
}
