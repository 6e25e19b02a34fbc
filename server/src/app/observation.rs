//! What an observer's stream yields inside the server: events shared by all observers, encoded at
//! most once each, whatever the number of observers and faces.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_core::Stream;
use sessionplane_core::contract::EventItem;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::event::EventEnvelope;

/// An event as the hub retains it: the envelope, and its encoding once a face has asked for it.
#[derive(Debug)]
pub struct Published {
    envelope: EventEnvelope,
    encoded: OnceLock<Bytes>,
}

impl Published {
    /// Wraps an event that has been numbered.
    #[must_use]
    pub fn new(envelope: EventEnvelope) -> Self {
        Self {
            envelope,
            encoded: OnceLock::new(),
        }
    }
    /// The event.
    #[must_use]
    pub fn envelope(&self) -> &EventEnvelope {
        &self.envelope
    }
    /// The event's encoding. `encode` runs for the first caller only; all others share its bytes.
    pub fn encoded(&self, encode: impl FnOnce(&EventEnvelope) -> Bytes) -> Bytes {
        self.encoded.get_or_init(|| encode(&self.envelope)).clone()
    }
}

/// One item of an observer's stream.
#[derive(Debug, Clone)]
pub enum Observed {
    /// A live event, shared.
    Event(Arc<Published>),
    /// Everything else of the stream. Never [`EventItem::Event`].
    ///
    /// Boxed, because items are moved often and events are what there are many of.
    Other(Box<EventItem>),
}

/// An observer's stream. It ends with an error, never with silence: a stream never lies about loss.
pub type Observation = Pin<Box<dyn Stream<Item = Result<Observed, CallError>> + Send>>;
