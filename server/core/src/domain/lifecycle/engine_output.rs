//! What the engine reports: one translation into events and entries.
//!
//! An engine may repeat, reorder or invent lines. What does not fit the run's state is ignored and
//! told to the log; it never corrupts the run.

use super::compaction;
use super::conflate::{self, Lane};
use super::effect::Effect;
use super::handed;
use super::input::EngineTag;
use super::interaction;
use super::open::{self, Returned};
use super::settle;
use super::state::{EngineStatus, OpenMessage, OpenTool, Phase};
use super::turn::Turn;
use crate::domain::artifact::ArtifactRef;
use crate::domain::audit::AuditAction;
use crate::domain::entry::EntryBody;
use crate::domain::event::{EventBody, OutputChannel};
use crate::domain::input::DiscardCause;
use crate::domain::interaction::ResolutionCause;
use crate::domain::limits::{
    MAX_DETAIL_BYTES, MAX_ENTRY_TEXT_BYTES, MAX_EVENT_TEXT_BYTES, MAX_LABEL_BYTES, MAX_OPEN_PER_RUN,
};
use crate::domain::run::{Failure, RunOutcome, code};
use crate::domain::text::{BoundedText, head};
use crate::domain::usage::Usage;
use crate::ports::engine::{EngineCommand, EngineEvent, Revalidation, StopReason};

/// The name of a tool whose start was not told, or not kept.
const UNKNOWN_TOOL: &str = "unknown";

/// The engine is there: give it the prompt, unless the run was aborted meanwhile.
pub(super) fn opened(turn: &mut Turn<'_>, tag: EngineTag, revalidation: Revalidation) {
    if turn.session.active.compaction().is_some() {
        return compaction::opened(turn, tag);
    }
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    if run.engine != EngineStatus::Opening {
        return ignore(turn, tag, "the engine opened twice");
    }
    if run.phase == Phase::Aborting {
        run.engine = EngineStatus::Gone;
        turn.live(Effect::DropEngine(tag));
        return settle::settle(turn, RunOutcome::Aborted);
    }
    run.engine = EngineStatus::Working;
    let (text, token, id) = (run.prompt.clone(), run.token, run.record.id);
    let withheld = run.withheld.clone();
    let number = run.next_prompt();
    turn.live(Effect::Tell(
        tag,
        EngineCommand::Prompt {
            number,
            run: id,
            text,
            input: None,
            withheld,
        },
    ));
    let divergence = match revalidation {
        Revalidation::Current => return,
        Revalidation::Rebuilt => {
            "the agent's own transcript was behind; it was rebuilt from this conversation"
        }
        Revalidation::Replaced => {
            "the agent's own transcript was lost; it starts without the earlier conversation"
        }
    };
    let body = EntryBody::Notice {
        code: "divergence".to_owned(),
        text: divergence.to_owned(),
    };
    turn.append(tag.run, token, body);
    turn.audit(tag.run, token, AuditAction::EngineOutput, None, "accepted");
}

/// The engine is gone: nothing more comes of this run.
pub(super) fn gone(turn: &mut Turn<'_>, tag: EngineTag, reason: &str) {
    if turn.session.active.compaction().is_some() {
        return compaction::gone(turn, tag, reason);
    }
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    let code = if run.engine == EngineStatus::Opening {
        code::ENGINE_UNAVAILABLE
    } else {
        code::ENGINE_GONE
    };
    run.engine = EngineStatus::Gone;
    let aborting = run.phase == Phase::Aborting;
    turn.live(Effect::DropEngine(tag));
    let details = head(reason, MAX_DETAIL_BYTES).to_owned();
    let failed = RunOutcome::Failed(Failure {
        code: code.to_owned(),
        details,
        retryable: true,
    });
    keep_partial(turn, tag);
    settle::settle(
        turn,
        if aborting {
            RunOutcome::Aborted
        } else {
            failed
        },
    );
}

pub(super) fn event(
    turn: &mut Turn<'_>,
    tag: EngineTag,
    event: EngineEvent,
    artifact: Option<ArtifactRef>,
) {
    if turn.session.active.compaction().is_some() {
        return compaction::event(turn, tag, event);
    }
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    if !matches!(run.engine, EngineStatus::Working | EngineStatus::Dropped) {
        return ignore(turn, tag, "the engine reported while at rest");
    }
    match event {
        EngineEvent::TurnStarted => turn_started(turn, tag),
        EngineEvent::TurnFinished => turn_finished(turn, tag),
        EngineEvent::MessageStarted { message } => message_started(turn, tag, &message),
        EngineEvent::MessageDelta {
            message,
            channel,
            text,
        } => delta(turn, tag, &message, channel, &text),
        EngineEvent::MessageFinished {
            message,
            text,
            usage,
        } => message_finished(turn, tag, &message, text.as_deref(), usage),
        EngineEvent::ToolStarted {
            call,
            name,
            input_json,
        } => tool_started(turn, tag, &call, &name, &input_json),
        EngineEvent::ToolProgress { call, output } => tool_progress(turn, tag, &call, &output),
        EngineEvent::ToolFinished {
            call,
            output,
            failed,
        } => {
            let returned = Returned {
                output: &output,
                failed,
                artifact,
            };
            tool_finished(turn, tag, &call, returned);
        }
        EngineEvent::Asked {
            ask,
            question,
            timeout,
        } => interaction::asked(turn, tag, ask, question, timeout),
        EngineEvent::AskWithdrawn { ask } => interaction::withdrawn(turn, tag, &ask),
        EngineEvent::CompactionStarted => compaction::started_within_run(turn, tag),
        EngineEvent::CompactionFinished(it) => compaction::finished_within_run(turn, tag, it),
        EngineEvent::InputShown { input } => handed::shown(turn, tag, input),
        EngineEvent::InputTakenBack { input } => handed::taken_back(turn, tag, input),
        EngineEvent::RetryScheduled {
            attempt,
            max_attempts,
            delay,
            reason,
        } => {
            let reason = head(&reason, MAX_DETAIL_BYTES).to_owned();
            let body = EventBody::RetryScheduled {
                attempt,
                max_attempts,
                delay,
                reason,
            };
            turn.publish(tag.run, body);
        }
        EngineEvent::Stopped { prompt, reason } => stopped(turn, tag, prompt, reason),
    }
}

fn turn_started(turn: &mut Turn<'_>, tag: EngineTag) {
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    run.turn += 1;
    run.release();
    let number = run.turn;
    turn.publish(tag.run, EventBody::TurnStarted { turn: number });
}

fn turn_finished(turn: &mut Turn<'_>, tag: EngineTag) {
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    run.release();
    let number = run.turn;
    open::cut_tools(turn, tag);
    turn.publish(tag.run, EventBody::TurnFinished { turn: number });
}

pub(super) fn ignore(turn: &mut Turn<'_>, tag: EngineTag, what: &'static str) {
    turn.live(Effect::Ignored { tag, what });
}

pub(super) fn label(text: &str) -> String {
    head(text, MAX_LABEL_BYTES).to_owned()
}

fn message_started(turn: &mut Turn<'_>, tag: EngineTag, message: &str) {
    let message = label(message);
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    let finished = run.finished_messages.knows_in(&message, run.turn);
    if finished || run.messages.contains_key(&message) {
        return ignore(turn, tag, "a message was started twice");
    }
    if run.messages.len() >= MAX_OPEN_PER_RUN {
        return open::refuse(turn, tag);
    }
    run.finished_messages.forget(&message);
    run.messages.insert(message.clone(), OpenMessage::default());
    turn.publish(tag.run, EventBody::MessageStarted { message });
}

fn delta(turn: &mut Turn<'_>, tag: EngineTag, message: &str, channel: OutputChannel, text: &str) {
    let message = label(message);
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    let Some(open) = run.messages.get_mut(&message) else {
        return ignore(turn, tag, "a piece of a message that is not open");
    };
    match channel {
        OutputChannel::Text => open.text.push(text, MAX_ENTRY_TEXT_BYTES),
        OutputChannel::Thinking => open.thinking.push(text, MAX_ENTRY_TEXT_BYTES),
    }
    open::fit(run);
    let mut rest = text;
    while !rest.is_empty() {
        let piece = head(rest, MAX_EVENT_TEXT_BYTES);
        rest = &rest[piece.len()..];
        let body = EventBody::MessageDelta {
            message: message.clone(),
            channel,
            text: piece.into(),
        };
        turn.publish(tag.run, body);
    }
}

fn message_finished(
    turn: &mut Turn<'_>,
    tag: EngineTag,
    message: &str,
    text: Option<&str>,
    usage: Usage,
) {
    let usage = usage.credible();
    let message = label(message);
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    let is_whole = text.is_some_and(|whole| !whole.is_empty());
    let mut open = match run.messages.remove(&message) {
        Some(open) => open,
        // It was never started, or one too many: its text is here all the same.
        None if is_whole && !run.finished_messages.knows(&message) => OpenMessage::default(),
        None => return ignore(turn, tag, "a message that is not open was finished"),
    };
    run.finished_messages.remember(message.clone(), run.turn);
    if let Some(whole) = text {
        open.text = BoundedText::new(whole, MAX_ENTRY_TEXT_BYTES);
    }
    run.record.usage = run.record.usage.plus(usage);
    let (total, token) = (run.record.usage, run.token);
    turn.publish(
        tag.run,
        EventBody::MessageFinished {
            message: message.clone(),
        },
    );
    if usage != Usage::default() {
        let session = turn.session.head.usage.plus(total);
        conflate::offer(
            turn,
            tag,
            Lane::Usage,
            EventBody::UsageUpdated {
                usage: total,
                session,
            },
        );
    }
    if append_message(turn, tag, message, &open, usage, false) {
        // The run's usage is as durable as the entry that it is of.
        turn.write_run();
        turn.audit(tag.run, token, AuditAction::EngineOutput, None, "accepted");
    }
}

/// Writes a message's entry, unless it is empty. Returns whether it wrote one.
fn append_message(
    turn: &mut Turn<'_>,
    tag: EngineTag,
    message: String,
    open: &OpenMessage,
    usage: Usage,
    partial: bool,
) -> bool {
    if open.text.text.is_empty() && open.thinking.text.is_empty() {
        return false;
    }
    let model = turn
        .session
        .active
        .run()
        .and_then(|run| run.record.settings.model.clone());
    let body = EntryBody::Assistant {
        message,
        model,
        text: open.text.narrowed(MAX_ENTRY_TEXT_BYTES),
        thinking: open.thinking.narrowed(MAX_ENTRY_TEXT_BYTES),
        partial,
        usage,
    };
    turn.append(tag.run, tag.token, body);
    true
}

/// What the engine was saying when it was cut is kept, marked as partial.
pub(super) fn keep_partial(turn: &mut Turn<'_>, tag: EngineTag) {
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    let open = std::mem::take(&mut run.messages);
    for message in open.keys() {
        run.finished_messages.remember(message.clone(), run.turn);
    }
    for (message, text) in open {
        append_message(turn, tag, message, &text, Usage::default(), true);
    }
}

fn tool_started(turn: &mut Turn<'_>, tag: EngineTag, call: &str, name: &str, input_json: &str) {
    let (call, name) = (label(call), label(name));
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    let finished = run.finished_tools.knows_in(&call, run.turn);
    if finished || run.tools.contains_key(&call) {
        return ignore(turn, tag, "a tool call was started twice");
    }
    if run.tools.len() >= MAX_OPEN_PER_RUN {
        return open::refuse(turn, tag);
    }
    run.finished_tools.forget(&call);
    let input_json = BoundedText::new(input_json, MAX_ENTRY_TEXT_BYTES);
    let shown = input_json.narrowed(MAX_EVENT_TEXT_BYTES);
    run.tools.insert(
        call.clone(),
        OpenTool {
            name: name.clone(),
            input_json,
        },
    );
    open::fit(run);
    turn.publish(
        tag.run,
        EventBody::ToolStarted {
            call,
            name,
            input_json: shown,
        },
    );
}

fn tool_progress(turn: &mut Turn<'_>, tag: EngineTag, call: &str, output: &str) {
    let call = label(call);
    if turn
        .live_run(tag)
        .is_none_or(|run| !run.tools.contains_key(&call))
    {
        return ignore(turn, tag, "progress of a tool call that is not open");
    }
    let output = BoundedText::new(output, MAX_EVENT_TEXT_BYTES);
    let body = EventBody::ToolProgress {
        call: call.clone(),
        output,
    };
    conflate::offer(turn, tag, Lane::Tool(call), body);
}

fn tool_finished(turn: &mut Turn<'_>, tag: EngineTag, call: &str, returned: Returned<'_>) {
    let call = label(call);
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    let tool = match run.tools.remove(&call) {
        Some(tool) => tool,
        None if run.finished_tools.knows(&call) => {
            return ignore(turn, tag, "a tool call came back twice");
        }
        // It was never started, or one too many: what it gave back is here all the same.
        None => OpenTool {
            name: UNKNOWN_TOOL.to_owned(),
            input_json: BoundedText::default(),
        },
    };
    open::finish_tool(turn, tag, call, tool, returned);
    turn.audit(
        tag.run,
        tag.token,
        AuditAction::EngineOutput,
        None,
        "accepted",
    );
}

/// The engine came to its own end with a prompt.
fn stopped(turn: &mut Turn<'_>, tag: EngineTag, prompt: u32, reason: StopReason) {
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    // Said again after the next prompt was given, it would end what it is not about.
    if prompt != run.prompts {
        return ignore(turn, tag, "a stop of another prompt");
    }
    run.engine = EngineStatus::Resting;
    run.release();
    for call in std::mem::take(&mut run.tools).into_keys() {
        run.finished_tools.remember(call, run.turn);
    }
    let aborting = run.phase == Phase::Aborting;
    conflate::close_tools(turn, tag);
    keep_partial(turn, tag);
    let outcome = match reason {
        _ if aborting => RunOutcome::Aborted,
        StopReason::Failed(failure) => RunOutcome::Failed(bounded(failure)),
        StopReason::Aborted => RunOutcome::Failed(Failure {
            code: code::ENGINE_FAILED.to_owned(),
            details: "the agent stopped although nobody asked it to".to_owned(),
            retryable: true,
        }),
        StopReason::Completed => return completed(turn, tag),
    };
    settle::settle(turn, outcome);
}

/// What the engine did not show by its own end is lost and holds nothing open; what still waits
/// with us continues the run.
fn completed(turn: &mut Turn<'_>, tag: EngineTag) {
    let waits = turn
        .live_run(tag)
        .is_some_and(|run| run.queue.iter().any(|input| !input.handed));
    if !waits {
        return settle::settle(turn, RunOutcome::Completed);
    }
    let token = tag.token;
    settle::discard(turn, DiscardCause::Lost, |input| input.handed);
    // At rest it waits for no answer either, and compacts nothing.
    interaction::close_all(turn, ResolutionCause::EngineGone);
    compaction::cut_at_rest(turn, tag);
    if turn.commits() {
        turn.audit(tag.run, token, AuditAction::EngineOutput, None, "accepted");
    }
}

pub(super) fn bounded(failure: Failure) -> Failure {
    let Failure {
        code,
        details,
        retryable,
    } = failure;
    // An engine's word never passes for one of ours: who reads `interrupted` or `session_busy`
    // must be able to believe it.
    let code = if code.is_empty() || code::RESERVED.contains(&code.as_str()) {
        code::ENGINE_FAILED.to_owned()
    } else {
        label(&code)
    };
    Failure {
        code,
        details: head(&details, MAX_DETAIL_BYTES).to_owned(),
        retryable,
    }
}
