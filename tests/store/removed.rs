//! A directory that is taken away under an open store: told, never acknowledged into the void.

use std::fs;

use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_core::ports::repository::{CommitError, Repository as _};
use sessionplane_server::adapters::sled::SledStore;
use tempfile::TempDir;
use tokio::time::timeout;

use crate::image;
use crate::stop::DEADLINE;
use crate::suite::script::{Script, said};

const TOLD: &str = "removed or replaced";

async fn running(directory: &TempDir) -> (SledStore, Script) {
    let store = crate::open(&directory.path().join("store"));
    let mut script = Script::new(1);
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(&store, admit).await.unwrap();
    (store, script)
}

/// Writes until the store refuses.
async fn refusal(store: &SledStore, mut script: Script) -> String {
    let writing = async {
        loop {
            let say = script.say(vec![said("word")]);
            match store.commit(say.clone()).await {
                Ok(()) => script.accepted(&say),
                Err(CommitError::Store(reason)) => return reason,
                Err(other) => panic!("{other:?}"),
            }
        }
    };
    let refused = timeout(DEADLINE, writing).await;
    refused.expect("it went on acknowledging")
}

#[tokio::test]
async fn b54_a_removed_directory_ends_the_store() {
    let directory = TempDir::new().unwrap();
    let (store, script) = running(&directory).await;
    fs::remove_dir_all(directory.path().join("store")).unwrap();
    let reason = refusal(&store, script).await;
    assert!(reason.contains(TOLD), "{reason}");
    let mut fatal = store.fatal();
    let told = timeout(DEADLINE, fatal.wait_for(Option::is_some)).await;
    assert_eq!(told.unwrap().unwrap().as_deref(), Some(&*reason));
}

#[tokio::test]
async fn b54_a_replaced_directory_ends_the_store() {
    let directory = TempDir::new().unwrap();
    let (store, script) = running(&directory).await;
    let path = directory.path().join("store");
    let copy = image::take(&path);
    fs::rename(&path, directory.path().join("away")).unwrap();
    fs::rename(copy.path(), &path).unwrap();
    let reason = refusal(&store, script).await;
    assert!(reason.contains(TOLD), "{reason}");
}

#[tokio::test]
async fn b54_a_close_tells_that_the_directory_is_gone() {
    let directory = TempDir::new().unwrap();
    let (store, _) = running(&directory).await;
    fs::remove_dir_all(directory.path().join("store")).unwrap();
    let fatal = store.fatal();
    store.close().await;
    let told = fatal.borrow().as_deref().map(str::to_owned);
    assert!(told.is_some_and(|told| told.contains(TOLD)));
}
