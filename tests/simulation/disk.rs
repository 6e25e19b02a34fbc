//! Disks that are slow and fail: the store's gate, and the artifacts' store.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::provenance::Digest;
use sessionplane_core::ports::artifact_store::{ArtifactError, ArtifactStore};
use sessionplane_server::adapters::artifacts::MemoryArtifacts;
use sessionplane_server::adapters::memory::{CommitGate, CommitStep, Passing};

use crate::books::Books;
use crate::executor::{Executor, lock};
use crate::rng::Rng;

/// Draws delays and failures.
pub(crate) struct Disk {
    executor: Executor,
    pub(crate) books: Books,
    rng: Mutex<Rng>,
    /// One step of a commit in so many fails; 0 for none.
    fails: AtomicU64,
    /// How many have.
    pub(crate) failed: AtomicU64,
    /// One read in so many fails; 0 for none.
    reads_fail: u64,
    /// How many have.
    pub(crate) unread: AtomicU64,
    well: AtomicBool,
}

impl Disk {
    pub(crate) fn new(executor: Executor, books: Books, mut rng: Rng) -> Arc<Self> {
        let fails = [0, 300, 80][rng.index(3)];
        let reads_fail = [0, 1_000, 100][rng.index(3)];
        Arc::new(Self {
            executor,
            books,
            rng: Mutex::new(rng),
            fails: AtomicU64::new(fails),
            failed: AtomicU64::new(0),
            reads_fail,
            unread: AtomicU64::new(0),
            well: AtomicBool::new(false),
        })
    }

    /// From here on nothing fails.
    pub(crate) fn heal(&self) {
        self.well.store(true, Ordering::SeqCst);
    }

    /// How long a step takes, and whether it fails then.
    fn draw(&self) -> (Duration, bool) {
        let mut rng = lock(&self.rng);
        let delay = match rng.below(20) {
            0..=9 => Duration::ZERO,
            10..=18 => Duration::from_micros(rng.below(20_000)),
            _ => rng.millis(1_500),
        };
        let fails = self.fails.load(Ordering::SeqCst);
        let fails = fails > 0 && rng.one_in(fails);
        (delay, fails)
    }

    /// True once in `n` times, as long as the disk is not well.
    pub(crate) fn one_in(&self, n: u64) -> bool {
        lock(&self.rng).one_in(n) && !self.well.load(Ordering::SeqCst)
    }

    /// Waits for what a read waits for: most find their page in memory.
    pub(crate) async fn wait(&self) {
        let delay = {
            let mut rng = lock(&self.rng);
            match rng.below(40) {
                0..=23 => Duration::ZERO,
                24..=38 => Duration::from_micros(rng.below(3_000)),
                _ => rng.millis(100),
            }
        };
        if !delay.is_zero() {
            self.executor.sleep(delay).await;
        }
    }

    /// The same, and then the read may fail.
    pub(crate) async fn read(&self) -> Result<(), String> {
        self.wait().await;
        let fails = self.reads_fail > 0 && lock(&self.rng).one_in(self.reads_fail);
        if fails && !self.well.load(Ordering::SeqCst) {
            self.unread.fetch_add(1, Ordering::SeqCst);
            return Err("the disk could not be read".to_owned());
        }
        Ok(())
    }

    async fn take(&self) -> Result<(), String> {
        let (delay, fails) = self.draw();
        if !delay.is_zero() {
            self.executor.sleep(delay).await;
        }
        if fails && !self.well.load(Ordering::SeqCst) {
            self.failed.fetch_add(1, Ordering::SeqCst);
            return Err("the disk failed".to_owned());
        }
        Ok(())
    }
}

#[async_trait]
impl CommitGate for Disk {
    async fn pass(&self, step: CommitStep, passing: Passing<'_>) -> Result<(), String> {
        // Nothing comes between this step and the one before it: the commit was kept just now.
        let kept = passing.commit().filter(|_| step == CommitStep::AfterSync);
        if let Some(commit) = kept {
            self.books.kept(commit);
        }
        match passing {
            Passing::Metadata(commit) if step == CommitStep::AfterSync => {
                self.books.changed(commit);
            }
            Passing::Deletion(commit) if step == CommitStep::AfterSync => {
                self.books.deleted(commit);
            }
            _ => {}
        }
        let taken = self.take().await;
        // Also where its writer hears of a failure: it is on the disk, and who repeats the call, or
        // reads, is told so.
        if let Some(commit) = kept {
            self.books.synced(commit);
        }
        taken
    }
}

/// Artifacts on such a disk. A failure of it is no failure of the store's.
#[derive(Clone)]
pub(crate) struct SlowArtifacts {
    pub(crate) inner: MemoryArtifacts,
    pub(crate) disk: Arc<Disk>,
}

#[async_trait]
impl ArtifactStore for SlowArtifacts {
    async fn put(&self, id: ArtifactId, content: Arc<[u8]>) -> Result<Digest, ArtifactError> {
        self.disk.take().await.map_err(ArtifactError::Store)?;
        self.inner.put(id, content).await
    }

    async fn remove(&self, id: ArtifactId) -> Result<(), ArtifactError> {
        self.disk.take().await.map_err(ArtifactError::Store)?;
        self.inner.remove(id).await
    }

    async fn read(
        &self,
        id: ArtifactId,
        offset: u64,
        max: usize,
    ) -> Result<Option<Vec<u8>>, ArtifactError> {
        self.inner.read(id, offset, max).await
    }
}
