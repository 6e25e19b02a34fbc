//! Where the records of chosen sessions lie. An export of them reads nothing else, so that damage in
//! what is not theirs does not keep them from being taken out.

use std::collections::BTreeSet;
use std::ops::Range;

use sessionplane_core::domain::binding::Binding;
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::session::SessionRecord;
use sessionplane_core::ports::repository::ReadError;

use super::DumpError;
use crate::adapters::sled::committer::Direct;
use crate::adapters::sled::convert::HeadRow;
use crate::adapters::sled::frame::{self, damaged};
use crate::adapters::sled::keys::{self, Key};
use crate::adapters::sled::round::{decode, failed, fetch};
use crate::adapters::sled::write::indexes;

/// What belongs to chosen sessions, and to those that they branched off.
pub(super) struct Chosen {
    /// Keys, in order; no two ranges meet.
    pub(super) ranges: Vec<Range<Key>>,
    /// Request bindings that cannot be read, so that nobody knows whose they are.
    pub(super) unreadable_bindings: u64,
}

impl Chosen {
    /// Finds what belongs to the sessions with these ids.
    pub(super) fn find(source: &Direct<'_>, chosen: &[String]) -> Result<Self, DumpError> {
        let sessions = with_ancestors(source, chosen)?;
        let mut found = Self {
            ranges: Vec::new(),
            unreadable_bindings: 0,
        };
        for session in &sessions {
            found.session(source, *session)?;
        }
        found.bindings(source, &sessions);
        found.ranges.sort_unstable_by(|a, b| a.start.cmp(&b.start));
        Ok(found)
    }

    fn session(&mut self, source: &Direct<'_>, id: SessionId) -> Result<(), ReadError> {
        let marks = keys::runs_of_session(id);
        let prefixes = [
            keys::audits_of_session(id),
            keys::answers_of_session(id),
            keys::entries_of_session(id),
            keys::head(id),
            keys::lease(id),
            keys::metadata_audits_of_session(id),
            keys::session(id),
            marks.clone(),
        ];
        self.ranges.extend(prefixes.map(keys::below));
        let place = keys::session(id);
        let record: Option<SessionRecord> = fetch(source, &place)?;
        let record = record.ok_or_else(|| damaged(&place, "it is missing"))?;
        let head: Option<HeadRow> = fetch(source, &keys::head(id))?;
        let rows = indexes(&record, head.and_then(|row| row.head.place).as_ref());
        let name = record
            .metadata
            .name
            .map(|name| keys::name(&record.tenant, &name));
        let external = record.external_key;
        let external = external.map(|key| keys::external_key(&record.tenant, &key));
        let leads = name.into_iter().chain(external).chain(rows);
        self.ranges.extend(leads.map(just));
        for mark in source.0.scan_prefix(&marks) {
            let (mark, _) = mark.map_err(|error| failed(&marks, &error))?;
            let run = keys::marked_run(&mark).ok_or_else(|| damaged(&mark, "it names no run"))?;
            self.ranges.extend([
                just(keys::run(run)),
                keys::below(keys::inputs_of_run(run)),
                keys::below(keys::interactions_of_run(run)),
            ]);
        }
        Ok(())
    }

    /// Their keys tell nobody whose they are, so all of them are read.
    fn bindings(&mut self, source: &Direct<'_>, sessions: &BTreeSet<SessionId>) {
        for record in source.0.scan_prefix(keys::bindings()) {
            let read = record
                .map_err(|error| failed(&keys::bindings(), &error))
                .and_then(|(key, value)| {
                    let payload = frame::open(source, &key, value)?;
                    let payload = payload.ok_or_else(|| damaged(&key, "it vanished"))?;
                    Ok((decode::<Binding>(&key, &payload)?, key))
                });
            match read {
                Ok((binding, key)) if sessions.contains(&binding.session) => {
                    let mark = keys::binding_by_time(binding.at, &key);
                    self.ranges.extend([just(key.to_vec()), just(mark)]);
                }
                Ok(_) => {}
                Err(_) => self.unreadable_bindings += 1,
            }
        }
    }
}

/// One key.
fn just(key: Key) -> Range<Key> {
    let end = keys::after(&key);
    key..end
}

/// The sessions by their ids, and those that they branched off.
fn with_ancestors(
    source: &Direct<'_>,
    chosen: &[String],
) -> Result<BTreeSet<SessionId>, DumpError> {
    let mut all = BTreeSet::new();
    for text in chosen {
        let unknown = || DumpError::NoSuchSession(text.clone());
        let mut next: Option<SessionId> = Some(text.parse().map_err(|_| unknown())?);
        while let Some(id) = next {
            if !all.insert(id) {
                break;
            }
            let record: Option<SessionRecord> = fetch(source, &keys::session(id))?;
            let record = record.ok_or_else(unknown)?;
            next = record.lineage.map(|lineage| lineage.parent);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_one_key_has_no_other() {
        let has = |range: &Range<Key>, key: &[u8]| range.contains(&key.to_vec());
        let one = just(vec![7, 255]);
        assert!(has(&one, &[7, 255]) && !has(&one, &[7, 255, 0]) && !has(&one, &[7]));
    }
}
