//! Opening a store to look at it: as a start would, but neither counted nor brought to a new format.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use ::sled::Db;
use sessionplane_core::ports::repository::ReadError;

use super::{
    Contents, DumpError, Dumped, DumpedWhole, Findings, GAVE_UP, Judged, Progress, Stats,
    unless_it_gives_up,
};
use crate::adapters::sled::boot::{FORMAT_VERSION, INDEXES, durable};
use crate::adapters::sled::committer::Direct;
use crate::adapters::sled::convert::{Meta, RoundRow};
use crate::adapters::sled::directory::{DATABASE, Lock, lock, tidy};
use crate::adapters::sled::engine::{guarded, patiently, sled_said, start};
use crate::adapters::sled::importing::refuse_unfinished;
use crate::adapters::sled::keys;
use crate::adapters::sled::open::{OpenError, damaged, failed_io, refuse_lost};
use crate::adapters::sled::round::fetch;
use crate::adapters::sled::tally::Tally;
use crate::adapters::sled::witness::Said;

/// Memory for pages of the database, in bytes.
const CACHE: u64 = 64 * 1024 * 1024;

/// A store that is looked at. No server can open it meanwhile.
pub struct Inspection {
    pub(super) path: PathBuf,
    pub(super) db: Db,
    pub(super) meta: Meta,
    /// What its newest round says that it holds; none before format 3.
    pub(super) tally: Option<Tally>,
    /// Why nothing says how far it was acknowledged.
    pub(super) unwitnessed: Option<&'static str>,
    /// Which of the store's own records are damaged, and taken from elsewhere.
    pub(super) without: Without,
    _lock: Lock,
}

/// The store's own records that are damaged.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Without {
    /// That of the store: its id is that of the file `acknowledged`, its openings are as many as its
    /// tokens tell.
    pub meta: bool,
    /// That of the newest round: nothing says what the store is to hold.
    pub round: bool,
}

impl Inspection {
    /// Opens the store in a directory. The storage engine reads its log as at every start, and may
    /// write to its files: a damaged directory is to be copied first.
    ///
    /// # Errors
    /// See [`OpenError`]; also where there is no store.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_if(path, newest)
    }

    /// Opens the store also where one of its own two records is damaged, for what can be told
    /// without it. One that is missing is no damage: an import that was cut has none.
    ///
    /// # Errors
    /// See [`OpenError`]; also where there is no store.
    pub fn open_damaged(path: &Path) -> Result<Self, OpenError> {
        Self::open_if(path, |path, db, said| {
            salvaged(db, said).map_or_else(|| newest(path, db, said), Ok)
        })
    }

    fn open_if(
        path: &Path,
        own: impl FnOnce(&Path, &Db, &Said) -> Result<Own, OpenError>,
    ) -> Result<Self, OpenError> {
        refuse_unfinished(path)?;
        if !path.join(DATABASE).is_file() {
            let nothing = std::io::Error::new(ErrorKind::NotFound, "there is no store in it");
            return Err(failed_io(path, &nothing));
        }
        let held = patiently(|| lock(path))?;
        refuse_unfinished(path)?;
        refuse_lost(path)?;
        tidy(path, &held).map_err(|error| failed_io(path, &error))?;
        let db = patiently(|| {
            guarded(path, || {
                start(path, CACHE).map_err(|error| sled_said(path, &error))
            })
        })?;
        let said = Said::read(path).map_err(|error| failed_io(path, &error))?;
        let own = guarded(path, || own(path, &db, &said))?;
        Ok(Self {
            path: path.to_owned(),
            db,
            meta: own.meta,
            tally: own.tally,
            unwitnessed: own.unwitnessed,
            without: own.without,
            _lock: held,
        })
    }

    /// Which of the store's own records are damaged.
    #[must_use]
    pub fn without(&self) -> Without {
        self.without
    }

    /// Reads everything and checks it against everything. Each content that an entry names is read,
    /// where there is somewhere to read it from.
    pub fn verify(&self, contents: Option<&dyn Contents>, progress: &mut dyn Progress) -> Findings {
        self.judge(contents, progress).findings
    }

    /// The same, with what [`Self::export_whole`] has to know of it.
    pub fn judge(&self, contents: Option<&dyn Contents>, progress: &mut dyn Progress) -> Judged {
        super::verify::judge(self, contents, progress)
    }

    /// Writes every session that was found whole, and that branched off none that was not, as lines.
    /// `judged` is of this store, as long as it is open: nothing changes it meanwhile.
    ///
    /// # Errors
    /// When something cannot be read or written: what was written then has no last line.
    pub fn export_whole(
        &self,
        judged: &Judged,
        contents: &dyn Contents,
        out: &mut dyn Write,
        progress: &mut dyn Progress,
    ) -> Result<DumpedWhole, DumpError> {
        let dump = || super::whole::dump_whole(self, judged, contents, out, progress);
        unless_it_gives_up(dump).unwrap_or(Err(DumpError::Unread))
    }

    /// Writes everything, or what belongs to the chosen sessions and to those that they branched
    /// off, as lines.
    ///
    /// # Errors
    /// When something cannot be read or written: what was written then has no last line.
    pub fn export(
        &self,
        chosen: Option<&[String]>,
        contents: &dyn Contents,
        out: &mut dyn Write,
        progress: &mut dyn Progress,
    ) -> Result<Dumped, DumpError> {
        let dump = || super::dump::dump_inspected(self, chosen, contents, out, progress);
        unless_it_gives_up(dump).unwrap_or_else(|| Err(ReadError::Store(GAVE_UP.to_owned()).into()))
    }

    /// Counts everything.
    ///
    /// # Errors
    /// What the storage engine cannot read, for a person.
    pub fn stats(&self, progress: &mut dyn Progress) -> Result<Stats, String> {
        unless_it_gives_up(|| super::stats::stats(self, progress))
            .unwrap_or_else(|| Err(GAVE_UP.to_owned()))
    }
}

/// What the store's own records say.
struct Own {
    meta: Meta,
    tally: Option<Tally>,
    unwitnessed: Option<&'static str>,
    without: Without,
}

/// As a start reads them.
fn newest(path: &Path, db: &Db, said: &Said) -> Result<Own, OpenError> {
    let meta: Option<Meta> =
        fetch(&Direct(db), &keys::meta()).map_err(|error| damaged(path, error.to_string()))?;
    let problem = "it has no record of the store itself";
    let meta = meta.ok_or_else(|| damaged(path, problem.to_owned()))?;
    if meta.format_version > FORMAT_VERSION {
        return Err(OpenError::Newer {
            path: path.to_owned(),
            found: meta.format_version,
            supported: FORMAT_VERSION,
        });
    }
    let (found, tally) = durable(path, db, meta, said)?;
    Ok(Own {
        meta,
        tally,
        unwitnessed: said.is_no_witness(found.round),
        without: Without::default(),
    })
}

/// What the records say where one is damaged and the other one can stand for it: nothing where
/// neither is, where both are, or where one is missing.
fn salvaged(db: &Db, witness: &Said) -> Option<Own> {
    let said = witness.whole();
    let meta: Result<Option<Meta>, ReadError> = fetch(&Direct(db), &keys::meta());
    let round: Result<Option<RoundRow>, ReadError> = fetch(&Direct(db), &keys::round());
    match (meta, round) {
        (Ok(Some(meta)), Err(ReadError::Damaged { .. })) => Some(Own {
            meta,
            tally: None,
            // How many rounds there were is not known: more than the first, where a session is.
            unwitnessed: witness.is_no_witness(u64::MAX),
            without: Without {
                meta: false,
                round: true,
            },
        })
        .filter(|own| {
            let same = said.is_none_or(|said| said.store_id == own.meta.store_id);
            same && own.meta.format_version <= FORMAT_VERSION
        }),
        // Rounds say what the store holds since format 3, and sessions are in indexes since format 4,
        // so its number needs no record.
        (Err(ReadError::Damaged { .. }), Ok(Some(round))) => {
            let said = said.filter(|said| said.round <= round.number)?;
            let indexed = db.scan_prefix(keys::indexes()).next().is_some();
            Some(Own {
                meta: Meta {
                    format_version: if indexed { FORMAT_VERSION } else { INDEXES - 1 },
                    store_id: said.store_id,
                    boots: 1,
                },
                tally: Some(round.tally?),
                unwitnessed: None,
                without: Without {
                    meta: true,
                    round: false,
                },
            })
        }
        _ => None,
    }
}
