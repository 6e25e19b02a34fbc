//! A session's state and capabilities.

use sessionplane_core::contract::{CapabilityReport, SessionState};
use sessionplane_core::domain::command::CommandKind;
use sessionplane_core::domain::event::PendingInput;
use sessionplane_core::domain::view::SessionView;

use super::WIDTH;
use super::run::usage_words;
use super::time::{age, rfc3339};
use crate::cli::visible;

/// A session's state, one fact a line.
pub(crate) fn state_lines(state: &SessionState) -> Vec<String> {
    let view = &state.view;
    let record = &view.session;
    let mut lines = vec![format!("session   {}", record.id)];
    if let Some(name) = &record.name {
        lines.push(format!("name      {name}"));
    }
    if let Some(key) = &record.external_key {
        lines.push(format!("key       {}", visible::line(key.as_str())));
    }
    lines.push(format!("agent     {}", record.agent));
    lines.push(match view.active_run {
        Some(run) => format!("status    {}, run {run}", view.status().as_str()),
        None => format!("status    {}", view.status().as_str()),
    });
    if let Some(model) = model(view) {
        lines.push(format!("model     {model}"));
    }
    lines.push(format!("queue     {} waiting", view.pending.len()));
    lines.extend(view.pending.values().map(pending));
    if let Some(last) = &view.last_run {
        let (how, at) = (last.outcome.as_str(), rfc3339(last.settled_at));
        let code = last.outcome.code().filter(|code| *code != how);
        let code = code.map_or_else(String::new, |code| format!(": {}", visible::line(code)));
        lines.push(format!("last run  {how}{code}, {}", last.run));
        lines.push(format!("          {at}"));
    }
    if let Some(usage) = usage_words(&view.usage) {
        lines.push(format!("usage     {usage}"));
    }
    lines.push(format!("entries   {}", view.entries));
    if let Some(leaf) = view.leaf {
        lines.push(format!("leaf      {leaf}"));
    }
    lines.push(format!("seq       {}", state.position.seq));
    lines
}

/// What a session is doing, in one line.
pub(crate) fn summary(view: &SessionView) -> String {
    let record = &view.session;
    let name = match (&record.name, &record.external_key) {
        (Some(name), _) => name.to_string(),
        (None, Some(key)) => format!("key:{}", visible::line(key.as_str())),
        (None, None) => record.id.to_string(),
    };
    let mut words = vec![
        format!("{name}: {}", view.status().as_str()),
        format!("agent {}", record.agent),
    ];
    // An agent is often named after its only model.
    words.extend(model(view).filter(|model| *model != record.agent.as_str()));
    if !view.pending.is_empty() {
        words.push(format!("{} waiting", view.pending.len()));
    }
    visible::clipped(&words.join(", "), WIDTH)
}

fn model(view: &SessionView) -> Option<String> {
    let model = view.resolved.settings.model.as_deref()?;
    let words = match &view.resolved.settings.thinking_level {
        Some(level) => format!("{model}, thinking {level}"),
        None => model.to_owned(),
    };
    Some(visible::line(&words).into_owned())
}

fn pending(input: &PendingInput) -> String {
    let kind = input.kind.as_str();
    let handed = if input.handed { ", handed" } else { "" };
    let line = format!(
        "          {kind} from {}{handed}: {}",
        input.origin.principal, input.preview
    );
    visible::clipped(&line, WIDTH)
}

/// What can be done, one fact a line.
pub(crate) fn capability_lines(report: &CapabilityReport) -> Vec<String> {
    let can = &report.capabilities;
    let yes = |can: bool| if can { "yes" } else { "no" };
    let steering = match can.steering {
        Some(steering) if steering.preempts_text => "after tools, and interrupts text",
        Some(_) => "after tools",
        None => "no",
    };
    let commands: Vec<_> = report
        .commands
        .iter()
        .map(|kind| CommandKind::as_str(*kind))
        .collect();
    vec![
        format!("commands       {}", commands.join(", ")),
        format!("steering       {steering}"),
        format!("follow-up      {}", yes(can.follow_up)),
        format!("tool progress  {}", yes(can.tool_progress)),
        format!("usage          {}", yes(can.usage)),
        format!(
            "request ids    kept {} after a run",
            age(report.binding_retention)
        ),
    ]
}
