//! How long the steps of a stop may take: together never longer than the configuration says,
//! whatever hangs.
//!
//! What must never enter: what a step does.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::config::Settings;

/// The moment at which the process is gone at the latest.
pub(super) struct Ending {
    /// From the signal on, for everything.
    whole: Duration,
    /// Once the runs had their time, for all the rest.
    close: Duration,
    hard: OnceLock<Instant>,
}

impl Ending {
    pub(super) fn new(settings: &Settings) -> Self {
        let face = &settings.face;
        Self {
            whole: face.lame_duck + face.drain_within + settings.close_within,
            close: settings.close_within,
            hard: OnceLock::new(),
        }
    }

    /// The stop was asked for.
    pub(super) fn begin(&self) {
        // Whoever asks a second time changes nothing.
        self.hard.get_or_init(|| now() + self.whole);
    }

    /// The steps that are left once the face has stopped, which took its part.
    pub(super) fn rest(&self) -> Rest {
        let half = now() + self.close / 2;
        Rest {
            until: self.hard.get().map_or(half, |hard| half.min(*hard)),
        }
    }
}

/// What is left of a stop's time.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    until: Instant,
}

impl Rest {
    /// Does a step within its share of what is left, in tenths. None: it was not done in time.
    pub(super) async fn step<T>(self, tenths: u32, step: impl Future<Output = T>) -> Option<T> {
        let left = self.until.saturating_duration_since(now());
        timeout_at(now() + left * tenths / 10, step).await.ok()
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the process's own deadline; nothing durable depends on it"
)]
fn now() -> Instant {
    Instant::now()
}
