//! Events as large as they may be.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::compaction::{CompactionOutcome, CompactionTrigger};
use sessionplane_core::domain::data::{
    Content, Data, DataPart, INLINE_DATA_BYTES, MAX_DATA_NAME_BYTES, MAX_DATA_PARTS,
    MAX_MEDIA_TYPE_BYTES, MAX_ON_FILE_BYTES,
};
use sessionplane_core::domain::entry::{Entry, EntryBody, PathMarks};
use sessionplane_core::domain::event::{EventBody, OutputChannel, PendingInput, QueueChange};
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

pub(super) const AT: Timestamp = Timestamp::from_millis(1_700_000_000_123);

pub(super) fn session() -> SessionId {
    SessionId::mint(AT, u128::MAX)
}

pub(super) fn run() -> RunId {
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

/// As many parts as may be, each with all that its sender may say of it.
fn largest_data() -> Option<Arc<Data>> {
    let half = INLINE_DATA_BYTES / MAX_DATA_PARTS / 2;
    let part = DataPart {
        name: "n".repeat(MAX_DATA_NAME_BYTES).into(),
        media_type: "t".repeat(MAX_MEDIA_TYPE_BYTES).into(),
        bytes: u64::MAX,
        sha256: Digest([0; 32]),
        content: Content::Cut {
            head: vec![b'h'; half].into(),
            tail: vec![b't'; half].into(),
            artifact: ArtifactRef {
                id: ArtifactId::from_bytes([0xff; 16]),
                bytes: u64::MAX,
                sha256: None,
            },
        },
    };
    let on_file = "o".repeat(MAX_ON_FILE_BYTES).into();
    Data::new(vec![part; MAX_DATA_PARTS], Some(on_file), u128::MAX).map(Arc::new)
}

fn largest_entries() -> [EntryBody; 6] {
    let text = long_text().text;
    [
        EntryBody::User {
            text: text.clone().into(),
            omitted_bytes: u64::MAX,
            origin: origin(),
            input: Some(input_id()),
            data: largest_data(),
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

pub(super) fn largest_bodies() -> Vec<EventBody> {
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
            renamed: Some(sessionplane_core::domain::ids::SessionName::parse(&"n".repeat(63)).ok()),
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
