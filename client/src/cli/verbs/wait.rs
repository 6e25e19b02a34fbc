//! `sessionctl wait`: until a run has settled, or a compaction is over, across everything that
//! breaks meanwhile.

use std::collections::BTreeSet;

use sessionplane_core::contract::{Agent as _, CallOptions, EventFilter, SessionState};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::{InteractionId, RunId, SessionId, SessionRef};
use sessionplane_core::domain::interaction::Interaction;
use sessionplane_core::domain::run::{RunOutcome, RunRecord};
use sessionplane_core::domain::view::SessionView;

use super::compaction;
use crate::cli::args::WaitArgs;
use crate::cli::context::{Context, IMPATIENCE};
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::program::PROGRAM;
use crate::cli::render::{Desk, asked, called, settled_lines};
use crate::cli::screen::Screen;
use crate::clock::instant;
use crate::watch::{Watch, WatchItem, WatchOptions};

pub(super) async fn run(
    args: WaitArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let named = named_run(&args.target, context, screen).await?;
    let (run, session, state) = if let Some(record) = named {
        (record.id, record.session, None)
    } else {
        let state = state(&args.target, context, screen).await?;
        if state.view.compacting {
            return compaction::until_over(&args.target, &state, context, screen).await;
        }
        let run = run_of(&args.target, &state.view)?;
        (run, state.view.session.id, Some(state))
    };
    context.goes_on(format!("run {run} has not settled"), &run.to_string());
    let desk = state.as_ref().map(|state| Desk::Shell(called(&state.view)));
    let mut asking = Asking::of(run, desk.unwrap_or_default());
    if let Some(state) = &state {
        asking.tell(asking.of_view(&state.view), screen)?;
    }
    let record = settled(session, asking, context, screen).await?;
    let record = record.map_err(|error| context.stop(error, run, Effect::Reads))?;
    tell(&record, context, screen)
}

/// The run that is meant, if the target is one's id. The ids of runs and of sessions look alike,
/// and none is both.
async fn named_run(
    target: &SessionRef,
    context: &Context,
    screen: &mut Screen,
) -> Result<Option<RunRecord>, Stop> {
    let SessionRef::Id(id) = target else {
        return Ok(None);
    };
    let run = RunId::from_bytes(id.to_bytes());
    let call = context.client.get_run(run, CallOptions::default());
    match context.patiently(screen, Effect::Reads, call).await? {
        Ok(record) => Ok(Some(record)),
        Err(error) if error.reason == Reason::NoSuchRun => Ok(None),
        Err(error) => Err(context.stop(error, run, Effect::Reads)),
    }
}

/// Waits for the run's end. Does it take long, a person is told so, and of every question that the
/// run waits with: nobody else may be there to see it.
async fn settled(
    session: SessionId,
    mut asking: Asking,
    context: &Context,
    screen: &mut Screen,
) -> Result<Result<RunRecord, CallError>, Stop> {
    let run = asking.run;
    let call = context.client.wait_run(run, CallOptions::default());
    let mut call = std::pin::pin!(call);
    let begun = instant();
    let mut ticks = tokio::time::interval_at(begun + IMPATIENCE, IMPATIENCE);
    let mut watch = None;
    let mut watched = false;
    loop {
        tokio::select! {
            biased;
            () = context.interrupts.pressed() => {
                return Err(hint::interrupted(Effect::Reads, context));
            }
            record = &mut call => return Ok(record),
            item = next(&mut watch) => match item {
                Some(Ok(item)) => {
                    let questions = asking.note(&item);
                    asking.tell(questions, screen)?;
                }
                // The run is waited for all the same.
                Some(Err(_)) | None => watch = None,
            },
            _ = ticks.tick() => {
                if !std::mem::replace(&mut watched, true) {
                    watch = Some(context.client.watch(SessionRef::Id(session), questions(context)));
                }
                let seconds = (instant() - begun).as_secs();
                let does = if asking.is_open() { "waits for an answer" } else { "works" };
                screen.status(&format!("run {run} {does}… {seconds} s"))?;
            }
        }
    }
}

/// A watch of nothing but questions; its snapshot tells which are open.
fn questions(context: &Context) -> WatchOptions {
    let types = ["interaction_requested", "interaction_resolved"];
    WatchOptions {
        filter: EventFilter {
            types: types.map(str::to_owned).into(),
            no_thinking: true,
        },
        open_deadline: context.opening(),
        ..WatchOptions::default()
    }
}

async fn next(watch: &mut Option<Watch>) -> Option<Result<WatchItem, CallError>> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

/// The questions that a run waits with. Each is told once.
struct Asking {
    run: RunId,
    /// The number of the last one that was told: a run counts what it asks.
    told: u32,
    open: BTreeSet<InteractionId>,
    /// How they are answered.
    desk: Desk,
}

impl Asking {
    fn of(run: RunId, desk: Desk) -> Self {
        Self {
            desk,
            run,
            told: 0,
            open: BTreeSet::new(),
        }
    }

    fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The questions that are open in a state.
    fn of_view(&self, view: &SessionView) -> Vec<Interaction> {
        let all = view.open_interactions();
        all.filter(|asked| asked.id.run == self.run)
            .cloned()
            .collect()
    }

    /// Keeps in mind what an item tells; the questions that it tells of.
    fn note(&mut self, item: &WatchItem) -> Vec<Interaction> {
        match item {
            WatchItem::Snapshot(state) => {
                self.open.clear();
                self.of_view(&state.view)
            }
            WatchItem::Event(envelope) => match &envelope.event.body {
                EventBody::InteractionRequested { interaction }
                    if interaction.id.run == self.run =>
                {
                    vec![(**interaction).clone()]
                }
                EventBody::InteractionResolved { id, .. } => {
                    self.open.remove(id);
                    Vec::new()
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    fn tell(&mut self, questions: Vec<Interaction>, screen: &mut Screen) -> Result<(), Stop> {
        for question in questions {
            self.open.insert(question.id);
            if question.id.ordinal > self.told {
                self.told = question.id.ordinal;
                screen.put(&asked(&question, &self.desk))?;
            }
        }
        Ok(())
    }
}

/// The state of a session that is no run.
async fn state(
    session: &SessionRef,
    context: &Context,
    screen: &mut Screen,
) -> Result<SessionState, Stop> {
    let state = context.state(session, screen).await;
    state.map_err(|stop| match (stop, session) {
        (
            Stop::Failed {
                exit,
                error: Some(error),
                ..
            },
            SessionRef::Id(id),
        ) if error.reason == Reason::NoSuchSession => Stop::Failed {
            exit,
            words: format!(
                "there is neither a run nor a session {id}\n  \
                 the runs of a session: {PROGRAM} runs SESSION"
            ),
            error: Some(error),
        },
        (stop, _) => stop,
    })
}

/// The run that is active in a session, or was last.
fn run_of(session: &SessionRef, view: &SessionView) -> Result<RunId, Stop> {
    let last = view.last_run.as_ref().map(|last| last.run);
    view.active_run.or(last).ok_or_else(|| {
        let word = hint::word(session);
        let words = format!(
            "session \"{session}\" has had no run\n  start one: {PROGRAM} invoke {word} \"...\""
        );
        Stop::failed(Exit::Failed, words)
    })
}

fn tell(record: &RunRecord, context: &Context, screen: &mut Screen) -> Result<Exit, Stop> {
    if context.globals.json {
        screen.json(&json::run(record))?;
    } else {
        screen.line(&settled_lines(record).join("\n"))?;
    }
    match record.settled.as_ref().map(|settled| &settled.outcome) {
        Some(RunOutcome::Completed) => Ok(Exit::Done),
        Some(RunOutcome::Failed(_) | RunOutcome::Aborted) => Ok(Exit::Failed),
        None => Ok(Exit::Unknown),
    }
}
