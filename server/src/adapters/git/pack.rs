//! A pack and its index, version 2. Both are read in place: a large pack costs no memory.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::GitError;
use super::delta;
use super::objects::{Object, Sort, inflate};
use super::oid::{OID_BYTES, Oid};
use crate::adapters::boundary::{Boundary, OpenFile, Refusal};

const MAGIC: &[u8] = b"\xfftOc\x00\x00\x00\x02";
/// Where the names of an index begin: after its head and 256 counts.
const NAMES: u64 = 8 + 256 * 4;
/// The longest chain of deltas. Git makes them 50 long, at most 4095.
const CHAIN: usize = 4095;
/// How many times larger than the object all deltas of one chain may be together.
const CHAIN_TIMES: usize = 4;

const DAMAGED_INDEX: GitError = GitError::Damaged("pack index");
const DAMAGED: GitError = GitError::Damaged("pack");

/// A pack.
pub(super) struct Pack {
    index: OpenFile,
    data: OpenFile,
    /// How many objects it has.
    count: u32,
}

/// How an object stands in a pack.
enum Stands {
    Whole(Sort),
    /// A delta against what stands at this place.
    On(u64),
}

impl Pack {
    pub(super) fn open(boundary: &Boundary, index: &Path) -> Result<Self, GitError> {
        let data = boundary.file(&index.with_extension("pack"))?;
        let index = boundary.file(index)?;
        let mut pack = Self {
            index,
            data,
            count: 0,
        };
        if pack.bytes::<8>(0)? != *MAGIC {
            return Err(GitError::Unsupported("an old pack index"));
        }
        pack.count = pack.upto(255)?;
        Ok(pack)
    }

    /// Where an object stands in the pack, if it is there.
    pub(super) fn find(&self, oid: Oid) -> Result<Option<u64>, GitError> {
        let first = usize::from(oid.0[0]);
        let mut from = if first == 0 { 0 } else { self.upto(first - 1)? };
        let mut to = self.upto(first)?;
        if from > to || to > self.count {
            return Err(DAMAGED_INDEX);
        }
        while from < to {
            let middle = from + (to - from) / 2;
            let at = NAMES + u64::from(middle) * OID_BYTES as u64;
            match Oid(self.bytes(at)?).cmp(&oid) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
                std::cmp::Ordering::Equal => return self.place(middle).map(Some),
            }
        }
        Ok(None)
    }

    /// The place of the object that has this number.
    fn place(&self, number: u32) -> Result<u64, GitError> {
        let (count, number) = (u64::from(self.count), u64::from(number));
        // After the names stand as many checksums.
        let places = NAMES + count * (OID_BYTES as u64 + 4);
        let place = u32::from_be_bytes(self.bytes(places + number * 4)?);
        if place & 0x8000_0000 == 0 {
            return Ok(u64::from(place));
        }
        let large = places + count * 4 + u64::from(place & 0x7fff_ffff) * 8;
        Ok(u64::from_be_bytes(self.bytes(large)?))
    }

    /// The object at a place, of at most so many bytes: its deltas, and what they are against.
    pub(super) fn object(
        &self,
        at: u64,
        most: usize,
        stop: &AtomicBool,
    ) -> Result<Object, GitError> {
        let mut deltas: Vec<Vec<u8>> = Vec::new();
        let (mut at, mut weight) = (at, 0);
        loop {
            heeded(stop)?;
            let (stands, bytes) = self.stands(at, most)?;
            match stands {
                Stands::Whole(sort) => {
                    let mut bytes = bytes;
                    while let Some(delta) = deltas.pop() {
                        heeded(stop)?;
                        bytes = delta::apply(&bytes, &delta, most)?;
                    }
                    return Ok(Object { sort, bytes });
                }
                Stands::On(base) => {
                    weight += bytes.len();
                    if deltas.len() == CHAIN || weight > CHAIN_TIMES * most || base == at {
                        return Err(GitError::TooLarge("chain of deltas"));
                    }
                    deltas.push(bytes);
                    at = base;
                }
            }
        }
    }

    fn stands(&self, at: u64, most: usize) -> Result<(Stands, Vec<u8>), GitError> {
        let mut reader = Reader { pack: self, at };
        let mut byte = reader.byte()?;
        let kind = (byte >> 4) & 7;
        // Its size follows, and is not believed: what is inflated is counted.
        while byte & 0x80 != 0 {
            byte = reader.byte()?;
        }
        let stands = match kind {
            1 => Stands::Whole(Sort::Commit),
            2 => Stands::Whole(Sort::Tree),
            3 | 4 => Stands::Whole(Sort::Other),
            6 => {
                let back = reader.distance()?;
                // Always backwards: so no chain is a circle.
                let base = at.checked_sub(back).filter(|_| back > 0);
                Stands::On(base.ok_or(DAMAGED)?)
            }
            7 => {
                let mut name = [0; OID_BYTES];
                for byte in &mut name {
                    *byte = reader.byte()?;
                }
                Stands::On(self.find(Oid(name))?.ok_or(DAMAGED)?)
            }
            _ => return Err(DAMAGED),
        };
        let bytes = inflate(most, &mut |buffer| reader.fill(buffer))?;
        Ok((stands, bytes))
    }

    /// How many objects have names that begin with this byte or a smaller one.
    fn upto(&self, first: usize) -> Result<u32, GitError> {
        Ok(u32::from_be_bytes(self.bytes(8 + first as u64 * 4)?))
    }

    fn bytes<const N: usize>(&self, at: u64) -> Result<[u8; N], GitError> {
        let mut bytes = [0; N];
        if self.index.read_at(&mut bytes, at)? != N {
            return Err(DAMAGED_INDEX);
        }
        Ok(bytes)
    }
}

/// Leaves where nobody waits any more: a chain may be long.
fn heeded(stop: &AtomicBool) -> Result<(), GitError> {
    if stop.load(Ordering::Relaxed) {
        return Err(Refusal::Stopped.into());
    }
    Ok(())
}

/// Reads a pack onwards from a place.
struct Reader<'a> {
    pack: &'a Pack,
    at: u64,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, GitError> {
        let mut byte = [0];
        match self.fill(&mut byte)? {
            1 => Ok(byte[0]),
            _ => Err(DAMAGED),
        }
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, GitError> {
        let read = self.pack.data.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }

    /// How far back the base of a delta stands.
    fn distance(&mut self) -> Result<u64, GitError> {
        let mut byte = self.byte()?;
        let mut distance = u64::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.byte()?;
            let more = distance.checked_add(1).and_then(|d| d.checked_mul(128));
            distance = more.ok_or(DAMAGED)? + u64::from(byte & 0x7f);
        }
        Ok(distance)
    }
}
