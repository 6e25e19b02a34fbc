//! The core's time, chance and concurrency on tokio.
//!
//! What is inside: [`TokioClock`], [`OsEntropy`], [`SeededEntropy`], [`TokioSpawner`]. What must never
//! enter: anything that decides; a wait that tokio's paused clock does not govern.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::clock::{BoxFuture, Clock, Entropy, Spawner, TaskHandle};
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

/// Time that advances with tokio's clock, so that a test which pauses that clock owns this one too,
/// and that catches up with the wall clock where it is ahead: tokio's clock, the monotonic one,
/// stands still while the machine is suspended.
///
/// It never goes back and never stands still: a wall clock that somebody sets back is followed again
/// once it has caught up. One that is set forward takes this clock along, as a suspend does; the two
/// cannot be told apart. Waits are tokio's alone and follow neither.
#[derive(Clone)]
pub struct TokioClock {
    /// The wall clock; `None` where a test owns time.
    wall: Option<Arc<dyn Fn() -> Timestamp + Send + Sync>>,
    /// What was told last, and when.
    last: Arc<Mutex<(Timestamp, Instant)>>,
}

impl TokioClock {
    /// Follows the wall clock. One before 1970 counts as 1970.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place where time enters"
    )]
    pub fn start() -> Self {
        Self::following(|| {
            let wall = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            Timestamp::default().after(wall)
        })
    }

    /// Starts at a given wall time, for a test or a simulation whose records must replay.
    #[must_use]
    pub fn starting_at(wall: Timestamp) -> Self {
        Self {
            wall: None,
            last: Arc::new(Mutex::new((wall, present()))),
        }
    }

    fn following(wall: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            last: Arc::new(Mutex::new((wall(), present()))),
            wall: Some(Arc::new(wall)),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place where time enters"
)]
fn present() -> Instant {
    Instant::now()
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        // Nothing under the lock can panic and leave it half changed.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let present = present();
        let (told, at) = *last;
        let advanced = told.after(present.saturating_duration_since(at));
        let now = match &self.wall {
            Some(wall) => wall().max(advanced),
            None => advanced,
        };
        if now > told {
            // What is less than a millisecond is kept for the next time.
            let rest = present.saturating_duration_since(at).subsec_nanos() % 1_000_000;
            *last = (now, present - Duration::from_nanos(u64::from(rest)));
        }
        now
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep(delay))
    }
}

/// Random bits from a cryptographic generator that the operating system seeds.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn random(&self) -> u128 {
        rand::random()
    }
}

/// Random bits that a seed determines, for tests and simulations. Never for ids of a real server.
#[derive(Debug)]
pub struct SeededEntropy(Mutex<StdRng>);

impl SeededEntropy {
    /// The same seed gives the same bits in the same order.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }
}

impl Entropy for SeededEntropy {
    fn random(&self) -> u128 {
        // A draw cannot leave the generator half changed, so a poisoned lock is still good.
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .random()
    }
}

/// Starts tasks on a tokio runtime.
#[derive(Clone, Debug)]
pub struct TokioSpawner(Handle);

impl TokioSpawner {
    /// Starts tasks on the given runtime.
    #[must_use]
    pub fn new(runtime: Handle) -> Self {
        Self(runtime)
    }

    /// Starts tasks on the runtime that this is called in.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn current() -> Self {
        Self(Handle::current())
    }
}

impl Spawner for TokioSpawner {
    fn spawn(&self, name: &'static str, task: BoxFuture<()>) -> Box<dyn TaskHandle> {
        let span = tracing::debug_span!("task", name);
        let task = self.0.spawn(task.instrument(span));
        Box::new(TokioTask {
            name,
            task: AbortOnDropHandle::new(task),
        })
    }
}

/// A task that is cancelled when its handle is dropped.
struct TokioTask {
    name: &'static str,
    task: AbortOnDropHandle<()>,
}

#[async_trait]
impl TaskHandle for TokioTask {
    fn cancel(&self) {
        self.task.abort();
    }

    fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    async fn join(self: Box<Self>) {
        let Self { name, task } = *self;
        if let Err(error) = task.await
            && error.is_panic()
        {
            tracing::error!(task = name, %error, "a task panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_moves_only_as_the_test_moves_it() {
        let clock = TokioClock::starting_at(Timestamp::from_millis(1_000));
        assert_eq!(clock.now(), Timestamp::from_millis(1_000));
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.now(), Timestamp::from_millis(3_601_000));
        clock.sleep(Duration::from_millis(5)).await;
        assert!(clock.now() >= Timestamp::from_millis(3_601_005));
    }

    /// A suspended machine's monotonic clock stands still; its wall clock does not.
    #[tokio::test(start_paused = true)]
    async fn durable_times_catch_up_after_a_suspend_and_never_go_back() {
        let wall = Arc::new(Mutex::new(Timestamp::from_millis(1_000)));
        let set = |millis| *wall.lock().unwrap() = Timestamp::from_millis(millis);
        let clock = TokioClock::following({
            let wall = wall.clone();
            move || *wall.lock().unwrap()
        });
        assert_eq!(clock.now(), Timestamp::from_millis(1_000));
        set(7_201_000);
        assert_eq!(clock.now(), Timestamp::from_millis(7_201_000), "a suspend");
        set(5_000);
        assert_eq!(clock.now(), Timestamp::from_millis(7_201_000), "set back");
        for _ in 0..4 {
            tokio::time::advance(Duration::from_micros(500)).await;
            clock.now();
        }
        assert_eq!(clock.now(), Timestamp::from_millis(7_201_002), "it goes on");
        set(7_300_000);
        assert_eq!(clock.now(), Timestamp::from_millis(7_300_000), "caught up");
    }

    #[test]
    fn a_seed_replays_and_the_system_does_not() {
        let draw = |entropy: &dyn Entropy| [entropy.random(), entropy.random()];
        assert_eq!(draw(&SeededEntropy::new(7)), draw(&SeededEntropy::new(7)));
        assert_ne!(draw(&SeededEntropy::new(7)), draw(&SeededEntropy::new(8)));
        assert_ne!(draw(&OsEntropy), draw(&OsEntropy));
    }

    /// Sets its flag when the task that holds it ends, in whatever way.
    struct OnEnd(Arc<AtomicBool>);

    impl Drop for OnEnd {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn a_task_does_not_outlive_its_handle() {
        let ended = Arc::new(AtomicBool::new(false));
        let guard = OnEnd(ended.clone());
        let task = Box::pin(async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        });
        let handle = TokioSpawner::current().spawn("endless", task);
        assert!(!handle.is_finished());
        drop(handle);
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        assert!(ended.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn joining_waits_for_an_end_a_cancel_and_a_panic_alike() {
        let spawner = TokioSpawner::current();
        spawner.spawn("short", Box::pin(async {})).join().await;
        let endless = spawner.spawn("endless", Box::pin(std::future::pending()));
        endless.cancel();
        endless.join().await;
        let panics = spawner.spawn("panics", Box::pin(async { panic!("on purpose") }));
        panics.join().await;
    }
}
