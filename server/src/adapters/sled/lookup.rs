//! Lookups of request ids: one for every mutating call, so they have a thread of their own.
//!
//! A blocking task for each of them cost more than the lookup: a thread to wake and another one to
//! wake back, each with a heap of its own. One thread takes what waits without sleeping in between.
//! Reads that may be long must never enter: whoever waits behind them is a caller's command.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{Builder, JoinHandle};

use sessionplane_core::domain::binding::{Binding, BindingKey};
use sessionplane_core::ports::repository::ReadError;
use tokio::sync::{mpsc, oneshot};

use super::reader::Reader;

type Found = Result<Option<Binding>, ReadError>;

/// The thread, and the queue before it. Dropping it waits for the lookup that is being made.
pub(super) struct Lookups {
    queue: Option<mpsc::Sender<(BindingKey, oneshot::Sender<Found>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Lookups {
    /// Starts the thread. At most `waiting` lookups wait; further callers wait to enter.
    pub(super) fn start(
        reader: Arc<RwLock<Option<Reader>>>,
        waiting: usize,
    ) -> std::io::Result<Self> {
        let (queue, mut lookups) = mpsc::channel::<(BindingKey, oneshot::Sender<Found>)>(waiting);
        let serve = move || {
            while let Some((key, done)) = lookups.blocking_recv() {
                // A caller that has gone away wants no answer.
                let _ = done.send(look_up(&reader, &key));
            }
        };
        let thread = Builder::new()
            .name("store-lookup".to_owned())
            .spawn(serve)?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// The binding under a key.
    pub(super) async fn binding(&self, key: BindingKey) -> Found {
        let closed = || ReadError::Store(super::store::CLOSED.to_owned());
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        let (done, found) = oneshot::channel();
        queue.send((key, done)).await.map_err(|_| closed())?;
        found.await.map_err(|_| closed())?
    }
}

impl Drop for Lookups {
    fn drop(&mut self) {
        self.queue = None;
        // It does not panic: what sled throws is caught for each lookup.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn look_up(reader: &RwLock<Option<Reader>>, key: &BindingKey) -> Found {
    let reader = reader.read().unwrap_or_else(PoisonError::into_inner);
    let Some(reader) = reader.as_ref() else {
        return Err(ReadError::Store(super::store::CLOSED.to_owned()));
    };
    // sled panics on some damage.
    catch_unwind(AssertUnwindSafe(|| reader.binding(key)))
        .unwrap_or_else(|_| Err(ReadError::Store(super::store::PANICKED.to_owned())))
}
