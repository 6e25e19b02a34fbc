//! Time, chance and concurrency, as things that a test or a simulation owns.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::domain::time::Timestamp;

/// A future without a name.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// Reads the time and waits.
pub trait Clock: Send + Sync {
    /// The time now. Wall time, for records. It may jump: nothing that must happen may depend on how
    /// much of it has passed, only how often ephemeral progress is shown.
    fn now(&self) -> Timestamp;
    /// Completes after `delay` of monotonic time.
    fn sleep(&self, delay: Duration) -> BoxFuture<()>;
}

/// Draws random bits.
pub trait Entropy: Send + Sync {
    /// 128 random bits.
    fn random(&self) -> u128;
}

/// Starts tasks whose owner can wait for them and cancel them.
pub trait Spawner: Send + Sync {
    /// Starts `task`. `name` says what it is for in traces.
    fn spawn(&self, name: &'static str, task: BoxFuture<()>) -> Box<dyn TaskHandle>;
}

/// A started task. Dropping the handle cancels the task: no task outlives its owner.
#[async_trait::async_trait]
pub trait TaskHandle: Send + Sync {
    /// Asks the task to end at its next suspension point.
    fn cancel(&self);
    /// Whether the task has ended.
    fn is_finished(&self) -> bool;
    /// Waits until the task has ended, in whatever way.
    async fn join(self: Box<Self>);
}
