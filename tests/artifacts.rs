//! Every artifact store of the server runs the suite; the one in a folder also shows what it makes
//! of a damaged file and of one that was never finished.
#![cfg(test)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::artifact_store::{ArtifactError, ArtifactStore};
use sessionplane_server::adapters::artifacts::{FolderArtifacts, MemoryArtifacts};
use tempfile::TempDir;

#[path = "conformance/artifact_store.rs"]
mod suite;

use suite::Subject;

struct Memory(MemoryArtifacts);

impl Subject for Memory {
    fn store(&self) -> Arc<dyn ArtifactStore> {
        Arc::new(self.0.clone())
    }
    fn reopen(&mut self) {}
}

struct Folder {
    dir: TempDir,
    store: Arc<FolderArtifacts>,
}

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        Self { dir, store }
    }
}

fn open(dir: &Path) -> Arc<FolderArtifacts> {
    Arc::new(FolderArtifacts::open(dir.join("artifacts")).unwrap())
}

impl Subject for Folder {
    fn store(&self) -> Arc<dyn ArtifactStore> {
        self.store.clone()
    }
    fn reopen(&mut self) {
        self.store = open(self.dir.path());
    }
}

macro_rules! artifact_conformance {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $name() {
                super::suite::$name(super::Memory(super::MemoryArtifacts::default())).await;
            })*
        }
        mod folder {
            $(#[tokio::test] async fn $name() {
                super::suite::$name(super::Folder::new()).await;
            })*
        }
    };
}

artifact_conformance!(
    c30_what_was_put_is_read_back_byte_for_byte,
    a_part_is_read_from_any_place,
    c39_what_was_put_is_there_after_a_kill,
    a_content_never_changes,
);

fn id() -> ArtifactId {
    ArtifactId::mint(Timestamp::from_millis(1), 7)
}

/// The one file that holds a content.
fn file_of(folder: &Folder) -> PathBuf {
    let name = id().to_string();
    let shard = &name[name.len() - 2..];
    folder.dir.path().join("artifacts").join(shard).join(&name)
}

#[tokio::test]
async fn b54_a_damaged_content_is_told_and_never_shown_whatever_part_is_read() {
    let folder = Folder::new();
    folder
        .store
        .put(id(), Arc::from(&[1; 1000][..]))
        .await
        .unwrap();
    let whole = std::fs::read(file_of(&folder)).unwrap();
    for at in [0, 5, 20, 500] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        std::fs::write(file_of(&folder), bytes).unwrap();
        for (offset, max) in [(0, usize::MAX), (0, 10), (990, 10)] {
            let read = folder.store.read(id(), offset, max).await;
            assert_eq!(read, Err(ArtifactError::Damaged(id())), "byte {at}");
        }
    }
    for length in [0, 10, 44, 1043] {
        std::fs::write(file_of(&folder), &whole[..length]).unwrap();
        let read = folder.store.read(id(), 0, 10).await;
        assert_eq!(read, Err(ArtifactError::Damaged(id())), "cut at {length}");
    }
}

#[tokio::test]
async fn what_a_killed_process_left_unfinished_is_nothing_and_goes_at_the_next_start() {
    let mut folder = Folder::new();
    let aside = folder
        .dir
        .path()
        .join("artifacts/unfinished")
        .join(id().to_string());
    std::fs::write(&aside, b"SPA1 half a file").unwrap();
    assert_eq!(folder.store.read(id(), 0, 10).await, Ok(None));
    folder.reopen();
    assert!(!aside.exists());
    folder
        .store
        .put(id(), Arc::from(&b"whole"[..]))
        .await
        .unwrap();
    let read = folder.store.read(id(), 0, 10).await;
    assert_eq!(read.unwrap().as_deref(), Some(&b"whole"[..]));
}

#[tokio::test]
async fn c57_nobody_else_may_read_the_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let root = folder.dir.path().join("artifacts");
    let mode = std::fs::metadata(root).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[tokio::test]
async fn a_content_that_could_not_be_kept_leaves_nothing_behind() {
    let folder = Folder::new();
    let file = file_of(&folder);
    std::os::unix::fs::symlink("nowhere", file.parent().unwrap()).unwrap();
    let put = folder.store.put(id(), Arc::from(&[1; 1000][..])).await;
    assert!(matches!(put, Err(ArtifactError::Store(_))), "{put:?}");
    let unfinished = folder.dir.path().join("artifacts/unfinished");
    assert_eq!(std::fs::read_dir(unfinished).unwrap().count(), 0);
    std::fs::remove_file(file.parent().unwrap()).unwrap();
    let again = folder.store.put(id(), Arc::from(&[1; 1000][..])).await;
    assert!(again.is_ok(), "once there is room again: {again:?}");
}
