//! `sessionctl capabilities`.

use sessionplane_core::contract::{CapabilityTarget, SessionControl as _};

use crate::cli::args::TargetArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::Effect;
use crate::cli::json;
use crate::cli::render::capability_lines;
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: TargetArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.clone();
    let call = context
        .client
        .get_capabilities(target(args)?, context.call());
    let report = context.patiently(screen, Effect::Reads, call).await?;
    let report = report.map_err(|error| context.stop(error, session.as_ref(), Effect::Reads))?;
    if context.globals.json {
        screen.json(&json::capabilities(&report))?;
    } else {
        screen.line(&capability_lines(&report, screen.width()).join("\n"))?;
    }
    Ok(Exit::Done)
}

/// What is asked about.
pub(super) fn target(args: TargetArgs) -> Result<CapabilityTarget, Stop> {
    match (args.session, args.agent) {
        (Some(session), _) => Ok(CapabilityTarget::Session(session)),
        (None, Some(agent)) => Ok(CapabilityTarget::Agent(agent)),
        (None, None) => Err(Stop::usage("name a session, or an agent with --agent")),
    }
}
