//! One session in full: its questions first, since those need people.

use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::time::Timestamp;

use super::draw::{called, state};
use crate::cli::render::{Desk, brief, question_lines};
use crate::cli::visible;

/// The lines.
pub(super) fn lines(session: &SessionSummary, now: Timestamp) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut lines = vec![Line::styled(called(session), bold)];
    for question in &session.questions {
        lines.extend(
            question_lines(question, Desk::Shell)
                .into_iter()
                .map(Line::raw),
        );
    }
    let since = session.since.map(|since| brief(now.since(since)));
    let since = since.map_or_else(String::new, |since| format!(", for {since}"));
    let mut told = |what: &str, text: String| {
        lines.push(Line::raw(format!("{what:<10}{}", visible::line(&text))));
    };
    told("state", format!("{}{since}", state(session, now)));
    if session.paused {
        told("paused", "nothing begins until it is resumed".to_owned());
    }
    told("id", session.id.to_string());
    if let Some(key) = &session.external_key {
        told("key", key.to_string());
    }
    let chosen = session.chosen.model.clone();
    let model = chosen.map_or_else(String::new, |model| format!(", model {model}"));
    told("agent", format!("{}{model}", session.agent));
    if let Some(place) = &session.place {
        told(
            "directory",
            format!("{}, in {}", place.directory, place.workspace),
        );
    }
    if let Some(checkout) = &session.checkout {
        let branch = checkout.branch.as_deref().unwrap_or("no branch");
        let commit = checkout.commit.as_deref().unwrap_or("no commit");
        let commit: String = commit.chars().take(12).collect();
        told("branch", format!("{branch}, at {commit}"));
    }
    if let Some(run) = session.active_run {
        told("run", run.to_string());
    }
    if let Some(last) = &session.last_run {
        let outcome = match &last.outcome {
            RunOutcome::Failed(failure) => format!("failed: {}", failure.code),
            other => other.as_str().to_owned(),
        };
        let ago = brief(now.since(last.settled_at));
        told("last run", format!("{outcome}, {ago} ago"));
    }
    told("queue", session.queued.to_string());
    told("priority", session.priority.to_string());
    let labels = session.labels.iter();
    let labels: Vec<_> = labels
        .map(|(key, value)| format!("{}={}", key.as_str(), value.as_str()))
        .collect();
    if !labels.is_empty() {
        told("labels", labels.join(" "));
    }
    if let Some(cost) = session.usage.cost_usd {
        told("cost", format!("${cost:.2}"));
    }
    lines
}
