//! The verbs that ask no server, and so need neither an address nor a token: `version`,
//! `completions` and `man`.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::args::{Arguments, Verb};
use crate::cli::completing;
use crate::cli::exit::{Exit, Stop};
use crate::cli::json as answer;
use crate::cli::screen::Screen;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const API: &str = "sessionplane.v1";
const PROGRAM: &str = "sessionctl";

/// Runs a verb that asks no server; none if it is another.
pub(crate) fn run(verb: &Verb, json: bool, screen: &mut Screen) -> Option<Result<Exit, Stop>> {
    Some(match verb {
        Verb::Version => version(json, screen),
        Verb::Completions(args) => completions(args.shell, json, screen),
        Verb::Man(args) => pages(&args.folder, json, screen),
        Verb::Audit(args) => return super::audit::alone(args, json, screen),
        _ => return None,
    })
}

fn version(json: bool, screen: &mut Screen) -> Result<Exit, Stop> {
    if json {
        screen.json(&answer::version(VERSION, API))?;
    } else {
        screen.line(&format!("sessionctl {VERSION}, API {API}"))?;
    }
    Ok(Exit::Done)
}

fn completions(shell: Shell, json: bool, screen: &mut Screen) -> Result<Exit, Stop> {
    let script = completing::script(&shell.to_string());
    let script = script.map_err(|error| Stop::failed(Exit::Failed, error.to_string()))?;
    if json {
        screen.json(&answer::completions(&shell.to_string(), &script))?;
    } else {
        screen.line(script.trim_end())?;
    }
    Ok(Exit::Done)
}

/// One page for the whole and one for each command.
fn pages(folder: &Path, json: bool, screen: &mut Screen) -> Result<Exit, Stop> {
    let unwritten = |error: std::io::Error| {
        let words = format!(
            "cannot write manual pages into {}: {error}",
            folder.display()
        );
        Stop::failed(Exit::Failed, words)
    };
    std::fs::create_dir_all(folder).map_err(unwritten)?;
    clap_mangen::generate_to(Arguments::command(), folder).map_err(unwritten)?;
    if json {
        screen.json(&answer::pages(folder))?;
        return Ok(Exit::Done);
    }
    screen.aside(&format!(
        "wrote {}/{PROGRAM}.1 and one for each command",
        folder.display()
    ))?;
    Ok(Exit::Done)
}
