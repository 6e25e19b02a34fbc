//! A second witness of what was acknowledged: a small file beside the database that names the last
//! synced round.
//!
//! sled takes the first record of its log that does not check for the end of a torn write, and goes
//! on from before it: a silent step back behind acknowledged rounds. The file is written after each
//! sync and before the answers, and never synced itself: after a power loss it may be older than the
//! database, never newer. So a database behind it has lost its end. It is no witness of a loss in the
//! middle, after which the newest round is there: that is told where records that belong together
//! are read (entries by their chain and the head, a lease by its run), or not at all.
//!
//! A loss that was found is noted, and the database is not opened again before somebody has decided:
//! each opening lets sled write over what it takes for free room. What a round holds must never
//! enter.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The file's name in the data directory.
pub(super) const FILE: &str = "acknowledged";
/// The name of the file that notes a loss.
const LOST: &str = "lost";
const LENGTH: usize = 28;

/// What the file says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Acknowledged {
    /// The store.
    pub(super) store_id: u128,
    /// The newest round that was synced.
    pub(super) round: u64,
}

impl Acknowledged {
    fn to_bytes(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..16].copy_from_slice(&self.store_id.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.round.to_be_bytes());
        let sum = crc32fast::hash(&bytes[..24]);
        bytes[24..].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// `None` for anything but a whole file: a torn write says nothing.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk()?;
        let (round, _) = rest.split_first_chunk()?;
        let found = Self {
            store_id: u128::from_be_bytes(*id),
            round: u64::from_be_bytes(*round),
        };
        (found.to_bytes() == bytes).then_some(found)
    }
}

/// Notes that the database ends with round `found` although `acknowledged` was synced.
pub(super) fn note_loss(path: &Path, found: u64, acknowledged: u64) -> io::Result<()> {
    std::fs::write(path.join(LOST), format!("{found} {acknowledged}\n"))
}

/// The loss that was noted, as rounds found and acknowledged, if it still stands: the witness says the
/// same as then. Where that was removed or another copy restored, the note goes.
pub(super) fn noted_loss(path: &Path) -> io::Result<Option<(u64, u64)>> {
    let note = path.join(LOST);
    let text = match std::fs::read(&note) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // One that is damaged says nothing; the loss is found again then.
        text => String::from_utf8_lossy(&text?).into_owned(),
    };
    let said = match std::fs::read(path.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        found => Acknowledged::from_bytes(&found?),
    };
    let rounds = text.trim_end().split_once(' ');
    let rounds = rounds.and_then(|(found, said)| Some((found.parse().ok()?, said.parse().ok()?)));
    let stands = rounds.filter(|(_, noted)| said.is_some_and(|said| said.round == *noted));
    if stands.is_none() {
        std::fs::remove_file(&note)?;
    }
    Ok(stands)
}

/// The opened file.
pub(super) struct Witness(File);

impl Witness {
    /// Opens the file, creating it if there is none, and reads what it says.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Option<Acknowledged>)> {
        let path = path.join(FILE);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        let found = std::fs::read(&path)?;
        let said = Acknowledged::from_bytes(&found);
        if said.is_none() && !found.is_empty() {
            tracing::warn!(
                path = %path.display(),
                "what was acknowledged last cannot be read; a loss at the end of the database would \
                 go unnoticed at this start"
            );
        }
        Ok((Self(file), said))
    }

    /// Notes that a round is synced.
    pub(super) fn note(&self, acknowledged: Acknowledged) -> io::Result<()> {
        self.0.write_all_at(&acknowledged.to_bytes(), 0)
    }

    /// Makes the file itself durable; its content may lag, its existence not.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_note_is_read_back_and_a_torn_one_says_nothing() {
        let directory = tempfile::TempDir::new().unwrap();
        let (witness, said) = Witness::open(directory.path()).unwrap();
        assert_eq!(said, None);
        let note = |round| Acknowledged { store_id: 7, round };
        witness.note(note(1)).unwrap();
        witness.note(note(300)).unwrap();
        witness.sync().unwrap();
        let (_, said) = Witness::open(directory.path()).unwrap();
        assert_eq!(said, Some(note(300)));

        let file = directory.path().join(FILE);
        let whole = std::fs::read(&file).unwrap();
        for damaged in [
            &whole[..LENGTH - 1],
            &[0; LENGTH],
            &[&whole[..], b"x"].concat(),
        ] {
            std::fs::write(&file, damaged).unwrap();
            assert_eq!(Witness::open(directory.path()).unwrap().1, None);
        }
    }
}
