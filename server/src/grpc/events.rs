//! Events on the wire: each is encoded once, whatever the number of its observers, and its bytes
//! are what all of them receive.
//!
//! What must never enter: a decision about which events an observer gets.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes};
use futures_core::Stream;
use prost::Message;
use sessionplane::v1 as wire;
use sessionplane_core::domain::event::EventEnvelope;
use sessionplane_core::domain::limits::MAX_EVENT_BYTES;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, EncodeBuf, Encoder};
use tonic_prost::ProstCodec;
use tracing::Span;

use super::convert::{event, observe};
use super::status::status;
use crate::app::observation::{Observation, Observed};

/// What the face counts. Injected, so that whoever reads it need not know the face.
#[derive(Debug, Default)]
pub struct Metrics {
    /// `events_encoded_total`: events whose encoding was computed, not taken from another
    /// observer.
    pub events_encoded: AtomicU64,
}

/// An observation as encoded messages of type `EventsResponse`. It is ready for as long as the
/// observation is, so that the codec gathers a burst into one buffer.
pub(crate) struct EncodedEvents {
    observation: Observation,
    metrics: Arc<Metrics>,
    /// The call's.
    span: Span,
}

impl EncodedEvents {
    /// Encodes an observation that the present call has begun.
    pub(crate) fn new(observation: Observation, metrics: Arc<Metrics>) -> Self {
        Self {
            observation,
            metrics,
            span: Span::current(),
        }
    }

    fn encode(&self, observed: &Observed) -> Bytes {
        match observed {
            Observed::Event(published) => published.encoded(|envelope| {
                self.metrics.events_encoded.fetch_add(1, Ordering::Relaxed);
                encode_event(envelope)
            }),
            Observed::Other(item) => observe::item(item).encode_to_vec().into(),
        }
    }
}

impl Stream for EncodedEvents {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = ready!(self.observation.as_mut().poll_next(cx));
        Poll::Ready(item.map(|item| match item {
            Ok(observed) => Ok(self.encode(&observed)),
            Err(error) => Err(self.span.in_scope(|| status(error))),
        }))
    }
}

/// A whole `EventsResponse` that holds an event.
fn encode_event(envelope: &EventEnvelope) -> Bytes {
    let item = wire::events_response::Item::Event(event::envelope(envelope));
    let encoded = wire::EventsResponse { item: Some(item) }.encode_to_vec();
    debug_assert!(
        encoded.len() <= MAX_EVENT_BYTES,
        "a {} event has {} bytes",
        envelope.event.body.event_type(),
        encoded.len()
    );
    encoded.into()
}

/// Decodes `EventsRequest` and sends messages that are encoded already.
#[derive(Clone, Copy, Default)]
pub(crate) struct EventsCodec;

impl Codec for EventsCodec {
    type Encode = Bytes;
    type Decode = wire::EventsRequest;
    type Encoder = Verbatim;
    type Decoder = <ProstCodec<wire::EventsResponse, wire::EventsRequest> as Codec>::Decoder;

    fn encoder(&mut self) -> Verbatim {
        Verbatim
    }
    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<wire::EventsResponse, wire::EventsRequest>::default().decoder()
    }
}

/// Writes encoded messages as they are.
pub(crate) struct Verbatim;

impl Encoder for Verbatim {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(item.len());
        buffer.put(item);
        Ok(())
    }
    fn buffer_settings(&self) -> BufferSettings {
        // A stream that waits keeps its buffer, so it starts small; a burst is handed on in
        // pieces of two HTTP/2 frames.
        BufferSettings::new(1024, 32 * 1024)
    }
}

#[cfg(test)]
mod tests;
