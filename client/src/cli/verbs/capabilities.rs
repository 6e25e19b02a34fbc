//! `sessionctl capabilities`.

use sessionplane_core::contract::{CapabilityTarget, SessionControl as _};

use crate::cli::args::CapabilitiesArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::Effect;
use crate::cli::json;
use crate::cli::render::capability_lines;
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: CapabilitiesArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let target = match (args.session.clone(), args.agent) {
        (Some(session), _) => CapabilityTarget::Session(session),
        (None, Some(agent)) => CapabilityTarget::Agent(agent),
        (None, None) => return Err(Stop::usage("name a session, or an agent with --agent")),
    };
    let call = context.client.get_capabilities(target, context.call());
    let report = context.patiently(screen, Effect::Reads, call).await?;
    let report =
        report.map_err(|error| context.stop(error, args.session.as_ref(), Effect::Reads))?;
    if context.globals.json {
        screen.json(&json::capabilities(&report))?;
    } else {
        screen.line(&capability_lines(&report).join("\n"))?;
    }
    Ok(Exit::Done)
}
