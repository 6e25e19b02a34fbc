//! `sessionctl show`.

use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::Fleet as _;

use crate::cli::args::SessionArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::Effect;
use crate::cli::json;
use crate::cli::render::session_lines;
use crate::cli::screen::Screen;
use crate::clock::now;

pub(super) async fn run(
    args: SessionArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session;
    let call = context
        .client
        .get_session(session.clone(), CallOptions::default());
    let found = context.patiently(screen, Effect::Reads, call).await?;
    let found = found.map_err(|error| context.stop(error, Some(&session), Effect::Reads))?;
    if context.globals.json {
        screen.json(&json::session(&found))?;
    } else {
        screen.line(&session_lines(&found, now()).join("\n"))?;
    }
    Ok(Exit::Done)
}
