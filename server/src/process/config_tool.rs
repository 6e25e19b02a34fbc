//! `sessiond config`: what the configuration says, and what is wrong with it.
//!
//! What must never enter: a start of the server.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

use crate::config::{self, ConfigError, Problem, Settings, Source, Sources};

/// What to do with the configuration.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Say everything that is wrong with it: where, the limit, the way out. Exit 1 if anything is.
    Check,
    /// Each effective value and where it comes from; of one KEY also what it does.
    Explain {
        /// A setting's key, for example `limits.ring_events`.
        key: Option<String>,
    },
    /// A JSON Schema of the file, for editors.
    Schema,
    /// The page `docs/configuration.md`.
    #[command(hide = true)]
    Page,
}

/// Does it, and tells what a shell is told.
#[must_use]
pub fn run(command: &ConfigCommand, sources: &Sources) -> ExitCode {
    let told = match command {
        ConfigCommand::Check => check(sources),
        ConfigCommand::Explain { key } => explain(sources, key.as_deref()),
        ConfigCommand::Schema => Ok(format!("{:#}\n", config::schema())),
        ConfigCommand::Page => Ok(config::page()),
    };
    let (text, code) = match told {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(error) => {
            let text = format!("{error}\n");
            // A closed standard error has nobody to tell.
            let _ = std::io::stderr().write_all(text.as_bytes());
            return ExitCode::FAILURE;
        }
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        // Whoever reads only the beginning has read enough.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => code,
    }
}

fn check(sources: &Sources) -> Result<String, String> {
    let (settings, mut problems) = config::look(sources).map_err(|error| error.to_string())?;
    problems.extend(of_this_host(&settings));
    if problems.is_empty() {
        return Ok("the configuration is right\n".to_owned());
    }
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    Err(lines.join("\n"))
}

/// What only this host can tell: whether a directory is there.
fn of_this_host(settings: &Settings) -> Vec<Problem> {
    let spaces = settings.workspaces.iter();
    let missing = spaces.filter(|(_, space)| !is_directory(&space.root));
    let told = missing.map(|(name, space)| {
        let key = format!("workspaces.{name}.root");
        let source = settings.source(&key).cloned().unwrap_or(Source::Default);
        let what = format!(
            "{} is no directory that can be read; make it, or name another",
            space.root.display()
        );
        Problem { source, key, what }
    });
    told.collect()
}

fn is_directory(path: &Path) -> bool {
    // One without a value is told as missing already.
    path.as_os_str().is_empty() || std::fs::read_dir(path).is_ok()
}

/// Values that are refused take no effect, so none is told as effective where one is wrong.
fn explain(sources: &Sources, key: Option<&str>) -> Result<String, String> {
    let told = |error: ConfigError| error.to_string();
    let (settings, problems) = config::look(sources).map_err(told)?;
    if !problems.is_empty() {
        return Err(told(ConfigError::Problems(problems)));
    }
    match key {
        Some(key) => config::explain_one(&settings, key).map_err(told),
        None => Ok(config::explain(&settings)),
    }
}
