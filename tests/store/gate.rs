//! What a simulation can do to the store in memory.

use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_core::ports::repository::{CommitError, ReadError, Repository as _};
use sessionplane_server::adapters::memory::{CommitGate, CommitStep, MemoryStore, Passing};
use tokio::sync::Semaphore;

use crate::stop::begun;
use crate::suite::script::{Script, said};

/// Holds every commit at a step until it is let go on.
struct Hold {
    at: CommitStep,
    permits: Semaphore,
    fails: bool,
}

impl Hold {
    fn at(step: CommitStep, free: usize, fails: bool) -> Arc<Self> {
        Arc::new(Self {
            at: step,
            permits: Semaphore::new(free),
            fails,
        })
    }
}

#[async_trait]
impl CommitGate for Hold {
    async fn pass(&self, step: CommitStep, _: Passing<'_>) -> Result<(), String> {
        if step == self.at {
            if self.fails && self.permits.available_permits() == 0 {
                return Err("the disk is gone".to_owned());
            }
            self.permits.acquire().await.unwrap().forget();
        }
        Ok(())
    }
}

async fn admitted(store: &MemoryStore) -> Script {
    let mut script = Script::new(1);
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(store, admit).await.unwrap();
    script
}

#[tokio::test]
async fn c39_a_commit_that_is_held_back_shows_nothing_and_is_lost_in_a_crash() {
    let gate = Hold::at(CommitStep::BeforeSync, 1, false);
    let store = MemoryStore::gated(gate.clone());
    let script = admitted(&store).await;
    let mut say = script.say(vec![said("late")]);
    say.interactions = script.ask("late").interactions;
    let (entry, run) = (say.entries[0].id, script.run_id());
    let call = begun(store.commit(say)).await;
    let head = store.session(script.id()).await.unwrap().unwrap().head;
    assert_eq!(head, script.head);
    assert_eq!(store.entry(entry).await, Ok(None));
    assert_eq!(store.interactions(run).await, Ok(Vec::new()));

    let after = store.reopen();
    gate.permits.add_permits(1);
    let lost = call.await;
    assert!(matches!(lost, Err(CommitError::Store(_))), "{lost:?}");
    let head = after.session(script.id()).await.unwrap().unwrap().head;
    assert_eq!(head, script.head);
    let closed = store.session(script.id()).await;
    assert!(matches!(closed, Err(ReadError::Store(_))), "{closed:?}");
}

#[tokio::test]
async fn c39_a_commit_that_was_kept_survives_although_its_answer_is_lost() {
    let gate = Hold::at(CommitStep::AfterSync, 1, false);
    let store = MemoryStore::gated(gate.clone());
    let script = admitted(&store).await;
    let say = script.say(vec![said("kept")]);
    let call = begun(store.commit(say.clone())).await;
    drop(call);
    let after = store.reopen();
    let head = after.session(script.id()).await.unwrap().unwrap().head;
    assert_eq!(head, say.head);
}

#[tokio::test]
async fn a_commit_that_fails_is_the_end_of_the_store() {
    for (at, kept) in [
        (CommitStep::BeforeSync, false),
        (CommitStep::AfterSync, true),
    ] {
        let store = MemoryStore::gated(Hold::at(at, 1, true));
        let fatal = store.fatal();
        let script = admitted(&store).await;
        let say = script.say(vec![said("unknown")]);
        let unknown = store.commit(say.clone()).await;
        assert_eq!(
            unknown,
            Err(CommitError::Store("the disk is gone".to_owned()))
        );
        assert_eq!(fatal.borrow().as_deref(), Some("the disk is gone"));
        let refused = store.commit(say.clone()).await;
        assert!(matches!(refused, Err(CommitError::Store(_))), "{refused:?}");
        let after = store.reopen();
        let head = after.session(script.id()).await.unwrap().unwrap().head;
        assert_eq!(head == say.head, kept);
        assert_eq!(*after.fatal().borrow(), None);
    }
}

/// A change of metadata and a deletion, each held back before it is kept and before it is acknowledged.
#[tokio::test]
async fn c39_c40_metadata_and_a_deletion_pass_the_gate_as_commits_do() {
    for (at, kept) in [
        (CommitStep::BeforeSync, false),
        (CommitStep::AfterSync, true),
    ] {
        let gate = Hold::at(at, 1, false);
        let store = MemoryStore::gated(gate.clone());
        let mut script = Script::new(1).named("fix");
        let choose = script.choose(store.mint().await.unwrap(), "large");
        let mut create = choose;
        create.create = Some(script.record.clone());
        script.write(&store, create).await.unwrap();
        let rename = script.rename(Some("done"));
        let call = begun(store.commit_metadata(rename.clone())).await;
        drop(call);
        let store = store.reopen();
        let renamed = store.session(script.id()).await.unwrap().unwrap();
        assert_eq!(renamed.record.metadata == rename.metadata, kept);
        script.record = renamed.record;
        let deletion = script.delete(store.mint().await.unwrap());
        let call = begun(store.delete(deletion)).await;
        let found = store.session(script.id()).await.unwrap();
        assert_eq!(found.is_none(), kept);
        drop(call);
        let after = store.reopen();
        assert_eq!(after.deleted(None).await.unwrap().is_some(), kept);
    }
}
