//! The index of a new worktree, version 2.

use sha1::{Digest as _, Sha1};

use crate::adapters::boundary::Made;
use crate::adapters::git::oid::Oid;

/// A file that was written.
#[derive(Debug)]
pub(super) struct Staged {
    /// Its path from the top.
    pub(super) path: Vec<u8>,
    pub(super) mode: u32,
    pub(super) oid: Oid,
    pub(super) made: Made,
}

/// The longest path whose length stands in an index; of longer ones it is said that they are.
const LENGTH: usize = 0xfff;

/// The index of files.
pub(super) fn index_of(mut files: Vec<Staged>) -> Vec<u8> {
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let mut index = b"DIRC\0\0\0\x02".to_vec();
    // There are never more than 500,000.
    let count = u32::try_from(files.len()).unwrap_or(u32::MAX);
    index.extend(count.to_be_bytes());
    for file in &files {
        let start = index.len();
        let [changed, modified] = file.made.times;
        let [device, inode, owner, group] = file.made.numbers;
        let numbers = [
            low(changed.0),
            low(changed.1),
            low(modified.0),
            low(modified.1),
            device,
            inode,
            file.mode,
            owner,
            group,
            low(file.made.bytes.cast_signed()),
        ];
        index.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        index.extend(file.oid.0);
        let length = u16::try_from(file.path.len().min(LENGTH)).unwrap_or_default();
        index.extend(length.to_be_bytes());
        index.extend(&file.path);
        // At least one zero ends it, and the next begins at a multiple of eight.
        let used = index.len() - start;
        index.extend(std::iter::repeat_n(0, 8 - used % 8));
    }
    let sum = Sha1::digest(&index);
    index.extend(sum);
    index
}

/// The low half of a number, which is all that an index keeps.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is compared with what is cut in the same way"
)]
fn low(number: i64) -> u32 {
    number as u32
}
