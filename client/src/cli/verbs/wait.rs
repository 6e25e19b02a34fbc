//! `sessionctl wait`: until a run has settled, or a compaction is over, across everything that
//! breaks meanwhile.

use sessionplane_core::contract::{Agent as _, CallOptions};
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::ids::{RunId, SessionRef};
use sessionplane_core::domain::run::{RunOutcome, RunRecord};
use sessionplane_core::domain::view::SessionView;

use super::compaction;
use crate::cli::args::WaitArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::program::PROGRAM;
use crate::cli::render::settled_lines;
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: WaitArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let named = named_run(&args.target, context, screen).await?;
    let run = if let Some(run) = named {
        run
    } else {
        let state = context.state(&args.target, screen).await?;
        if state.view.compacting {
            return compaction::until_over(&args.target, &state, context, screen).await;
        }
        run_of(&args.target, &state.view)?
    };
    context.goes_on(format!("run {run} has not settled"), &run.to_string());
    let call = context.client.wait_run(run, CallOptions::default());
    let words = format!("run {run} works");
    let record = context.waiting(screen, Effect::Reads, &words, call).await?;
    let record = record.map_err(|error| context.stop(error, run, Effect::Reads))?;
    tell(&record, context, screen)
}

/// The run that is meant, if the target is one's id. The ids of runs and of sessions look alike,
/// and none is both.
async fn named_run(
    target: &SessionRef,
    context: &Context,
    screen: &mut Screen,
) -> Result<Option<RunId>, Stop> {
    let SessionRef::Id(id) = target else {
        return Ok(None);
    };
    let run = RunId::from_bytes(id.to_bytes());
    let call = context.client.get_run(run, CallOptions::default());
    match context.patiently(screen, Effect::Reads, call).await? {
        Ok(_) => Ok(Some(run)),
        Err(error) if error.reason == Reason::NoSuchRun => Ok(None),
        Err(error) => Err(context.stop(error, run, Effect::Reads)),
    }
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
