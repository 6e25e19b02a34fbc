//! A store from the lines of an export, into a directory that has none.
//!
//! The record of the store itself is written last: what was cut on the way is no store, and a start
//! says so.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read as _};
use std::path::Path;

use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::ids::ArtifactId;
use sha2::{Digest as _, Sha256};

use super::dump::artifacts;
use super::lines::{Header, Line, MAX_LINE, NAME, Scope, Trailer, VERSION, hex};
use super::{Contents, GAVE_UP, Progress, misnamed, unless_it_gives_up};
use crate::adapters::sled::boot::{FORMAT_VERSION, SEALED, count_boot, next};
use crate::adapters::sled::convert::Meta;
use crate::adapters::sled::device::Device;
use crate::adapters::sled::engine::sync_names;
use crate::adapters::sled::frame;
use crate::adapters::sled::importing::{finished, fresh};
use crate::adapters::sled::keys::{self, Key, Named};
use crate::adapters::sled::open::OpenError;

/// How many openings a store that was imported is taken to have had beyond those of its export. The
/// one that is lost may have been opened since, and its clients hold numbers that nothing else tells
/// from those of another opening.
const OPENED_SINCE: u32 = 4096;
/// Bytes of keys and values that one round writes.
const ROUND_BYTES: usize = 8 * 1024 * 1024;
/// What is wrong with a content that follows no entry of its own.
const UNNAMED: &str = "the record before it names no such content";

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The directory cannot take one.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The directory has something in it.
    #[error("{0} is not empty; name a directory that is empty or not there yet")]
    NotEmpty(String),
    /// The lines cannot be read.
    #[error("cannot read the export: {0}")]
    Read(#[from] io::Error),
    /// They are not those of an export.
    #[error("line {line} of the export: {problem}")]
    Line {
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// They end before the last line.
    #[error("the export is cut: it ends with line {line}, without the line that closes it")]
    Cut {
        /// The last line that is there.
        line: u64,
    },
    /// They are not what was written.
    #[error("the export was changed: its last line does not fit what comes before it")]
    Changed,
    /// A newer server wrote it.
    #[error(
        "the export has {what} {found}; this server reads up to {supported}: use the newer one"
    )]
    Newer {
        /// `version` or `store_format`.
        what: &'static str,
        /// What it has.
        found: u32,
        /// What this server reads.
        supported: u32,
    },
    /// It has some sessions only.
    #[error("the export has chosen sessions only, not everything; use `import` for it")]
    NotAll,
    /// The server that was to make it gave none, or no more of it.
    #[error("the server refused: {0}")]
    Refused(String),
    /// The store cannot be written.
    #[error("cannot write the store: {0}")]
    Write(String),
}

/// What was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Loaded {
    /// Records.
    pub records: u64,
    /// Contents of entries.
    pub artifacts: u64,
    /// Contents that were missing already when the export was made.
    pub missing: u64,
}

/// Makes a store of an export, in a directory that is empty or not there yet. `all` refuses an
/// export of chosen sessions.
///
/// # Errors
/// See [`LoadError`]. What was written until then is no store: remove it.
pub fn load(
    path: &Path,
    all: bool,
    contents: &dyn Contents,
    lines: &mut dyn BufRead,
    progress: &mut dyn Progress,
) -> Result<Loaded, LoadError> {
    unless_it_gives_up(|| load_lines(path, all, contents, lines, progress))
        .unwrap_or_else(|| Err(LoadError::Write(GAVE_UP.to_owned())))
}

fn load_lines(
    path: &Path,
    all: bool,
    contents: &dyn Contents,
    lines: &mut dyn BufRead,
    progress: &mut dyn Progress,
) -> Result<Loaded, LoadError> {
    let mut lines = Lines::new(lines);
    let header = lines.header()?;
    if all && header.scope != Scope::All {
        return Err(LoadError::NotAll);
    }
    let meta = meta(&header).map_err(|problem| lines.wrong(problem))?;
    let mut loading = Loading {
        device: fresh(path, meta.store_id)?,
        sets: 0,
        writes: Vec::new(),
        bytes: 0,
        last: Key::new(),
        named: VecDeque::new(),
        content: None,
        contents,
        loaded: Loaded {
            records: 0,
            artifacts: 0,
            missing: 0,
        },
    };
    // Servers that know no mark of an import take no directory that has records and no store's.
    loading.write()?;
    loop {
        let before = lines.digest.clone();
        match lines.next()? {
            Line::Trailer(trailer) => {
                loading.close_content(&lines)?;
                lines.ended()?;
                loading.loaded.fits(&trailer, &hex(&before.finalize()))?;
                loading.write()?;
                count_boot(path, &mut loading.device, meta)?;
                let done = sync_names(path).and_then(|()| finished(path));
                done.map_err(|error| LoadError::Write(error.to_string()))?;
                return Ok(loading.loaded);
            }
            line => loading.take(&lines, line)?,
        }
        progress.at(lines.number, 0);
    }
}

/// Copies the lines of an export, checked on the way: what `to` got is whole if this succeeds.
///
/// # Errors
/// See [`LoadError`].
pub fn copy(lines: &mut dyn BufRead, to: &mut dyn io::Write) -> Result<Loaded, LoadError> {
    let mut lines = Lines::new(lines);
    let first = lines.line()?;
    if let Ok(Line::Refused { refused }) = serde_json::from_slice(&first) {
        return Err(LoadError::Refused(refused));
    }
    lines.parsed_header(&first)?;
    to.write_all(&first)?;
    let mut copied = Loaded {
        records: 0,
        artifacts: 0,
        missing: 0,
    };
    loop {
        let before = lines.digest.clone();
        let text = lines.line()?;
        match lines.parsed(&text)? {
            Line::Record { .. } => copied.records += 1,
            Line::Content { offset: 0, .. } => copied.artifacts += 1,
            Line::Content { .. } => {}
            Line::Missing { .. } => copied.missing += 1,
            Line::Refused { refused } => return Err(LoadError::Refused(refused)),
            Line::Trailer(trailer) => {
                lines.ended()?;
                copied.fits(&trailer, &hex(&before.finalize()))?;
                to.write_all(&text)?;
                return Ok(copied);
            }
        }
        to.write_all(&text)?;
    }
}

impl Loaded {
    fn fits(&self, trailer: &Trailer, sha256: &str) -> Result<(), LoadError> {
        let counted = (trailer.records, trailer.artifacts, trailer.missing);
        if counted == (self.records, self.artifacts, self.missing) && trailer.sha256 == sha256 {
            Ok(())
        } else {
            Err(LoadError::Changed)
        }
    }
}

fn meta(header: &Header) -> Result<Meta, &'static str> {
    let whole = header.store_id.len() == 32;
    let store_id = u128::from_str_radix(&header.store_id, 16).ok();
    // Chains have links of all sessions. Where some are left out, the first start begins others.
    let newest = match header.scope {
        Scope::All => FORMAT_VERSION,
        Scope::Chosen => SEALED - 1,
    };
    let meta = Meta {
        format_version: header.store_format.min(newest),
        store_id: store_id
            .filter(|_| whole)
            .ok_or("its store_id is not 32 digits")?,
        boots: header.boots.saturating_add(OPENED_SINCE),
    };
    // What no start would take is not made.
    next(meta).map(|_| meta)
}

/// The lines, one by one.
struct Lines<'a> {
    from: &'a mut dyn BufRead,
    digest: Sha256,
    number: u64,
}

impl<'a> Lines<'a> {
    fn new(from: &'a mut dyn BufRead) -> Self {
        Self {
            from,
            digest: Sha256::new(),
            number: 0,
        }
    }

    fn wrong(&self, problem: impl Into<String>) -> LoadError {
        LoadError::Line {
            line: self.number,
            problem: problem.into(),
        }
    }

    fn line(&mut self) -> Result<Vec<u8>, LoadError> {
        let mut text = Vec::new();
        let mut bounded = (&mut self.from).take(MAX_LINE);
        bounded.read_until(b'\n', &mut text)?;
        if text.last() != Some(&b'\n') {
            if text.len() as u64 == MAX_LINE {
                self.number += 1;
                return Err(self.wrong("it is too long"));
            }
            return Err(LoadError::Cut { line: self.number });
        }
        self.number += 1;
        self.digest.update(&text);
        Ok(text)
    }

    fn header(&mut self) -> Result<Header, LoadError> {
        let text = self.line()?;
        self.parsed_header(&text)
    }

    fn parsed_header(&self, text: &[u8]) -> Result<Header, LoadError> {
        // Before its other fields are looked at, which another version may have more of.
        let version: serde_json::Value =
            serde_json::from_slice(text).map_err(|error| self.wrong(error.to_string()))?;
        if version["export"] != NAME {
            return Err(self.wrong("it is not the first line of an export of a store"));
        }
        let newer = |what, known: u32| {
            let found = version[what]
                .as_u64()
                .and_then(|found| u32::try_from(found).ok())?;
            (found > known).then_some(LoadError::Newer {
                what,
                found,
                supported: known,
            })
        };
        let newer = newer("version", VERSION).or_else(|| newer("store_format", FORMAT_VERSION));
        match newer {
            Some(newer) => Err(newer),
            None => serde_json::from_slice(text).map_err(|error| self.wrong(error.to_string())),
        }
    }

    fn next(&mut self) -> Result<Line, LoadError> {
        let text = self.line()?;
        self.parsed(&text)
    }

    fn parsed(&self, text: &[u8]) -> Result<Line, LoadError> {
        serde_json::from_slice(text).map_err(|error| self.wrong(error.to_string()))
    }

    /// Nothing may come after the last line.
    fn ended(&mut self) -> Result<(), LoadError> {
        if self.from.fill_buf()?.is_empty() {
            return Ok(());
        }
        self.number += 1;
        Err(self.wrong("it comes after the line that closes the export"))
    }
}

/// The store in the making.
struct Loading<'a> {
    device: Device,
    sets: u64,
    writes: Vec<(Key, Option<Vec<u8>>)>,
    bytes: usize,
    last: Key,
    /// The content that the last record names.
    named: VecDeque<ArtifactRef>,
    /// The content of which not all parts have come.
    content: Option<(ArtifactId, u64, Vec<u8>)>,
    contents: &'a dyn Contents,
    loaded: Loaded,
}

impl Loading<'_> {
    fn take(&mut self, lines: &Lines<'_>, line: Line) -> Result<(), LoadError> {
        match line {
            Line::Record { key, value, .. } => {
                self.close_content(lines)?;
                self.record(lines, key, &value)
            }
            Line::Content {
                artifact,
                bytes,
                offset,
                data,
            } => self.part(lines, &artifact, bytes, offset, data),
            Line::Missing { artifact, .. } => {
                self.close_content(lines)?;
                let named = self.named.pop_front().map(|named| named.id.to_string());
                if named.as_ref() != Some(&artifact) {
                    return Err(lines.wrong(UNNAMED));
                }
                self.loaded.missing += 1;
                Ok(())
            }
            Line::Refused { .. } | Line::Trailer(_) => Err(lines.wrong("it is none of a record")),
        }
    }

    fn record(&mut self, lines: &Lines<'_>, key: Key, payload: &[u8]) -> Result<(), LoadError> {
        match keys::named(&key) {
            None => return Err(lines.wrong("its key is none of a store")),
            Some(Named::Meta | Named::Round | Named::Piece(_)) => {
                return Err(lines.wrong("it is not one that an export has"));
            }
            // One that cannot be read names nothing; that it cannot is told when all is verified.
            Some(Named::Entry(id)) => {
                let named = artifacts(&key, id, payload).unwrap_or_default();
                self.named = named.into();
            }
            Some(_) => self.named.clear(),
        }
        // So none comes twice.
        if key <= self.last {
            return Err(lines.wrong("its key is not after that of the record before it"));
        }
        self.last.clone_from(&key);
        self.loaded.records += 1;
        let sets = &mut self.sets;
        for (key, value) in frame::values(key, payload, || {
            *sets += 1;
            *sets
        }) {
            self.bytes += key.len() + value.len();
            self.writes.push((key, Some(value)));
        }
        if self.bytes >= ROUND_BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), LoadError> {
        self.bytes = 0;
        let writes = std::mem::take(&mut self.writes);
        self.device.write_alone(writes).map_err(LoadError::Write)
    }

    fn part(
        &mut self,
        lines: &Lines<'_>,
        artifact: &str,
        bytes: u64,
        offset: u64,
        data: Vec<u8>,
    ) -> Result<(), LoadError> {
        let id: ArtifactId = artifact
            .parse()
            .map_err(|_| lines.wrong("its artifact is no id"))?;
        if offset == 0 {
            self.close_content(lines)?;
            if self.named.front().map(|named| named.id) != Some(id) {
                return Err(lines.wrong(UNNAMED));
            }
            self.content = Some((id, bytes, Vec::new()));
        }
        let fits = self.content.as_mut().filter(|(of, whole, so_far)| {
            let end = (so_far.len() as u64).saturating_add(data.len() as u64);
            (*of, *whole, so_far.len() as u64) == (id, bytes, offset) && end <= bytes
        });
        let (_, _, so_far) =
            fits.ok_or_else(|| lines.wrong("it does not follow the part before it"))?;
        so_far.extend(data);
        Ok(())
    }

    fn close_content(&mut self, lines: &Lines<'_>) -> Result<(), LoadError> {
        let Some((id, bytes, content)) = self.content.take() else {
            return Ok(());
        };
        if content.len() as u64 != bytes {
            return Err(lines.wrong("the content before it lacks a part"));
        }
        let named = self.named.pop_front();
        if let Some(problem) = named.and_then(|named| misnamed(&named, &content)) {
            return Err(lines.wrong(format!("the content before it: {problem}")));
        }
        self.loaded.artifacts += 1;
        self.contents.keep(id, content).map_err(LoadError::Write)
    }
}
