//! One session, one fact a line.

use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::settings::SettingsOverride;
use sessionplane_core::domain::time::Timestamp;

use super::{last, named, since};
use crate::cli::render::interaction::{Desk, question_lines};
use crate::cli::render::run::usage_words;
use crate::cli::render::time::{age, rfc3339};
use crate::cli::visible;

/// A phase in words.
pub(crate) fn phase_words(phase: Phase, paused: bool) -> &'static str {
    match phase {
        Phase::NeedsInput => "needs input",
        // Its run settles, and nothing comes after it.
        Phase::Working if paused => "pausing",
        Phase::Working => "working",
        Phase::Compacting => "compacting",
        Phase::Queued => "queued",
        Phase::Ready => "ready",
        Phase::Paused => "paused",
        Phase::Dormant => "dormant",
    }
}

/// All that is known of a session.
pub(crate) fn session_lines(session: &SessionSummary, now: Timestamp) -> Vec<String> {
    let mut lines = vec![format!("session   {}", session.id)];
    let mut fact = |name: &str, value: String| {
        lines.push(format!("{name:<8}  {}", visible::line(&value)));
    };
    if let Some(name) = &session.name {
        fact("name", name.to_string());
    }
    if let Some(key) = &session.external_key {
        fact("key", key.to_string());
    }
    fact("agent", session.agent.to_string());
    fact("state", state(session, now));
    if let Some(since) = session.stalled_since {
        fact(
            "stalled",
            format!("nothing shown for {}", age(now.since(since))),
        );
    }
    if let Some(place) = &session.place {
        fact("place", format!("{}:{}", place.workspace, place.directory));
    }
    if let Some(checkout) = &session.checkout {
        let branch = checkout.branch.as_deref().unwrap_or("(detached)");
        let commit = checkout.commit.as_deref().unwrap_or("(no commit)");
        fact("branch", format!("{branch} at {commit}"));
    }
    if let Some(lineage) = session.lineage {
        let entry = lineage.entry.map(|entry| format!(", entry {}", entry.seq));
        let entry = entry.unwrap_or_default();
        fact("parent", format!("{}{entry}", lineage.parent));
    }
    for (key, value) in session.labels.iter() {
        fact("label", format!("{}={}", key.as_str(), value.as_str()));
    }
    if session.priority.get() != 0 {
        fact("priority", session.priority.to_string());
    }
    if session.chosen != SettingsOverride::default() {
        let words = [&session.chosen.model, &session.chosen.thinking_level];
        let words: Vec<_> = words.into_iter().flatten().map(String::as_str).collect();
        fact("chosen", words.join(", thinking "));
    }
    fact("queue", format!("{} waiting", session.queued));
    if let Some(run) = &session.last_run {
        let at = rfc3339(run.settled_at);
        fact("last run", format!("{}, {}, {at}", last(run), run.run));
        if let RunOutcome::Failed(failure) = &run.outcome
            && !failure.details.is_empty()
        {
            fact("why", failure.details.clone());
        }
    }
    if let Some(usage) = usage_words(&session.usage) {
        fact("usage", usage);
    }
    fact("created", rfc3339(session.created_at));
    fact("updated", rfc3339(session.updated_at));
    for asked in &session.questions {
        lines.push(format!("waits     {}", asked.id));
        let question = question_lines(asked, &Desk::Shell(named(session)));
        lines.extend(question.iter().map(|line| format!("  {line}")));
    }
    lines
}

fn state(session: &SessionSummary, now: Timestamp) -> String {
    let phase = phase_words(session.phase, session.paused);
    let at_least = || (session.phase == Phase::Paused).then(|| ("at least ", since(session)));
    let since = session.since.map(|since| ("", since)).or_else(at_least);
    let since = since.map_or_else(String::new, |(at_least, since)| {
        format!(" for {at_least}{}", age(now.since(since)))
    });
    let run = session.active_run.map(|run| format!(", run {run}"));
    format!("{phase}{since}{}", run.unwrap_or_default())
}
