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

use super::directory::read_regular;

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
    let text = match read_regular(&note, 64) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // One that is damaged says nothing; the loss is found again then.
        text => String::from_utf8_lossy(&text?).into_owned(),
    };
    let said = Said::read(path)?.whole();
    let rounds = text.trim_end().split_once(' ');
    let rounds = rounds.and_then(|(found, said)| Some((found.parse().ok()?, said.parse().ok()?)));
    let stands = rounds.filter(|(_, noted)| said.is_some_and(|said| said.round == *noted));
    if stands.is_none() {
        std::fs::remove_file(&note)?;
    }
    Ok(stands)
}

/// What the file was found to say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// There is none.
    Missing,
    /// Nothing that could be understood.
    Unreadable,
    /// This.
    Whole(Acknowledged),
}

impl Said {
    /// Reads it, where there is one; nothing is made.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let found = match read_regular(&path.join(FILE), LENGTH as u64 + 1) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Missing),
            found => found?,
        };
        Ok(Acknowledged::from_bytes(&found).map_or(Self::Unreadable, Self::Whole))
    }

    pub(super) fn whole(&self) -> Option<Acknowledged> {
        match self {
            Self::Whole(said) => Some(*said),
            Self::Missing | Self::Unreadable => None,
        }
    }

    /// What is wrong where a database ends with this round and the file says nothing. Before the
    /// second round nothing was acknowledged to anybody: the first one counts the first start.
    pub(super) fn is_no_witness(&self, newest: u64) -> Option<&'static str> {
        match self {
            _ if newest < 2 => None,
            Self::Whole(_) => None,
            Self::Missing => {
                Some("is missing: that the end of the database was lost would not be noticed")
            }
            Self::Unreadable => {
                Some("cannot be read: that the end of the database was lost would not be noticed")
            }
        }
    }
}

/// The opened file.
pub(super) struct Witness(File);

impl Witness {
    /// Opens the file, creating it if there is none, and reads what it says.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Said)> {
        let said = Said::read(path)?;
        let path = path.join(FILE);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
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
        assert_eq!(said, Said::Missing);
        let note = |round| Acknowledged { store_id: 7, round };
        witness.note(note(1)).unwrap();
        witness.note(note(300)).unwrap();
        witness.sync().unwrap();
        let (_, said) = Witness::open(directory.path()).unwrap();
        assert_eq!(said, Said::Whole(note(300)));

        let file = directory.path().join(FILE);
        let whole = std::fs::read(&file).unwrap();
        for damaged in [
            &whole[..LENGTH - 1],
            &[0; LENGTH],
            &[&whole[..], b"x"].concat(),
        ] {
            std::fs::write(&file, damaged).unwrap();
            let (_, said) = Witness::open(directory.path()).unwrap();
            assert_eq!(said, Said::Unreadable);
            assert_eq!(said.is_no_witness(1), None, "nothing was acknowledged yet");
            assert!(said.is_no_witness(2).is_some());
        }
    }
}
