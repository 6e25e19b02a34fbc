//! What is left of a store whose disk failed.

use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::repository::{CommitError, ReadError};

use super::Subject;
use super::reading::read_all;
use super::script::{Script, binding_key, said};

/// The first failure is the end of all writing, leases included: what the disk holds is known only
/// to the next opening. What was acknowledged is read as before.
pub(crate) async fn a_store_that_failed_changes_nothing_more_and_is_still_read(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    let mut script = Script::new(1).named("fix");
    let mut admit = script.admit(store.mint().await.unwrap(), "go");
    script.bind(&mut admit, binding_key("acme", "r"));
    let entries = admit.entries.clone();
    script.write(&*store, admit).await.unwrap();
    let mut gone = Script::new(3);
    gone.create(&*store).await;
    let token = store.mint().await.unwrap();
    store.delete(gone.delete(token)).await.unwrap();
    subject.break_disk();
    for _ in 0..2 {
        let unknown = store.commit(script.say(vec![said("lost")])).await;
        assert!(matches!(unknown, Err(CommitError::Store(_))), "{unknown:?}");
    }
    let changed = store.commit_metadata(script.pause(true)).await;
    assert!(matches!(changed, Err(CommitError::Store(_))), "{changed:?}");
    let deleted = store.delete(script.delete(token)).await;
    assert!(matches!(deleted, Err(CommitError::Store(_))), "{deleted:?}");
    let failed = |result: Result<(), ReadError>| {
        assert!(matches!(result, Err(ReadError::Store(_))), "{result:?}");
    };
    failed(store.revoke(script.id()).await);
    failed(store.orphaned().await.map(drop));
    failed(store.cut(script.id()).await.map(drop));
    let far = Timestamp::from_millis(u64::MAX);
    failed(store.sweep_bindings(far, 9).await.map(drop));
    failed(store.erase(gone.id(), 0, 9).await.map(drop));
    let left = store.deleted(None).await.unwrap();
    assert_eq!(left.map(|left| left.entries), Some(gone.head.entries));

    let head = store.session(script.id()).await.unwrap().unwrap().head;
    assert_eq!(head, script.head);
    assert_eq!(read_all(&*store, &script, 9, usize::MAX).await, entries);
    let binding = store.binding(&binding_key("acme", "r")).await;
    assert!(binding.unwrap().is_some());
    assert_eq!(store.cut(Script::new(2).id()).await, Ok(None));
}
