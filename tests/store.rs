//! Every store of the server runs the repository conformance suite; the durable one also shows what
//! it does to its disk.
#![cfg(test)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use sessionplane_core::domain::audit::AuditRecord;
use sessionplane_core::domain::ids::{RunId, SessionId};
use sessionplane_core::domain::input::InputRecord;
use sessionplane_core::ports::repository::ReadError;
use sessionplane_server::adapters::memory::{CommitGate, CommitStep, MemoryStore, Passing};
use sessionplane_server::adapters::sled::{RoundProbe, RoundStep, SledStore, StoreOptions};
use tempfile::TempDir;

#[path = "store/damage.rs"]
mod damage;
#[path = "store/deleted.rs"]
mod deleted;
#[path = "store/erasing.rs"]
mod erasing;
#[path = "store/exports.rs"]
mod exports;
#[path = "store/gate.rs"]
mod gate;
#[path = "store/image.rs"]
mod image;
#[path = "store/leftovers.rs"]
mod leftovers;
#[path = "store/removed.rs"]
mod removed;
#[path = "store/rounds.rs"]
mod rounds;
#[path = "store/snapshots.rs"]
mod snapshots;
#[path = "store/stop.rs"]
mod stop;
#[path = "conformance/repository.rs"]
mod suite;
#[path = "store/verify.rs"]
mod verify;
#[path = "store/wholes.rs"]
mod wholes;

use suite::{Store, Subject, repository_conformance};

/// Both stores offer these reads under the same names.
macro_rules! store {
    ($store:ty, $($wait:tt)*) => {
        #[async_trait]
        impl Store for $store {
            async fn audits(&self, session: SessionId) -> Result<Vec<AuditRecord>, ReadError> {
                <$store>::audits(self, session)$($wait)*
            }
            async fn metadata_audits(
                &self,
                session: SessionId,
            ) -> Result<Vec<AuditRecord>, ReadError> {
                <$store>::metadata_audits(self, session)$($wait)*
            }
            async fn runs_of(&self, session: SessionId) -> Result<Vec<RunId>, ReadError> {
                <$store>::runs_of(self, session)$($wait)*
            }
            async fn inputs(&self, run: RunId) -> Result<Vec<InputRecord>, ReadError> {
                <$store>::inputs(self, run)$($wait)*
            }
        }
    };
}
store!(MemoryStore,);
store!(SledStore, .await);

/// A disk that can be broken.
#[derive(Default)]
struct Disk(AtomicBool);

impl Disk {
    fn check(&self) -> Result<(), String> {
        if self.0.load(Ordering::SeqCst) {
            return Err("the disk is gone".to_owned());
        }
        Ok(())
    }
}

#[async_trait]
impl CommitGate for Disk {
    async fn pass(&self, _: CommitStep, _: Passing<'_>) -> Result<(), String> {
        self.check()
    }
}

impl RoundProbe for Disk {
    fn at(&self, _: RoundStep) -> Result<(), String> {
        self.check()
    }
}

/// The store in memory.
struct Memory {
    store: Arc<MemoryStore>,
    disk: Arc<Disk>,
}

impl Memory {
    fn new() -> Self {
        let disk = Arc::new(Disk::default());
        let store = Arc::new(MemoryStore::gated(disk.clone()));
        Self { store, disk }
    }
}

#[async_trait]
impl Subject for Memory {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }
    async fn reopen(&mut self) {
        self.store = Arc::new(self.store.reopen());
    }
    fn break_disk(&self) {
        self.disk.0.store(true, Ordering::SeqCst);
    }
}

/// The store on disk. It is opened again on a copy of its files, taken while it is open: what a
/// killed process leaves.
struct Sled {
    directory: TempDir,
    store: Arc<SledStore>,
    disk: Arc<Disk>,
}

/// Opens a store on a small cache.
fn open(path: &Path) -> SledStore {
    open_on(path, Arc::default())
}

fn open_on(path: &Path, disk: Arc<Disk>) -> SledStore {
    let options = StoreOptions {
        cache_bytes: 4 * 1024 * 1024,
        probe: Some(disk),
        ..StoreOptions::new(7)
    };
    SledStore::open(path, &options).expect("the store opens")
}

impl Sled {
    fn new() -> Self {
        let (directory, disk) = (TempDir::new().unwrap(), Arc::new(Disk::default()));
        let store = Arc::new(open_on(directory.path(), disk.clone()));
        Self {
            directory,
            store,
            disk,
        }
    }
}

#[async_trait]
impl Subject for Sled {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }
    async fn reopen(&mut self) {
        let image = image::take(self.directory.path());
        self.store.close().await;
        self.store = Arc::new(open_on(image.path(), self.disk.clone()));
        self.directory = image;
    }
    fn break_disk(&self) {
        self.disk.0.store(true, Ordering::SeqCst);
    }
    async fn is_whole(&mut self) {
        let image = image::take(self.directory.path());
        let mut faults = verify::verified(image.path()).faults;
        // A history settles runs whose inputs and questions it leaves open.
        faults.retain(|fault| {
            !["input ", "interaction "]
                .iter()
                .any(|it| fault.key.starts_with(it))
        });
        assert!(faults.is_empty(), "{faults:?}");
    }
}

repository_conformance!(memory, super::Memory::new());
repository_conformance!(sled, super::Sled::new());

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        max_shrink_iters: 200,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(
            "tests/store.proptest-regressions",
        ))),
        ..ProptestConfig::default()
    })]
    #[test]
    fn both_stores_and_a_model_agree_on_every_history(
        history in prop::collection::vec(suite::model::op(), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut subjects: Vec<Box<dyn Subject>> =
                vec![Box::new(Memory::new()), Box::new(Sled::new())];
            suite::model::agree(&mut subjects, &history).await;
        });
    }
}
