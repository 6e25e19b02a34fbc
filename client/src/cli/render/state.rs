//! A session's state and capabilities.

use sessionplane_core::contract::{CapabilityReport, CommandTarget, OfferedCommand, SessionState};
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::command::CommandKind;
use sessionplane_core::domain::event::PendingInput;
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::run::RunSettings;
use sessionplane_core::domain::settings::{Model, SettingsOverride};
use sessionplane_core::domain::view::SessionView;

use super::WIDTH;
use super::interaction::{Desk, question_lines};
use super::run::usage_words;
use super::time::{age, rfc3339};
use crate::cli::visible;

/// How a session is named where it is told of.
pub(crate) fn called(view: &SessionView) -> SessionRef {
    let record = &view.session;
    let key = || record.external_key.clone().map(SessionRef::ExternalKey);
    let name = record.name.clone().map(SessionRef::Name).or_else(key);
    name.unwrap_or(SessionRef::Id(record.id))
}

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
    if view.chosen != SettingsOverride::default() {
        lines.push(format!(
            "chosen    {}",
            visible::line(&chosen(&view.chosen))
        ));
    }
    if state.sandbox == SandboxLevel::None {
        lines.push(
            "sandbox   none: nothing but its good will keeps the agent in its directory".into(),
        );
    }
    if !view.resolved.available_levels.is_empty() {
        let levels = view.resolved.available_levels.join(", ");
        lines.push(format!("levels    {}", visible::line(&levels)));
    }
    for open in view.open_interactions() {
        lines.push(format!("waits     {}", open.id));
        let question = question_lines(open, &Desk::Shell(called(view)));
        lines.extend(question.iter().map(|line| format!("  {line}")));
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
    // Elsewhere than after the newest entry.
    let leaf = view.leaf.map_or(0, |leaf| leaf.seq);
    if leaf == 0 && view.entries > 0 {
        words.push("at the beginning".to_owned());
    } else if leaf != view.entries {
        words.push(format!("at entry {leaf}"));
    }
    match view.open_interactions().count() {
        0 => {}
        1 => words.push("1 question open".to_owned()),
        more => words.push(format!("{more} questions open")),
    }
    if !view.pending.is_empty() {
        words.push(format!("{} waiting", view.pending.len()));
    }
    visible::clipped(&words.join(", "), WIDTH)
}

/// What a session is doing, what waits and what it took, in one line: what changes first.
pub(crate) fn bar(view: &SessionView) -> String {
    let record = &view.session;
    let name = match (&record.name, &record.external_key) {
        (Some(name), _) => name.to_string(),
        (None, Some(key)) => format!("key:{}", visible::line(key.as_str())),
        (None, None) => record.id.to_string(),
    };
    let mut words = vec![visible::clipped(&name, 26)];
    words.push(view.status().as_str().to_owned());
    match view.open_interactions().count() {
        0 => {}
        1 => words.push("1 question".to_owned()),
        more => words.push(format!("{more} questions")),
    }
    words.push(format!("{} waiting", view.pending.len()));
    words.extend(model(view));
    words.extend(usage_words(&view.usage));
    format!("[{}]", words.join(" | "))
}

/// What people chose, as against the agent's default.
fn chosen(chosen: &SettingsOverride) -> String {
    let model = chosen.model.as_ref().map(|model| format!("model {model}"));
    let level = chosen.thinking_level.as_ref();
    let level = level.map(|level| format!("thinking {level}"));
    let words: Vec<_> = [model, level].into_iter().flatten().collect();
    words.join(", ")
}

fn model(view: &SessionView) -> Option<String> {
    model_words(&view.resolved.settings)
}

/// Model and level; none where the engine has no model that could be named.
pub(super) fn model_words(settings: &RunSettings) -> Option<String> {
    let model = settings.model.as_deref()?;
    let words = match &settings.thinking_level {
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
pub(crate) fn capability_lines(report: &CapabilityReport, width: usize) -> Vec<String> {
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
    let kinds: Vec<_> = can.interactions.iter().map(|kind| kind.as_str()).collect();
    let kinds = if kinds.is_empty() {
        "none".to_owned()
    } else {
        kinds.join(", ")
    };
    let mut lines = listed("commands", &commands);
    lines.extend([
        format!("steering       {steering}"),
        format!("follow-up      {}", yes(can.follow_up)),
        format!("compaction     {}", yes(can.manual_compaction)),
        format!("navigate       {}", yes(can.navigate)),
        format!("model choice   {}", yes(can.model_selection)),
        format!("thinking       {}", yes(can.thinking)),
    ]);
    lines.extend(report.models.models.iter().map(|model| {
        let is_default = report.models.default.model.as_ref() == Some(&model.spec);
        let chosen = SettingsOverride {
            model: Some(model.spec.clone()),
            thinking_level: None,
        };
        let level = report.models.resolve(&chosen).settings.thinking_level;
        let line = model_line(model, level.as_deref(), is_default);
        visible::clipped(&line, width)
    }));
    lines.extend([
        format!("questions      {kinds}"),
        format!("tool progress  {}", yes(can.tool_progress)),
        format!("usage          {}", yes(can.usage)),
        format!("sandbox        {}", can.sandbox.as_str()),
        format!(
            "request ids    kept {} after a run",
            age(report.binding_retention)
        ),
    ]);
    lines
}

/// A fact of several words, on as many lines as they take.
fn listed(fact: &str, words: &[&str]) -> Vec<String> {
    const MARGIN: usize = 15;
    let mut lines = vec![format!("{fact:<MARGIN$}")];
    for (at, word) in words.iter().enumerate() {
        let comma = if at + 1 < words.len() { ", " } else { "" };
        match lines.last_mut() {
            Some(line) if line.len() == MARGIN || line.len() + word.len() < WIDTH => {
                line.push_str(word);
                line.push_str(comma);
            }
            _ => lines.push(format!("{:<MARGIN$}{word}{comma}", "")),
        }
    }
    lines
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// `level` is what it is used with unless another is chosen.
fn model_line(model: &Model, level: Option<&str>, is_default: bool) -> String {
    let levels = match &model.thinking_levels[..] {
        [] => String::new(),
        levels => {
            let unless = level.map(|level| format!("; else {level}"));
            let unless = unless.unwrap_or_default();
            format!(" (thinking: {}{unless})", levels.join(", "))
        }
    };
    let unless = if is_default {
        ", unless another is chosen"
    } else {
        ""
    };
    format!("model          {}{levels}{unless}", model.spec)
}

/// What a composer may offer, one a line.
pub(crate) fn offer_lines(offered: &[OfferedCommand], width: usize) -> Vec<String> {
    let widest = offered.iter().map(|it| it.name.chars().count()).max();
    let widest = widest.unwrap_or_default().min(24);
    let line = |it: &OfferedCommand| {
        let target = match it.target {
            CommandTarget::Dispatch(_) => "dispatch",
            CommandTarget::Prompt => "prompt",
        };
        let line = format!("{:<widest$}  {target:<8}  {}", it.name, it.description);
        visible::clipped(line.trim_end(), width)
    };
    offered.iter().map(line).collect()
}
