//! The workspaces of this host, as the port has them: places are looked up beneath their boundaries,
//! and version control is read, and worktrees made, through these.
//!
//! What is inside: threads where looking may block, a bounded number of them, and the words for what
//! went wrong. What must never enter: a lookup by path, the `git` program.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use sessionplane_core::domain::ids::WorkspaceName;
use sessionplane_core::domain::place::{Checkout, MAX_BRANCH_BYTES, Place};
use sessionplane_core::ports::workspaces::{PlaceError, Workspaces};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::adapters::boundary::{Grounds, Identity};
use crate::adapters::git::{self, Layout};

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

/// What ends the name of a branch that is longer than what is kept of it.
const CUT: &str = "\u{2026}";

/// The workspaces of this host.
pub struct HostWorkspaces {
    grounds: Grounds,
    turns: BTreeMap<WorkspaceName, Turns>,
    /// Worktrees of one repository are made one after another; only those are here that one is made of.
    repositories: Mutex<HashMap<Identity, Weak<Semaphore>>>,
}

/// What may be done in a workspace at a time: one that stalls holds up no other.
struct Turns {
    looking: Arc<Semaphore>,
    making: Arc<Semaphore>,
}

impl HostWorkspaces {
    /// Threads that look or make something in a workspace at the same time at most, each of which may
    /// block. One that stalls, on a mount that does not answer, keeps its place until it comes back.
    pub const AT_ONCE: usize = Self::LOOKING + Self::MAKING;
    const LOOKING: usize = 3;
    /// Two, so that what one repository has of a large one holds up no other.
    const MAKING: usize = 2;

    /// How long a place is looked at. A file system that does not answer must not keep every caller.
    pub const WITHIN: Duration = Duration::from_secs(10);

    /// These workspaces.
    #[must_use]
    pub fn new(grounds: Grounds) -> Self {
        let turns = grounds.names().map(|name| {
            let turns = Turns {
                looking: Arc::new(Semaphore::new(Self::LOOKING)),
                making: Arc::new(Semaphore::new(Self::MAKING)),
            };
            (name.clone(), turns)
        });
        Self {
            turns: turns.collect(),
            grounds,
            repositories: Mutex::default(),
        }
    }

    fn turns(&self, place: &Place) -> Result<&Turns, PlaceError> {
        let found = self.turns.get(&place.workspace);
        match (found, self.grounds.workspace(&place.workspace)) {
            (Some(turns), _) => Ok(turns),
            (None, Err(error)) => Err(error),
            (None, Ok(_)) => Err(ended(place)),
        }
    }

    /// Waits until no worktree of the repository is made any more, and keeps others from it.
    async fn alone(&self, repository: Identity) -> Option<OwnedSemaphorePermit> {
        let alone = {
            let mut repositories = self
                .repositories
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            repositories.retain(|_, alone| alone.strong_count() > 0);
            let known = repositories.get(&repository).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let alone = Arc::new(Semaphore::new(1));
                repositories.insert(repository, Arc::downgrade(&alone));
                alone
            })
        };
        // What is held keeps it.
        alone.acquire_owned().await.ok()
    }

    /// Runs blocking work on a thread where blocking is allowed. It is told to stop once nobody waits
    /// for it.
    async fn blocking<T: Send + 'static>(
        &self,
        turns: &Arc<Semaphore>,
        work: impl FnOnce(&Grounds, &AtomicBool) -> T + Send + 'static,
    ) -> Result<T, Ended> {
        let permit = turns.clone().acquire_owned().await;
        let permit = permit.map_err(|_| Ended)?;
        let grounds = self.grounds.clone();
        let stop = Stop::default();
        let heard = stop.0.clone();
        let done = spawn_blocking(move || {
            let _permit = permit;
            work(&grounds, &heard)
        });
        done.await.map_err(|_| Ended)
    }
}

/// The work was given up: the process ends.
struct Ended;

/// What a place says that is not looked at in time.
fn stalled(place: &Place) -> PlaceError {
    PlaceError::Unavailable {
        workspace: place.workspace.clone(),
        directory: place.directory.to_string(),
        problem: format!(
            "was not looked up within {} s: its file system does not answer, or others' keep all who \
             would look; see to the mounts of this host, and try again",
            HostWorkspaces::WITHIN.as_secs()
        ),
    }
}

/// Says that nobody waits any more, once it is dropped.
#[derive(Default)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn ended(place: &Place) -> PlaceError {
    PlaceError::Unavailable {
        workspace: place.workspace.clone(),
        directory: place.directory.to_string(),
        problem: "was not looked up: the server is ending".to_owned(),
    }
}

#[async_trait]
impl Workspaces for HostWorkspaces {
    async fn ground(&self, place: &Place) -> Result<Place, PlaceError> {
        let asked = place.clone();
        let looking = &self.turns(place)?.looking;
        let found = self.blocking(looking, move |grounds, _| grounds.beneath(&asked));
        let Ok(found) = timeout(Self::WITHIN, found).await else {
            return Err(stalled(place));
        };
        let found = found.unwrap_or_else(|Ended| Err(ended(place)));
        found.map(|spot| spot.place)
    }

    async fn checkout(&self, place: &Place) -> Option<Checkout> {
        let looking = &self.turns(place).ok()?.looking;
        let place = place.clone();
        let read = self.blocking(looking, move |grounds, stop| {
            checkout(grounds, &place, stop)
        });
        let read = timeout(Self::WITHIN, read).await.ok()?;
        read.ok().flatten()
    }

    async fn add_worktree(&self, place: &Place, branch: &str) -> Result<Place, PlaceError> {
        let turns = self.turns(place)?;
        let asked = place.clone();
        let found = self.blocking(&turns.looking, move |grounds, stop| {
            repository(grounds, &asked, stop)
        });
        let Ok(found) = timeout(Self::WITHIN, found).await else {
            return Err(stalled(place));
        };
        let repository = found.unwrap_or_else(|Ended| Err(ended(place)))?;
        let alone = self.alone(repository).await.ok_or_else(|| ended(place))?;
        let (asked, branch) = (place.clone(), branch.to_owned());
        let made = self.blocking(&turns.making, move |grounds, stop| {
            let _alone = alone;
            add_worktree(grounds, &asked, &branch, stop)
        });
        made.await.unwrap_or_else(|Ended| Err(ended(place)))
    }
}

/// The repository that a place lies in.
fn repository(grounds: &Grounds, place: &Place, stop: &AtomicBool) -> Result<Identity, PlaceError> {
    let spot = grounds.beneath(place)?;
    let layout = Layout::around(&spot.workspace, &spot.path, stop);
    let found = layout.and_then(|layout| layout.identity());
    found.map_err(|error| PlaceError::Worktree(error.to_string()))
}

/// What version control says of a place.
fn checkout(grounds: &Grounds, place: &Place, stop: &AtomicBool) -> Option<Checkout> {
    let spot = grounds.saved(place).ok()?;
    let layout = Layout::around(&spot.workspace, &spot.path, stop);
    let head = layout.and_then(|layout| layout.head(stop));
    let head = match head {
        Ok(head) => head,
        Err(git::GitError::NoRepository) => return None,
        Err(error) => {
            let (workspace, directory) = (&place.workspace, &place.directory);
            tracing::debug!(%workspace, %directory, %error, "no branch can be told");
            return None;
        }
    };
    let branch = match head.branch {
        // Whoever made the repository may have written anything there.
        Some(branch) if git::is_branch(&branch) => Some(kept(branch).into()),
        Some(_) => return None,
        None => None,
    };
    Some(Checkout {
        branch,
        commit: head.commit.map(|commit| commit.to_string().into()),
    })
}

/// The name of a branch, or the beginning of a long one.
fn kept(mut name: String) -> String {
    if name.len() > MAX_BRANCH_BYTES {
        let room = MAX_BRANCH_BYTES - CUT.len();
        let end = (0..=room).rev().find(|at| name.is_char_boundary(*at));
        name.truncate(end.unwrap_or(0));
        name.push_str(CUT);
    }
    name
}

fn add_worktree(
    grounds: &Grounds,
    place: &Place,
    branch: &str,
    stop: &AtomicBool,
) -> Result<Place, PlaceError> {
    let spot = grounds.beneath(place)?;
    let made = git::add_worktree(&spot.workspace, &spot.path, branch, stop);
    let directory = made.map_err(|error| PlaceError::Worktree(error.why()))?;
    Ok(Place {
        workspace: spot.place.workspace,
        directory,
    })
}
