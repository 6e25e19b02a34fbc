//! All programs that run for sessions of this server.

use std::collections::HashMap;
use std::io;
use std::iter;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::fstat;
use rustix::process::{getpid, set_child_subreaper};
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::ports::clock::{Entropy, Spawner, TaskHandle};
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use tokio::time::timeout;

use super::filter;
use super::keeper::{End, Keeper, Started};
use super::leftover::{self, Alive, Removed};
use super::note::{NOTES, Notes, mark};
use super::order::Order;
use super::ruleset::{self, Edition, Reach};
use crate::adapters::boundary::Boundary;
use crate::failpoint;

/// Names of what a program left that are removed at a turn.
const AT_A_TURN: u64 = 1000;

/// Why a program does not run.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// It could not be started.
    #[error("the program cannot be started: {0}")]
    Start(String),
    /// What it could reach holds the server's own data, or the other way round.
    #[error(
        "{what} and the data directory {} lie one within the other: the program could read the \
         server's tokens and all sessions; move one of them", .data_dir.display()
    )]
    Reaches {
        /// What it could reach.
        what: String,
        /// Where the data is.
        data_dir: PathBuf,
    },
    /// An earlier program of the session is still there.
    #[error("process {0} of an earlier run of this session does not end; it may still write")]
    StillThere(i32),
    /// Whether one is there cannot be told.
    #[error("processes that an earlier server started cannot be looked for: {0}")]
    Unknown(io::Error),
}

impl From<Alive> for HostError {
    fn from(alive: Alive) -> Self {
        match alive {
            Alive::Process(pid) => Self::StillThere(pid),
            Alive::Unknown(error) => Self::Unknown(error),
        }
    }
}

/// What a host uses of this machine.
#[derive(Clone, Debug)]
pub struct Where {
    /// The server's binary: what it is started anew from.
    pub binary: PathBuf,
    /// The server's own data, which no program may reach; notes are kept in it.
    pub data_dir: PathBuf,
    /// In which folder each program gets one for itself.
    pub temporary: PathBuf,
    /// What of Landlock it asks for.
    pub edition: Edition,
    /// Whether it asks for a filter of calls that reach into other processes. A test does not, for a
    /// system that has none.
    pub filtered: bool,
}

impl Where {
    /// This process's own binary, also after another one took its path, and the system's folder.
    #[must_use]
    pub fn of_this_server(data_dir: &Path) -> Self {
        Self {
            binary: PathBuf::from("/proc/self/exe"),
            data_dir: data_dir.to_owned(),
            temporary: std::env::temp_dir(),
            edition: Edition::NEWEST,
            filtered: true,
        }
    }
}

/// How long what may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// A program, to be executed once it was asked for.
    pub start: Duration,
    /// A program, to end once its input has.
    pub input: Duration,
    /// A tree, to end once it was asked to.
    pub terminate: Duration,
    /// The system, to end what was killed.
    pub kill: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(10),
            input: Duration::from_secs(2),
            terminate: Duration::from_secs(2),
            kill: Duration::from_secs(5),
        }
    }
}

impl Bounds {
    /// A whole end, at the most, with what its parts need beside their waits.
    fn end(&self) -> Duration {
        self.start + self.input + 2 * self.terminate + 3 * self.kill
    }
}

/// Starts programs, and sees to their ends. Clones are the same host.
#[derive(Clone)]
pub struct ProcessHost(Arc<Inner>);

pub(super) struct Inner {
    pub(super) place: Where,
    pub(super) bounds: Bounds,
    pub(super) notes: Notes,
    pub(super) closing: watch::Sender<bool>,
    /// What blocks, at most at a time.
    blocking: Semaphore,
    /// The same of removing what programs have left, so that what some leave holds up no other's start.
    clearing: Semaphore,
    entropy: Arc<dyn Entropy>,
    kept: Mutex<HashMap<SessionId, Kept>>,
}

/// What is known of a session's program.
struct Kept {
    mark: String,
    end: watch::Receiver<Option<End>>,
    /// Tells the keeper that another program of the session is wanted.
    evict: Arc<Notify>,
    #[allow(
        dead_code,
        reason = "held for its drop: the server's end ends the keeper, and so the tree"
    )]
    keeper: Box<dyn TaskHandle>,
}

impl ProcessHost {
    /// Threads that it may block at a time.
    pub const AT_ONCE: usize = Self::WORKING + Self::CLEARING;
    /// Those that what starts and ends programs has for itself.
    const WORKING: usize = 4;
    /// Those that remove what programs left.
    const CLEARING: usize = 1;

    /// A host that keeps its notes in the data directory. Nothing is started or ended yet.
    ///
    /// # Errors
    /// When there is no place for notes, or the system gives this process no orphans.
    pub fn open(place: Where, bounds: Bounds, entropy: Arc<dyn Entropy>) -> io::Result<Self> {
        // What loses its supervisor, and cleared its mark away, falls to this process instead of the
        // system, and is found there.
        set_child_subreaper(Some(getpid()))?;
        let notes = Notes::open(&place.data_dir.join(NOTES))?;
        Ok(Self(Arc::new(Inner {
            place,
            bounds,
            notes,
            closing: watch::Sender::new(false),
            blocking: Semaphore::new(Self::WORKING),
            clearing: Semaphore::new(Self::CLEARING),
            entropy,
            kept: Mutex::default(),
        })))
    }

    /// How far this system holds the programs in that it starts.
    #[must_use]
    pub fn reach(&self) -> Reach {
        if !self.0.place.filtered || !filter::is_had() {
            return Reach::Nothing;
        }
        ruleset::reach(self.0.place.edition)
    }

    /// Kills what an earlier server of this data directory has left, and waits until it is gone. To be
    /// done before anything of its sessions is settled. Returns how many processes there were.
    ///
    /// # Errors
    /// When something is not gone, or that cannot be told: it may still write.
    pub async fn end_leftovers(&self) -> Result<usize, HostError> {
        let notes = self.0.notes.clone();
        let temporary = self.0.place.temporary.clone();
        let ended = move || leftover::end_all(&notes, &temporary);
        let ended = self.0.blocking(ended).await;
        Ok(ended.map_err(HostError::Unknown)??)
    }

    /// Does what blocks on one of its threads.
    ///
    /// # Errors
    /// When it panicked, or the runtime ends.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        self.0.blocking(work).await
    }

    /// Starts a program, once an earlier one of its session is gone, which is ended for it. It lives
    /// until it ends by itself or [`Started::hold`] is dropped. Cancel-safe: what was started then is ended.
    ///
    /// # Errors
    /// When it cannot be started, may not be started there, or the earlier one is not gone in time.
    pub async fn start(&self, order: Order, spawner: &dyn Spawner) -> Result<Started, HostError> {
        let order = self.checked(order).await?;
        let session = order.session;
        let (ready, started) = oneshot::channel();
        let mut wanted = Some((order, ready));
        while let Some(earlier) = self.claim(session, &mut wanted, spawner) {
            self.gone(session, earlier).await?;
        }
        let started = started.await;
        started.unwrap_or_else(|_| Err(HostError::Start("its keeper is gone".to_owned())))
    }

    /// Whether a session's program, or anything of it, is still there.
    #[must_use]
    pub fn is_kept(&self, session: SessionId) -> bool {
        let kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&session).is_some_and(|kept| !kept.is_gone())
    }

    /// Ends all that runs, faster than otherwise, and waits for it. Nothing is to be started any more.
    pub async fn close(&self) {
        self.0.closing.send_replace(true);
        let ends: Vec<_> = {
            let kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.values().map(|kept| kept.end.clone()).collect()
        };
        for mut end in ends {
            // A keeper that is gone has dropped what it held: its supervisor kills.
            drop(end.wait_for(Option::is_some).await);
        }
    }

    /// What could be reached must not hold the server's own data.
    async fn checked(&self, order: Order) -> Result<Order, HostError> {
        let data_dir = self.0.place.data_dir.clone();
        let checked = self.0.blocking(move || {
            for folder in iter::once(&order.folder).chain(&order.beside) {
                apart(folder, &data_dir)?;
            }
            let reads = order.reads.iter().map(PathBuf::as_path);
            beside(reads.chain(ruleset::common()), &data_dir)?;
            Ok(order)
        });
        checked.await.map_err(HostError::Unknown)?
    }

    /// Starts what is wanted, unless an earlier program of the session may be there: that one then.
    fn claim(
        &self,
        session: SessionId,
        wanted: &mut Option<(Order, oneshot::Sender<Result<Started, HostError>>)>,
        spawner: &dyn Spawner,
    ) -> Option<Earlier> {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, kept| !kept.is_gone());
        if let Some(kept) = kept.get(&session) {
            // Who wants another one has the session; whoever holds this one has it no more.
            kept.evict.notify_one();
            return Some(Earlier {
                mark: kept.mark.clone(),
                end: kept.end.clone(),
            });
        }
        let (order, ready) = wanted.take()?;
        let mark = mark(self.0.entropy.random());
        let (ended, end) = watch::channel(None);
        let evict = Arc::new(Notify::new());
        let keeper = Keeper::new(self.0.clone(), order, mark.clone(), evict.clone());
        let keeper = spawner.spawn("process", Box::pin(keeper.run(ready, ended)));
        let started = Kept {
            mark,
            end,
            evict,
            keeper,
        };
        kept.insert(session, started);
        None
    }

    /// Waits until an earlier program is gone; one that was left is killed once more.
    async fn gone(&self, session: SessionId, mut earlier: Earlier) -> Result<(), HostError> {
        let ended = timeout(self.0.bounds.end(), earlier.end.wait_for(Option::is_some)).await;
        let noted = match ended.map(|ended| ended.map(|end| end.clone())) {
            Ok(Ok(Some(End::Gone))) => return Ok(()),
            Ok(Ok(Some(End::Left(noted)))) => noted,
            // Its keeper was lost, or hangs: the mark tells what there is.
            _ => Vec::new(),
        };
        let mark = earlier.mark.clone();
        let killed = self.0.blocking(move || leftover::end(&mark, &noted)).await;
        killed.map_err(HostError::Unknown)??;
        {
            let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept
                .get(&session)
                .is_some_and(|kept| kept.mark == earlier.mark)
            {
                kept.remove(&session);
            }
        }
        self.0.clear(&earlier.mark).await;
        Ok(())
    }
}

/// An earlier program of a session.
struct Earlier {
    mark: String,
    end: watch::Receiver<Option<End>>,
}

impl Kept {
    fn is_gone(&self) -> bool {
        *self.end.borrow() == Some(End::Gone)
    }
}

impl Inner {
    /// Does what blocks on a thread for it.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let _turn = self.blocking.acquire().await.map_err(io::Error::other)?;
        tokio::task::spawn_blocking(work)
            .await
            .map_err(io::Error::other)
    }

    /// Removes what a program left that is gone, and then its note: who is killed between the two finds
    /// the note. A few names at a turn, and then the next one's: who left little waits for little.
    pub(super) async fn clear(&self, mark: &str) {
        let folder = leftover::folder_of(&self.place.temporary, mark);
        loop {
            let Ok(_turn) = self.clearing.acquire().await else {
                return;
            };
            let folder = folder.clone();
            let removed = move || leftover::remove_temporary(&folder, AT_A_TURN);
            match tokio::task::spawn_blocking(removed).await {
                Ok(Removed::Some) => {}
                Ok(Removed::All) => {
                    failpoint::reach("process_host::cleared");
                    return self.forget(mark);
                }
                // The next start tries once more.
                Ok(Removed::Never) | Err(_) => return,
            }
        }
    }

    /// Removes the note of what is gone. One that stays is looked at by the next start, for nothing.
    fn forget(&self, mark: &str) {
        if let Err(error) = self.notes.remove(mark) {
            tracing::warn!(%error, mark, "the note of a process that is gone stays");
        }
    }
}

/// What something is, whatever it is called.
type Identity = (u64, u64);

/// Whether a program's folder is apart from the server's data: neither lies in the other, whatever they
/// are called. Blocks.
///
/// # Errors
/// When they are not, or that cannot be told.
pub fn apart(folder: &Boundary, data_dir: &Path) -> Result<(), HostError> {
    let above_data = above(data_dir)?;
    let above_folder = ancestors(folder).map_err(HostError::Unknown)?;
    // Each is the first of those above it.
    let holds = above_folder
        .first()
        .is_some_and(|it| above_data.contains(it));
    let is_in = above_data
        .first()
        .is_some_and(|it| above_folder.contains(it));
    if holds || is_in {
        return Err(reaches(folder.path(), data_dir));
    }
    Ok(())
}

/// Whether none of these holds the server's data.
fn beside<'a>(paths: impl Iterator<Item = &'a Path>, data_dir: &Path) -> Result<(), HostError> {
    let above_data = above(data_dir)?;
    for path in paths {
        if identity(path).is_some_and(|it| above_data.contains(&it)) {
            return Err(reaches(path, data_dir));
        }
    }
    Ok(())
}

fn reaches(what: &Path, data_dir: &Path) -> HostError {
    HostError::Reaches {
        what: what.display().to_string(),
        data_dir: data_dir.to_owned(),
    }
}

fn above(data_dir: &Path) -> Result<Vec<Identity>, HostError> {
    let data = data_dir.canonicalize().map_err(HostError::Unknown)?;
    Ok(data.ancestors().filter_map(identity).collect())
}

fn identity(path: &Path) -> Option<Identity> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.dev(), about.ino()))
}

/// A folder and all above it, by its descriptor.
fn ancestors(folder: &Boundary) -> io::Result<Vec<Identity>> {
    use rustix::fs::{Mode, OFlags, openat};
    const MOST: usize = 256;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = openat(folder, ".", flags, Mode::empty())?;
    let mut found: Vec<Identity> = Vec::new();
    for _ in 0..MOST {
        let about = fstat(&at)?;
        let this = (about.st_dev, about.st_ino);
        // Above the root of all there is the root again.
        if found.last() == Some(&this) {
            return Ok(found);
        }
        found.push(this);
        at = openat(&at, "..", flags, Mode::empty())?;
    }
    Err(io::Error::other("it lies too deep"))
}
