//! Random histories of two stores and a model that knows only what was accepted: they must agree on
//! every answer and on every record, before and after every crash.

use proptest::prelude::*;
use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::lease::{LeaseClause, LeaseToken};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::repository::CommitError;

use super::reading::read_all;
use super::script::{Script, binding_key, said};
use super::{Store, Subject};

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
    /// The run settles.
    Settle { session: u64 },
    /// Somebody recovers the session.
    Recover { session: u64 },
    /// A writer with the token before speaks up.
    Stale { session: u64 },
    /// A writer that missed a commit speaks up.
    Behind { session: u64 },
    /// The lease is revoked.
    Revoke { session: u64 },
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
        2 => (session.clone(), bytes).prop_map(|(session, bytes)| Op::Rewrite { session, bytes }),
        3 => session.clone().prop_map(|session| Op::Settle { session }),
        1 => session.clone().prop_map(|session| Op::Recover { session }),
        1 => session.clone().prop_map(|session| Op::Stale { session }),
        1 => session.clone().prop_map(|session| Op::Behind { session }),
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
    bound: Vec<(u8, u64, usize)>,
    now: u64,
}

impl Model {
    fn new() -> Self {
        let script = |n| {
            Script::new(n)
                .named(&format!("s{n}"))
                .keyed(&format!("k{n}"))
        };
        let count = usize::try_from(SESSIONS).unwrap();
        Self {
            scripts: (0..SESSIONS).map(script).collect(),
            accepted: vec![Vec::new(); count],
            live: vec![false; count],
            bound: Vec::new(),
            now: 100_000,
        }
    }

    /// The commit of an operation and the answer that it must get; `None` if it makes no sense.
    fn decide(&mut self, op: &Op, token: LeaseToken) -> Option<(usize, Commit, Expected)> {
        let (&Op::Admit { session, .. }
        | &Op::Say { session, .. }
        | &Op::Steer { session, .. }
        | &Op::Rewrite { session, .. }
        | &Op::Settle { session }
        | &Op::Recover { session }
        | &Op::Stale { session }
        | &Op::Behind { session }) = op
        else {
            return None;
        };
        let n = usize::try_from(session).unwrap();
        self.now += 10;
        self.scripts[n].now = self.now;
        let (script, live) = (&self.scripts[n], self.live[n]);
        if let Op::Admit { request, .. } = op {
            let mut commit = script.admit(token, "go");
            script.bind(&mut commit, binding_key("acme", &request.to_string()));
            let bound = self.bound.iter().any(|(id, ..)| id == request);
            let expected = match (bound, live) {
                (true, _) => Expected::AlreadyBound,
                (false, true) => Expected::Fenced,
                // A cut run is settled first.
                (false, false) if script.run.is_some() => Expected::Fenced,
                (false, false) => Expected::Ok,
            };
            return Some((n, commit, expected));
        }
        script.run.as_ref()?;
        let text = |bytes: &u16| "x".repeat(usize::from(*bytes));
        let held = if live { Expected::Ok } else { Expected::Fenced };
        Some(match op {
            Op::Say { words, bytes, .. } => {
                let bodies = vec![said(&text(bytes)); usize::from(*words)];
                (n, script.say(bodies), held)
            }
            Op::Steer { bytes, .. } => (n, script.steer(&text(bytes)), held),
            Op::Rewrite { bytes, .. } => {
                let mut commit = script.steer(&text(bytes));
                commit.inputs[0].id.ordinal = script.inputs.max(1);
                (n, commit, held)
            }
            Op::Settle { .. } => (n, script.settle(), held),
            Op::Recover { .. } => {
                let expected = if live { Expected::Fenced } else { Expected::Ok };
                (n, script.recover(token), expected)
            }
            Op::Stale { .. } => {
                let mut commit = script.say(vec![said("stale")]);
                commit.head.token.0 -= 1;
                commit.lease = LeaseClause::Hold(commit.head.token);
                (n, commit, Expected::Fenced)
            }
            _ => {
                let mut behind = script.clone();
                behind.head.audits -= 1;
                let expected = if live {
                    Expected::Conflict
                } else {
                    Expected::Fenced
                };
                (n, behind.say(Vec::new()), expected)
            }
        })
    }

    fn accept(&mut self, n: usize, op: &Op, commit: Commit) {
        self.scripts[n].accepted(&commit);
        match commit.lease {
            LeaseClause::Acquire(_) => self.live[n] = true,
            LeaseClause::Hold(_) => {}
            LeaseClause::Release(_) | LeaseClause::Recover(_) => self.live[n] = false,
        }
        if let Op::Admit { request, .. } = op {
            self.bound.push((*request, self.now, n));
        }
        self.accepted[n].push(commit);
    }

    /// How many a sweep of everything must take.
    fn sweep(&mut self, max: usize) -> usize {
        let mut gone = 0;
        let (accepted, bound) = (&self.accepted, std::mem::take(&mut self.bound));
        for (request, at, n) in bound {
            let run = accepted[n]
                .iter()
                .find(|commit| commit.bindings.iter().any(|b| b.at.as_millis() == at))
                .map(|commit| commit.run);
            let settled = accepted[n].iter().any(|commit| {
                let ends = commit.runs.iter().any(|run| run.settled.is_some());
                Some(commit.run) == run && ends
            });
            if settled && gone < max {
                gone += 1;
            } else {
                self.bound.push((request, at, n));
            }
        }
        gone
    }

    async fn agrees(&self, store: &dyn Store) {
        for (n, script) in self.scripts.iter().enumerate() {
            let commits = &self.accepted[n];
            let stored = store.session(script.id()).await.unwrap();
            let head = stored.map(|stored| stored.head);
            assert_eq!(head.as_ref(), commits.last().map(|commit| &commit.head));
            let entries: Vec<_> = commits.iter().flat_map(|c| c.entries.clone()).collect();
            assert_eq!(read_all(store, script, 5, 30_000).await, entries);
            let audits: Vec<_> = commits.iter().flat_map(|c| c.audits.clone()).collect();
            assert_eq!(store.audits(script.id()).await.unwrap(), audits);
            let name = SessionRef::Name(script.record.name.clone().unwrap());
            let found = store.resolve(&script.record.tenant, &name).await;
            assert_eq!(found, Ok(script.created.then(|| script.id())));
            let holder = self.live[n].then_some(script.token);
            assert_eq!(store.holder(script.id()).await, Ok(holder));
            self.runs_agree(n, store).await;
        }
        for request in 0..6 {
            let found = store
                .binding(&binding_key("acme", &request.to_string()))
                .await;
            let at = self.bound.iter().find(|(id, ..)| *id == request);
            let at = at.map(|(_, at, _)| Timestamp::from_millis(*at));
            assert_eq!(found.unwrap().map(|binding| binding.at), at);
        }
    }

    async fn runs_agree(&self, n: usize, store: &dyn Store) {
        let commits = &self.accepted[n];
        let mut runs: Vec<_> = commits.iter().map(|commit| commit.run).collect();
        runs.dedup();
        let stored = store.runs_of(self.scripts[n].id()).await.unwrap();
        assert_eq!(stored, runs);
        for id in runs {
            let of_run = || commits.iter().filter(|commit| commit.run == id);
            let newest = of_run().flat_map(|commit| &commit.runs).next_back();
            assert_eq!(store.run(id).await.unwrap().as_ref(), newest);
            let mut inputs = std::collections::BTreeMap::new();
            for input in of_run().flat_map(|commit| &commit.inputs) {
                inputs.insert(input.id, input.clone());
            }
            let inputs: Vec<_> = inputs.into_values().collect();
            assert_eq!(store.inputs(id).await.unwrap(), inputs);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    Ok,
    Fenced,
    Conflict,
    AlreadyBound,
}

fn kind(result: &Result<(), CommitError>) -> Expected {
    match result {
        Ok(()) => Expected::Ok,
        Err(CommitError::Fenced { .. }) => Expected::Fenced,
        Err(CommitError::Conflict { .. }) => Expected::Conflict,
        Err(CommitError::AlreadyBound) => Expected::AlreadyBound,
        Err(other) => panic!("{other}"),
    }
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
            _ => {
                let mut tokens = Vec::new();
                for subject in &*subjects {
                    tokens.push(subject.store().mint().await.unwrap());
                }
                assert!(tokens.windows(2).all(|pair| pair[0] == pair[1]));
                let Some((n, commit, expected)) = model.decide(op, tokens[0]) else {
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
    }
}
