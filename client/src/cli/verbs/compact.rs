//! `sessionctl compact`: begins a compaction, and waits for its outcome if that is asked for.

use std::collections::BTreeSet;

use sessionplane_core::contract::{CallOptions, EventFilter, SessionControl as _, SessionState};
use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::compaction::CompactionOutcome;
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::{EntryId, SessionRef};
use sessionplane_core::domain::position::Position;

use super::dispatch;
use crate::cli::args::{CompactArgs, TextSource};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::render::{compaction_words, connection_line};
use crate::cli::screen::Screen;
use crate::watch::{Watch, WatchItem, WatchOptions};

pub(super) async fn run(
    args: CompactArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.session.clone();
    let instructions = instructions(&args, context).await?;
    // Who is there before it begins misses nothing of it.
    let watch = if args.wait {
        Some(observed(&session, context, screen).await?)
    } else {
        None
    };
    let request = dispatch::between_runs(session.clone(), Command::Compact { instructions });
    let word = hint::word(&session);
    let words = match &watch {
        Some(_) => "compacting".to_owned(),
        None => format!("compacting\n  watch it: sessionctl attach {word}"),
    };
    let given = dispatch::give_and_say(request, context, screen, Some(words)).await?;
    match watch.filter(|_| given == Exit::Done) {
        Some(watch) => {
            let after = state(&session, context, screen).await?;
            // Where the answer was that of an earlier call, its end may be told no more.
            let over = (!after.view.compacting).then_some(after.position);
            outcome(watch, over, &session, context, screen).await
        }
        None => Ok(given),
    }
}

async fn instructions(
    args: &CompactArgs,
    context: &Context,
) -> Result<Option<std::sync::Arc<str>>, Stop> {
    if args.instructions.is_none() && args.text_file.is_none() {
        return Ok(None);
    }
    let source = TextSource {
        text: args.instructions.clone(),
        text_file: args.text_file.clone(),
    };
    Ok(Some(context.text(source).await?.into()))
}

async fn state(
    session: &SessionRef,
    context: &Context,
    screen: &mut Screen,
) -> Result<SessionState, Stop> {
    let call = context
        .client
        .get_state(session.clone(), None, CallOptions::default());
    let state = context.patiently(screen, Effect::Reads, call).await?;
    state.map_err(|error| context.stop(error, Some(session), Effect::Reads))
}

/// A watch that has begun, at the newest entry.
async fn observed(
    session: &SessionRef,
    context: &Context,
    screen: &mut Screen,
) -> Result<Watch, Stop> {
    let stop = |error| context.stop(error, Some(session), Effect::Reads);
    let view = state(session, context, screen).await?.view;
    let newest = EntryId {
        session: view.session.id,
        seq: view.entries,
    };
    let options = WatchOptions {
        entries_since: (view.entries > 0).then_some(newest),
        filter: EventFilter {
            types: BTreeSet::from(["compaction_finished".to_owned()]),
            no_thinking: true,
        },
        open_deadline: context.opening(),
        ..WatchOptions::default()
    };
    let mut watch = context.client.watch(session.clone(), options);
    let began = async {
        loop {
            match watch.next().await {
                Some(Ok(WatchItem::Snapshot(_))) | None => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
            }
        }
    };
    let began = context.patiently(screen, Effect::Reads, began).await?;
    began.map_err(stop)?;
    Ok(watch)
}

/// Waits for the end, which a lost connection may hide: then the entries and the state tell it.
async fn outcome(
    mut watch: Watch,
    over: Option<Position>,
    session: &SessionRef,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let mut missed = Missed {
        over,
        ..Missed::default()
    };
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
        if let WatchItem::Event(envelope) = &item
            && let EventBody::CompactionFinished { outcome } = &envelope.event.body
            && envelope.event.run.is_none()
        {
            return told(outcome, context, screen);
        }
        if let Some(line) = connection_line(&item) {
            screen.aside(&line)?;
        }
        if let Some(ended) = missed.by(&item) {
            return match ended {
                Ended::As(entry) => told(&CompactionOutcome::Completed(entry), context, screen),
                Ended::Untold => Err(unknown(session)),
            };
        }
    }
}

/// How a compaction ended that no event told of.
enum Ended {
    /// Its summary is this entry.
    As(EntryId),
    Untold,
}

/// The end of a compaction that no event told.
#[derive(Default)]
struct Missed {
    gap: bool,
    /// It had ended at this place.
    over: Option<Position>,
    summary: Option<EntryId>,
}

impl Missed {
    /// Whether it has ended.
    fn by(&mut self, item: &WatchItem) -> Option<Ended> {
        match item {
            WatchItem::Gap => self.gap = true,
            WatchItem::Entries { entries, .. } => {
                let is_summary = |entry: &&Entry| {
                    entry.run.is_none() && matches!(entry.body, EntryBody::Compaction { .. })
                };
                let summary = entries.iter().find(is_summary).map(|entry| entry.id);
                self.summary = self.summary.or(summary);
            }
            WatchItem::Snapshot(state) if self.gap && !state.view.compacting => {
                return Some(self.end());
            }
            WatchItem::Heartbeat(at) => {
                let passed = |over: Position| at.epoch == over.epoch && at.seq >= over.seq;
                return self.over.filter(|over| passed(*over)).map(|_| self.end());
            }
            _ => {}
        }
        None
    }

    fn end(&self) -> Ended {
        self.summary.map_or(Ended::Untold, Ended::As)
    }
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
                 watch it: sessionctl attach {word}\n  \
                 stop it:  sessionctl abort {word}"
            );
            Stop::failed(Exit::Interrupted, words)
        }
        stop => stop,
    }
}

fn unknown(session: &SessionRef) -> Stop {
    let word = hint::word(session);
    let words = format!(
        "the compaction is over, but nobody was told how it ended\n  \
         a summary is an entry: sessionctl entries {word}"
    );
    Stop::failed(Exit::Unknown, words)
}
