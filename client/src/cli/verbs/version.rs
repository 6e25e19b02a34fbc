//! `sessionctl version`. Asks no server: none tells its version.

use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::json;
use crate::cli::screen::Screen;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const API: &str = "sessionplane.v1";

pub(super) fn run(context: &Context, screen: &mut Screen) -> Result<Exit, Stop> {
    if context.globals.json {
        screen.json(&json::version(VERSION, API))?;
    } else {
        screen.line(&format!("sessionctl {VERSION}, API {API}"))?;
    }
    Ok(Exit::Done)
}
