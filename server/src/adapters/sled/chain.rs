//! The chain over a session's entries: the digest of an entry's record, which names the digest of
//! the record before it. So the digest in the head stands for all of them, byte for byte.
//!
//! What a record says must never enter, nor where it lies. `docs/store.md` states the encoding, with
//! vectors that a test here holds it to.

use sha2::{Digest as _, Sha256};

/// The digest of an entry's record.
pub(super) type Link = [u8; 32];

/// What stands for the digest of the record before it where a chain begins.
pub(super) const BEGINS: Link = [0; 32];

/// Goes first, so that a digest of an entry is one of nothing else.
const DOMAIN: &[u8] = b"sessionplane entry 1\0";

/// The digest of a record, as it is stored.
pub(super) fn digest(record: &[u8]) -> Link {
    let mut digest = Sha256::new();
    digest.update(DOMAIN);
    digest.update(record);
    digest.finalize().into()
}

/// Whether an entry follows the one before it. `before` is that one's digest: none where it has none,
/// or where there is none.
pub(super) fn follows(before: Option<Link>, previous: Option<Link>) -> bool {
    match (before, previous) {
        // What has no digest is followed by more of its kind, or by the beginning of the chain.
        (None, previous) => previous.is_none_or(|previous| previous == BEGINS),
        (Some(before), previous) => previous == Some(before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(text: &str) -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(byte).collect()
    }

    /// The page and the code cannot drift apart: its table is read here.
    #[test]
    fn b52_the_documented_vectors_are_what_is_written() {
        let page = include_str!("../../../../docs/store.md");
        let rows: Vec<Vec<&str>> = page
            .lines()
            .filter(|line| line.starts_with("| `") && line.matches('|').count() == 4)
            .map(|line| {
                line.split('|')
                    .map(|cell| cell.trim().trim_matches('`'))
                    .collect()
            })
            .filter(|cells: &Vec<&str>| cells[3].len() == 64)
            .collect();
        assert!(rows.len() >= 3, "the vectors are gone from docs/store.md");
        for row in rows {
            assert_eq!(digest(&unhex(row[2])), *unhex(row[3]), "{}", row[1]);
        }
    }

    #[test]
    fn b52_a_chain_has_one_beginning_and_no_gap() {
        let (a, b) = (digest(b"a"), digest(b"b"));
        assert_ne!(a, b);
        assert!(follows(None, None) && follows(None, Some(BEGINS)));
        assert!(follows(Some(a), Some(a)));
        assert!(!follows(None, Some(a)), "it names one that is not there");
        assert!(!follows(Some(a), Some(BEGINS)), "a second beginning");
        assert!(!follows(Some(a), None) && !follows(Some(a), Some(b)));
    }
}
