//! Where the contract is tried: a server with its agents, and how to reach it.
//!
//! What is inside: the trait that a world implements, and the configuration that the suite runs
//! under. What must never enter: how a world is built, or a rule of the contract.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sessionplane_core::contract::{Agent, SessionControl};
use sessionplane_core::domain::limits::Limits;
use sessionplane_server::app::config::AppConfig;

/// Both planes of the contract on behalf of one principal.
pub(crate) trait Caller: Agent + SessionControl {}

impl<T: Agent + SessionControl> Caller for T {}

/// A running server with these agents: `scripted` (the default), `no-steering` (scripted, and says
/// that it takes neither steers nor follow-ups), `approvals-only` (scripted, and says that it can do
/// nothing but ask for approvals), `demo` (reads a folder), `hostile-0` to
/// `hostile-199`, `deaf` (says `half a sen` and then neither ends nor hears anything), `jammed` (asks
/// more than it could be told of, and takes no command) and `absent` (cannot be opened).
#[async_trait]
pub(crate) trait World: Send + Sync {
    /// The owner's handle on the server that runs now.
    fn caller(&self) -> Arc<dyn Caller>;
    /// The handle of a principal of another tenant, where the world has one.
    fn stranger(&self) -> Option<Arc<dyn Caller>>;
    /// A crash and a new start: tasks are gone, only what was synced is there. Streams and handles
    /// of before are dead.
    async fn restart(&self);
}

/// A world that knows one start of the server only, for callers that must not survive it.
pub(crate) struct Pinned(pub(crate) Arc<dyn Caller>);

#[async_trait]
impl World for Pinned {
    fn caller(&self) -> Arc<dyn Caller> {
        self.0.clone()
    }

    fn stranger(&self) -> Option<Arc<dyn Caller>> {
        None
    }

    async fn restart(&self) {
        panic!("this world ends with its server");
    }
}

/// Makes worlds.
#[async_trait]
pub(crate) trait Worlds: Send + Sync {
    /// A fresh, empty world under this configuration.
    async fn make(&self, config: AppConfig) -> Arc<dyn World>;
}

/// Delays short enough that no test waits long, and a ring that no test laps unless it wants to.
pub(crate) fn quick() -> AppConfig {
    AppConfig {
        limits: Limits {
            max_pending_inputs: 256,
            cancel_grace: Duration::from_millis(300),
            rejoin_grace: Duration::from_millis(300),
            abort_grace: Duration::from_millis(300),
        },
        // So short that a session's task also comes and goes between two calls.
        idle_ttl: Duration::from_millis(5),
        // A session that comes to rest so soon must not cut who is still reading its last events.
        idle_ring_bytes: AppConfig::default().ring_bytes,
        position_wait: Duration::from_millis(200),
        ..AppConfig::default()
    }
}

/// Says so many pieces of 16 KiB, one each millisecond or so: more than the buffers between a
/// server and a caller that does not read, and no faster than one that reads.
pub(crate) fn pieces(count: usize) -> String {
    "big 16KiB\nwait 1ms\n".repeat(count)
}

/// Like [`quick`], with a ring of so many events.
pub(crate) fn ring(events: usize) -> AppConfig {
    AppConfig {
        ring_events: events,
        ..quick()
    }
}
