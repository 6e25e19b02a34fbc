//! Messages as a server would send them.

use std::collections::HashMap;

use sessionplane::v1::{
    self, dispatch_response, entry, events_response::Item, invoke_event, session_event,
};
use sessionplane_client::domain::ids::{SessionName, SessionRef};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

pub(crate) const SESSION: &str = "01K00000000000000000000001";
pub(crate) const RUN: &str = "01K00000000000000000000002";
const EPOCH: u64 = 3;

pub(crate) fn docs() -> SessionRef {
    SessionRef::Name(SessionName::parse("docs").unwrap())
}

/// A status with our `ErrorInfo`.
pub(crate) fn ours(code: Code, reason: &str, outcome: &str) -> Status {
    let metadata = HashMap::from([("outcome".to_owned(), outcome.to_owned())]);
    let details = ErrorDetails::with_error_info(reason, "sessionplane", metadata);
    Status::with_error_details(code, format!("because of {reason}"), details)
}

/// A refusal that names a field.
pub(crate) fn about(code: Code, reason: &str, field: &str, words: &str) -> Status {
    let metadata = HashMap::from([("outcome".to_owned(), "refused".to_owned())]);
    let mut details = ErrorDetails::with_error_info(reason, "sessionplane", metadata);
    details.add_bad_request_violation(field, words);
    Status::with_error_details(code, words, details)
}

pub(crate) fn time(seconds: i64) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds, nanos: 0 }
}

pub(crate) fn position(seq: u64) -> v1::Position {
    v1::Position { epoch: EPOCH, seq }
}

pub(crate) fn entry_id(seq: u64) -> String {
    format!("{SESSION}-{seq}")
}

pub(crate) fn origin() -> v1::Origin {
    v1::Origin {
        principal_id: "ada".to_owned(),
        kind: v1::PrincipalKind::Human.into(),
        channel: v1::OriginChannel::Invoke.into(),
        trust: v1::Trust::Typed.into(),
        digest: "ab".repeat(32),
        request_id: "r-1".to_owned(),
    }
}

pub(crate) fn settled(outcome: v1::RunOutcome, code: &str) -> v1::RunRecord {
    v1::RunRecord {
        run_id: RUN.to_owned(),
        session_id: SESSION.to_owned(),
        request_id: "r-1".to_owned(),
        origin: Some(origin()),
        started_at: Some(time(1_767_225_600)),
        settled_at: Some(time(1_767_225_612)),
        outcome: outcome.into(),
        code: code.to_owned(),
        details: String::new(),
        retryable: false,
        first_entry_id: entry_id(1),
        final_entry_id: entry_id(2),
        usage: Some(v1::Usage {
            input_tokens: Some(1200),
            output_tokens: Some(34),
            ..v1::Usage::default()
        }),
        undelivered: Vec::new(),
        model: "m1".to_owned(),
        thinking_level: "high".to_owned(),
        agent: "demo".to_owned(),
    }
}

/// A run that a crash cut, with an input that never reached the model.
pub(crate) fn interrupted() -> v1::RunRecord {
    v1::RunRecord {
        details: "the server stopped".to_owned(),
        undelivered: vec![v1::UndeliveredInput {
            input_id: format!("{RUN}-i1"),
            kind: v1::InputKind::Steer.into(),
            cause: v1::DiscardCause::Interrupted.into(),
            text: "use tabs\nnot spaces".to_owned(),
        }],
        ..settled(v1::RunOutcome::Failed, "interrupted")
    }
}

pub(crate) fn message_started(seq: u64, message: &str) -> v1::EventsResponse {
    let message_id = message.to_owned();
    let started = v1::MessageStarted { message_id };
    event(seq, session_event::Payload::MessageStarted(started))
}

pub(crate) fn delta(seq: u64, message: &str, text: &str) -> v1::EventsResponse {
    let delta = v1::MessageDelta {
        message_id: message.to_owned(),
        channel: v1::DeltaChannel::Text.into(),
        text: text.to_owned(),
    };
    event(seq, session_event::Payload::MessageDelta(delta))
}

pub(crate) fn progress(seq: u64, output: &str) -> v1::EventsResponse {
    let progress = v1::ToolProgress {
        tool_call_id: "t-1".to_owned(),
        text: output.to_owned(),
        omitted_bytes: 0,
    };
    event(seq, session_event::Payload::ToolProgress(progress))
}

pub(crate) fn tool_entry(seq: u64, output: &str) -> v1::Entry {
    v1::Entry {
        kind: "tool".to_owned(),
        body: Some(entry::Body::Tool(v1::ToolEntry {
            tool_call_id: "t-1".to_owned(),
            name: "sh".to_owned(),
            input_json: "{}".to_owned(),
            output: output.to_owned(),
            ..v1::ToolEntry::default()
        })),
        ..user_entry(seq, "")
    }
}

pub(crate) fn capabilities() -> v1::Capabilities {
    v1::Capabilities {
        steering: Some(v1::Steering {
            after_tools: true,
            preempts_text: false,
        }),
        follow_up: true,
        tool_progress: true,
        usage: false,
        manual_compaction: true,
        model_selection: true,
        thinking: true,
        navigate: false,
        interactions: vec![
            v1::InteractionKind::Approval.into(),
            v1::InteractionKind::Form.into(),
        ],
        sandbox: v1::SandboxLevel::Confined.into(),
        models: vec![
            v1::Model {
                spec: "swift".to_owned(),
                thinking_levels: Vec::new(),
                default_level: String::new(),
            },
            v1::Model {
                spec: "deep".to_owned(),
                thinking_levels: vec!["low".to_owned(), "high".to_owned()],
                default_level: "high".to_owned(),
            },
        ],
        default_model: "deep".to_owned(),
        default_thinking_level: String::new(),
        commands: vec!["steer".to_owned(), "abort".to_owned(), "dance".to_owned()],
        request_binding_retention: Some(prost_types::Duration {
            seconds: 86_400,
            nanos: 0,
        }),
    }
}

/// One of two pages of what a composer may offer.
pub(crate) fn offers(page: usize) -> v1::ListCommandsResponse {
    let offer = |name: &str, description: &str, target: v1::CommandTarget| v1::OfferedCommand {
        name: name.to_owned(),
        description: description.to_owned(),
        target: target.into(),
    };
    let first = page % 2 == 1;
    v1::ListCommandsResponse {
        commands: if first {
            vec![
                offer("abort", "Stops the run.", v1::CommandTarget::Dispatch),
                offer("dance", "Unheard of.", v1::CommandTarget::Dispatch),
            ]
        } else {
            vec![offer(
                "recall",
                "Tells what it knows.",
                v1::CommandTarget::Prompt,
            )]
        },
        next_page_token: if first { "more" } else { "" }.to_owned(),
    }
}

pub(crate) fn user_entry(seq: u64, text: &str) -> v1::Entry {
    v1::Entry {
        id: entry_id(seq),
        parent_id: if seq > 1 {
            entry_id(seq - 1)
        } else {
            String::new()
        },
        run_id: RUN.to_owned(),
        created_at: Some(time(1_767_225_600)),
        kind: "user".to_owned(),
        body: Some(entry::Body::User(v1::UserEntry {
            text: text.to_owned(),
            origin: Some(origin()),
            ..v1::UserEntry::default()
        })),
    }
}

pub(crate) fn assistant_entry(seq: u64, message: &str, text: &str) -> v1::Entry {
    v1::Entry {
        id: entry_id(seq),
        parent_id: entry_id(seq - 1),
        kind: "assistant".to_owned(),
        body: Some(entry::Body::Assistant(v1::AssistantEntry {
            text: text.to_owned(),
            message_id: message.to_owned(),
            model: "m1".to_owned(),
            ..v1::AssistantEntry::default()
        })),
        ..user_entry(seq, "")
    }
}

pub(crate) fn state(running: bool) -> v1::SessionState {
    let status = if running {
        v1::SessionStatus::Running
    } else {
        v1::SessionStatus::Idle
    };
    v1::SessionState {
        sandbox: v1::SandboxLevel::Confined.into(),
        session_id: SESSION.to_owned(),
        name: "docs".to_owned(),
        agent: "demo".to_owned(),
        status: status.into(),
        active_run_id: if running { RUN } else { "" }.to_owned(),
        model: "m1".to_owned(),
        entry_count: 2,
        leaf_entry_id: entry_id(2),
        position: Some(position(5)),
        ..v1::SessionState::default()
    }
}

pub(crate) fn state_answer(state: v1::SessionState) -> v1::GetStateResponse {
    v1::GetStateResponse { state: Some(state) }
}

fn item(item: Item) -> v1::EventsResponse {
    v1::EventsResponse { item: Some(item) }
}

pub(crate) fn subscribed(resumed: bool, gap: bool) -> v1::EventsResponse {
    item(Item::Subscribed(v1::Subscribed {
        session_id: SESSION.to_owned(),
        epoch: EPOCH,
        resumed,
        gap,
        heartbeat_interval: None,
    }))
}

pub(crate) fn entries(entries: Vec<v1::Entry>) -> v1::EventsResponse {
    item(Item::Entries(v1::EntriesPage {
        entries,
        full_backfill: false,
    }))
}

/// The first page of all entries, where the cursor was unknown.
pub(crate) fn entries_anew(entries: Vec<v1::Entry>) -> v1::EventsResponse {
    item(Item::Entries(v1::EntriesPage {
        entries,
        full_backfill: true,
    }))
}

pub(crate) fn snapshot(seq: u64, running: bool) -> v1::EventsResponse {
    let state = v1::SessionState {
        position: Some(position(seq)),
        ..state(running)
    };
    snapshot_of(state)
}

pub(crate) fn snapshot_of(state: v1::SessionState) -> v1::EventsResponse {
    item(Item::Snapshot(v1::Snapshot {
        leaf_entry_id: state.leaf_entry_id.clone(),
        position: state.position,
        state: Some(state),
    }))
}

pub(crate) fn event(seq: u64, payload: session_event::Payload) -> v1::EventsResponse {
    envelope(seq, RUN, Some(payload))
}

/// An event of no run.
pub(crate) fn between_runs(seq: u64, payload: session_event::Payload) -> v1::EventsResponse {
    envelope(seq, "", Some(payload))
}

/// An event of a type that no client knows yet.
pub(crate) fn future_event(seq: u64) -> v1::EventsResponse {
    envelope(seq, RUN, None)
}

fn envelope(seq: u64, run: &str, payload: Option<session_event::Payload>) -> v1::EventsResponse {
    item(Item::Event(v1::SessionEventEnvelope {
        session_id: SESSION.to_owned(),
        epoch: EPOCH,
        seq,
        event: Some(v1::SessionEvent {
            r#type: "weather_changed".to_owned(),
            time: Some(time(1_767_225_600)),
            run_id: run.to_owned(),
            payload,
        }),
    }))
}

pub(crate) fn heartbeat(seq: u64) -> v1::EventsResponse {
    item(Item::Heartbeat(v1::Heartbeat {
        position: Some(position(seq)),
    }))
}

pub(crate) fn turn(seq: u64) -> v1::EventsResponse {
    let turn = u32::try_from(seq).unwrap();
    let started = v1::TurnStarted { turn };
    event(seq, session_event::Payload::TurnStarted(started))
}

pub(crate) fn appended(seq: u64, entry: v1::Entry) -> v1::EventsResponse {
    let appended = v1::EntryAppended { entry: Some(entry) };
    event(seq, session_event::Payload::EntryAppended(appended))
}

pub(crate) fn invoked(event: invoke_event::Event) -> v1::InvokeResponse {
    v1::InvokeResponse {
        event: Some(v1::InvokeEvent { event: Some(event) }),
    }
}

pub(crate) fn accepted(joined: bool) -> v1::InvokeResponse {
    invoked(invoke_event::Event::Accepted(v1::InvokeAccepted {
        session_id: SESSION.to_owned(),
        run_id: RUN.to_owned(),
        position: Some(position(1)),
        joined,
    }))
}

pub(crate) fn text(message: &str, text: &str) -> v1::InvokeResponse {
    invoked(invoke_event::Event::Text(v1::TextDelta {
        message_id: message.to_owned(),
        text: text.to_owned(),
    }))
}

pub(crate) fn thinking(text: &str) -> v1::InvokeResponse {
    invoked(invoke_event::Event::Thinking(v1::ThinkingDelta {
        message_id: "m-1".to_owned(),
        text: text.to_owned(),
    }))
}

pub(crate) fn tool(output: &str) -> [v1::InvokeResponse; 2] {
    let started = invoke_event::Event::ToolStarted(v1::ToolStarted {
        tool_call_id: "t-1".to_owned(),
        name: "sh".to_owned(),
        input_json: "{\"cmd\":\"ls\"}".to_owned(),
        omitted_bytes: 0,
    });
    let ended = invoke_event::Event::ToolEnded(v1::ToolFinished {
        tool_call_id: "t-1".to_owned(),
        failed: false,
        output: output.to_owned(),
        omitted_bytes: 0,
        artifact: None,
    });
    [invoked(started), invoked(ended)]
}

pub(crate) fn completed() -> v1::InvokeResponse {
    invoked(invoke_event::Event::Completed(v1::InvokeCompleted {
        data: None,
        run: Some(settled(v1::RunOutcome::Completed, "")),
    }))
}

pub(crate) fn aborted() -> v1::InvokeResponse {
    invoked(invoke_event::Event::Failed(v1::InvokeFailed {
        code: "aborted".to_owned(),
        details: "somebody aborted it".to_owned(),
        retryable: false,
        run: Some(settled(v1::RunOutcome::Aborted, "aborted")),
    }))
}

pub(crate) fn busy() -> v1::InvokeResponse {
    invoked(invoke_event::Event::Failed(v1::InvokeFailed {
        code: "session_busy".to_owned(),
        details: format!("run {RUN} is active"),
        retryable: true,
        run: None,
    }))
}

pub(crate) fn dispatch_accepted() -> v1::DispatchResponse {
    let accepted = v1::DispatchAccepted {
        run_id: RUN.to_owned(),
        input_id: format!("{RUN}-i1"),
        fate: v1::InputFate::Pending.into(),
        ..v1::DispatchAccepted::default()
    };
    v1::DispatchResponse {
        answer: Some(dispatch_response::Answer::Accepted(accepted)),
    }
}

/// Applied, outside of a run.
pub(crate) fn dispatch_done() -> v1::DispatchResponse {
    let accepted = v1::DispatchAccepted::default();
    v1::DispatchResponse {
        answer: Some(dispatch_response::Answer::Accepted(accepted)),
    }
}

pub(crate) fn dispatch_no(code: v1::RejectionCode) -> v1::DispatchResponse {
    let rejected = v1::DispatchRejected {
        code: code.into(),
        message: "it cannot be done".to_owned(),
        retryable: false,
    };
    v1::DispatchResponse {
        answer: Some(dispatch_response::Answer::Rejected(rejected)),
    }
}

pub(crate) fn dispatch_rejected() -> v1::DispatchResponse {
    let rejected = v1::DispatchRejected {
        code: v1::RejectionCode::NoActiveRun.into(),
        message: "no run is active; start a run with invoke".to_owned(),
        retryable: true,
    };
    v1::DispatchResponse {
        answer: Some(dispatch_response::Answer::Rejected(rejected)),
    }
}
