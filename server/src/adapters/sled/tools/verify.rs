//! Everything, read and checked against everything else: that each record is whole, that what it
//! names is there, that entries and audit records have no gap, that each chain leads to its head, and
//! that what was read is what the newest round says that the store holds.
//!
//! Memory grows with sessions that are not whole or branched off others, not with records: these are
//! gone through in the order of keys, and what they name is looked up. Faults are named up to a
//! number, and counted beyond it.

mod chains;
mod checks;
mod lookup;
mod rows;
mod sessions;

use std::collections::BTreeSet;
use std::ops::Range;

use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::ports::repository::ReadError;

use self::checks::Checks;
pub(super) use self::checks::of_key;
pub(super) use self::lookup::Lookup;
use super::{Contents, GAVE_UP, Inspection, Progress, unless_it_gives_up};
use crate::adapters::sled::committer::Direct;
use crate::adapters::sled::convert::Meta;
use crate::adapters::sled::keys::{self, Key};
use crate::adapters::sled::round::failed;
use crate::adapters::sled::tally::Tally;
use crate::adapters::sled::walk::{Page, Walk as _};

/// Most faults that are named.
const NAMED: usize = 1000;

/// Something that is not as it must be.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Fault {
    /// The record, by its kind and its ids.
    pub key: String,
    /// The session that it concerns, where that is known.
    pub session: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: &'static str,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct Findings {
    /// Keys that were read.
    pub keys: u64,
    /// Sessions among them.
    pub sessions: u64,
    /// Entries among them.
    pub entries: u64,
    /// Contents that were read.
    pub artifacts: u64,
    /// Faults, the first thousand of them.
    pub faults: Vec<Fault>,
    /// How many faults there are.
    pub fault_count: u64,
    /// Entries without a digest, of a server that knew none. They are guarded by their checksums.
    pub unlinked_entries: u64,
    /// Sessions whose chain begins after their first entry, which such a server wrote.
    pub chains_that_begin_late: u64,
    /// Sessions that `export --whole` leaves out, by id: each with a fault of its own, and all that
    /// branched off them.
    #[serde(serialize_with = "as_text")]
    pub not_whole: BTreeSet<SessionId>,
}

fn as_text<S: serde::Serializer>(ids: &BTreeSet<SessionId>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(ids.iter().map(SessionId::to_string))
}

/// What was found, and what an export of the sessions that are whole has to know.
#[derive(Debug)]
pub struct Judged {
    /// What was found.
    pub findings: Findings,
    /// Whether the newest round says that the store holds what was read. Where it cannot say so, a
    /// session may be old that looks whole.
    pub sum_fits: bool,
    /// Keys of indexes that do not lead to the session that is called so.
    pub(super) unled: BTreeSet<(Key, SessionId)>,
    /// The newest token of any head that can be read; 0 without one.
    pub(super) newest_token: u64,
    /// Something could not be read at all, so that a session may lack what nobody missed.
    pub(super) lost_track: bool,
    /// Chains of audit records, and what they are of, are whole.
    pub(super) chains_whole: bool,
}

impl Findings {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn whole(&self) -> bool {
        self.fault_count == 0
    }

    fn fault(&mut self, fault: Fault) {
        self.fault_count += 1;
        if self.faults.len() < NAMED {
            self.faults.push(fault);
        }
    }
}

/// What to do about damage in one session.
const RESTORE_SESSION: &str = "the server refuses what it cannot read of this session and serves the \
    others; to have it back, stop the server and restore a backup into a new directory; `sessiond \
    store export --whole` takes out all sessions that are whole";
/// What to do about damage that concerns the store.
const RESTORE: &str = "put the directory away as it is and restore a backup into a new one; without \
    one, `sessiond store export --whole` takes out all sessions that are whole";

/// What to do where nothing says how far the store was acknowledged.
const UNWITNESSED: &str = "find out what removed or changed it: where the files were copied, copy that \
    one too; what is read here may be all, and may end too early. The next start writes it anew";

pub(super) fn judge(
    store: &Inspection,
    contents: Option<&dyn Contents>,
    progress: &mut dyn Progress,
) -> Judged {
    let source = Direct(&store.db);
    let mut checks = Checks::new(&source, store.meta, contents);
    let mut tally = Tally::default();
    let of = store.tally.map_or(0, |tally| tally.keys);
    let mut unread = false;
    let mut from = Some(Vec::new());
    while let Some(first) = from {
        from = match page(&source, &first) {
            Ok(page) => {
                for (key, value) in page.records {
                    if *key != *keys::round() {
                        tally.add(&key, &value);
                    }
                    checked(&mut checks, &key, value);
                }
                page.next
            }
            Err(problem) => {
                unread = true;
                checks.unreadable(&first, &problem);
                keys::next_kind(&first)
            }
        };
        progress.at(checks.read(), of);
    }
    for end in [
        Checks::end_entries,
        Checks::end_audits,
        Checks::end_metadata_audits,
        Checks::end_chains,
    ] {
        if unless_it_gives_up(|| end(&mut checks)).is_none() {
            checks.unreadable(&keys::heads(), GAVE_UP);
        }
    }
    let (mut findings, sessions, chains_whole) = checks.done();
    if let Some(problem) = store.unwitnessed {
        findings.fault(Fault {
            key: "file acknowledged".to_owned(),
            session: None,
            problem: format!("it {problem}"),
            remedy: UNWITNESSED,
        });
    }
    if let Some(expected) = store.tally.filter(|it| *it != tally && !unread) {
        findings.fault(misses(expected, tally));
    }
    let known = sessions.known();
    findings.not_whole = known.not_whole;
    Judged {
        findings,
        // Before format 3 nothing said so.
        sum_fits: store
            .tally
            .map_or(!store.without.round, |expected| expected == tally),
        unled: known.unled,
        newest_token: known.newest_token,
        lost_track: known.lost_track,
        chains_whole,
    }
}

/// That the sum does not fit.
fn misses(expected: Tally, found: Tally) -> Fault {
    Fault {
        key: keys::describe(&keys::round()),
        session: None,
        problem: format!(
            "it says that the store holds {} keys; {} were found{}: something was lost, came back \
             or is old, although each record is whole",
            expected.keys,
            found.keys,
            if expected.keys == found.keys {
                ", with another sum"
            } else {
                ""
            },
        ),
        remedy: RESTORE,
    }
}

/// Checks what lies in ranges of keys, which are in order. What their records name may lie outside.
pub(super) fn verify_ranges(
    source: &Direct<'_>,
    meta: Meta,
    ranges: &[Range<Key>],
) -> Result<Findings, ReadError> {
    let mut checks = Checks::new(source, meta, None);
    for range in ranges {
        for record in source.0.range(range.clone()) {
            let (key, value) = record.map_err(|error| failed(&range.start, &error))?;
            checked(&mut checks, &key, value);
        }
    }
    Ok(checks.done_with_some())
}

/// A record; a panic of sled at what it names is a problem of it.
fn checked(checks: &mut Checks<'_>, key: &[u8], value: ::sled::IVec) {
    if unless_it_gives_up(|| checks.record(key, value)).is_none() {
        checks.gave_up(key);
    }
}

/// A page; a panic of sled is a problem like another.
fn page(source: &Direct<'_>, first: &[u8]) -> Result<Page, String> {
    match unless_it_gives_up(|| source.page(first)) {
        Some(page) => page.map_err(|error| match error {
            ReadError::Damaged { problem, .. } | ReadError::Store(problem) => problem,
        }),
        None => Err(GAVE_UP.to_owned()),
    }
}
