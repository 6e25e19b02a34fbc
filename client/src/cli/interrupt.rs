//! Ctrl-C: told to whom it concerns, as often as it is pressed.

use std::future::pending;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Mutex;

/// A listener from its making on: a press that came before it was asked for is told then. A
/// command has one for all its life, so that no press falls between two.
pub(crate) struct Interrupts(Mutex<Option<Signal>>);

impl Interrupts {
    /// From now on Ctrl-C no longer ends the process by itself.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(signal(SignalKind::interrupt()).ok()))
    }

    /// Completes at the next Ctrl-C; never where the process cannot be told of one.
    pub(crate) async fn pressed(&self) {
        let told = match &mut *self.0.lock().await {
            Some(signal) => signal.recv().await,
            None => None,
        };
        if told.is_none() {
            pending::<()>().await;
        }
    }
}
