//! An export of every session that is whole, out of a store in which something is not. One pass over
//! everything, after the one that judged it; what is remembered are the sessions that are left out.
//!
//! What only leads to a session does not keep it back: an index of a name, and the mark of a
//! binding's time, are made anew from what they are of; what leads nowhere is left out.

use std::collections::BTreeMap;
use std::io::Write;

use ::sled::IVec;
use prost::Message as _;
use sessionplane_core::domain::binding::Binding;
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::ports::repository::ReadError;

use super::dump::Dump;
use super::lines::Scope;
use super::owner::Owners;
use super::verify::{Lookup, of_key};
use super::{Contents, DumpError, Dumped, Inspection, Judged, Progress};
use crate::adapters::sled::committer::Direct;
use crate::adapters::sled::convert::{Address, Meta, Stored as _};
use crate::adapters::sled::frame;
use crate::adapters::sled::keys::{self, Key, Named};
use crate::adapters::sled::round::{decode, fetch};
use crate::adapters::sled::walk::Walk as _;

/// Most marks of bindings' times that are made anew; bindings that lack theirs beyond it are left out.
const MARKS: usize = 65_536;

/// What was written, and what was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DumpedWhole {
    /// What was written. Its bindings that could not be read are all that were left out although
    /// nobody knows that their session was.
    pub dumped: Dumped,
    /// Indexes of names and marks of bindings that were made anew.
    pub made_anew: u64,
    /// Other records that are left out, and whose session nobody knows.
    pub strays: u64,
}

pub(super) fn dump_whole(
    store: &Inspection,
    judged: &Judged,
    contents: &dyn Contents,
    out: &mut dyn Write,
    progress: &mut dyn Progress,
) -> Result<DumpedWhole, DumpError> {
    if judged.lost_track {
        return Err(DumpError::Unread);
    }
    let source = Direct(&store.db);
    let mut sifted = Sifted {
        source: &source,
        judged,
        lookup: Lookup::new(&source),
        owners: Owners::default(),
        anew: BTreeMap::new(),
        marks: 0,
        bindings: 0,
        strays: 0,
    };
    for (key, session) in &judged.unled {
        if !judged.findings.not_whole.contains(session) {
            let payload = || match keys::named(key) {
                Some(Named::Index(_)) => Vec::new(),
                _ => Address(*session).form().encode_to_vec(),
            };
            sifted.anew.entry(key.clone()).or_insert_with(payload);
        }
    }
    let scope = if judged.findings.whole() {
        Scope::All
    } else {
        Scope::Chosen
    };
    let mut dump = Dump::new(&source, contents, out);
    dump.header(meta(store, judged), scope)?;
    sifted.write(dump, progress)
}

/// A record of the store that is damaged did not tell how often it was opened. Its tokens do, but for
/// openings that wrote nothing, which an import leaps over.
fn meta(store: &Inspection, judged: &Judged) -> Meta {
    let boots = if store.without.meta {
        LeaseToken(judged.newest_token).start().max(1)
    } else {
        store.meta.boots
    };
    Meta {
        boots,
        ..store.meta
    }
}

/// Tells what is written and what is not.
struct Sifted<'a> {
    source: &'a Direct<'a>,
    judged: &'a Judged,
    lookup: Lookup<'a>,
    owners: Owners,
    /// Records to be made anew at keys that are still to come.
    anew: BTreeMap<Key, Vec<u8>>,
    marks: usize,
    bindings: u64,
    strays: u64,
}

impl Sifted<'_> {
    fn write(
        mut self,
        mut dump: Dump<'_, Direct<'_>>,
        progress: &mut dyn Progress,
    ) -> Result<DumpedWhole, DumpError> {
        let of = self.judged.findings.keys;
        let (mut from, mut done, mut made_anew) = (Some(Vec::new()), 0, 0);
        while let Some(first) = from {
            let page = self.source.page(&first)?;
            done += page.records.len() as u64;
            for (key, value) in page.records {
                made_anew += self.fill_up(&mut dump, Some(&key))?;
                let strays = self.strays;
                if let Some(payload) = self.kept(&key, value)? {
                    self.anew.remove(&*key);
                    dump.payload(keys::named(&key), &key, payload)?;
                } else if self.anew.contains_key(&*key) {
                    // What takes its place is not lost.
                    self.strays = strays;
                }
            }
            progress.at(done, of);
            from = page.next;
        }
        made_anew += self.fill_up(&mut dump, None)?;
        let dumped = Dumped {
            unreadable_bindings: self.bindings,
            ..dump.trailer()?
        };
        Ok(DumpedWhole {
            dumped,
            made_anew,
            strays: self.strays,
        })
    }

    /// Writes what is made anew at keys before this one; all of it before none.
    fn fill_up(
        &mut self,
        dump: &mut Dump<'_, Direct<'_>>,
        before: Option<&[u8]>,
    ) -> Result<u64, DumpError> {
        let mut made = 0;
        while let Some(next) = self.anew.first_entry() {
            if before.is_some_and(|before| next.key().as_slice() >= before) {
                break;
            }
            let (key, payload) = next.remove_entry();
            dump.payload(keys::named(&key), &key, payload)?;
            made += 1;
        }
        Ok(made)
    }

    /// Whether chains are written: nothing of what they are of is left out, and nothing is wrong with
    /// them.
    fn has_chains(&self) -> bool {
        self.judged.chains_whole && self.judged.findings.not_whole.is_empty()
    }

    /// The payload of a record that is written. Nothing of a session that is left out is read.
    fn kept(&mut self, key: &[u8], value: IVec) -> Result<Option<Vec<u8>>, DumpError> {
        let named = match keys::named(key) {
            // The store's own records are in the first line, and pieces in their values.
            Some(Named::Meta | Named::Round | Named::Piece(_)) => return Ok(None),
            // A chain has links of all sessions; what lacks some begins another.
            Some(Named::Chain(_) | Named::ChainEnd) if !self.has_chains() => {
                return Ok(None);
            }
            Some(Named::Chain(_) | Named::ChainEnd) => {
                let payload = frame::open(self.source, key, value)?;
                return Ok(Some(
                    payload.ok_or_else(|| frame::damaged(key, "it vanished"))?,
                ));
            }
            Some(named) => named,
            None => {
                self.strays += 1;
                return Ok(None);
            }
        };
        if let Some(session) = of_key(named) {
            if self.judged.findings.not_whole.contains(&session) {
                return Ok(None);
            }
            // It was found whole: what is damaged now was not found.
            let payload = frame::open(self.source, key, value)?;
            return Ok(Some(
                payload.ok_or_else(|| frame::damaged(key, "it vanished"))?,
            ));
        }
        match self.led(named, key, value) {
            Err(ReadError::Damaged { .. }) => {
                match named {
                    Named::Binding => self.bindings += 1,
                    // Its binding is counted, or was made a mark anew.
                    Named::BindingByTime(_) => {}
                    _ => self.strays += 1,
                }
                Ok(None)
            }
            kept => Ok(kept?),
        }
    }

    /// A record whose key does not tell whose it is. What leads nowhere is told as damage.
    fn led(&mut self, named: Named, key: &[u8], value: IVec) -> Result<Option<Vec<u8>>, ReadError> {
        // Of inputs and questions the key tells their run, so that a damaged one needs not be read.
        let through_run = matches!(named, Named::Input(_) | Named::Interaction(_));
        let owner = |owners: &mut Owners, payload: &[u8]| {
            let owner = owners.of(self.source, key, payload)?;
            owner.ok_or_else(|| frame::damaged(key, "it leads nowhere"))
        };
        let left_out = &self.judged.findings.not_whole;
        if through_run && left_out.contains(&owner(&mut self.owners, &[])?) {
            return Ok(None);
        }
        let payload = frame::open(self.source, key, value)?;
        let payload = payload.ok_or_else(|| frame::damaged(key, "it vanished"))?;
        if left_out.contains(&owner(&mut self.owners, &payload)?) {
            return Ok(None);
        }
        match named {
            Named::Name | Named::ExternalKey => {
                let (_, verdict) = self.lookup.address(named, key, &payload);
                verdict.map_err(|problem| frame::damaged(key, problem))?;
            }
            Named::Index(session) => {
                let verdict = self.lookup.indexed(session, key);
                verdict.map_err(|problem| frame::damaged(key, problem))?;
            }
            Named::Answer(session) => {
                let verdict = self.lookup.answer(session, key, &payload);
                verdict.map_err(|problem| frame::damaged(key, problem))?;
            }
            Named::Binding => self.binding(key, &payload)?,
            Named::BindingByTime(at) => self.time_mark(key, at)?,
            _ => {}
        }
        Ok(Some(payload))
    }

    /// A binding of a session that is written; its mark is made anew if it has none.
    fn binding(&mut self, key: &[u8], payload: &[u8]) -> Result<(), ReadError> {
        let binding: Binding = decode(key, payload)?;
        self.binds(key, &binding)?;
        let mark = keys::binding_by_time(binding.at, key);
        if is_there(self.source, &mark) {
            return Ok(());
        }
        if self.marks == MARKS {
            return Err(frame::damaged(key, "its mark is gone, like too many"));
        }
        self.marks += 1;
        self.anew.insert(mark, Vec::new());
        Ok(())
    }

    /// A binding leads to a session, and to a run of that if it is of one.
    fn binds(&self, key: &[u8], binding: &Binding) -> Result<(), ReadError> {
        let bound = self.lookup.bound(key, binding);
        bound.map_err(|problem| frame::damaged(key, problem))?;
        let Some(run) = binding.answer.run() else {
            return Ok(());
        };
        // There is none of a deleted session.
        let run: Option<RunRecord> = fetch(self.source, &keys::run(run))?;
        if run.is_none_or(|run| run.session == binding.session) {
            Ok(())
        } else {
            Err(frame::damaged(key, "its run is another session's"))
        }
    }

    /// A mark goes where its binding goes.
    fn time_mark(&self, mark: &[u8], at: u64) -> Result<(), ReadError> {
        let nowhere = || frame::damaged(mark, "it leads to no binding of its time");
        let key = keys::marked_binding(mark).ok_or_else(nowhere)?;
        let binding: Option<Binding> = fetch(self.source, &key)?;
        let binding = binding.filter(|binding| binding.at.as_millis() == at);
        self.binds(&key, &binding.ok_or_else(nowhere)?)
    }
}

/// Whether a mark is there and can be read.
fn is_there(source: &Direct<'_>, mark: &[u8]) -> bool {
    frame::load(source, mark).is_ok_and(|found| found.is_some())
}
