//! `sessionctl run`.

use sessionplane_core::contract::Agent as _;
use sessionplane_core::domain::ids::{RunId, SessionRef};

use crate::cli::args::RunArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::program::PROGRAM;
use crate::cli::render::run_lines;
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: RunArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let run = named(&args.run)?;
    let call = context.client.get_run(run, context.call());
    let record = context.patiently(screen, Effect::Reads, call).await?;
    let record = record.map_err(|error| context.stop(error, run, Effect::Reads))?;
    if context.globals.json {
        screen.json(&json::run(&record))?;
    } else {
        screen.line(&run_lines(&record).join("\n"))?;
    }
    Ok(Exit::Done)
}

/// The run that is meant. The ids of runs and of sessions look alike.
fn named(target: &SessionRef) -> Result<RunId, Stop> {
    match target {
        SessionRef::Id(id) => Ok(RunId::from_bytes(id.to_bytes())),
        session => {
            let word = hint::word(session);
            Err(Stop::usage(format!(
                "\"{session}\" is not the id of a run\n  \
                 if it is a session: {PROGRAM} runs {word}"
            )))
        }
    }
}
