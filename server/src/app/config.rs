//! What an operator may set for the application layer.

use std::time::Duration;

use sessionplane_core::domain::limits::Limits;

/// Bounds and delays of the application layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppConfig {
    /// Limits that the core applies.
    pub limits: Limits,
    /// Events that a session's ring retains at most.
    pub ring_events: usize,
    /// Bytes that a session's ring keeps alive at most, encodings included.
    pub ring_bytes: usize,
    /// Bytes that all rings together keep alive. When they would keep more, the largest give up
    /// their oldest events; only the newest event of each always stays.
    pub all_rings_bytes: usize,
    /// Bytes that the ring of a session without a task keeps: enough for who was away a moment.
    pub idle_ring_bytes: usize,
    /// Event channels of dormant sessions that stay in memory.
    pub idle_channels: usize,
    /// How long a session's task stays after its last activity.
    pub idle_ttl: Duration,
    /// Event streams that one session has at a time.
    pub max_observers: usize,
    /// Watches of the fleet at a time.
    pub max_watches: usize,
    /// Those of one principal.
    pub max_watches_per_principal: usize,
    /// How often an observer of a quiet session hears that it is alive.
    pub heartbeat: Duration,
    /// How long a request id stays bound after its acceptance, at least.
    pub binding_retention: Duration,
    /// How long an engine may take to open.
    pub engine_open_timeout: Duration,
    /// How long `GetState` waits for a position that has not been reached.
    pub position_wait: Duration,
    /// Changes of sessions that are kept for watchers of the fleet at most.
    pub fleet_changes: usize,
    /// How long a session that works shows nothing until it counts as stalled.
    pub stalled_after: Duration,
}

impl Default for AppConfig {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            ring_events: 16 * 1024,
            ring_bytes: 32 * 1024 * 1024,
            all_rings_bytes: 512 * 1024 * 1024,
            idle_ring_bytes: 32 * 1024,
            idle_channels: 4096,
            idle_ttl: Duration::from_secs(60),
            max_observers: 4096,
            max_watches: 1024,
            max_watches_per_principal: 256,
            heartbeat: Duration::from_secs(15),
            binding_retention: Duration::from_secs(24 * 60 * 60),
            engine_open_timeout: Duration::from_secs(30),
            position_wait: Duration::from_secs(1),
            fleet_changes: 32 * 1024,
            stalled_after: Duration::from_secs(5 * 60),
        }
    }
}
