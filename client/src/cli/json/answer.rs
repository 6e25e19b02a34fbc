//! Answers to single calls, and refusals.

use std::path::Path;

use serde_json::{Value, json};
use sessionplane_core::contract::{CapabilityReport, CommandTarget, OfferedCommand};
use sessionplane_core::domain::command::{AcceptedInput, CommandKind, DispatchAnswer, Rejection};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::input::{DiscardCause, InputFate};
use sessionplane_core::domain::settings::Model;

use super::field::{duration, maybe};

/// The answer to a command.
pub(crate) fn dispatched(answer: &DispatchAnswer) -> Value {
    match answer {
        DispatchAnswer::Accepted(accepted) => {
            let input = accepted.input.as_ref();
            let discarded = input.and_then(AcceptedInput::discarded);
            json!({ "accepted": {
                "run_id": maybe(accepted.run),
                "input_id": maybe(input.map(|input| input.id)),
                "fate": input.map(|input| fate(input.fate)),
                "entry_id": maybe(input.and_then(AcceptedInput::entry)),
                "discard_cause": discarded.map(DiscardCause::as_str),
            }})
        }
        DispatchAnswer::Rejected(rejection) => rejected(rejection),
    }
}

/// A typed no.
pub(super) fn rejected(rejection: &Rejection) -> Value {
    json!({ "rejected": {
        "code": rejection.code.as_str(),
        "message": rejection.message,
        "retryable": rejection.retryable,
    }})
}

fn fate(fate: InputFate) -> &'static str {
    match fate {
        InputFate::Pending => "pending",
        InputFate::Delivered(_) => "delivered",
        InputFate::Discarded(_) => "discarded",
    }
}

/// What a session or an agent can do.
pub(crate) fn capabilities(report: &CapabilityReport) -> Value {
    let can = &report.capabilities;
    let steering = can.steering.map(|steering| {
        json!({
            "after_tools": steering.after_tools,
            "preempts_text": steering.preempts_text,
        })
    });
    let commands: Vec<_> = report
        .commands
        .iter()
        .map(|kind| CommandKind::as_str(*kind))
        .collect();
    let kinds: Vec<_> = can.interactions.iter().map(|kind| kind.as_str()).collect();
    let model = |model: &Model| {
        json!({
            "spec": model.spec,
            "thinking_levels": model.thinking_levels,
            "default_level": model.default_level,
        })
    };
    json!({
        "manual_compaction": can.manual_compaction,
        "model_selection": can.model_selection,
        "thinking": can.thinking,
        "navigate": can.navigate,
        "interactions": kinds,
        "sandbox": can.sandbox.as_str(),
        "models": report.models.models.iter().map(model).collect::<Vec<_>>(),
        "default_model": report.models.default.model,
        "default_thinking_level": report.models.default.thinking_level,
        "steering": steering,
        "follow_up": can.follow_up,
        "tool_progress": can.tool_progress,
        "usage": can.usage,
        "commands": commands,
        "request_binding_retention": duration(report.binding_retention),
    })
}

/// A name that a composer may offer.
pub(crate) fn offered(offered: &OfferedCommand) -> Value {
    json!({
        "name": offered.name,
        "description": offered.description,
        "target": match offered.target {
            CommandTarget::Dispatch(_) => "dispatch",
            CommandTarget::Prompt => "prompt",
        },
    })
}

/// This program's version and the API's package.
pub(crate) fn version(version: &str, api: &str) -> Value {
    json!({ "version": version, "api": api })
}

/// A shell's completions.
pub(crate) fn completions(shell: &str, script: &str) -> Value {
    json!({ "shell": shell, "script": script })
}

/// Where manual pages were written.
pub(crate) fn pages(folder: &Path) -> Value {
    json!({ "folder": folder.to_string_lossy() })
}

/// A call that got no answer of its own, or a failure of this program.
pub(crate) fn error(words: &str, error: Option<&CallError>) -> Value {
    let violations = error.map_or_else(Vec::new, |error| {
        let all = error.violations.iter();
        all.map(
            |violation| json!({ "field": violation.field, "description": violation.description }),
        )
        .collect()
    });
    json!({ "error": {
        "reason": error.map(|error| error.reason.as_str()),
        "outcome": error.map(|error| error.outcome.as_str()),
        "message": error.map_or(words, |error| &error.message),
        "field_violations": violations,
        "retry_delay": error.and_then(|error| error.retry_after).map(duration),
    }})
}
