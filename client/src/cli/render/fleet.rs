//! The fleet as a table: a row for each session, what needs people first, and what is asked under
//! its row.

mod columns;
mod show;

use std::cmp::Reverse;
use std::collections::HashMap;

use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::interaction::{Interaction, InteractionKind};
use sessionplane_core::domain::place::Place;
use sessionplane_core::domain::run::{Failure, RunOutcome, code};
use sessionplane_core::domain::session::LastRun;
use sessionplane_core::domain::time::Timestamp;

use super::time::ago;
use crate::cli::answering::example;
use crate::cli::hint::word;
use crate::cli::program::PROGRAM;
use crate::cli::screen::{Row, Tone};
use crate::cli::visible;
use columns::{Cells, Layout};
pub(crate) use columns::{name_in_columns, path_in_columns};
pub(crate) use show::{phase_words, session_lines};

/// Sessions in the order in which people want to see them.
pub(crate) fn in_order(sessions: &mut [SessionSummary]) {
    sessions.sort_by_cached_key(order);
}

/// What a session is sorted by, so that it comes where people want to see it.
pub(crate) fn order(session: &SessionSummary) -> impl Ord + use<> {
    let rank = match session.phase {
        // Behind what waits for an answer, before what works.
        _ if session.stalled_since.is_some() => (Phase::NeedsInput, 1),
        phase => (phase, 0),
    };
    let since = since(session);
    // What has waited longest comes first; of what is at rest, what was used last.
    let longest = session.phase.is_active().then_some(since);
    let latest = Reverse(since);
    (rank, Reverse(session.priority), longest, latest, session.id)
}

/// Since when a session is at what it is at; since when at the latest where the server, which keeps
/// that in memory, does not know it any more.
pub(crate) fn since(session: &SessionSummary) -> Timestamp {
    session.since.unwrap_or_else(|| match session.phase {
        // It was told to pause by its last change, and its last run had settled by then or after.
        Phase::Paused => session.updated_at.max(session.last_active_at()),
        _ => session.last_active_at(),
    })
}

/// How a session is named where it is told of.
pub(crate) fn named(session: &SessionSummary) -> SessionRef {
    match (&session.name, &session.external_key) {
        (Some(name), _) => SessionRef::Name(name.clone()),
        (None, Some(key)) => SessionRef::ExternalKey(key.clone()),
        (None, None) => SessionRef::Id(session.id),
    }
}

/// All rows of a table, the heading first.
pub(crate) fn table(sessions: &[SessionSummary], now: Timestamp, width: usize) -> Vec<Row> {
    let places = Places::of(sessions);
    let cells: Vec<_> = sessions
        .iter()
        .map(|session| cells(session, &places, now))
        .collect();
    let layout = Layout::of(&cells, width);
    let mut rows = vec![layout.heading()];
    rows.extend(rows_of(sessions, &cells, &layout, width));
    rows
}

fn rows_of(
    sessions: &[SessionSummary],
    cells: &[Cells],
    layout: &Layout,
    width: usize,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for (session, cells) in sessions.iter().zip(cells) {
        rows.push(layout.row(cells, tone(session)));
        let questions = session.questions.iter();
        let several = session.questions.len() > 1;
        rows.extend(questions.flat_map(|asked| question_rows(session, asked, several, width)));
    }
    rows
}

/// What a session's rows say, but for its age: who prints only what changes compares it.
pub(crate) fn content(session: &SessionSummary) -> String {
    let cells = cells(session, &Places::default(), session.created_at);
    let asked = session.questions.iter().map(|asked| asked.id.to_string());
    let cells = cells.0.into_iter().take(columns::AGE);
    cells.chain(asked).collect::<Vec<_>>().join("\t")
}

/// What is said where there is no session, or none that a filter wants.
pub(crate) fn none_line(filtered: bool, width: usize) -> Row {
    let words = if filtered {
        format!("no session is what the filter wants; all there are: {PROGRAM} agents")
    } else {
        format!("no sessions yet; create one: {PROGRAM} new NAME")
    };
    Row::of(Tone::Faint, visible::clipped_to_columns(&words, width))
}

/// How many there are, and how many need somebody; as much of it as there is room for.
pub(crate) fn summary_line(sessions: &[SessionSummary], more: bool, width: usize) -> Row {
    let count = match (sessions.len(), more) {
        (0, _) => return Row::of(Tone::Faint, "no sessions"),
        (1, false) => "1 session".to_owned(),
        (many, false) => format!("{many} sessions"),
        (many, true) => format!("the first {many} sessions (more: --limit)"),
    };
    let asks = |session: &&SessionSummary| session.phase == Phase::NeedsInput;
    let mut spans = vec![(Tone::Faint, count)];
    match sessions.iter().filter(asks).count() {
        0 => {}
        1 => spans.push((Tone::Plain, ", 1 needs you".to_owned())),
        many => spans.push((Tone::Plain, format!(", {many} need you"))),
    }
    if Places::of(sessions).any_shared() {
        let words = "; * others work in this directory, too";
        spans.push((Tone::Faint, words.to_owned()));
    }
    let mut room = width;
    spans.retain(|(_, text)| {
        let fits = visible::columns(text) <= room;
        room = room.saturating_sub(visible::columns(text));
        fits
    });
    Row(spans)
}

/// Where sessions work.
#[derive(Default)]
pub(crate) struct Places<'s> {
    /// How many that are not dormant work in each place.
    awake: HashMap<&'s Place, usize>,
    /// Several workspaces are in the list.
    several: bool,
}

impl<'s> Places<'s> {
    /// The places of these sessions.
    pub(crate) fn of(sessions: impl IntoIterator<Item = &'s SessionSummary>) -> Self {
        let mut places = Self::default();
        let mut first = None;
        for session in sessions {
            let Some(place) = &session.place else {
                continue;
            };
            let first = *first.get_or_insert(&place.workspace);
            places.several |= *first != place.workspace;
            if session.phase != Phase::Dormant {
                *places.awake.entry(place).or_default() += 1;
            }
        }
        places
    }

    fn any_shared(&self) -> bool {
        self.awake.values().any(|count| *count > 1)
    }

    /// Where a session works; marked where others do, too.
    pub(crate) fn words(&self, session: &SessionSummary) -> String {
        let Some(place) = &session.place else {
            return "-".to_owned();
        };
        let awake = self.awake.get(place).copied().unwrap_or_default();
        let shared = session.phase != Phase::Dormant && awake > 1;
        let mark = if shared { "*" } else { "" };
        if self.several {
            return format!("{mark}{}:{}", place.workspace, place.directory);
        }
        format!("{mark}{}", place.directory)
    }
}

/// The branch that a session's directory is on; the commit where it is on none.
pub(crate) fn branch(session: &SessionSummary) -> Option<String> {
    let checkout = session.checkout.as_ref()?;
    let detached = checkout.commit.as_deref().map(|commit| {
        let short: String = commit.chars().take(8).collect();
        format!("@{short}")
    });
    checkout.branch.as_deref().map(str::to_owned).or(detached)
}

fn cells(session: &SessionSummary, places: &Places<'_>, now: Timestamp) -> Cells {
    let or_dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
    let branch = branch(session);
    Cells([
        state(session, now),
        named(session).to_string(),
        session.agent.to_string(),
        or_dash(branch.as_deref()),
        places.words(session),
        or_dash(session.chosen.model.as_deref()),
        session.queued.to_string(),
        last_words(session),
        ago(now.since(since(session))),
    ])
}

/// What a session is at, in words of a table.
pub(crate) fn state(session: &SessionSummary, now: Timestamp) -> String {
    if let Some(since) = session.stalled_since {
        return format!("stalled {}", ago(now.since(since)));
    }
    phase_words(session.phase, session.paused).to_owned()
}

fn tone(session: &SessionSummary) -> Tone {
    match session.phase {
        _ if session.stalled_since.is_some() => Tone::Wrong,
        Phase::NeedsInput => Tone::Alarm,
        Phase::Working | Phase::Compacting => Tone::Busy,
        Phase::Queued | Phase::Ready => Tone::Plain,
        Phase::Paused | Phase::Dormant => Tone::Faint,
    }
}

/// How a session's last run ended.
pub(crate) fn last_words(session: &SessionSummary) -> String {
    let last_run = session.last_run.as_ref();
    last_run.map_or_else(|| "-".to_owned(), last)
}

fn last(last: &LastRun) -> String {
    match &last.outcome {
        RunOutcome::Failed(Failure { code, .. }) if code == code::INTERRUPTED => code.clone(),
        RunOutcome::Failed(failure) => format!("failed: {}", failure.code),
        outcome => outcome.as_str().to_owned(),
    }
}

/// What is asked, and how it is answered: beside it, or below where there is no room. A command is
/// never cut, so that it can be pasted: where all of it is too long, a shorter one tells the rest.
fn question_rows(
    session: &SessionSummary,
    asked: &Interaction,
    several: bool,
    width: usize,
) -> Vec<Row> {
    const LEAST: usize = 24;
    let question = &asked.question;
    let title = question.title.trim();
    let what = match question.kind() {
        _ if title.ends_with('?') => "?",
        InteractionKind::Approval => "approve?",
        InteractionKind::Select => "choose:",
        InteractionKind::Confirm => "confirm?",
        InteractionKind::Input => "tell:",
        InteractionKind::Form => "fill in:",
    };
    let left = format!("  {what} {title}");
    let which = if several {
        format!(" q{}", asked.id.ordinal)
    } else {
        String::new()
    };
    let word = word(&named(session));
    let alone = format!("{PROGRAM} answer {word}");
    let command = format!("{alone}{which} {}", example(question));
    let way = format!("answer: {command}");
    if width == usize::MAX {
        let left = visible::line(&left).into_owned();
        return vec![Row(vec![
            (Tone::Plain, left),
            (Tone::Faint, format!("  {way}")),
        ])];
    }
    let beside = width.saturating_sub(visible::columns(&way) + 2);
    if beside >= LEAST {
        let left = visible::fitted(&left, beside);
        return vec![Row(vec![
            (Tone::Alarm, left),
            (Tone::Plain, format!("  {way}")),
        ])];
    }
    let below = [way, command, alone, format!("{PROGRAM} questions")];
    let fits = |way: &String| visible::columns(way) + 4 <= width;
    let mut rows = vec![Row::of(
        Tone::Alarm,
        visible::clipped_to_columns(&left, width),
    )];
    let way = below.into_iter().find(fits);
    rows.extend(way.map(|way| Row::of(Tone::Plain, format!("    {}", visible::line(&way)))));
    rows
}

/// A table in a pipe, whose rows come as they change.
#[derive(Default)]
pub(crate) struct Growing(Option<Layout>);

impl Growing {
    /// The rows of these sessions below those before; a heading where the columns are others.
    /// `places` are those of all sessions, also of those that do not change.
    pub(crate) fn rows(
        &mut self,
        places: &Places<'_>,
        sessions: &[SessionSummary],
        now: Timestamp,
        width: usize,
    ) -> Vec<Row> {
        let cells: Vec<_> = sessions
            .iter()
            .map(|session| cells(session, places, now))
            .collect();
        let layout = Layout::of(&cells, width);
        let layout = match &self.0 {
            // Where a row must fit, it is as wide as it has to be.
            Some(before) if width == usize::MAX => layout.widened_to(before),
            _ => layout,
        };
        let is_new = self.0.as_ref().is_none_or(|it| !it.has_columns_of(&layout));
        let rows = rows_of(sessions, &cells, &layout, width);
        let mut all: Vec<_> = is_new.then(|| layout.heading()).into_iter().collect();
        all.extend(rows);
        self.0 = Some(layout);
        all
    }

    /// What became of a session, below its rows.
    pub(crate) fn line(&self, what: &str, of: &str) -> String {
        let wide = self.0.as_ref().map_or(0, Layout::first);
        format!("{what:<wide$}  {}", visible::line(of))
    }
}

#[cfg(test)]
mod tests;
