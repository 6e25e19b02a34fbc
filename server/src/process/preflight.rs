//! What keeps a server from starting, as far as it can be seen without touching anything, so that
//! whoever starts one is told of all of it at once.
//!
//! What must never enter: anything that makes, keeps or changes what it looks at.

use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::{Options, ProcessError, data_dir, grounds, identity};
use crate::adapters::clock::TokioClock;
use crate::adapters::sled;
use crate::config::Settings;
use crate::grpc::listener::{Address, Listener};

/// Where a start goes to listen, and whose data it takes.
pub(super) struct Places<'a> {
    pub(super) config: &'a Settings,
    pub(super) options: &'a Options,
    pub(super) data_dir: &'a Path,
    pub(super) address: &'a Address,
    pub(super) probes: Option<&'a Address>,
}

/// Looks at the workspaces. Where one cannot be used, what else is wrong is told with it.
pub(super) async fn look(places: &Places<'_>) -> Result<(), ProcessError> {
    let mut wrong = grounds::unusable(places.config, places.options);
    if wrong.is_empty() {
        return Ok(());
    }
    wrong.extend(closed(places.data_dir));
    let store = places.data_dir.join(data_dir::STORE);
    wrong.extend(sled::in_use(&store).map(ProcessError::from));
    wrong.extend(unlistenable(places).await);
    Err(together(wrong))
}

/// A data directory that is there and that this user may not enter or write.
fn closed(path: &Path) -> Option<ProcessError> {
    let refused = access(path, Access::WRITE_OK | Access::EXEC_OK).err()?;
    (refused == Errno::ACCESS).then(|| ProcessError::Directory {
        path: path.to_owned(),
        error: refused.into(),
    })
}

/// A data directory that another process has, with what is wrong besides. Any other error is told
/// alone: it came first, and what comes after it may follow from it.
pub(super) async fn besides(error: ProcessError, places: &Places<'_>) -> ProcessError {
    match error {
        ProcessError::Store(sled::OpenError::InUse { .. }) => {
            let mut wrong = vec![error];
            wrong.extend(unlistenable(places).await);
            together(wrong)
        }
        alone => alone,
    }
}

/// What would keep the listeners from their addresses at this moment. Nothing is listened on, and it
/// is asked only where the start has failed: a server that is just leaving keeps its address for a
/// moment, for which a start that goes on waits.
async fn unlistenable(places: &Places<'_>) -> Vec<ProcessError> {
    let (registered, _told) = places.config.identity.registered();
    let mut wrong = Vec::new();
    match identity::tls_files(places.config, Arc::new(TokioClock::start())) {
        Ok(tls) => {
            let guard = identity::guard(tls.as_ref(), &registered);
            wrong.extend(Listener::obstacle(places.address, &guard).await.err());
        }
        Err(error) => return vec![error],
    }
    if let Some(probes) = places.probes {
        wrong.extend(Listener::obstacle_for_probes(probes).await.err());
    }
    wrong.into_iter().map(ProcessError::from).collect()
}

fn together(mut wrong: Vec<ProcessError>) -> ProcessError {
    if wrong.len() == 1 {
        return wrong.swap_remove(0);
    }
    ProcessError::Several(wrong)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::adapters::sled::{SledStore, StoreOptions};

    /// What a start says that is to listen there, whose workspace is not there.
    async fn told(folder: &Path, address: &str, probes: Option<&str>) -> String {
        let options = Options {
            workspace: Some(folder.join("no-workspace")),
            ..Options::default()
        };
        let probes: Option<Address> = probes.map(|probes| probes.parse().unwrap());
        let places = Places {
            config: &Settings::default(),
            options: &options,
            data_dir: &folder.join("data"),
            address: &address.parse().unwrap(),
            probes: probes.as_ref(),
        };
        look(&places).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn all_that_keeps_a_server_from_starting_is_told_at_once_and_nothing_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let alone = told(folder, "127.0.0.1:0", None).await;
        assert!(alone.contains("no-workspace cannot be opened"), "{alone}");
        assert_eq!(alone.lines().count(), 1, "{alone}");
        let left: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");

        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken_at = taken.local_addr().unwrap().to_string();
        let socket = folder.join("socket");
        let listening = UnixListener::bind(&socket).unwrap();
        let socket = format!("unix:{}", socket.display());
        let store = folder.join("data/store");
        let held = SledStore::open(&store, &StoreOptions::new(7)).unwrap();
        for (address, probes) in [(&taken_at, &socket), (&socket, &taken_at)] {
            let all = told(folder, address, Some(probes)).await;
            assert_eq!(all.lines().count(), 1 + 4, "{all}");
            for part in [
                "no-workspace cannot be opened",
                "is in use by another process",
                &format!("listens on {address}"),
                &format!("listens on {probes}"),
            ] {
                assert!(all.contains(part), "{part} is missing in:\n{all}");
            }
        }
        drop((taken, listening));
        // A socket that nobody answers is replaced, not told of.
        let all = told(folder, &taken_at, Some(&socket)).await;
        assert_eq!(all.lines().count(), 1 + 2, "{all}");
        held.close().await;
        drop(held);
        let reached = told(folder, "0.0.0.0:0", None).await;
        assert!(reached.contains("refusing to listen"), "{reached}");
        assert_eq!(reached.lines().count(), 1 + 2, "{reached}");
    }
}
