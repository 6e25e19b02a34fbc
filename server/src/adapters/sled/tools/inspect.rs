//! Opening a store to look at it: as a start would, but neither counted nor brought to a new format.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use ::sled::Db;
use sessionplane_core::ports::repository::ReadError;

use super::{Contents, DumpError, Dumped, Findings, GAVE_UP, Progress, Stats, unless_it_gives_up};
use crate::adapters::sled::boot::{FORMAT_VERSION, durable};
use crate::adapters::sled::committer::Direct;
use crate::adapters::sled::convert::Meta;
use crate::adapters::sled::directory::{DATABASE, Lock, lock, tidy};
use crate::adapters::sled::keys;
use crate::adapters::sled::open::{
    OpenError, damaged, failed_io, guarded, patiently, refuse_lost, refuse_unfinished, sled_said,
    start,
};
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
    _lock: Lock,
}

impl Inspection {
    /// Opens the store in a directory. The storage engine reads its log as at every start, and may
    /// write to its files: a damaged directory is to be copied first.
    ///
    /// # Errors
    /// See [`OpenError`]; also where there is no store.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
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
        let (meta, tally, unwitnessed) = guarded(path, || {
            let meta: Option<Meta> = fetch(&Direct(&db), &keys::meta())
                .map_err(|error| damaged(path, error.to_string()))?;
            let problem = "it has no record of the store itself";
            let meta = meta.ok_or_else(|| damaged(path, problem.to_owned()))?;
            if meta.format_version > FORMAT_VERSION {
                return Err(OpenError::Newer {
                    path: path.to_owned(),
                    found: meta.format_version,
                    supported: FORMAT_VERSION,
                });
            }
            let (found, tally) = durable(path, &db, meta, &said)?;
            Ok((meta, tally, said.is_no_witness(found.round)))
        })?;
        Ok(Self {
            path: path.to_owned(),
            db,
            meta,
            tally,
            unwitnessed,
            _lock: held,
        })
    }

    /// Reads everything and checks it against everything. Each content that an entry names is read,
    /// where there is somewhere to read it from.
    pub fn verify(&self, contents: Option<&dyn Contents>, progress: &mut dyn Progress) -> Findings {
        super::verify::verify(self, contents, progress)
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
