//! One thread, virtual time, and an order of tasks that the seed draws: what the application's clock
//! and spawner are here.
//!
//! What is ready runs in the order in which it was woken, or now and then out of turn. Time moves
//! only when nothing is ready. A task belongs to a process; a process that is killed is never polled
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use async_trait::async_trait;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::clock::{BoxFuture, Clock, Spawner, TaskHandle};
use tokio_util::sync::CancellationToken;

use crate::rng::Rng;

/// The wall time of the world's beginning, in milliseconds.
const EPOCH: u64 = 1_700_000_000_000;
/// One wake-up in so many is served out of turn.
const OUT_OF_TURN: u64 = 3;

/// Whose a task is: the outside world's, or a start of the server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Process(pub(crate) u32);

/// Clients and whoever restarts the server.
pub(crate) const OUTSIDE: Process = Process(0);

/// Locks what no panic leaves half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The executor. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Executor(Arc<Mutex<State>>);

struct State {
    /// In microseconds.
    now: u64,
    rng: Rng,
    ready: Ready,
    tasks: BTreeMap<u64, Task>,
    timers: BTreeMap<(u64, u64), Waker>,
    dead: BTreeSet<Process>,
    next: u64,
}

struct Task {
    process: Process,
    /// None while it is polled.
    future: Option<BoxFuture<()>>,
    cancelled: bool,
    ended: CancellationToken,
    wake: Arc<TaskWake>,
}

/// Tasks that were woken. Those that one step woke come in the order of their numbers: tokio's
/// `watch` wakes its waiters in an order that it draws itself.
#[derive(Default)]
struct Woken {
    now: Vec<u64>,
    before: Vec<u64>,
}

type Ready = Arc<Mutex<Woken>>;

struct TaskWake {
    id: u64,
    queued: AtomicBool,
    ready: Ready,
}

impl Wake for TaskWake {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::SeqCst) {
            lock(&self.ready).now.push(self.id);
        }
    }
}

/// What a step came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stepped {
    /// A task was polled, or time moved on.
    On,
    /// Nothing is ready and nothing will ever be.
    Dead,
}

impl Executor {
    pub(crate) fn new(rng: Rng) -> Self {
        Self(Arc::new(Mutex::new(State {
            now: 0,
            rng,
            ready: Ready::default(),
            tasks: BTreeMap::new(),
            timers: BTreeMap::new(),
            dead: BTreeSet::new(),
            next: 1,
        })))
    }

    /// The virtual time since the world's beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_micros(lock(&self.0).now)
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clone())
    }

    pub(crate) fn spawner(&self, process: Process) -> Arc<dyn Spawner> {
        Arc::new(SpawnerOf {
            executor: self.clone(),
            process,
        })
    }

    /// Starts a task of the outside world, which runs to its own end.
    pub(crate) fn go(&self, task: impl Future<Output = ()> + Send + 'static) -> CancellationToken {
        let (_, ended) = self.start(OUTSIDE, Box::pin(task));
        ended
    }

    fn start(&self, process: Process, future: BoxFuture<()>) -> (u64, CancellationToken) {
        let ended = CancellationToken::new();
        let mut state = lock(&self.0);
        let id = state.next;
        state.next += 1;
        if state.dead.contains(&process) {
            drop(state);
            ended.cancel();
            return (id, ended);
        }
        let wake = Arc::new(TaskWake {
            id,
            queued: AtomicBool::new(false),
            ready: state.ready.clone(),
        });
        let task = Task {
            process,
            future: Some(future),
            cancelled: false,
            ended: ended.clone(),
            wake: wake.clone(),
        };
        state.tasks.insert(id, task);
        drop(state);
        wake.wake();
        (id, ended)
    }

    /// Drops every task of a process where it stands, and starts none any more.
    pub(crate) fn kill(&self, process: Process) {
        let mut state = lock(&self.0);
        state.dead.insert(process);
        let ids: Vec<u64> = state
            .tasks
            .iter()
            .filter(|(_, task)| task.process == process)
            .map(|(id, _)| *id)
            .collect();
        let dead: Vec<Task> = ids.iter().filter_map(|id| state.tasks.remove(id)).collect();
        drop(state);
        for task in &dead {
            task.ended.cancel();
        }
    }

    /// How many tasks of a process there are.
    pub(crate) fn tasks_of(&self, process: Process) -> usize {
        let state = lock(&self.0);
        let of = |task: &&Task| task.process == process;
        state.tasks.values().filter(of).count()
    }

    /// Polls one task, or moves the time to the next timer.
    pub(crate) fn step(&self) -> Stepped {
        let Some(id) = self.next_ready() else {
            return self.advance();
        };
        let (mut future, wake) = {
            let mut state = lock(&self.0);
            let Some(task) = state.tasks.get_mut(&id) else {
                return Stepped::On;
            };
            task.wake.queued.store(false, Ordering::SeqCst);
            match task.future.take() {
                Some(future) if !task.cancelled => (future, task.wake.clone()),
                future => {
                    let task = state.tasks.remove(&id);
                    drop(state);
                    drop(future);
                    task.inspect(|task| task.ended.cancel());
                    return Stepped::On;
                }
            }
        };
        let waker = Waker::from(wake);
        let ended = future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready();
        let mut state = lock(&self.0);
        let over = ended || state.tasks.get(&id).is_none_or(|task| task.cancelled);
        if over {
            let task = state.tasks.remove(&id);
            drop(state);
            drop(future);
            task.inspect(|task| task.ended.cancel());
        } else if let Some(task) = state.tasks.get_mut(&id) {
            task.future = Some(future);
        }
        Stepped::On
    }

    fn next_ready(&self) -> Option<u64> {
        let mut state = lock(&self.0);
        let ready = state.ready.clone();
        let mut ready = lock(&ready);
        let mut now = std::mem::take(&mut ready.now);
        now.sort_unstable();
        ready.before.extend(now);
        if ready.before.is_empty() {
            return None;
        }
        let out_of_turn = state.rng.one_in(OUT_OF_TURN);
        let at = if out_of_turn {
            state.rng.index(ready.before.len())
        } else {
            0
        };
        Some(ready.before.remove(at))
    }

    fn advance(&self) -> Stepped {
        let mut state = lock(&self.0);
        let Some((at, _)) = state.timers.keys().next().copied() else {
            return Stepped::Dead;
        };
        state.now = state.now.max(at);
        let later = state.timers.split_off(&(at + 1, 0));
        let due = std::mem::replace(&mut state.timers, later);
        drop(state);
        for waker in due.into_values() {
            waker.wake();
        }
        Stepped::On
    }

    /// Waits in the outside world.
    pub(crate) fn sleep(&self, delay: Duration) -> BoxFuture<()> {
        let mut state = lock(&self.0);
        let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX / 4);
        let number = state.next;
        state.next += 1;
        // Even the shortest wait lets others go first.
        let at = state.now.saturating_add(micros.max(1));
        drop(state);
        Box::pin(Sleep {
            executor: self.clone(),
            at,
            number,
        })
    }

    /// What a future comes to, unless that takes longer.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let sleep = self.sleep(limit);
        tokio::select! {
            biased;
            done = future => Some(done),
            () = sleep => None,
        }
    }
}

impl Clock for Executor {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(EPOCH + lock(&self.0).now / 1000)
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<()> {
        Self::sleep(self, delay)
    }
}

struct Sleep {
    executor: Executor,
    at: u64,
    number: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.executor.0);
        if state.now >= self.at {
            return Poll::Ready(());
        }
        state
            .timers
            .insert((self.at, self.number), cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let waker = lock(&self.executor.0)
            .timers
            .remove(&(self.at, self.number));
        drop(waker);
    }
}

struct SpawnerOf {
    executor: Executor,
    process: Process,
}

impl Spawner for SpawnerOf {
    fn spawn(&self, _name: &'static str, task: BoxFuture<()>) -> Box<dyn TaskHandle> {
        let (id, ended) = self.executor.start(self.process, task);
        Box::new(Handle {
            executor: self.executor.clone(),
            id,
            ended,
        })
    }
}

struct Handle {
    executor: Executor,
    id: u64,
    ended: CancellationToken,
}

#[async_trait]
impl TaskHandle for Handle {
    /// The task is dropped when its turn comes, like a runtime does it.
    fn cancel(&self) {
        let mut state = lock(&self.executor.0);
        let wake = state.tasks.get_mut(&self.id).map(|task| {
            task.cancelled = true;
            task.wake.clone()
        });
        drop(state);
        if let Some(wake) = wake {
            wake.wake();
        }
    }

    fn is_finished(&self) -> bool {
        self.ended.is_cancelled()
    }

    async fn join(self: Box<Self>) {
        self.ended.cancelled().await;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.cancel();
    }
}
