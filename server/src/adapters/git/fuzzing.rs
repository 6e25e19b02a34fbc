//! What lies in a repository, which is whoever made it.

use super::oid::Oid;
use super::{delta, index, log, trees};

/// Most bytes that a delta may make here.
const MADE: usize = 1 << 20;

/// An index.
pub(crate) fn index(bytes: &[u8]) {
    if let Ok(index) = index::parse(bytes, (0, 0)) {
        assert!(index.files.len() <= bytes.len(), "files out of nothing");
    }
}

/// A commit.
pub(crate) fn commit(bytes: &[u8]) {
    let _commit_or_none = log::parse(Oid::of_blob(bytes), bytes);
}

/// A tree: its items, each a part of what is left.
pub(crate) fn tree(bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let before = rest.len();
        if trees::item(&mut rest).is_none() || rest.is_empty() {
            return;
        }
        assert!(rest.len() < before, "an item of no bytes");
    }
}

/// A delta and, before it, as many bytes as the first byte says of what it changes.
pub(crate) fn delta(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first() else {
        return;
    };
    let (base, delta) = rest.split_at(usize::from(*length).min(rest.len()));
    if let Ok(made) = delta::apply(base, delta, MADE) {
        assert!(made.len() <= MADE, "more than was allowed");
    }
}
