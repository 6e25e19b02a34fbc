//! The largest events, what is encoded how often, and how bursts leave.
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Buf;
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use prost_types::FileDescriptorSet;
use sessionplane_core::contract::EventItem;
use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::compaction::{CompactionOutcome, CompactionTrigger};
use sessionplane_core::domain::entry::{Entry, EntryBody, PathMarks};
use sessionplane_core::domain::event::{
    Event, EventBody, OutputChannel, PendingInput, QueueChange,
};
use sessionplane_core::domain::ids::{
    AgentName, ArtifactId, EntryId, InputId, InteractionId, PrincipalId, RequestId, RunId,
    SessionId,
};
use sessionplane_core::domain::input::{DiscardCause, InputKind, UndeliveredInput};
use sessionplane_core::domain::interaction::{
    Choice, FieldKind, FormField, Interaction, InteractionAnswer, Question, Resolution,
    ResolutionCause, Shape,
};
use sessionplane_core::domain::limits::{
    Limits, MAX_ANSWER_BYTES, MAX_CHOICES, MAX_DETAIL_BYTES, MAX_EVENT_TEXT_BYTES, MAX_FIELDS,
    MAX_LABEL_BYTES, MAX_PREVIEW_BYTES, MAX_QUESTION_BYTES,
};
use sessionplane_core::domain::provenance::{Channel, Digest, Origin, Trust};
use sessionplane_core::domain::run::{Failure, RunOutcome, RunRecord, RunSettings, Settlement};
use sessionplane_core::domain::settings::{Resolved, SettingsOverride};
use sessionplane_core::domain::text::BoundedText;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;
use tonic::codec::{EncodeBody, SingleMessageCompressionOverride};

use super::*;
use crate::app::observation::Published;

const AT: Timestamp = Timestamp::from_millis(1_700_000_000_123);

fn session() -> SessionId {
    SessionId::mint(AT, u128::MAX)
}
fn run() -> RunId {
    RunId::mint(AT, u128::MAX)
}
fn entry_id() -> EntryId {
    EntryId {
        session: session(),
        seq: u64::MAX,
    }
}
fn input_id() -> InputId {
    InputId {
        run: run(),
        ordinal: u32::MAX,
    }
}
fn label() -> String {
    "l".repeat(MAX_LABEL_BYTES)
}
fn long_text() -> BoundedText {
    BoundedText {
        text: "t".repeat(MAX_EVENT_TEXT_BYTES),
        omitted_bytes: u64::MAX,
    }
}
fn origin() -> Origin {
    Origin {
        principal: PrincipalId::parse(&"p".repeat(PrincipalId::MAX_BYTES)).unwrap(),
        kind: PrincipalKind::Agent,
        channel: Channel::FollowUp,
        trust: Trust::Untrusted,
        digest: Digest([0xff; 32]),
        request_id: Some(RequestId::parse(&"r".repeat(RequestId::MAX_BYTES)).unwrap()),
    }
}
fn usage() -> Usage {
    Usage {
        input_tokens: Some(u64::MAX),
        output_tokens: Some(u64::MAX),
        cached_tokens: Some(u64::MAX),
        cost_usd: Some(f64::MAX),
    }
}
fn settings() -> RunSettings {
    RunSettings {
        model: Some(label()),
        thinking_level: Some(label()),
    }
}
fn agent() -> AgentName {
    AgentName::parse(&"a".repeat(AgentName::MAX_BYTES)).unwrap()
}

fn largest_run() -> RunRecord {
    let failure = Failure {
        code: label(),
        details: "d".repeat(MAX_DETAIL_BYTES),
        retryable: true,
    };
    let undelivered = UndeliveredInput {
        id: input_id(),
        kind: InputKind::FollowUp,
        cause: DiscardCause::Lost,
        text: None,
    };
    RunRecord {
        id: run(),
        session: session(),
        agent: agent(),
        request_id: origin().request_id,
        origin: origin(),
        started_at: AT,
        first_entry: entry_id(),
        final_entry: Some(entry_id()),
        usage: usage(),
        undelivered: vec![undelivered; Limits::default().max_pending_inputs],
        settings: settings(),
        abort_requested: true,
        settled: Some(Settlement {
            at: AT,
            outcome: RunOutcome::Failed(failure),
        }),
    }
}

fn largest_entries() -> [EntryBody; 6] {
    let text = long_text().text;
    [
        EntryBody::User {
            text: text.clone().into(),
            omitted_bytes: u64::MAX,
            origin: origin(),
            input: Some(input_id()),
        },
        EntryBody::Assistant {
            message: label(),
            model: Some(label()),
            text: long_text(),
            thinking: long_text(),
            partial: true,
            usage: usage(),
        },
        EntryBody::Tool {
            call_id: label(),
            name: label(),
            input_json: long_text(),
            output: long_text(),
            failed: true,
            artifact: Some(artifact()),
        },
        EntryBody::Settings {
            chosen: SettingsOverride {
                model: Some(label()),
                thinking_level: Some(label()),
            },
        },
        EntryBody::Compaction {
            summary: long_text(),
            first_kept: Some(entry_id()),
            tokens_before: Some(u64::MAX),
            tokens_after: Some(u64::MAX),
            trigger: CompactionTrigger::Overflow,
        },
        EntryBody::Notice {
            code: label(),
            text,
        },
    ]
}

fn artifact() -> ArtifactRef {
    ArtifactRef {
        id: ArtifactId::mint(AT, 3),
        bytes: u64::MAX,
        sha256: Some(Digest([0xff; 32])),
    }
}

fn question_id() -> InteractionId {
    InteractionId {
        run: run(),
        ordinal: u32::MAX,
    }
}

/// As many fields and choices as there may be, and texts as long as they may be together. What is
/// asked has no end yet; its default may be as long as an answer.
fn largest_question() -> Interaction {
    let choice = |number: usize| Choice {
        id: format!("{number:x}"),
        label: String::new(),
    };
    let field = |number: usize| FormField {
        name: format!("{number:x}"),
        label: String::new(),
        kind: FieldKind::Select((0..MAX_CHOICES).map(choice).collect()),
        required: true,
    };
    let mut fields: Vec<_> = (0..MAX_FIELDS).map(field).collect();
    let mut answers: BTreeMap<_, _> = fields
        .iter()
        .map(|field| (field.name.clone(), "0".to_owned()))
        .collect();
    // One takes any text, so that the default can be long.
    let long = &mut fields[0];
    let weight = |(name, text): (&String, &String)| name.len() + text.len();
    let others: usize = answers.iter().map(weight).sum();
    let rest = "a".repeat(MAX_ANSWER_BYTES - others + 1);
    answers.insert(long.name.clone(), rest);
    long.kind = FieldKind::Text;
    let mut question = Question {
        title: "t".repeat(MAX_DETAIL_BYTES),
        details: String::new(),
        shape: Shape::Form(fields),
        default: Some(InteractionAnswer::Fields(answers)),
    };
    question.details = "d".repeat(MAX_QUESTION_BYTES - question.weight());
    assert!(question.is_sound());
    Interaction {
        id: question_id(),
        question,
        asked_at: AT,
        deadline: Some(AT),
        resolution: None,
    }
}

fn largest_answer() -> Resolution {
    Resolution {
        at: AT,
        cause: ResolutionCause::EngineGone,
        answer: Some(InteractionAnswer::Text("a".repeat(MAX_ANSWER_BYTES))),
        origin: Some(origin()),
    }
}

fn largest_bodies() -> Vec<EventBody> {
    let entries = largest_entries().map(|body| {
        let (id, parent) = (entry_id(), Some(entry_id()));
        EventBody::EntryAppended {
            entry: Box::new(Entry {
                id,
                parent,
                run: Some(run()),
                at: AT,
                path: PathMarks::default(),
                body,
            }),
        }
    });
    let others = [
        &of_runs()[..],
        &of_output(),
        &of_the_rest(),
        &between_runs(),
    ]
    .concat();
    others.into_iter().chain(entries).collect()
}

fn of_runs() -> [EventBody; 8] {
    [
        EventBody::RunStarted {
            origin: origin(),
            entry: entry_id(),
            agent: agent(),
            settings: settings(),
        },
        EventBody::RunSettled {
            run: Box::new(largest_run()),
        },
        EventBody::TurnStarted { turn: u32::MAX },
        EventBody::TurnFinished { turn: u32::MAX },
        EventBody::MessageStarted { message: label() },
        EventBody::MessageFinished { message: label() },
        EventBody::InputDelivered {
            input: input_id(),
            entry: entry_id(),
        },
        EventBody::InputDiscarded {
            input: input_id(),
            cause: DiscardCause::Interrupted,
        },
    ]
}

fn of_output() -> [EventBody; 4] {
    [
        EventBody::MessageDelta {
            message: label(),
            channel: OutputChannel::Thinking,
            text: long_text().text.into(),
        },
        EventBody::ToolStarted {
            call: label(),
            name: label(),
            input_json: long_text(),
        },
        EventBody::ToolProgress {
            call: label(),
            output: long_text(),
        },
        EventBody::ToolFinished {
            call: label(),
            failed: true,
            output: long_text(),
            artifact: Some(artifact()),
        },
    ]
}

fn of_the_rest() -> [EventBody; 4] {
    let added = QueueChange::Added(Box::new(PendingInput {
        id: input_id(),
        kind: InputKind::FollowUp,
        preview: "p".repeat(MAX_PREVIEW_BYTES),
        bytes: u64::MAX,
        origin: origin(),
        handed: true,
    }));
    [
        EventBody::QueueChanged {
            change: added,
            depth: u32::MAX,
        },
        EventBody::RetryScheduled {
            attempt: u32::MAX,
            max_attempts: u32::MAX,
            delay: Duration::MAX,
            reason: "r".repeat(MAX_DETAIL_BYTES),
        },
        EventBody::UsageUpdated {
            usage: usage(),
            session: usage(),
        },
        EventBody::ServingError {
            reason: "r".repeat(MAX_DETAIL_BYTES),
        },
    ]
}

fn between_runs() -> [EventBody; 5] {
    [
        EventBody::CompactionStarted {
            trigger: CompactionTrigger::Overflow,
        },
        EventBody::CompactionFinished {
            outcome: CompactionOutcome::Failed(Failure {
                code: label(),
                details: "d".repeat(MAX_DETAIL_BYTES),
                retryable: true,
            }),
        },
        EventBody::StateChanged {
            leaf: Some(entry_id()),
            chosen: SettingsOverride {
                model: Some(label()),
                thinking_level: Some(label()),
            },
            resolved: Resolved {
                settings: settings(),
                available_levels: vec![label(); 32],
            },
        },
        EventBody::InteractionRequested {
            interaction: Box::new(largest_question()),
        },
        EventBody::InteractionResolved {
            id: question_id(),
            resolution: Box::new(largest_answer()),
        },
    ]
}

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
