//! What a round is about to write, laid over the store: a later commit of the round sees what the
//! earlier ones will have written.
//!
//! Judging and syncing must never enter.

use std::collections::HashMap;

use ::sled::{Db, IVec};
use prost::Message;
use sessionplane_core::domain::binding::{Binding, BindingKey, BoundAnswer};
use sessionplane_core::ports::repository::ReadError;

use super::convert::Record;
use super::frame::{self, Source, damaged};
use super::keys::{self, Key};

/// One key that the round writes or deletes.
pub(super) struct Write {
    /// The new value; `None` deletes.
    pub(super) value: Option<Vec<u8>>,
    /// What the store holds under the key before the round.
    pub(super) replaces: Option<IVec>,
}

/// All that a round writes.
pub(super) type Writes = HashMap<Key, Write>;

/// Whether a key may be there already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// It cannot: the key was never used, or it was just looked up.
    Absent,
    /// It may: look.
    Unknown,
}

/// Numbers for the pieces of long values: never used twice, in this opening or another.
pub(super) struct PieceSets {
    next: u64,
}

impl PieceSets {
    pub(super) fn of_boot(boot: u32) -> Self {
        Self {
            next: u64::from(boot) << 32,
        }
    }

    /// For what an opening writes before it serves: numbers that its committer comes to in years.
    pub(super) fn of_upgrade(boot: u32) -> Self {
        Self {
            next: (u64::from(boot) << 32) + (1 << 31),
        }
    }

    /// The newest number that was given.
    pub(super) fn newest(&self) -> u64 {
        self.next
    }

    fn next(&mut self) -> u64 {
        // 2^32 long values in one opening would take years; running into the next opening's
        // numbers is still only possible once that one has begun.
        self.next += 1;
        self.next
    }
}

/// A round being gathered.
pub(super) struct Round<'a> {
    db: &'a Db,
    sets: &'a mut PieceSets,
    writes: Writes,
    undo: Vec<(Key, Option<Write>)>,
    bytes: usize,
}

impl Source for Round<'_> {
    fn raw(&self, key: &[u8]) -> Result<Option<IVec>, ReadError> {
        match self.writes.get(key) {
            Some(write) => Ok(write.value.as_deref().map(IVec::from)),
            None => stored(self.db, key),
        }
    }
}

/// What the store holds, whoever wrote it: only the committer may look past the in-flight map.
fn stored(db: &Db, key: &[u8]) -> Result<Option<IVec>, ReadError> {
    db.get(key).map_err(|error| failed(key, &error))
}

/// A failure of sled as the ports tell it.
pub(super) fn failed(key: &[u8], error: &::sled::Error) -> ReadError {
    match error {
        ::sled::Error::Corruption { .. } => damaged(key, error.to_string()),
        other => ReadError::Store(other.to_string()),
    }
}

/// Reads a record.
pub(super) fn fetch<T: Record>(source: &impl Source, key: &[u8]) -> Result<Option<T>, ReadError> {
    match frame::load(source, key)? {
        Some(payload) => decode(key, &payload).map(Some),
        None => Ok(None),
    }
}

/// Reads a binding. The key is a digest, so the whole key is compared.
pub(super) fn fetch_binding(
    source: &impl Source,
    key: &BindingKey,
) -> Result<Option<Binding>, ReadError> {
    let place = keys::binding(key);
    match fetch::<Binding>(source, &place)? {
        Some(binding) if binding.key != *key => {
            Err(damaged(&place, "it is the binding of another request"))
        }
        found => Ok(found),
    }
}

/// Reads a binding with what its call decided, if that is about a session that is there.
pub(super) fn fetch_answered(
    source: &impl Source,
    key: &BindingKey,
) -> Result<Option<Binding>, ReadError> {
    let Some(mut binding) = fetch_binding(source, key)? else {
        return Ok(None);
    };
    if let BoundAnswer::Session(answer) = &mut binding.answer {
        // It is erased after its session is gone, and nobody is to have it in between.
        let there = source.raw(&keys::session(binding.session))?.is_some();
        let place = keys::answer(binding.session, &keys::binding(key));
        if there {
            *answer = fetch(source, &place)?.map(Box::new);
        }
    }
    Ok(Some(binding))
}

/// A record from its payload.
pub(super) fn decode<T: Record>(key: &[u8], payload: &[u8]) -> Result<T, ReadError> {
    let form = T::Form::decode(payload).map_err(|error| damaged(key, error.to_string()))?;
    T::read(form).map_err(|problem| damaged(key, problem.to_string()))
}

impl<'a> Round<'a> {
    pub(super) fn new(db: &'a Db, sets: &'a mut PieceSets) -> Self {
        Self {
            db,
            sets,
            writes: Writes::new(),
            undo: Vec::new(),
            bytes: 0,
        }
    }

    pub(super) fn db(&self) -> &Db {
        self.db
    }

    /// Bytes of values gathered so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds all that `add` writes, or nothing if it fails.
    pub(super) fn attempt<T>(
        &mut self,
        add: impl FnOnce(&mut Self) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        self.undo.clear();
        let added = add(self);
        if added.is_err() {
            for (key, earlier) in self.undo.drain(..).rev() {
                match earlier {
                    Some(write) => self.writes.insert(key, write),
                    None => self.writes.remove(&key),
                };
            }
        }
        added
    }

    /// Writes a record.
    pub(super) fn put(
        &mut self,
        key: Key,
        record: &impl Record,
        before: Before,
    ) -> Result<(), ReadError> {
        self.put_payload(key, &record.form().encode_to_vec(), before)
    }

    /// Writes a payload, and drops the pieces of the value that it replaces.
    pub(super) fn put_payload(
        &mut self,
        key: Key,
        payload: &[u8],
        before: Before,
    ) -> Result<(), ReadError> {
        if before == Before::Unknown {
            self.drop_pieces(&key)?;
        }
        let sets = &mut *self.sets;
        let mut before = before;
        for (key, value) in frame::values(key, payload, || sets.next()) {
            self.bytes += value.len();
            self.write(key, Some(value), before)?;
            // Pieces go under numbers that were never used.
            before = Before::Absent;
        }
        Ok(())
    }

    /// Deletes a record.
    pub(super) fn delete(&mut self, key: Key) -> Result<(), ReadError> {
        self.drop_pieces(&key)?;
        self.write(key, None, Before::Unknown)
    }

    /// Deletes a value, and no pieces of it.
    pub(super) fn delete_whole(&mut self, key: Key) -> Result<(), ReadError> {
        self.write(key, None, Before::Unknown)
    }

    /// The first key below a prefix that will be there after the round.
    pub(super) fn first_below(&self, prefix: &[u8]) -> Result<Option<Key>, ReadError> {
        let written = self.writes.iter();
        let written =
            written.filter(|(key, write)| key.starts_with(prefix) && write.value.is_some());
        let written = written.map(|(key, _)| key).min();
        for record in self.db.scan_prefix(prefix) {
            let (key, _) = record.map_err(|error| failed(prefix, &error))?;
            if written.is_some_and(|written| written.as_slice() <= &*key) {
                break;
            }
            if !self.writes.contains_key(&*key) {
                return Ok(Some(key.to_vec()));
            }
        }
        Ok(written.cloned())
    }

    fn drop_pieces(&mut self, key: &[u8]) -> Result<(), ReadError> {
        let Some(value) = self.raw(key)? else {
            return Ok(());
        };
        for piece in frame::piece_keys(key, &value)? {
            self.write(piece, None, Before::Unknown)?;
        }
        Ok(())
    }

    fn write(&mut self, key: Key, value: Option<Vec<u8>>, before: Before) -> Result<(), ReadError> {
        let earlier = self.writes.remove(&key);
        let replaces = match (&earlier, before) {
            (Some(write), _) => Ok(write.replaces.clone()),
            (None, Before::Absent) => Ok(None),
            (None, Before::Unknown) => stored(self.db, &key),
        };
        self.undo.push((key.clone(), earlier));
        let replaces = replaces?;
        if value.is_none() {
            // What is deleted stays in memory, too, until the round is durable.
            self.bytes += replaces.as_ref().map_or(0, |former| former.len());
        }
        self.writes.insert(key, Write { value, replaces });
        Ok(())
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Everything, for the device.
    pub(super) fn into_writes(self) -> Writes {
        self.writes
    }
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::ids::{RunId, SessionId};
    use sessionplane_core::domain::lease::LeaseToken;
    use sessionplane_core::ports::lease_store::HeldLease;

    use super::*;
    use crate::adapters::sled::frame::MAX_PAYLOAD;

    /// An empty database on a directory that lives as long as it is used.
    fn database() -> (tempfile::TempDir, Db) {
        let directory = tempfile::TempDir::new().unwrap();
        let db = ::sled::Config::new()
            .path(directory.path())
            .flush_every_ms(None)
            .open()
            .unwrap();
        (directory, db)
    }

    fn apply(db: &Db, writes: Writes) {
        let mut batch = ::sled::Batch::default();
        for (key, write) in writes {
            assert_eq!(db.get(&key).unwrap(), write.replaces, "what it replaces");
            match write.value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        db.apply_batch(batch).unwrap();
    }

    fn values(db: &Db) -> usize {
        db.iter().count()
    }

    #[test]
    fn a_replaced_value_takes_its_pieces_with_it() {
        let (_directory, db) = database();
        let mut sets = PieceSets::of_boot(1);
        for (pieces, expected) in [(3, 4), (2, 3), (0, 1), (5, 6)] {
            let mut round = Round::new(&db, &mut sets);
            let payload = vec![1; MAX_PAYLOAD * pieces];
            round
                .put_payload(b"k".to_vec(), &payload, Before::Unknown)
                .unwrap();
            apply(&db, round.into_writes());
            assert_eq!(values(&db), expected, "{pieces} pieces");
        }
        let mut round = Round::new(&db, &mut sets);
        let long = vec![2; MAX_PAYLOAD * 3];
        round
            .put_payload(b"k".to_vec(), &long, Before::Unknown)
            .unwrap();
        assert_eq!(frame::load(&round, b"k").unwrap(), Some(long));
        round
            .put_payload(b"k".to_vec(), b"short", Before::Unknown)
            .unwrap();
        apply(&db, round.into_writes());
        assert_eq!(values(&db), 1, "replaced within one round");
        let mut round = Round::new(&db, &mut sets);
        round.delete(b"k".to_vec()).unwrap();
        apply(&db, round.into_writes());
        assert_eq!(values(&db), 0);
    }

    #[test]
    fn what_fails_in_the_middle_leaves_the_round_as_it_was() {
        let (_directory, db) = database();
        let mut sets = PieceSets::of_boot(1);
        let mut round = Round::new(&db, &mut sets);
        let put = |round: &mut Round<'_>, key: &[u8], payload: &[u8]| {
            round.put_payload(key.to_vec(), payload, Before::Unknown)
        };
        round
            .attempt(|round| put(round, b"a", b"one").and_then(|()| put(round, b"b", b"one")))
            .unwrap();
        let failed: Result<(), _> = round.attempt(|round| {
            put(round, b"a", b"two")?;
            put(round, b"c", &vec![2; 3 * MAX_PAYLOAD])?;
            round.delete(b"b".to_vec())?;
            put(round, b"a", b"three")?;
            Err(ReadError::Store("no".to_owned()))
        });
        assert!(failed.is_err());
        apply(&db, round.into_writes());
        assert_eq!(values(&db), 2);
        let round = Round::new(&db, &mut sets);
        assert_eq!(frame::load(&round, b"a").unwrap(), Some(b"one".to_vec()));
        assert_eq!(frame::load(&round, b"b").unwrap(), Some(b"one".to_vec()));
    }

    #[test]
    fn a_record_that_does_not_parse_is_named() {
        let (_directory, db) = database();
        let mut sets = PieceSets::of_boot(1);
        let mut round = Round::new(&db, &mut sets);
        let session = SessionId::from_bytes([1; 16]);
        let lease = HeldLease {
            session,
            holder: RunId::from_bytes([2; 16]).into(),
            token: LeaseToken(3),
        };
        let key = keys::lease(session);
        round.put(key.clone(), &lease, Before::Unknown).unwrap();
        assert_eq!(fetch::<HeldLease>(&round, &key), Ok(Some(lease)));
        round
            .put_payload(key.clone(), b"\x0a\x01x", Before::Unknown)
            .unwrap();
        let Err(ReadError::Damaged { key, problem }) = fetch::<HeldLease>(&round, &key) else {
            panic!("it was read");
        };
        assert_eq!(key, format!("lease {session}"));
        assert_eq!(problem, "session has 1 bytes, not 16");
    }
}
