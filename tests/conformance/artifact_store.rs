//! What every artifact store must do, as functions over a subject that can be opened again as a
//! killed process would find it.

use std::sync::Arc;

use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::artifact_store::{ArtifactError, ArtifactStore};

/// A store under test.
pub(crate) trait Subject: Send + Sync {
    /// The present opening.
    fn store(&self) -> Arc<dyn ArtifactStore>;
    /// Opens it again: nobody closed it.
    fn reopen(&mut self);
}

fn id(number: u128) -> ArtifactId {
    ArtifactId::mint(Timestamp::from_millis(1), number)
}

fn bytes(length: usize) -> Arc<[u8]> {
    (0..length)
        .map(|at| u8::try_from(at % 251).unwrap())
        .collect()
}

pub(crate) async fn c30_what_was_put_is_read_back_byte_for_byte(subject: impl Subject) {
    let store = subject.store();
    for (number, length) in [(1, 0), (2, 1), (3, 4096), (4, 3 * 1024 * 1024 + 1)] {
        store.put(id(number), bytes(length)).await.unwrap();
        let read = store.read(id(number), 0, usize::MAX).await.unwrap();
        assert_eq!(read.as_deref(), Some(&*bytes(length)), "{length} bytes");
    }
    // Odd bytes are bytes like others.
    let odd: Arc<[u8]> = Arc::from(&b"\xff\xfe\0\x1b[31m\xed\xa0\x80"[..]);
    store.put(id(5), odd.clone()).await.unwrap();
    assert_eq!(
        store.read(id(5), 0, 100).await.unwrap().as_deref(),
        Some(&*odd)
    );
}

pub(crate) async fn a_part_is_read_from_any_place(subject: impl Subject) {
    let store = subject.store();
    let content = bytes(10_000);
    store.put(id(1), content.clone()).await.unwrap();
    for (offset, max) in [
        (0, 10),
        (9_990, 100),
        (5_000, 1),
        (10_000, 5),
        (20_000, 5),
        (7, 0),
    ] {
        let from = usize::try_from(offset).unwrap().min(content.len());
        let expected = &content[from..content.len().min(from + max)];
        let read = store.read(id(1), offset, max).await.unwrap();
        assert_eq!(read.as_deref(), Some(expected), "{max} bytes from {offset}");
    }
    assert_eq!(store.read(id(2), 0, 10).await.unwrap(), None, "unknown");
}

pub(crate) async fn c39_what_was_put_is_there_after_a_kill(mut subject: impl Subject) {
    subject.store().put(id(1), bytes(100_000)).await.unwrap();
    subject.reopen();
    let read = subject.store().read(id(1), 0, usize::MAX).await.unwrap();
    assert_eq!(read.as_deref(), Some(&*bytes(100_000)));
}

pub(crate) async fn a_content_never_changes(subject: impl Subject) {
    let store = subject.store();
    store.put(id(1), bytes(100)).await.unwrap();
    store
        .put(id(1), bytes(100))
        .await
        .expect("the same again changes nothing");
    assert_eq!(
        store.put(id(1), bytes(101)).await,
        Err(ArtifactError::Exists(id(1)))
    );
    let read = store.read(id(1), 0, usize::MAX).await.unwrap();
    assert_eq!(read.as_deref(), Some(&*bytes(100)));
}
