//! `sessionctl version`. Asks no server, and so needs neither an address nor a token.

use crate::cli::exit::{Exit, Stop};
use crate::cli::json as answer;
use crate::cli::screen::Screen;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const API: &str = "sessionplane.v1";

pub(crate) fn run(json: bool, screen: &mut Screen) -> Result<Exit, Stop> {
    if json {
        screen.json(&answer::version(VERSION, API))?;
    } else {
        screen.line(&format!("sessionctl {VERSION}, API {API}"))?;
    }
    Ok(Exit::Done)
}
