//! How much there is, of what, and whose.

use std::collections::HashMap;

use sessionplane_core::domain::ids::SessionId;

use super::owner::Owners;
use super::{Inspection, Progress};
use crate::adapters::sled::committer::Direct;
use crate::adapters::sled::frame;
use crate::adapters::sled::keys;
use crate::adapters::sled::walk::{PAGE, Walk as _};

/// The largest sessions that are named.
const NAMED: usize = 10;

/// Records of one kind.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct KindStats {
    /// The kind, as `verify` names it.
    pub kind: &'static str,
    /// How many keys.
    pub records: u64,
    /// Their keys and values, in bytes.
    pub bytes: u64,
}

/// A session.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct SessionStats {
    /// Its id.
    pub session: String,
    /// Its records, indexes included.
    pub records: u64,
    /// Their keys and contents, in bytes.
    pub bytes: u64,
}

/// All that was counted.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Stats {
    /// The format of the store.
    pub format: u32,
    /// How often it was opened.
    pub boots: u32,
    /// Sessions.
    pub sessions: u64,
    /// By kind, in the order of keys.
    pub kinds: Vec<KindStats>,
    /// The largest sessions, the largest first.
    pub largest: Vec<SessionStats>,
    /// Files of the store's directory, with their bytes.
    pub files: Vec<(String, u64)>,
}

pub(super) fn stats(store: &Inspection, progress: &mut dyn Progress) -> Result<Stats, String> {
    let source = Direct(&store.db);
    let mut kinds: HashMap<&'static str, (u64, u64)> = HashMap::new();
    let mut sessions: HashMap<SessionId, (u64, u64)> = HashMap::new();
    let mut owners = Owners::default();
    let of = store.tally.map_or(0, |tally| tally.keys);
    let (mut from, mut done) = (Some(Vec::new()), 0);
    while let Some(first) = from {
        let page = source.page(&first).map_err(|error| error.to_string())?;
        for (key, value) in page.records {
            let kind = keys::kind(&key).unwrap_or("unknown");
            let bytes = (key.len() + value.len()) as u64;
            add(kinds.entry(kind).or_default(), bytes);
            if kind == "piece" {
                continue;
            }
            // What cannot be read is counted, but nobody's: `verify` is who tells.
            let Ok(Some(payload)) = frame::open(&source, &key, value) else {
                continue;
            };
            if let Ok(Some(session)) = owners.of(&source, &key, &payload) {
                let bytes = (key.len() + payload.len()) as u64;
                add(sessions.entry(session).or_default(), bytes);
            }
        }
        done += PAGE as u64;
        progress.at(done, of);
        from = page.next;
    }
    Ok(Stats {
        format: store.meta.format_version,
        boots: store.meta.boots,
        sessions: kinds.get("session").map_or(0, |(records, _)| *records),
        kinds: in_order(&kinds),
        largest: largest(sessions),
        files: files(store).map_err(|error| error.to_string())?,
    })
}

fn add((records, bytes): &mut (u64, u64), more: u64) {
    *records += 1;
    *bytes += more;
}

fn in_order(kinds: &HashMap<&'static str, (u64, u64)>) -> Vec<KindStats> {
    let names = keys::KINDS.iter().map(|(_, name)| *name);
    let stats = names.chain(["unknown"]).filter_map(|kind| {
        let (records, bytes) = *kinds.get(kind)?;
        Some(KindStats {
            kind,
            records,
            bytes,
        })
    });
    stats.collect()
}

fn largest(sessions: HashMap<SessionId, (u64, u64)>) -> Vec<SessionStats> {
    let mut sessions: Vec<_> = sessions.into_iter().collect();
    sessions.sort_unstable_by_key(|(id, (_, bytes))| (std::cmp::Reverse(*bytes), *id));
    let named = sessions.into_iter().take(NAMED);
    let named = named.map(|(id, (records, bytes))| SessionStats {
        session: id.to_string(),
        records,
        bytes,
    });
    named.collect()
}

fn files(store: &Inspection) -> std::io::Result<Vec<(String, u64)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&store.path)? {
        let entry = entry?;
        let found = entry.metadata()?;
        if found.is_file() {
            files.push((
                entry.file_name().to_string_lossy().into_owned(),
                found.len(),
            ));
        }
    }
    files.sort_unstable();
    Ok(files)
}
