//! Waiting for the end of a compaction, across lost connections: an event tells it, or else the
//! entries and the state do. What it must not do: take another compaction's end for it.

use std::collections::BTreeSet;

use sessionplane_core::contract::{EventFilter, SessionState};
use sessionplane_core::domain::compaction::CompactionOutcome;
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::{EntryId, RunId, SessionRef};
use sessionplane_core::domain::time::Timestamp;

use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::pages::Pages;
use crate::cli::program::PROGRAM;
use crate::cli::render::{compaction_words, connection_line};
use crate::cli::screen::Screen;
use crate::watch::{WatchItem, WatchOptions};

/// How many entries are read at once when a summary is looked for.
const PAGE: u32 = 100;

/// Waits for the end of the compaction that was begun, or seen, after `before` was read, and tells
/// it.
pub(super) async fn until_over(
    session: &SessionRef,
    before: &SessionState,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let word = hint::word(session);
    context.goes_on(
        format!("the compaction of \"{session}\" is not over"),
        &word,
    );
    let mut watch = context
        .client
        .watch(session.clone(), since(before, context));
    let mut seen = Seen::default();
    loop {
        let next = watch.next();
        let item = context
            .waiting(screen, Effect::Reads, "compacting", next)
            .await
            .map_err(|stop| left(stop, session))?;
        let item = match item {
            Some(Ok(item)) => item,
            Some(Err(error)) => return Err(context.stop(error, Some(session), Effect::Reads)),
            None => return Ok(Exit::Unknown),
        };
        if let Some(line) = connection_line(&item) {
            screen.aside(&line)?;
        }
        match seen.by(&item) {
            None => {}
            Some(Ended::As(outcome)) => return told(&outcome, context, screen),
            Some(Ended::Untold) => return Err(unknown(session, None)),
            Some(Ended::Before) => return ended_before(session, before, context, screen).await,
        }
    }
}

/// A watch that misses nothing after `before`.
fn since(before: &SessionState, context: &Context) -> WatchOptions {
    let newest = EntryId {
        session: before.view.session.id,
        seq: before.view.entries,
    };
    WatchOptions {
        resume: Some(before.position),
        entries_since: (before.view.entries > 0).then_some(newest),
        filter: EventFilter {
            types: BTreeSet::from(["compaction_finished".to_owned()]),
            no_thinking: true,
        },
        open_deadline: context.opening(),
        ..WatchOptions::default()
    }
}

/// How a compaction ended.
#[derive(PartialEq, Debug)]
enum Ended {
    As(CompactionOutcome),
    /// While nobody was there to be told.
    Untold,
    /// Before the waiting began: it is an earlier call's, which was repeated.
    Before,
}

/// What was seen of compactions.
#[derive(Default)]
struct Seen {
    /// It goes on: the next end is its own.
    under_way: bool,
    /// How the last one ended that was over when it was looked for.
    outcome: Option<CompactionOutcome>,
    gap: bool,
    summary: Option<EntryId>,
}

impl Seen {
    /// Whether it has ended.
    fn by(&mut self, item: &WatchItem) -> Option<Ended> {
        match item {
            WatchItem::Gap => self.gap = true,
            WatchItem::Entries { entries, .. } => {
                self.summary = self.summary.or(entries.iter().find_map(summary));
            }
            WatchItem::Event(envelope) if envelope.event.run.is_none() => {
                if let EventBody::CompactionFinished { outcome } = &envelope.event.body {
                    if self.under_way {
                        return Some(Ended::As(outcome.clone()));
                    }
                    self.outcome = Some(outcome.clone());
                }
            }
            WatchItem::Snapshot(state) => return self.at(state.view.compacting),
            _ => {}
        }
        None
    }

    /// What came before a snapshot is over: if something is being compacted there, it was another's
    /// end, unless this one was under way before.
    fn at(&mut self, compacting: bool) -> Option<Ended> {
        if compacting && (!self.under_way || self.summary.is_none()) {
            *self = Self {
                under_way: true,
                ..Self::default()
            };
            return None;
        }
        let told = self.outcome.take();
        let told = told.or(self.summary.map(CompactionOutcome::Completed));
        Some(match told {
            Some(outcome) => Ended::As(outcome),
            None if self.gap || self.under_way => Ended::Untold,
            None => Ended::Before,
        })
    }
}

/// The entry, if it is the summary of a compaction outside of runs.
fn summary(entry: &Entry) -> Option<EntryId> {
    let summary = entry.run.is_none() && matches!(entry.body, EntryBody::Compaction { .. });
    summary.then_some(entry.id)
}

/// A repeated call whose compaction was over: its summary tells that it was completed, if it was
/// written after the call was first made. An id that we made tells when that was, by the clock of
/// this side; of any other nobody knows.
async fn ended_before(
    session: &SessionRef,
    before: &SessionState,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let made = made(context.request_id.as_str());
    let newest = newest_summary(session, before, made, context, screen).await?;
    match (newest, made) {
        (Some(entry), Some(_)) => told(&CompactionOutcome::Completed(entry), context, screen),
        (newest, _) => Err(unknown(session, newest)),
    }
}

/// When a request id was made, if it is a ULID.
fn made(id: &str) -> Option<Timestamp> {
    let bytes = id.parse::<RunId>().ok()?.to_bytes();
    let millis = bytes[..6].iter();
    let millis = millis.fold(0, |millis, byte| millis << 8 | u64::from(*byte));
    Some(Timestamp::from_millis(millis))
}

/// The newest summary, looked for from the end: back to `made`, or in the last entries only.
async fn newest_summary(
    session: &SessionRef,
    before: &SessionState,
    made: Option<Timestamp>,
    context: &Context,
    screen: &mut Screen,
) -> Result<Option<EntryId>, Stop> {
    let mut end = before.view.entries;
    while end > 0 {
        let start = end.saturating_sub(u64::from(PAGE));
        let entries = between(session, before, (start, end), context, screen).await?;
        let early = |entry: &Entry| made.is_some_and(|made| entry.at < made);
        let newest = entries.iter().rev().find_map(|entry| {
            let summary = summary(entry)?;
            (!early(entry)).then_some(summary)
        });
        // What was not read may be earlier still: only entries that were say so.
        if newest.is_some() || made.is_none() || entries.first().is_some_and(early) {
            return Ok(newest);
        }
        end = start;
    }
    Ok(None)
}

/// The entries after the `start`-th up to the `end`-th, those that this client can read.
async fn between(
    session: &SessionRef,
    before: &SessionState,
    (start, end): (u64, u64),
    context: &Context,
    screen: &mut Screen,
) -> Result<Vec<Entry>, Stop> {
    let id = |seq| EntryId {
        session: before.view.session.id,
        seq,
    };
    let since = (start > 0).then(|| id(start).to_string());
    let mut pages = Pages::new(context, session, since);
    let mut all = Vec::new();
    while let Some(page) = pages.next(PAGE, screen).await? {
        let wanted = page.entries.into_iter();
        all.extend(wanted.take_while(|entry| entry.id.seq <= end));
        let more = page
            .next_since
            .and_then(|next| next.parse::<EntryId>().ok());
        if more.is_none_or(|next| next.seq >= end) {
            break;
        }
    }
    Ok(all)
}

fn told(outcome: &CompactionOutcome, context: &Context, screen: &mut Screen) -> Result<Exit, Stop> {
    if context.globals.json {
        screen.json(&serde_json::json!({ "compaction_finished": json::compacted(outcome) }))?;
    }
    let words = format!("compaction {}", compaction_words(outcome));
    match outcome {
        CompactionOutcome::Completed(_) if context.globals.json => Ok(Exit::Done),
        CompactionOutcome::Completed(_) => {
            screen.line(&words)?;
            Ok(Exit::Done)
        }
        CompactionOutcome::Failed(_) | CompactionOutcome::Aborted => {
            let rest = "the conversation is as it was";
            screen.error(&format!("{words}; {rest}"))?;
            Ok(Exit::Failed)
        }
    }
}

/// Ctrl-C leaves a compaction that goes on.
fn left(stop: Stop, session: &SessionRef) -> Stop {
    match stop {
        Stop::Failed {
            exit: Exit::Interrupted,
            ..
        } => {
            let word = hint::word(session);
            let words = format!(
                "left before the compaction ended\n  \
                 watch it: {PROGRAM} attach {word}\n  \
                 stop it:  {PROGRAM} abort {word}"
            );
            Stop::failed(Exit::Interrupted, words)
        }
        stop => stop,
    }
}

fn unknown(session: &SessionRef, newest: Option<EntryId>) -> Stop {
    let word = hint::word(session);
    let newest = newest.map_or_else(String::new, |entry| {
        format!("\n  the newest summary is entry {}", entry.seq)
    });
    let words = format!(
        "the compaction is over, but nobody was told how it ended{newest}\n  \
         a summary is an entry: {PROGRAM} entries {word}"
    );
    Stop::failed(Exit::Unknown, words)
}
