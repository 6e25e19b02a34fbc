//! Opening the store: its directory, its lock, its files, and why it may be refused.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::boot::{count_boot, durable, next_boot};
use super::committer::Counters;
use super::convert::Meta;
use super::device::{Device, RoundProbe};
use super::directory::{DATABASE, Place, lock, tidy};
use super::engine::{guarded, patiently, sled_said, start, sync_names};
use super::importing::refuse_unfinished;
use super::inflight::InFlight;
use super::reader::Reader;
use super::upgrade::{counted, upgrade};
use super::witness::{Witness, noted_loss};

/// How to open a store.
#[derive(Clone)]
pub struct StoreOptions {
    /// Identifies the store, if this opening creates it: 128 random bits.
    pub store_id: u128,
    /// Memory for pages of the database, in bytes.
    pub cache_bytes: u64,
    /// Most commits that wait for the committer; callers beyond it wait to enter.
    pub queue: usize,
    /// Most reads at a time; further ones wait.
    pub reads: usize,
    /// Watches every round.
    pub probe: Option<Arc<dyn RoundProbe>>,
}

impl StoreOptions {
    /// The defaults: 64 MiB of cache, 1024 waiting commits, 32 reads at a time.
    #[must_use]
    pub fn new(store_id: u128) -> Self {
        Self {
            store_id,
            cache_bytes: 64 * 1024 * 1024,
            queue: 1024,
            reads: 32,
            probe: None,
        }
    }
}

/// Why a store could not be opened. This server changed nothing, except that a fresh one may have been
/// begun. The storage engine may have: it reads its log before anything of it can be judged, and
/// takes what follows a damage for free room. So a damaged directory is to be copied before it is
/// tried again; one that was found to have lost something is not opened again by itself.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error(
        "the data directory {path} is in use by another process; stop that one, or name another \
         directory with --data-dir"
    )]
    InUse {
        /// The data directory.
        path: PathBuf,
    },
    /// A newer server wrote it.
    #[error(
        "the data directory {path} has format {found}; this server reads up to {supported}: use \
         the newer server"
    )]
    Newer {
        /// The data directory.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this server reads.
        supported: u32,
    },
    /// The database is whole, but ends before what was acknowledged: sled gave up a part of it.
    #[error(
        "the data directory {path} has lost acknowledged commits: its database ends with round \
         {found}, round {acknowledged} was acknowledged; put it away as it is before anything \
         else, then restore a copy without the file `lost`, or remove the file `acknowledged` to go \
         on without what is lost"
    )]
    Lost {
        /// The data directory.
        path: PathBuf,
        /// The newest round that the database has.
        found: u64,
        /// The newest round that was acknowledged.
        acknowledged: u64,
    },
    /// It is no store, or a damaged one.
    #[error(
        "the data directory {path} is damaged: {problem}; put it away as it is before \
         the next start, which may change it, and restore a copy"
    )]
    Damaged {
        /// The data directory.
        path: PathBuf,
        /// What was found.
        problem: String,
    },
    /// An import into it was cut or refused.
    #[error(
        "the data directory {path} is of an import that did not come to its end; remove it, and \
         import again"
    )]
    Unfinished {
        /// The data directory.
        path: PathBuf,
    },
    /// The operating system refused something.
    #[error("the data directory {path} cannot be used: {problem}")]
    Io {
        /// The data directory.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
}

/// An opened store, before its committer runs.
pub(super) struct Opened {
    pub(super) device: Device,
    pub(super) reader: Reader,
    pub(super) meta: Meta,
    pub(super) counters: Arc<Counters>,
}

/// Opens, checks, counts the boot and syncs that.
pub(super) fn open(path: &Path, options: &StoreOptions) -> Result<Opened, OpenError> {
    let io = |error: std::io::Error| failed_io(path, &error);
    let lock = patiently(|| lock(path))?;
    refuse_unfinished(path)?;
    refuse_lost(path)?;
    tidy(path, &lock).map_err(io)?;
    let db = patiently(|| {
        guarded(path, || {
            start(path, options.cache_bytes).map_err(|error| sled_said(path, &error))
        })
    })?;
    let counters = Arc::new(Counters::default());
    let inflight = Arc::new(InFlight::default());
    let file = File::options()
        .read(true)
        .write(true)
        .open(path.join(DATABASE))
        .map_err(io)?;
    let place = Place::of(path, &file, lock).map_err(io)?;
    let (witness, said) = Witness::open(path).map_err(io)?;
    let reader = Reader::new(db.clone(), Arc::clone(&inflight));
    let (device, meta) = guarded(path, || {
        let meta = next_boot(path, &db, options.store_id)?;
        let (durable, tally) = durable(path, &db, meta, &said)?;
        let tally = match tally {
            Some(tally) => tally,
            None => counted(path, &db)?,
        };
        let mut device = Device {
            db,
            file,
            witness,
            place,
            inflight,
            probe: options.probe.clone(),
            syncs: Arc::clone(&counters.syncs),
            durable,
            tally,
        };
        let meta = upgrade(path, &mut device, meta)?;
        count_boot(path, &mut device, meta)?;
        Ok((device, meta))
    })?;
    sync_names(path).map_err(io)?;
    Ok(Opened {
        device,
        reader,
        meta,
        counters,
    })
}

/// Refuses a directory of which a loss was noted.
pub(super) fn refuse_lost(path: &Path) -> Result<(), OpenError> {
    match noted_loss(path).map_err(|error| failed_io(path, &error))? {
        Some((found, acknowledged)) => Err(OpenError::Lost {
            path: path.to_owned(),
            found,
            acknowledged,
        }),
        None => Ok(()),
    }
}

pub(super) fn damaged(path: &Path, problem: String) -> OpenError {
    OpenError::Damaged {
        path: path.to_owned(),
        problem,
    }
}

pub(super) fn failed_io(path: &Path, error: &std::io::Error) -> OpenError {
    let mut problem = error.to_string();
    if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem {
        let from = path.parent().unwrap_or(path).display();
        problem = format!(
            "{problem}: the storage engine writes to its files when it opens them; copy them to \
             where that can be (cp -a '{from}' COPY), and name --data-dir COPY"
        );
    }
    OpenError::Io {
        path: path.to_owned(),
        problem,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use ::sled::Db;
    use prost::Message as _;
    use sessionplane_core::domain::ids::{RunId, SessionId};
    use sessionplane_core::domain::lease::LeaseToken;
    use sessionplane_core::ports::lease_store::{HeldLease, LeaseStore as _};
    use sessionplane_core::ports::repository::ReadError;

    use super::*;
    use crate::adapters::sled::boot::FORMAT_VERSION;
    use crate::adapters::sled::convert::Stored as _;
    use crate::adapters::sled::{SledStore, frame, keys};

    type Change = Box<dyn Fn(&Db)>;

    fn opened(path: &Path) -> Result<Meta, OpenError> {
        open(path, &StoreOptions::new(7)).map(|opened| opened.meta)
    }

    fn overwrite(path: &Path, change: impl FnOnce(&Db)) {
        let opened = || start(path, 1 << 20).map_err(|error| sled_said(path, &error));
        let db = patiently(opened).unwrap();
        change(&db);
        db.flush().unwrap();
    }

    fn put(db: &Db, key: Vec<u8>, payload: &[u8]) {
        for (key, value) in frame::values(key, payload, || 1) {
            db.insert(key, value).unwrap();
        }
    }

    #[test]
    fn each_opening_is_counted_and_the_id_stays() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("deep/er");
        for boots in 1..4 {
            let options = StoreOptions::new(u128::from(boots));
            let meta = open(&path, &options).unwrap().meta;
            assert_eq!((meta.boots, meta.store_id), (boots, 1));
        }
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others may read it");
    }

    #[test]
    fn a_newer_format_and_a_spent_counter_are_refused() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path();
        let meta = opened(path).unwrap();
        let write = |meta: Meta| {
            overwrite(path, |db| {
                put(db, keys::meta(), &meta.form().encode_to_vec());
            });
            opened(path)
        };
        let newer = write(Meta {
            format_version: FORMAT_VERSION + 1,
            ..meta
        });
        let refused = OpenError::Newer {
            path: path.to_owned(),
            found: FORMAT_VERSION + 1,
            supported: FORMAT_VERSION,
        };
        assert_eq!(newer, Err(refused));
        let spent = write(Meta {
            boots: (1 << 24) - 1,
            ..meta
        });
        assert!(matches!(spent, Err(OpenError::Damaged { .. })), "{spent:?}");
    }

    #[test]
    fn a_damaged_record_of_the_store_itself_is_told_at_open() {
        let cut_short: Change = Box::new(|db| {
            db.insert(keys::meta(), &[1, 2]).unwrap();
        });
        let gone: Change = Box::new(|db| {
            db.remove(keys::meta()).unwrap();
        });
        for change in [cut_short, gone] {
            let directory = tempfile::TempDir::new().unwrap();
            opened(directory.path()).unwrap();
            overwrite(directory.path(), change);
            let refused = opened(directory.path());
            assert!(
                matches!(refused, Err(OpenError::Damaged { .. })),
                "{refused:?}"
            );
        }
    }

    /// One session's damage is that session's: the others are listed, it is told by name.
    #[tokio::test]
    async fn b54_a_damaged_lease_is_told_of_its_session_and_of_no_other() {
        let (whole, broken) = (
            SessionId::from_bytes([1; 16]),
            SessionId::from_bytes([2; 16]),
        );
        let lease = HeldLease {
            session: whole,
            holder: RunId::from_bytes([2; 16]).into(),
            token: LeaseToken(1),
        };
        let directory = tempfile::TempDir::new().unwrap();
        opened(directory.path()).unwrap();
        overwrite(directory.path(), |db| {
            put(db, keys::lease(whole), &lease.form().encode_to_vec());
            put(db, keys::lease(broken), b"?");
        });
        let store = patiently(|| SledStore::open(directory.path(), &StoreOptions::new(7))).unwrap();
        assert_eq!(store.orphaned().await, Ok(vec![lease]));
        assert_eq!(store.cut(whole).await, Ok(Some(lease)));
        let Err(ReadError::Damaged { key, .. }) = store.cut(broken).await else {
            panic!("the damage was not told");
        };
        assert_eq!(key, format!("lease {broken}"));
        assert_eq!(store.cut(SessionId::from_bytes([3; 16])).await, Ok(None));
    }
}
