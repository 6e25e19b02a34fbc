//! How long the steps of a stop may take: together never longer than the configuration says,
//! whatever hangs.
//!
//! What must never enter: what a step does.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::config::Settings;

/// What the process's own end may take beyond the last step. Then it is ended.
const ENDED_AFTER: Duration = Duration::from_millis(100);
/// How long the last line of the log may take: whoever reads it may have stopped to.
const TOLD_WITHIN: Duration = Duration::from_millis(40);

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
        self.hard.get_or_init(|| {
            end_after(self.whole + ENDED_AFTER);
            now() + self.whole
        });
    }

    /// The steps that are left once the face has stopped, which took its part.
    pub(super) fn rest(&self) -> Rest {
        let half = now() + self.close / 2;
        Rest {
            until: self.hard.get().map_or(half, |hard| half.min(*hard)),
        }
    }
}

/// Ends the process when its time is over, if it is still there: a runtime that is busy, or hangs,
/// cannot keep the thread that does so. It cuts nothing that the next start does not find as after a
/// crash: what was acknowledged is synced.
fn end_after(time: Duration) {
    let ending = move || {
        std::thread::sleep(time);
        end(0, || {
            tracing::error!(
                "the stop was not done in time, and the process ends; what was acknowledged is \
                 kept, and the next start settles what was cut"
            );
        });
    };
    if let Err(error) = spawn("hard-end", ending) {
        tracing::error!(%error, "nothing ends this process if its stop hangs");
    }
}

/// Ends the process with a last line in the log, if the log takes it.
pub fn end(status: i32, tell: impl FnOnce() + Send + 'static) -> ! {
    let (told, heard) = std::sync::mpsc::sync_channel(1);
    // On a thread of its own: who reads the log may not take it, and that must not matter.
    let tell = move || {
        tell();
        // Nobody listens any more if it took too long.
        let _ = told.send(());
    };
    if spawn("last-words", tell).is_ok() {
        // What was not told in time is not told.
        let _ = heard.recv_timeout(TOLD_WITHIN);
    }
    std::process::exit(status)
}

fn spawn(name: &str, thread: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(thread);
    thread.map(drop)
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
