//! `sessionctl commands`.

use sessionplane_core::contract::SessionControl as _;

use super::capabilities::target;
use crate::cli::args::TargetArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::Effect;
use crate::cli::json;
use crate::cli::render::offer_lines;
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: TargetArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.clone();
    let call = context.client.list_commands(target(args)?, context.call());
    let offered = context.patiently(screen, Effect::Reads, call).await?;
    let offered = offered.map_err(|error| context.stop(error, session.as_ref(), Effect::Reads))?;
    if context.globals.json {
        for offer in &offered {
            screen.json(&json::offered(offer))?;
        }
        return Ok(Exit::Done);
    }
    if offered.is_empty() {
        screen.aside("nothing is offered")?;
        return Ok(Exit::Done);
    }
    screen.line(&offer_lines(&offered, screen.width()).join("\n"))?;
    Ok(Exit::Done)
}
