//! Random histories of two stores and a model that knows only what was accepted: they must agree on
//! every answer and on every record, before and after every crash.

use proptest::prelude::*;
use sessionplane_core::domain::audit::AuditRecord;
use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::lease::{LeaseClause, LeaseToken};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::repository::CommitError;

use super::reading::read_all;
use super::script::{Script, binding_key, said};
use super::{Store, Subject};

#[path = "fleet_model.rs"]
mod fleet;

use fleet::{Gone, Verb, fresh};

const SESSIONS: u64 = 4;

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// A run is admitted, with a request id out of few.
    Admit { session: u64, request: u8 },
    /// The run says so many words of so many bytes.
    Say { session: u64, words: u8, bytes: u16 },
    /// An input joins.
    Steer { session: u64, bytes: u16 },
    /// An input is written again.
    Rewrite { session: u64, bytes: u16 },
    /// The run asks something.
    Ask { session: u64, bytes: u16 },
    /// Something that it asked is answered, perhaps once more.
    Answer { session: u64, bytes: u16 },
    /// The run settles.
    Settle { session: u64 },
    /// A model is chosen between runs, with a request id out of few.
    Choose { session: u64, request: u8 },
    /// The leaf moves to an entry.
    Navigate { session: u64, to: u8 },
    /// A compaction begins.
    Compact { session: u64 },
    /// It is done.
    Compacted { session: u64, bytes: u16 },
    /// Somebody recovers the session.
    Recover { session: u64 },
    /// A writer with the token before speaks up.
    Stale { session: u64 },
    /// A writer that missed a commit speaks up.
    Behind { session: u64 },
    /// The lease is revoked.
    Revoke { session: u64 },
    /// The session moves to another workspace, or to none.
    Move { session: u64, to: u8 },
    /// Something happens to it beside its runs.
    Beside { session: u64, verb: Verb },
    /// Of a deleted session something is erased.
    Erase { keep: u64, max: usize },
    /// Bindings are swept.
    Sweep { max: u8 },
    /// A crash and a new opening.
    Reopen,
}

/// Any operation.
pub(crate) fn op() -> impl Strategy<Value = Op> {
    let session = 0..SESSIONS;
    let bytes = prop_oneof![4 => 0_u16..200, 1 => 4000_u16..4200, 1 => 4000_u16..20_000];
    prop_oneof![
        4 => (session.clone(), 0_u8..6).prop_map(|(session, request)| Op::Admit { session, request }),
        6 => (session.clone(), 0_u8..4, bytes.clone())
            .prop_map(|(session, words, bytes)| Op::Say { session, words, bytes }),
        3 => (session.clone(), bytes.clone()).prop_map(|(session, bytes)| Op::Steer { session, bytes }),
        2 => (session.clone(), bytes.clone())
            .prop_map(|(session, bytes)| Op::Rewrite { session, bytes }),
        2 => (session.clone(), bytes.clone()).prop_map(|(session, bytes)| Op::Ask { session, bytes }),
        2 => (session.clone(), bytes.clone())
            .prop_map(|(session, bytes)| Op::Answer { session, bytes }),
        3 => session.clone().prop_map(|session| Op::Settle { session }),
        2 => (session.clone(), 0_u8..6)
            .prop_map(|(session, request)| Op::Choose { session, request }),
        2 => (session.clone(), 0_u8..40).prop_map(|(session, to)| Op::Navigate { session, to }),
        1 => session.clone().prop_map(|session| Op::Compact { session }),
        2 => (session.clone(), bytes.clone())
            .prop_map(|(session, bytes)| Op::Compacted { session, bytes }),
        1 => session.clone().prop_map(|session| Op::Recover { session }),
        1 => session.clone().prop_map(|session| Op::Stale { session }),
        1 => session.clone().prop_map(|session| Op::Behind { session }),
        2 => (session.clone(), 0_u8..3).prop_map(|(session, to)| Op::Move { session, to }),
        6 => (session.clone(), fleet::verb()).prop_map(|(session, verb)| Op::Beside { session, verb }),
        2 => (0_u64..3, 1_usize..5).prop_map(|(keep, max)| Op::Erase { keep, max }),
        1 => session.prop_map(|session| Op::Revoke { session }),
        1 => (0_u8..4).prop_map(|max| Op::Sweep { max }),
        1 => Just(Op::Reopen),
    ]
}

/// What must be true, kept in the plainest way.
struct Model {
    scripts: Vec<Script>,
    /// What each session accepted, in order.
    accepted: Vec<Vec<Commit>>,
    /// Whether the session's writer is live.
    live: Vec<bool>,
    /// Request ids that are bound, with when.
    bound: Vec<(u8, u64)>,
    /// What was done to each session's metadata.
    changes: Vec<Vec<AuditRecord>>,
    /// Sessions that were deleted.
    gone: Vec<Gone>,
    /// How many sessions took a deleted one's place.
    born: u64,
    now: u64,
}

impl Model {
    fn new() -> Self {
        let count = usize::try_from(SESSIONS).unwrap();
        Self {
            scripts: (0..SESSIONS).map(|n| fresh(n, 0)).collect(),
            accepted: vec![Vec::new(); count],
            live: vec![false; count],
            bound: Vec::new(),
            changes: vec![Vec::new(); count],
            gone: Vec::new(),
            born: 0,
            now: 100_000,
        }
    }

    /// The commit of an operation and the answer that it must get; `None` if it makes no sense.
    fn decide(&mut self, op: &Op, token: LeaseToken) -> Option<(usize, Commit, Expected)> {
        let (&Op::Admit { session, .. }
        | &Op::Say { session, .. }
        | &Op::Steer { session, .. }
        | &Op::Rewrite { session, .. }
        | &Op::Ask { session, .. }
        | &Op::Answer { session, .. }
        | &Op::Settle { session }
        | &Op::Choose { session, .. }
        | &Op::Navigate { session, .. }
        | &Op::Move { session, .. }
        | &Op::Compact { session }
        | &Op::Compacted { session, .. }
        | &Op::Recover { session }
        | &Op::Stale { session }
        | &Op::Behind { session }) = op
        else {
            return None;
        };
        let n = usize::try_from(session).unwrap();
        self.now += 10;
        self.scripts[n].now = self.now;
        let taken = self
            .takes(n, op, token)
            .or_else(|| self.between(n, op, token));
        let (commit, expected) = taken.or_else(|| self.held(n, op, token))?;
        Some((n, commit, expected))
    }

    /// What takes a session for a while.
    fn takes(&self, n: usize, op: &Op, token: LeaseToken) -> Option<(Commit, Expected)> {
        let script = &self.scripts[n];
        let mut commit = match op {
            Op::Admit { .. } => script.admit(token, "go"),
            Op::Compact { .. } if script.created => script.compact(token),
            _ => return None,
        };
        let bound = self.bind(n, op, &mut commit);
        // What was cut is settled first.
        let free = !self.live[n] && script.run.is_none() && !script.boundary;
        let expected = match (bound, free) {
            (true, _) => Expected::AlreadyBound,
            (false, false) => Expected::Fenced,
            (false, true) => Expected::Ok,
        };
        Some((commit, expected))
    }

    /// What is over in one commit, between runs.
    fn between(&self, n: usize, op: &Op, token: LeaseToken) -> Option<(Commit, Expected)> {
        let script = &self.scripts[n];
        let mut commit = match op {
            Op::Choose { request, .. } if script.created => {
                script.choose(token, &request.to_string())
            }
            Op::Move { to, .. } if script.created => {
                let workspace = (*to > 0).then(|| format!("w{to}"));
                script.go_to(token, workspace.as_deref())
            }
            Op::Navigate { to, .. } if script.created => {
                let entries: Vec<_> = self.accepted[n].iter().flat_map(|c| &c.entries).collect();
                let to = entries[usize::from(*to) % entries.len()];
                let chosen = to.path.settings.and_then(|seq| {
                    let body = &entries[usize::try_from(seq).unwrap() - 1].body;
                    match body {
                        EntryBody::Settings { chosen } => Some(chosen.clone()),
                        _ => None,
                    }
                });
                script.navigate(token, to, chosen.unwrap_or_default())
            }
            _ => return None,
        };
        let bound = self.bind(n, op, &mut commit);
        // A cut run is settled first; a cut compaction has left nothing to settle.
        let free = !self.live[n] && script.run.is_none();
        let expected = match (bound, free) {
            (true, _) => Expected::AlreadyBound,
            (false, false) => Expected::Fenced,
            (false, true) => Expected::Ok,
        };
        Some((commit, expected))
    }

    /// Binds what has a request id; tells whether it is bound already.
    fn bind(&self, n: usize, op: &Op, commit: &mut Commit) -> bool {
        let Some(request) = request(op) else {
            return false;
        };
        let key = binding_key("acme", &request.to_string());
        self.scripts[n].bind(commit, key);
        self.bound.iter().any(|(id, _)| *id == request)
    }

    /// What is written while a session is held, or to free it.
    fn held(&self, n: usize, op: &Op, token: LeaseToken) -> Option<(Commit, Expected)> {
        let (script, live) = (&self.scripts[n], self.live[n]);
        let text = |bytes: &u16| "x".repeat(usize::from(*bytes));
        let held = if live { Expected::Ok } else { Expected::Fenced };
        let freed = if live { Expected::Fenced } else { Expected::Ok };
        if script.boundary {
            return match op {
                Op::Compacted { bytes, .. } => Some((script.compacted(&text(bytes)), held)),
                Op::Recover { .. } => Some((script.give_up(token), freed)),
                _ => None,
            };
        }
        script.run.as_ref()?;
        Some(match op {
            Op::Say { words, bytes, .. } => {
                let bodies = vec![said(&text(bytes)); usize::from(*words)];
                (script.say(bodies), held)
            }
            Op::Steer { bytes, .. } => (script.steer(&text(bytes)), held),
            Op::Rewrite { bytes, .. } => {
                let mut commit = script.steer(&text(bytes));
                commit.inputs[0].id.ordinal = script.inputs.max(1);
                (commit, held)
            }
            Op::Ask { bytes, .. } => (script.ask(&text(bytes)), held),
            Op::Answer { .. } if script.asked.is_empty() => return None,
            Op::Answer { bytes, .. } => (script.answer(&text(bytes)), held),
            Op::Settle { .. } => (script.settle(), held),
            Op::Recover { .. } => (script.recover(token), freed),
            Op::Stale { .. } => {
                let mut commit = script.say(vec![said("stale")]);
                commit.head.token.0 -= 1;
                commit.lease = LeaseClause::Hold(commit.head.token);
                (commit, Expected::Fenced)
            }
            Op::Behind { .. } => {
                let mut behind = script.clone();
                behind.head.audits -= 1;
                let expected = if live {
                    Expected::Conflict
                } else {
                    Expected::Fenced
                };
                (behind.say(Vec::new()), expected)
            }
            _ => return None,
        })
    }

    fn accept(&mut self, n: usize, op: &Op, commit: Commit) {
        self.scripts[n].accepted(&commit);
        match commit.lease {
            LeaseClause::Acquire(_) => self.live[n] = true,
            LeaseClause::Hold(_) => {}
            LeaseClause::Release(_) | LeaseClause::Recover(_) => self.live[n] = false,
        }
        if let Some(request) = request(op) {
            self.bound.push((request, self.now));
        }
        self.accepted[n].push(commit);
    }

    /// How many a sweep of everything must take.
    fn sweep(&mut self, max: usize) -> usize {
        let mut gone = 0;
        let bound = std::mem::take(&mut self.bound);
        let deleted = self.gone.iter().flat_map(|gone| &gone.commits);
        let all: Vec<_> = self.accepted.iter().flatten().chain(deleted).collect();
        for (request, at) in bound {
            let run = all
                .iter()
                .find(|commit| commit.bindings.iter().any(|b| b.at.as_millis() == at))
                .and_then(|commit| commit.holder.run());
            let settled = all.iter().any(|commit| {
                let ends = commit.runs.iter().any(|run| run.settled.is_some());
                commit.holder.run() == run && ends
            });
            if (settled || run.is_none()) && gone < max {
                gone += 1;
            } else {
                self.bound.push((request, at));
            }
        }
        gone
    }

    async fn agrees(&self, store: &dyn Store) {
        for (n, script) in self.scripts.iter().enumerate() {
            let commits = &self.accepted[n];
            let stored = store.session(script.id()).await.unwrap();
            assert_eq!(stored, script.created.then(|| script.stored()));
            assert_eq!(script.created, !commits.is_empty());
            let entries: Vec<_> = commits.iter().flat_map(|c| c.entries.clone()).collect();
            assert_eq!(read_all(store, script, 5, 30_000).await, entries);
            let audits: Vec<_> = commits.iter().flat_map(|c| c.audits.clone()).collect();
            assert_eq!(store.audits(script.id()).await.unwrap(), audits);
            let changes = store.metadata_audits(script.id()).await.unwrap();
            assert_eq!(changes, self.changes[n]);
            if let Some(name) = script.record.metadata.name.clone() {
                let name = SessionRef::Name(name);
                let found = store.resolve(&script.record.tenant, &name).await;
                assert_eq!(found, Ok(script.created.then(|| script.id())));
            }
            let holder = self.live[n].then_some(script.token);
            assert_eq!(store.holder(script.id()).await, Ok(holder));
            let cut = script.run.is_some() || script.boundary;
            let cut = (cut && !self.live[n]).then(|| script.lease());
            assert_eq!(store.cut(script.id()).await, Ok(cut));
            if let Some(middle) = entries.get(entries.len() / 2) {
                assert_eq!(store.entry(middle.id).await, Ok(Some(middle.clone())));
            }
            self.runs_agree(n, store).await;
        }
        fleet::gone_agree(self, store).await;
        fleet::found_agree(self, store).await;
        for request in 0..6 {
            let found = store
                .binding(&binding_key("acme", &request.to_string()))
                .await;
            let at = self.bound.iter().find(|(id, _)| *id == request);
            let at = at.map(|(_, at)| Timestamp::from_millis(*at));
            assert_eq!(found.unwrap().map(|binding| binding.at), at);
        }
    }

    async fn runs_agree(&self, n: usize, store: &dyn Store) {
        let commits = &self.accepted[n];
        let runs = commits.iter().filter_map(|commit| commit.holder.run());
        let mut runs: Vec<_> = runs.collect();
        runs.dedup();
        let stored = store.runs_of(self.scripts[n].id()).await.unwrap();
        assert_eq!(stored, runs);
        let listed = store.runs(self.scripts[n].id(), None, usize::MAX).await;
        let listed: Vec<_> = listed.unwrap().iter().rev().map(|run| run.id).collect();
        assert_eq!(listed, runs);
        for id in runs {
            let of_run = || commits.iter().filter(|c| c.holder.run() == Some(id));
            let newest = of_run().flat_map(|commit| &commit.runs).next_back();
            assert_eq!(store.run(id).await.unwrap().as_ref(), newest);
            let mut inputs = std::collections::BTreeMap::new();
            for input in of_run().flat_map(|commit| &commit.inputs) {
                inputs.insert(input.id, input.clone());
            }
            let inputs: Vec<_> = inputs.into_values().collect();
            assert_eq!(store.inputs(id).await.unwrap(), inputs);
            let mut asked = std::collections::BTreeMap::new();
            for interaction in of_run().flat_map(|commit| &commit.interactions) {
                asked.insert(interaction.id, interaction.clone());
            }
            let asked: Vec<_> = asked.into_values().collect();
            assert_eq!(store.interactions(id).await.unwrap(), asked);
        }
    }
}

/// The request id of what has one.
fn request(op: &Op) -> Option<u8> {
    match op {
        Op::Admit { request, .. } | Op::Choose { request, .. } => Some(*request),
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    Ok,
    Fenced,
    Conflict,
    AlreadyBound,
    AlreadyExists,
    MetadataConflict,
    NoSuchSession,
}

fn kind(result: &Result<(), CommitError>) -> Expected {
    match result {
        Ok(()) => Expected::Ok,
        Err(CommitError::Fenced { .. }) => Expected::Fenced,
        Err(CommitError::Conflict { .. }) => Expected::Conflict,
        Err(CommitError::AlreadyBound) => Expected::AlreadyBound,
        Err(CommitError::AlreadyExists) => Expected::AlreadyExists,
        Err(CommitError::MetadataConflict { .. }) => Expected::MetadataConflict,
        Err(CommitError::NoSuchSession) => Expected::NoSuchSession,
        Err(other) => panic!("{other}"),
    }
}

/// A token that all stores mint.
async fn minted(subjects: &[Box<dyn Subject>]) -> LeaseToken {
    let mut tokens = Vec::new();
    for subject in subjects {
        tokens.push(subject.store().mint().await.unwrap());
    }
    assert!(tokens.windows(2).all(|pair| pair[0] == pair[1]));
    tokens[0]
}

/// Runs a history on all subjects.
pub(crate) async fn agree(subjects: &mut [Box<dyn Subject>], history: &[Op]) {
    let mut model = Model::new();
    for op in history {
        match op {
            Op::Reopen => {
                model.live.fill(false);
                for subject in &mut *subjects {
                    subject.reopen().await;
                    model.agrees(&*subject.store()).await;
                }
            }
            Op::Revoke { session } => {
                let n = usize::try_from(*session).unwrap();
                model.live[n] = false;
                for subject in &*subjects {
                    let session = model.scripts[n].id();
                    subject.store().revoke(session).await.unwrap();
                }
            }
            Op::Sweep { max } => {
                let gone = model.sweep(usize::from(*max));
                for subject in &*subjects {
                    let everything = Timestamp::from_millis(u64::MAX);
                    let store = subject.store();
                    let swept = store.sweep_bindings(everything, usize::from(*max)).await;
                    assert_eq!(swept, Ok(gone));
                }
            }
            Op::Beside { session, verb } => {
                let token = minted(subjects).await;
                let n = usize::try_from(*session).unwrap();
                fleet::happen(&mut model, n, verb, subjects, token).await;
            }
            Op::Erase { keep, max } => fleet::erase(&mut model, *keep, *max, subjects).await,
            _ => {
                let token = minted(subjects).await;
                let Some((n, commit, expected)) = model.decide(op, token) else {
                    continue;
                };
                let mut results = Vec::new();
                for subject in &*subjects {
                    results.push(subject.store().commit(commit.clone()).await);
                }
                assert!(
                    results.iter().all(|result| *result == results[0]),
                    "{results:?}"
                );
                assert_eq!(kind(&results[0]), expected, "{op:?}");
                if expected == Expected::Ok {
                    model.accept(n, op, commit);
                }
            }
        }
    }
    for subject in &*subjects {
        model.agrees(&*subject.store()).await;
    }
    model.live.fill(false);
    for subject in subjects {
        subject.reopen().await;
        model.agrees(&*subject.store()).await;
        // A row that is left behind is passed over by every search: only who looks for it finds it.
        subject.is_whole().await;
    }
}
