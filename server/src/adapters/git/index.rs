//! The index: what git knows of the worktree's files, versions 2 to 4.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use super::GitError;
use super::oid::{OID_BYTES, Oid};
use super::repository::Git;
use crate::adapters::boundary::Refusal;

/// The largest index that is read, in bytes: some hundred thousand files.
const INDEX_BYTES: u64 = 64 * 1024 * 1024;
/// The most files of it.
const FILES: u32 = 500_000;
/// How deep the record of folders is read.
const DEPTH: usize = 128;

const DAMAGED: GitError = GitError::Damaged("index");

/// What kind of thing a file is, as git has it.
pub(super) const LINK: u32 = 0o120_000;
pub(super) const SUBMODULE: u32 = 0o160_000;
const KIND: u32 = 0o170_000;

/// A file that git knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Known {
    /// Its path: any bytes, as the operating system has them.
    pub(super) path: Vec<u8>,
    pub(super) oid: Oid,
    pub(super) mode: u32,
    /// Its size, modulo 2^32; 0 where it must be looked at again.
    pub(super) size: u32,
    pub(super) modified: (u32, u32),
    /// It is said to be as it was, or not to be there: it is not looked at.
    pub(super) skipped: bool,
    /// It is in a conflict.
    pub(super) conflicted: bool,
}

impl Known {
    /// What kind of thing it is.
    pub(super) fn kind(&self) -> u32 {
        self.mode & KIND
    }
}

/// The index.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// In order of their paths.
    pub(super) files: Vec<Known>,
    /// Folders of which is known which tree they are, by path; empty for the top.
    pub(super) trees: HashMap<Vec<u8>, Oid>,
    /// When it was written.
    pub(super) written: (i64, u32),
}

impl Git {
    /// Reads the index; an empty one where there is none.
    pub(super) fn index(&self, stop: &AtomicBool) -> Result<Index, GitError> {
        let about = match self.layout.boundary.exactly(&self.layout.own) {
            Ok(folder) => folder.about("index".as_ref()),
            Err(refusal) => Err(refusal),
        };
        let written = match about {
            Ok(about) => about.modified,
            Err(Refusal::Missing) => return Ok(Index::default()),
            Err(refusal) => return Err(refusal.into()),
        };
        let file = self.layout.boundary.file(&self.layout.own.join("index"))?;
        let bytes = match file.whole(INDEX_BYTES, stop) {
            Err(Refusal::TooLarge { .. }) => return Err(GitError::TooLarge("index")),
            bytes => bytes?,
        };
        parse(&bytes, written)
    }
}

/// What is left of the index.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], GitError> {
        let (first, rest) = self.0.split_at_checked(count).ok_or(DAMAGED)?;
        self.0 = rest;
        Ok(first)
    }

    fn upto(&mut self, end: u8) -> Result<&'a [u8], GitError> {
        let at = self.0.iter().position(|byte| *byte == end);
        let taken = self.take(at.ok_or(DAMAGED)?)?;
        self.take(1)?;
        Ok(taken)
    }

    fn number<T: std::str::FromStr>(&mut self, end: u8) -> Result<T, GitError> {
        let text = std::str::from_utf8(self.upto(end)?).map_err(|_| DAMAGED)?;
        text.parse().map_err(|_| DAMAGED)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
    bytes.copied().map_or(0, u32::from_be_bytes)
}

pub(super) fn parse(bytes: &[u8], written: (i64, u32)) -> Result<Index, GitError> {
    let end = bytes.len().checked_sub(OID_BYTES).ok_or(DAMAGED)?;
    let mut rest = Rest(&bytes[..end]);
    let head = rest.take(12)?;
    let (version, count) = (u32_at(head, 4), u32_at(head, 8));
    if &head[..4] != b"DIRC" || !(2..=4).contains(&version) {
        return Err(GitError::Unsupported("an index of another kind"));
    }
    if count > FILES {
        return Err(GitError::TooLarge("index"));
    }
    let mut index = Index {
        written,
        ..Index::default()
    };
    let mut before = Vec::new();
    for _ in 0..count {
        let known = known(&mut rest, version, &mut before)?;
        index.files.push(known);
    }
    while rest.0.len() >= 8 {
        let head = rest.take(8)?;
        let length = usize::try_from(u32_at(head, 4)).map_err(|_| DAMAGED)?;
        let content = rest.take(length)?;
        match &head[..4] {
            b"TREE" => trees(&mut Rest(content), &mut Vec::new(), 0, &mut index.trees)?,
            b"link" => return Err(GitError::Unsupported("a split index")),
            b"sdir" => return Err(GitError::Unsupported("a sparse index")),
            // A name that begins with a small letter must be understood.
            name if name[0].is_ascii_lowercase() => {
                return Err(GitError::Unsupported("an index of another kind"));
            }
            _ => {}
        }
    }
    Ok(index)
}

fn known(rest: &mut Rest, version: u32, before: &mut Vec<u8>) -> Result<Known, GitError> {
    let start = rest.0.len();
    let fixed = rest.take(62)?;
    let flags = u16::from_be_bytes([fixed[60], fixed[61]]);
    let more = if flags & 0x4000 != 0 && version >= 3 {
        let more = rest.take(2)?;
        u16::from_be_bytes([more[0], more[1]])
    } else {
        0
    };
    if version == 4 {
        let drop = strip(rest)?;
        let kept = before.len().checked_sub(drop).ok_or(DAMAGED)?;
        before.truncate(kept);
        before.extend_from_slice(rest.upto(0)?);
    } else {
        *before = rest.upto(0)?.to_vec();
        // Filled up with zeros, of which one is the path's end, to a multiple of eight.
        let used = start - rest.0.len();
        rest.take((8 - used % 8) % 8)?;
    }
    Ok(Known {
        path: before.clone(),
        oid: Oid::take(&fixed[40..]).ok_or(DAMAGED)?,
        mode: u32_at(fixed, 24),
        size: u32_at(fixed, 36),
        modified: (u32_at(fixed, 8), u32_at(fixed, 12)),
        skipped: flags & 0x8000 != 0 || more & 0x4000 != 0,
        conflicted: flags & 0x3000 != 0,
    })
}

/// How much of the path before is dropped.
fn strip(rest: &mut Rest) -> Result<usize, GitError> {
    let mut byte = rest.take(1)?[0];
    let mut number = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = rest.take(1)?[0];
        let more = number
            .checked_add(1)
            .and_then(|number| number.checked_mul(128));
        number = more.ok_or(DAMAGED)? + usize::from(byte & 0x7f);
    }
    Ok(number)
}

/// Reads the record of folders: those whose tree is known have a count that is not negative.
fn trees(
    rest: &mut Rest,
    path: &mut Vec<u8>,
    depth: usize,
    found: &mut HashMap<Vec<u8>, Oid>,
) -> Result<(), GitError> {
    if depth > DEPTH || rest.0.is_empty() {
        return if depth == 0 { Ok(()) } else { Err(DAMAGED) };
    }
    let length = path.len();
    let name = rest.upto(0)?;
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    let count: i64 = rest.number(b' ')?;
    let inner: u32 = rest.number(b'\n')?;
    if count >= 0 {
        let oid = Oid::take(rest.take(OID_BYTES)?).ok_or(DAMAGED)?;
        found.insert(path.clone(), oid);
    }
    for _ in 0..inner {
        trees(rest, path, depth + 1, found)?;
    }
    path.truncate(length);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is in it, it is read or told, and never more than it may be.
    #[test]
    fn an_index_that_is_damaged_is_told() {
        let mut bytes = b"DIRC\0\0\0\x02\0\0\0\x01".to_vec();
        bytes.extend([0; 60]);
        bytes.extend([0, 1]);
        bytes.extend(b"a\0\0\0\0\0\0\0\0\0");
        bytes.extend(b"TREE\0\0\0\x19\x001 0\n");
        bytes.extend([9; 20]);
        bytes.extend([0; 20]);
        let whole = parse(&bytes, (0, 0)).expect("an index");
        assert_eq!(whole.files[0].path, b"a");
        assert_eq!(whole.trees.get(&b""[..]), Some(&Oid([9; 20])));
        for at in 0..bytes.len() {
            let _read_or_told = parse(&bytes[..at], (0, 0));
            for bit in 0..8 {
                let mut odd = bytes.clone();
                odd[at] ^= 1 << bit;
                let _read_or_told = parse(&odd, (0, 0));
            }
        }
        let many = b"DIRC\0\0\0\x02\xff\xff\xff\xff".iter().chain(&[0; 40]);
        let many = parse(&many.copied().collect::<Vec<_>>(), (0, 0));
        assert_eq!(many.map(|_| ()), Err(GitError::TooLarge("index")));
    }
}
