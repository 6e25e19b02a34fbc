//! Fills stores through the port that the server writes by, many commits in each round.

use std::path::Path;
use std::sync::Arc;

use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::lease::{LeaseClause, LeaseToken};
use sessionplane_core::domain::run::{RunOutcome, Settlement};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_core::ports::repository::Repository as _;
use sessionplane_server::adapters::sled::{SledStore, StoreOptions};
use tokio::task::JoinSet;

use crate::script::{Script, binding_key, said};

/// Commits that are on their way at a time: a round takes them all.
const AT_ONCE: u64 = 512;

/// Opens a store to be filled.
pub(crate) fn open(path: &Path) -> Arc<SledStore> {
    let options = StoreOptions {
        cache_bytes: 256 * 1024 * 1024,
        ..StoreOptions::new(7)
    };
    Arc::new(SledStore::open(path, &options).unwrap())
}

/// Lets `each` be done for every number below `count`, many at a time.
pub(crate) async fn spread<F>(count: u64, each: impl Fn(u64) -> F + Clone + Send + 'static)
where
    F: Future<Output = ()> + Send,
{
    let mut workers = JoinSet::new();
    for first in 0..AT_ONCE.min(count) {
        let each = each.clone();
        workers.spawn(async move {
            let mut number = first;
            while number < count {
                each(number).await;
                number += AT_ONCE;
            }
        });
    }
    while let Some(done) = workers.join_next().await {
        done.unwrap();
    }
}

/// A store with sessions that are at rest, each with a run, its binding and two entries.
pub(crate) async fn dormant(path: &Path, sessions: u64) {
    let named = |number| Script::new(number).named(&format!("dormant-{number}"));
    at_rest(path, sessions, named).await;
}

/// The same with other sessions.
pub(crate) async fn at_rest(
    path: &Path,
    sessions: u64,
    session: impl Fn(u64) -> Script + Copy + Send + 'static,
) {
    let store = open(path);
    let filled = store.clone();
    spread(sessions, move |number| {
        let store = filled.clone();
        async move {
            let token = store.mint().await.unwrap();
            let commit = settled(&session(number), number, token);
            store.commit(commit).await.unwrap();
        }
    })
    .await;
    store.close().await;
}

/// A session that one commit creates, runs and settles.
fn settled(script: &Script, number: u64, token: LeaseToken) -> Commit {
    let mut commit = script.admit(token, "where is the lease token checked?");
    commit.lease = LeaseClause::Recover(token);
    let run = commit.runs[0].clone();
    // What an answer says.
    let mut on = script.clone();
    on.accepted(&commit);
    on.run = Some(run.clone());
    let answer = on.say(vec![said("In the commit itself, see decision 0007.")]);
    commit.entries.extend(answer.entries);
    let audits = commit.head.audits;
    commit.head = answer.head;
    commit.head.audits = audits;
    commit.head.token = token;
    let run = &mut commit.runs[0];
    run.final_entry = commit.head.leaf;
    run.settled = Some(Settlement {
        at: Timestamp::from_millis(20_000),
        outcome: RunOutcome::Completed,
    });
    commit.head.last_run = sessionplane_core::domain::session::LastRun::of(run);
    script.bind(
        &mut commit,
        binding_key(script.record.tenant.as_str(), &format!("d{number}")),
    );
    commit
}
