//! Everything as lines, in the order of keys: of a store that nobody serves, or of one round of a
//! store that is served. Two exports of the same records are the same bytes.

use std::collections::BTreeSet;
use std::io::{self, Write};

use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::ids::{ArtifactId, EntryId, SessionId};
use sessionplane_core::ports::repository::ReadError;
use sha2::{Digest as _, Sha256};

use super::chosen::Chosen;
use super::lines::{CONTENT_PART, Header, Line, NAME, Scope, Trailer, VERSION, hex};
use super::verify::verify_ranges;
use super::{Contents, Fault, Inspection, Progress, misnamed};
use crate::adapters::sled::Snapshot;
use crate::adapters::sled::committer::Direct;
use crate::adapters::sled::convert::{ChainedEntry, Meta};
use crate::adapters::sled::frame;
use crate::adapters::sled::keys::{self, Named};
use crate::adapters::sled::round::{decode, failed};
use crate::adapters::sled::tally::Tally;
use crate::adapters::sled::walk::{PAGE, Walk};

/// Why an export ended before its last line.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// A record could not be read.
    #[error(
        "{0}; with the server stopped, `sessiond store verify` names all that is damaged, and \
         `sessiond store export --whole` takes out all sessions that are whole"
    )]
    Read(#[from] ReadError),
    /// A part of the database could not be read at all: nobody knows what lay there.
    #[error(
        "a part of the database cannot be read at all, so that nobody knows which sessions are \
         whole; `sessiond store verify` names it, and `sessiond store export --session ID` takes out \
         a session of which nothing lies there"
    )]
    Unread,
    /// The lines could not be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
    /// What was asked for is not there.
    #[error("there is no session {0}")]
    NoSuchSession(String),
    /// What was read is not what the store is to hold.
    #[error(
        "what was read is not what the store's newest round says that it holds: something is lost \
         or old; with the server stopped, `sessiond store verify` tells more, and `sessiond store \
         export --whole` takes out all sessions that look whole"
    )]
    NotWhole,
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Dumped {
    /// Records.
    pub records: u64,
    /// Contents of entries.
    pub artifacts: u64,
    /// Contents that entries name and that could not be read.
    pub missing: u64,
    /// Bytes, all lines together.
    pub bytes: u64,
    /// Request bindings that could not be read or lead nowhere, and may have been those of sessions
    /// that are in it.
    pub unreadable_bindings: u64,
}

pub(super) fn dump_inspected(
    store: &Inspection,
    chosen: Option<&[String]>,
    contents: &dyn Contents,
    out: &mut dyn Write,
    progress: &mut dyn Progress,
) -> Result<Dumped, DumpError> {
    let source = Direct(&store.db);
    let dump = Dump::new(&source, contents, out);
    match chosen {
        None => dump.all(store.meta, store.tally, progress),
        Some(sessions) => {
            let chosen = Chosen::find(&source, sessions)?;
            dump.chosen(store.meta, &chosen, progress)
        }
    }
}

/// Writes everything that a snapshot holds as lines.
///
/// # Errors
/// When something cannot be read or written, or the snapshot was given up: what was written then has
/// no last line.
pub fn dump_snapshot(
    snapshot: &Snapshot,
    contents: &dyn Contents,
    out: &mut dyn Write,
    progress: &mut dyn Progress,
) -> Result<Dumped, DumpError> {
    let dump = Dump::new(snapshot, contents, out);
    dump.all(snapshot.meta(), Some(snapshot.tally()), progress)
}

/// Lines of what a source has.
pub(super) struct Dump<'a, S> {
    source: &'a S,
    contents: &'a dyn Contents,
    lines: Lines<'a>,
    tally: Tally,
    /// Sessions that are being erased. Their notes come before all entries in the order of keys, and
    /// cannot be looked up later: a snapshot forgets what it has passed.
    deleted: BTreeSet<SessionId>,
}

impl<'a, S: Walk> Dump<'a, S> {
    pub(super) fn new(source: &'a S, contents: &'a dyn Contents, out: &'a mut dyn Write) -> Self {
        Self {
            source,
            contents,
            lines: Lines::new(out),
            tally: Tally::default(),
            deleted: BTreeSet::new(),
        }
    }

    fn all(
        mut self,
        meta: Meta,
        expected: Option<Tally>,
        progress: &mut dyn Progress,
    ) -> Result<Dumped, DumpError> {
        self.header(meta, Scope::All)?;
        let (mut from, mut done) = (Some(Vec::new()), 0);
        while let Some(first) = from {
            let page = self.source.page(&first)?;
            for (key, value) in page.records {
                if *key != *keys::round() {
                    self.tally.add(&key, &value);
                }
                self.record(&key, value)?;
            }
            done += PAGE as u64;
            progress.at(done, expected.map_or(0, |tally| tally.keys));
            from = page.next;
        }
        if expected.is_some_and(|expected| expected != self.tally) {
            return Err(DumpError::NotWhole);
        }
        Ok(self.lines.trailer()?)
    }

    /// The first line.
    pub(super) fn header(&mut self, meta: Meta, scope: Scope) -> io::Result<()> {
        self.lines.header(&Header {
            export: NAME.to_owned(),
            version: VERSION,
            store_format: meta.format_version,
            store_id: hex(&meta.store_id.to_be_bytes()),
            boots: meta.boots,
            scope,
        })
    }

    fn record(&mut self, key: &[u8], value: ::sled::IVec) -> Result<(), DumpError> {
        let named = keys::named(key);
        // The store's own records are in the first line, and pieces in their values.
        if let Some(Named::Meta | Named::Round | Named::Piece(_)) = named {
            return Ok(());
        }
        let payload = frame::open(self.source, key, value)?;
        let payload = payload.ok_or_else(|| frame::damaged(key, "it vanished"))?;
        self.payload(named, key, payload)
    }

    /// A record's line, and those of the content that it names; but for a deleted session's, which goes
    /// before its entry does: some of it may be gone, and nobody is to have it again.
    pub(super) fn payload(
        &mut self,
        named: Option<Named>,
        key: &[u8],
        payload: Vec<u8>,
    ) -> Result<(), DumpError> {
        let artifacts = match named {
            Some(Named::Entry(id)) if !self.deleted.contains(&id.session) => {
                artifacts(key, id, &payload)?
            }
            Some(Named::Deleted(session)) => {
                self.deleted.insert(session);
                Vec::new()
            }
            _ => Vec::new(),
        };
        self.lines.record(key, payload)?;
        artifacts
            .iter()
            .try_for_each(|artifact| self.content(artifact))
    }

    /// The last line.
    pub(super) fn trailer(self) -> io::Result<Dumped> {
        self.lines.trailer()
    }

    fn content(&mut self, artifact: &ArtifactRef) -> Result<(), DumpError> {
        let id = artifact.id;
        let found = self.contents.content(id);
        let content = found.and_then(|found| found.ok_or_else(|| "it is missing".to_owned()));
        let content = content.and_then(|content| match misnamed(artifact, &content) {
            Some(problem) => Err(problem),
            None => Ok(content),
        });
        match content {
            Ok(content) => self.lines.content(id, &content)?,
            Err(missing) => self.lines.missing(id, missing)?,
        }
        Ok(())
    }
}

impl Dump<'_, Direct<'_>> {
    /// What belongs to chosen sessions, once all of that is found whole: the store's sum says nothing
    /// of a part.
    fn chosen(
        mut self,
        meta: Meta,
        chosen: &Chosen,
        progress: &mut dyn Progress,
    ) -> Result<Dumped, DumpError> {
        let mut findings = verify_ranges(self.source, meta, &chosen.ranges)?;
        if !findings.whole() {
            let Fault { key, problem, .. } = findings.faults.swap_remove(0);
            return Err(ReadError::Damaged { key, problem }.into());
        }
        self.header(meta, Scope::Chosen)?;
        let mut done = 0;
        for range in &chosen.ranges {
            for record in self.source.0.range(range.clone()) {
                let (key, value) = record.map_err(|error| failed(&range.start, &error))?;
                self.record(&key, value)?;
                done += 1;
                progress.at(done, findings.keys);
            }
        }
        let dumped = self.lines.trailer()?;
        Ok(Dumped {
            unreadable_bindings: chosen.unreadable_bindings,
            ..dumped
        })
    }
}

/// The contents that an entry names, in its order.
pub(super) fn artifacts(
    key: &[u8],
    id: EntryId,
    payload: &[u8],
) -> Result<Vec<ArtifactRef>, ReadError> {
    let record: ChainedEntry = decode(key, payload)?;
    if record.entry.id != id {
        return Err(frame::damaged(key, "it is another entry"));
    }
    Ok(record.entry.body.artifacts().cloned().collect())
}

/// The lines, counted and summed up as they are written.
struct Lines<'a> {
    out: &'a mut dyn Write,
    digest: Sha256,
    dumped: Dumped,
}

impl<'a> Lines<'a> {
    fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out,
            digest: Sha256::new(),
            dumped: Dumped {
                records: 0,
                artifacts: 0,
                missing: 0,
                bytes: 0,
                unreadable_bindings: 0,
            },
        }
    }

    fn header(&mut self, header: &Header) -> io::Result<()> {
        self.put(header)
    }

    fn record(&mut self, key: &[u8], value: Vec<u8>) -> io::Result<()> {
        self.dumped.records += 1;
        self.put(&Line::Record {
            record: keys::describe(key),
            key: key.to_vec(),
            value,
        })
    }

    fn content(&mut self, id: ArtifactId, content: &[u8]) -> io::Result<()> {
        self.dumped.artifacts += 1;
        // An empty content has one part.
        let last = content.len().saturating_sub(1) / CONTENT_PART;
        for part in 0..=last {
            let offset = part * CONTENT_PART;
            let end = content.len().min(offset + CONTENT_PART);
            self.put(&Line::Content {
                artifact: id.to_string(),
                bytes: content.len() as u64,
                offset: offset as u64,
                data: content[offset..end].to_vec(),
            })?;
        }
        Ok(())
    }

    fn missing(&mut self, id: ArtifactId, missing: String) -> io::Result<()> {
        self.dumped.missing += 1;
        self.put(&Line::Missing {
            artifact: id.to_string(),
            missing,
        })
    }

    fn trailer(mut self) -> io::Result<Dumped> {
        let sha256 = hex(&self.digest.clone().finalize());
        self.put(&Line::Trailer(Trailer {
            records: self.dumped.records,
            artifacts: self.dumped.artifacts,
            missing: self.dumped.missing,
            sha256,
        }))?;
        self.out.flush()?;
        Ok(self.dumped)
    }

    fn put(&mut self, line: &impl serde::Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.digest.update(&text);
        self.dumped.bytes += text.len() as u64;
        self.out.write_all(&text)
    }
}
