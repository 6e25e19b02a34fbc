//! The largest events, what is encoded how often, and how bursts leave.

use std::collections::BTreeSet;

use bytes::Buf;
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use prost_types::FileDescriptorSet;
use sessionplane_core::contract::EventItem;
use sessionplane_core::domain::event::{Event, EventBody, OutputChannel};
use tonic::codec::{EncodeBody, SingleMessageCompressionOverride};

use super::*;
use crate::app::observation::Published;
use largest::{AT, largest_bodies, run, session};

mod largest;

fn numbered(seq: u64, body: EventBody) -> EventEnvelope {
    let event = Event {
        at: AT,
        run: Some(run()),
        body,
    };
    EventEnvelope {
        session: session(),
        epoch: u64::MAX,
        seq,
        event,
    }
}

fn observed(seq: u64) -> Observed {
    let body = EventBody::MessageDelta {
        message: "m".into(),
        channel: OutputChannel::Text,
        text: "a piece of text".into(),
    };
    Observed::Event(Arc::new(Published::new(numbered(seq, body))))
}

/// The names of the payloads that an event can have, by its descriptor.
fn payloads() -> BTreeSet<String> {
    let set = FileDescriptorSet::decode(sessionplane::FILE_DESCRIPTOR_SET).unwrap();
    let mut messages = set.file.iter().flat_map(|file| &file.message_type);
    let event = messages
        .find(|message| message.name() == "SessionEvent")
        .unwrap();
    let payloads = event
        .field
        .iter()
        .filter(|field| field.oneof_index.is_some());
    payloads.map(|field| field.name().to_owned()).collect()
}

#[test]
fn c34_every_type_of_event_is_among_the_largest() {
    let bodies = largest_bodies();
    let types = bodies.iter().map(|body| body.event_type().to_owned());
    assert_eq!(types.collect::<BTreeSet<_>>(), payloads());
}

#[test]
fn c30_the_largest_event_of_every_type_fits_64_kib() {
    for body in largest_bodies() {
        let kind = body.event_type();
        let encoded = encode_event(&numbered(u64::MAX, body));
        assert!(
            encoded.len() <= MAX_EVENT_BYTES,
            "{kind}: {} bytes",
            encoded.len()
        );
    }
}

#[test]
fn c34_the_type_beside_the_payload_is_the_name_of_the_payload() {
    for body in largest_bodies() {
        let kind = body.event_type();
        let wire = event::envelope(&numbered(1, body)).event.unwrap();
        assert_eq!(wire.r#type, kind);
        let debug = format!("{:?}", wire.payload.unwrap());
        let variant = debug.split('(').next().unwrap().to_ascii_lowercase();
        assert_eq!(variant, kind.replace('_', ""));
    }
}

#[tokio::test]
async fn events_that_are_ready_together_leave_in_one_frame_and_a_wait_holds_none_back() {
    let (wake, woken) = tokio::sync::oneshot::channel::<()>();
    let burst = stream::iter((1..=64).map(|seq| Ok(observed(seq))));
    let later = stream::once(async move {
        woken.await.unwrap();
        Ok(observed(65))
    });
    let metrics = Arc::new(Metrics::default());
    let events = EncodedEvents::new(Box::pin(burst.chain(later)), metrics.clone());
    let mut body = std::pin::pin!(EncodeBody::new_server(
        Verbatim,
        events,
        None,
        SingleMessageCompressionOverride::default(),
        None,
    ));
    let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(messages(frame).len(), 64);
    wake.send(()).unwrap();
    let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(messages(frame).len(), 1);
    assert_eq!(metrics.events_encoded.load(Ordering::Relaxed), 65);
}

#[tokio::test]
async fn c29_a_backfill_from_the_start_is_told_to_its_reader() {
    for told in [true, false] {
        let page = EventItem::Entries {
            entries: Vec::new(),
            full_backfill: told,
        };
        let observation = stream::iter([Ok(Observed::Other(Box::new(page)))]);
        let mut events = EncodedEvents::new(Box::pin(observation), Arc::default());
        let item = events.next().await.unwrap().unwrap();
        match wire::EventsResponse::decode(item).unwrap().item {
            Some(wire::events_response::Item::Entries(page)) => {
                assert_eq!(page.full_backfill, told);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The messages in a piece of a gRPC body.
fn messages(mut data: Bytes) -> Vec<Bytes> {
    let mut messages = Vec::new();
    while !data.is_empty() {
        let mut head = data.split_to(5);
        assert_eq!(head.get_u8(), 0, "uncompressed");
        messages.push(data.split_to(head.get_u32() as usize));
    }
    messages
}
