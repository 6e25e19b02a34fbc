//! How a value is guarded: a form byte, a checksum over key and payload, the payload. What is too
//! long for one value lies in pieces under keys of their own, out of the way of every scan.
//!
//! sled keeps up to sixteen neighbours (a few more for a moment) in one page, and moves a page of
//! more than a quarter segment, 128 KiB, to a file that is never synced. 4 KiB a value keep every
//! page far below that. What a payload means must never enter.

use ::sled::IVec;
use prost::Message;
use sessionplane::store::v1 as form;
use sessionplane_core::ports::repository::ReadError;

use super::keys::{self, Key};

/// Longest value, in bytes, with its guard.
pub(super) const MAX_VALUE: usize = 4096;
/// The form and the checksum before the payload of each value, in bytes.
pub(super) const GUARD: usize = 5;
/// Longest payload of one value, in bytes.
pub(super) const MAX_PAYLOAD: usize = MAX_VALUE - GUARD;
/// Most pieces that a manifest may claim: no reader reserves memory for a damaged length.
const MAX_PIECES: u64 = 64 * 1024;
/// How often a long value may be replaced while one reader reads it before that reader gives up.
const MAX_ATTEMPTS: usize = 64;

const WHOLE: u8 = 1;
const MANIFEST: u8 = 2;
const PIECE: u8 = 3;

/// Something that values are read from.
pub(super) trait Source {
    /// The value as it is stored.
    fn raw(&self, key: &[u8]) -> Result<Option<IVec>, ReadError>;
}

/// A guarded value.
fn seal(form: u8, key: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(GUARD + payload.len());
    value.push(form);
    value.extend_from_slice(&checksum(form, key, payload).to_be_bytes());
    value.extend_from_slice(payload);
    value
}

/// The key is part of it, so that a value in the wrong place is damage too.
fn checksum(form: u8, key: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[form]);
    hasher.update(key);
    hasher.update(payload);
    hasher.finalize()
}

/// The form and the payload of a guarded value.
fn unseal<'a>(key: &[u8], value: &'a [u8]) -> Result<(u8, &'a [u8]), ReadError> {
    let (&form, rest) = value
        .split_first()
        .ok_or_else(|| damaged(key, "it is empty"))?;
    let (sum, payload) = rest
        .split_first_chunk::<4>()
        .ok_or_else(|| damaged(key, "it is cut short"))?;
    if !(WHOLE..=PIECE).contains(&form) {
        return Err(damaged(key, "its form is unknown"));
    }
    if u32::from_be_bytes(*sum) != checksum(form, key, payload) {
        return Err(damaged(key, "its checksum does not match"));
    }
    Ok((form, payload))
}

/// A record that cannot be what was written.
pub(super) fn damaged(key: &[u8], problem: impl Into<String>) -> ReadError {
    ReadError::Damaged {
        key: keys::describe(key),
        problem: problem.into(),
    }
}

/// The values to store for a payload: its own, then its pieces if it needs any. `set` is asked for
/// a number that no other value's pieces have.
pub(super) fn values(key: Key, payload: &[u8], set: impl FnOnce() -> u64) -> Vec<(Key, Vec<u8>)> {
    if payload.len() <= MAX_PAYLOAD {
        let value = seal(WHOLE, &key, payload);
        return vec![(key, value)];
    }
    let set = set();
    let manifest = form::Manifest {
        set,
        length: payload.len() as u64,
        checksum: crc32fast::hash(payload),
    };
    let value = seal(MANIFEST, &key, &manifest.encode_to_vec());
    let mut values = vec![(key, value)];
    for (index, part) in (0..).zip(payload.chunks(MAX_PAYLOAD)) {
        let key = keys::piece(set, index);
        let value = seal(PIECE, &key, part);
        values.push((key, value));
    }
    values
}

/// The keys of a value's pieces; none for a value that is whole.
pub(super) fn piece_keys(key: &[u8], value: &[u8]) -> Result<Vec<Key>, ReadError> {
    match unseal(key, value)? {
        (MANIFEST, payload) => {
            let manifest = manifest(key, payload)?;
            let count = pieces(key, &manifest)?;
            Ok((0..count).map(|i| keys::piece(manifest.set, i)).collect())
        }
        _ => Ok(Vec::new()),
    }
}

/// What is wrong with a piece of a long value, which is not read on its own otherwise.
pub(super) fn check_piece(key: &[u8], value: &[u8]) -> Result<(), String> {
    match unseal(key, value) {
        Ok((PIECE, _)) => Ok(()),
        Ok(_) => Err("it is no piece".to_owned()),
        Err(ReadError::Damaged { problem, .. } | ReadError::Store(problem)) => Err(problem),
    }
}

fn manifest(key: &[u8], payload: &[u8]) -> Result<form::Manifest, ReadError> {
    form::Manifest::decode(payload).map_err(|error| damaged(key, error.to_string()))
}

fn pieces(key: &[u8], manifest: &form::Manifest) -> Result<u32, ReadError> {
    let count = manifest.length.div_ceil(MAX_PAYLOAD as u64);
    if count > MAX_PIECES {
        return Err(damaged(key, "it claims an impossible length"));
    }
    u32::try_from(count).map_err(|_| damaged(key, "it claims an impossible length"))
}

/// Reads the payload under a key.
pub(super) fn load(source: &impl Source, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
    match source.raw(key)? {
        Some(value) => open(source, key, value),
        None => Ok(None),
    }
}

/// The payload of a value that was just read from under `key`.
///
/// A long value's pieces are read after its manifest. A piece that is missing was deleted by a
/// newer value of the same key, which is synced, so reading the key again shows it; if the same
/// manifest is still there, the piece is lost.
pub(super) fn open(
    source: &impl Source,
    key: &[u8],
    first: IVec,
) -> Result<Option<Vec<u8>>, ReadError> {
    let mut value = first;
    for _ in 0..MAX_ATTEMPTS {
        match unseal(key, &value)? {
            (WHOLE, payload) => return Ok(Some(payload.to_vec())),
            (MANIFEST, payload) => {
                let manifest = manifest(key, payload)?;
                if let Some(whole) = assemble(source, key, &manifest)? {
                    return Ok(Some(whole));
                }
            }
            _ => return Err(damaged(key, "it is a piece of another value")),
        }
        match source.raw(key)? {
            None => return Ok(None),
            Some(same) if same == value => return Err(damaged(key, "a piece of it is missing")),
            Some(newer) => value = newer,
        }
    }
    Err(ReadError::Store(format!(
        "{} changed faster than it could be read",
        keys::describe(key)
    )))
}

fn assemble(
    source: &impl Source,
    key: &[u8],
    manifest: &form::Manifest,
) -> Result<Option<Vec<u8>>, ReadError> {
    let mut whole = Vec::new();
    for index in 0..pieces(key, manifest)? {
        let piece = keys::piece(manifest.set, index);
        let Some(value) = source.raw(&piece)? else {
            return Ok(None);
        };
        let (form, part) = unseal(&piece, &value)?;
        if form != PIECE {
            return Err(damaged(&piece, "it is no piece"));
        }
        whole.extend_from_slice(part);
    }
    if whole.len() as u64 != manifest.length || crc32fast::hash(&whole) != manifest.checksum {
        return Err(damaged(key, "its pieces do not make up the whole"));
    }
    Ok(Some(whole))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Map(BTreeMap<Key, Vec<u8>>);

    impl Source for Map {
        fn raw(&self, key: &[u8]) -> Result<Option<IVec>, ReadError> {
            Ok(self.0.get(key).map(|value| IVec::from(value.as_slice())))
        }
    }

    fn stored(key: &[u8], payload: &[u8]) -> Map {
        Map(values(key.to_vec(), payload, || 9).into_iter().collect())
    }

    #[test]
    fn a_value_of_any_length_reads_back_and_none_is_too_long() {
        for length in [0, 1, MAX_PAYLOAD, MAX_PAYLOAD + 1, 3 * MAX_PAYLOAD, 1 << 20] {
            let payload: Vec<u8> = (0..=250).cycle().take(length).collect();
            let map = stored(b"k", &payload);
            assert_eq!(load(&map, b"k").unwrap().as_ref(), Some(&payload));
            assert!(map.0.values().all(|value| value.len() <= MAX_VALUE));
            let pieces = piece_keys(b"k", &map.0[&b"k"[..]]).unwrap();
            assert_eq!(pieces.len(), map.0.len() - 1);
            assert!(pieces.iter().all(|piece| map.0.contains_key(piece)));
        }
    }

    proptest! {
        #[test]
        fn b52_one_changed_byte_anywhere_is_told_and_never_read(
            length in 0_usize..3 * MAX_PAYLOAD, place: prop::sample::Index, flip in 1_u8..,
        ) {
            let mut map = stored(b"k", &vec![7; length]);
            let total: usize = map.0.values().map(Vec::len).sum();
            let mut place = place.index(total);
            for value in map.0.values_mut() {
                if place < value.len() {
                    value[place] ^= flip;
                    break;
                }
                place -= value.len();
            }
            let read = load(&map, b"k");
            prop_assert!(matches!(read, Err(ReadError::Damaged { .. })), "{:?}", read);
        }
    }

    #[test]
    fn a_value_under_the_wrong_key_is_damage() {
        let mut map = stored(b"k", b"hello");
        let value = map.0.remove(&b"k"[..]).unwrap();
        map.0.insert(b"other".to_vec(), value);
        assert!(matches!(
            load(&map, b"other"),
            Err(ReadError::Damaged { .. })
        ));
    }

    #[test]
    fn a_missing_piece_is_damage_that_names_the_record() {
        let mut map = stored(b"m", &vec![7; 2 * MAX_PAYLOAD]);
        map.0.remove(&keys::piece(9, 1));
        let Err(ReadError::Damaged { key, problem }) = load(&map, b"m") else {
            panic!("the damage was not told");
        };
        assert_eq!(key, "of the store itself");
        assert_eq!(problem, "a piece of it is missing");
    }
}
