//! Objects, loose or in packs, each within a bound.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use flate2::{Decompress, FlushDecompress, Status};

use super::GitError;
use super::oid::Oid;
use super::pack::Pack;
use super::places::{Places, Taken};
use crate::adapters::boundary::{Boundary, Entry, Listed, Refusal};

/// The largest object that is read, in bytes: a commit or a tree.
pub(super) const OBJECT_BYTES: usize = 8 * 1024 * 1024;
/// The largest file that is read, in bytes.
pub(super) const BLOB_BYTES: usize = 64 * 1024 * 1024;
/// The most bytes of the line before a loose object: what it is, and its length.
const HEADER_BYTES: usize = 64;
/// The most packs that are opened, by all readers of the process together; each costs two
/// descriptors. Who reads a repository with few of them waits for nobody.
const PACKS: usize = 64;
static PLACES: Places = Places::new(PACKS);
/// The most names of the pack folder that are looked at.
const PACK_NAMES: usize = 10_000;

/// What an object is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    Commit,
    Tree,
    Other,
}

/// An object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Object {
    pub(super) sort: Sort,
    pub(super) bytes: Vec<u8>,
}

/// Where a repository's objects are.
pub(super) struct Objects {
    boundary: Boundary,
    folder: PathBuf,
    packs: Vec<Pack>,
    /// There are more packs than were opened.
    more: bool,
    /// Given back after the packs were closed.
    _places: Taken<'static>,
}

impl Objects {
    /// Opens the packs, the largest first: most objects are there.
    pub(super) fn open(
        boundary: &Boundary,
        folder: &Path,
        stop: &AtomicBool,
    ) -> Result<Self, GitError> {
        let at = folder.join("pack");
        let listed = match boundary.list(&at, PACK_NAMES, stop) {
            Ok(listed) => listed,
            Err(Refusal::Missing | Refusal::NotAFolder) => Listed::default(),
            Err(refusal) => return Err(refusal.into()),
        };
        let mut names = listed.entries;
        names.retain(|entry| {
            Path::new(&entry.name)
                .extension()
                .is_some_and(|e| e == "idx")
        });
        names.sort_by_key(|entry| std::cmp::Reverse(entry.bytes));
        let more = listed.cut || names.len() > PACKS;
        names.truncate(PACKS);
        let places = PLACES.take(names.len(), stop)?;
        let open = |entry: &Entry| Pack::open(boundary, &at.join(&entry.name));
        Ok(Self {
            boundary: boundary.clone(),
            folder: folder.to_owned(),
            // One that is damaged, or is being replaced just now, holds nothing.
            packs: names.iter().filter_map(|entry| open(entry).ok()).collect(),
            more,
            _places: places,
        })
    }

    /// An object of at most so many bytes; nothing where it is not there, as in a shallow clone or
    /// with objects elsewhere.
    fn read(&self, oid: Oid, most: usize, stop: &AtomicBool) -> Result<Option<Object>, GitError> {
        if let Some(object) = self.loose(oid, most, stop)? {
            return Ok(Some(object));
        }
        for pack in &self.packs {
            if let Some(at) = pack.find(oid)? {
                return pack.object(at, most, stop).map(Some);
            }
        }
        if self.more {
            return Err(GitError::TooLarge("number of packs"));
        }
        Ok(None)
    }

    fn loose(&self, oid: Oid, most: usize, stop: &AtomicBool) -> Result<Option<Object>, GitError> {
        let name = oid.to_string();
        let path = self.folder.join(&name[..2]).join(&name[2..]);
        let packed = match self.boundary.file(&path) {
            Ok(file) => match file.whole(packed_at_most(most), stop) {
                Err(Refusal::TooLarge { .. }) => return Err(GitError::TooLarge("object")),
                bytes => bytes?,
            },
            Err(Refusal::Missing | Refusal::NotAFolder) => return Ok(None),
            Err(refusal) => return Err(refusal.into()),
        };
        let bytes = inflate_all(&packed, most + HEADER_BYTES)?;
        let damaged = || GitError::Damaged("loose object");
        let end = bytes.iter().take(HEADER_BYTES).position(|byte| *byte == 0);
        let end = end.ok_or_else(damaged)?;
        let header = std::str::from_utf8(&bytes[..end]).map_err(|_| damaged())?;
        let (sort, length) = header.split_once(' ').ok_or_else(damaged)?;
        let bytes = bytes[end + 1..].to_vec();
        if length.parse() != Ok(bytes.len()) {
            return Err(damaged());
        }
        let sort = match sort {
            "commit" => Sort::Commit,
            "tree" => Sort::Tree,
            _ => Sort::Other,
        };
        Ok(Some(Object { sort, bytes }))
    }

    /// The content of an object that must be of a sort, and have at most so many bytes.
    pub(super) fn content(
        &self,
        oid: Oid,
        sort: Sort,
        most: usize,
        stop: &AtomicBool,
    ) -> Result<Option<Vec<u8>>, GitError> {
        match self.read(oid, most, stop)? {
            Some(object) if object.sort == sort => Ok(Some(object.bytes)),
            Some(_) => Err(GitError::Damaged("object")),
            None => Ok(None),
        }
    }
}

/// How large a loose object can be when it is packed: a little larger than it is, where it cannot
/// be made smaller.
fn packed_at_most(most: usize) -> u64 {
    (most + most / 1000 + 4096) as u64
}

/// Inflates what is whole in memory, to at most so many bytes.
fn inflate_all(packed: &[u8], most: usize) -> Result<Vec<u8>, GitError> {
    let mut source = packed;
    inflate(most, &mut |buffer| {
        let length = source.len().min(buffer.len());
        buffer[..length].copy_from_slice(&source[..length]);
        source = &source[length..];
        Ok(length)
    })
}

/// Inflates what a source gives, to at most so many bytes.
pub(super) fn inflate(
    most: usize,
    more: &mut dyn FnMut(&mut [u8]) -> Result<usize, GitError>,
) -> Result<Vec<u8>, GitError> {
    let damaged = GitError::Damaged("compressed data");
    let mut decompress = Decompress::new(true);
    let mut out = Vec::new();
    let mut buffer = [0; 4096];
    let (mut from, mut to) = (0, 0);
    // What fills its room may have more to give without another byte.
    let mut is_full = false;
    loop {
        if from == to && !is_full {
            (from, to) = (0, more(&mut buffer)?);
            if to == 0 {
                return Err(damaged);
            }
        }
        if out.len() == out.capacity() {
            if out.len() > most {
                return Err(GitError::TooLarge("object"));
            }
            out.reserve((2 * out.len()).clamp(4096, most + 1));
        }
        let before = decompress.total_in();
        let status = decompress
            .decompress_vec(&buffer[from..to], &mut out, FlushDecompress::None)
            .map_err(|_| damaged.clone())?;
        from += usize::try_from(decompress.total_in() - before).unwrap_or(to);
        is_full = out.len() == out.capacity();
        match status {
            Status::StreamEnd if out.len() <= most => return Ok(out),
            Status::StreamEnd => return Err(GitError::TooLarge("object")),
            Status::Ok | Status::BufError => {}
        }
    }
}
