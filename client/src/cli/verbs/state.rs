//! `sessionctl state`.

use sessionplane_core::contract::SessionControl as _;

use crate::cli::args::SessionArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::Effect;
use crate::cli::json;
use crate::cli::render::state_lines;
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: SessionArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session;
    let call = context
        .client
        .get_state(session.clone(), None, context.call());
    let state = context.patiently(screen, Effect::Reads, call).await?;
    let state = state.map_err(|error| context.stop(error, Some(&session), Effect::Reads))?;
    if context.globals.json {
        screen.json(&json::state(&state))?;
    } else {
        screen.line(&state_lines(&state).join("\n"))?;
    }
    Ok(Exit::Done)
}
