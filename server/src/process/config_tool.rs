//! `sessiond config`: what the configuration says, and what is wrong with it.
//!
//! What must never enter: a start of the server.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;

use super::ProcessError;
use crate::adapters::clock::TokioClock;
use crate::config::{self, ConfigError, Problem, Settings, Source, Sources};
use crate::grpc::listener::Address;

/// What to do with the configuration.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Say everything that is wrong with it: where, the limit, the way out. Exit 1 if anything is.
    Check,
    /// Each effective value and where it comes from; of one KEY also what it does.
    Explain {
        /// A setting's key, for example `limits.ring_events`; or a section, for example `limits`.
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
    problems.extend(unguarded(&settings));
    problems.extend(config::doubtful(sources));
    if problems.is_empty() {
        return Ok("the configuration is right\n".to_owned());
    }
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    Err(lines.join("\n"))
}

/// Why a server would not listen where others than this host reach it. The tools that need no
/// listener take such a configuration: tokens are made before there is a certificate.
fn unguarded(settings: &Settings) -> Option<Problem> {
    // Who is configured in a wrong way was told of.
    let tls = settings.tls.settings().map_or(true, |tls| tls.is_some());
    let identities = !settings.identity.principals.is_empty();
    let address: Address = settings.listen.parse().ok()?;
    let lacks = address.lacks(tls, identities)?;
    Some(Problem {
        source: settings
            .source("listen")
            .cloned()
            .unwrap_or(Source::Default),
        key: "listen".to_owned(),
        what: format!(
            "is {:?}, which others than this host reach, and {lacks}; or use 127.0.0.1:PORT or \
             unix:/PATH",
            settings.listen
        ),
    })
}

/// What only this host can tell: whether a directory is there, and what is in the files of TLS.
fn of_this_host(settings: &Settings) -> Vec<Problem> {
    let tls = super::identity::tls_files(settings, Arc::new(TokioClock::start()));
    // What is wrong with the settings themselves was told with their place.
    let tls = match tls {
        Err(ProcessError::Tls(error)) => Some(Problem {
            source: settings
                .source(error.key())
                .cloned()
                .unwrap_or(Source::Default),
            // It begins with its key.
            key: String::new(),
            what: error.to_string(),
        }),
        _ => None,
    };
    let all = tls.into_iter().chain(missing_roots(settings));
    all.chain(wrong_policies(settings)).collect()
}

/// What keeps a start from the policies that it is to hold to.
fn wrong_policies(settings: &Settings) -> Option<Problem> {
    let opened = super::identity::policies(settings, Arc::new(TokioClock::start()));
    let error = opened.err()?;
    let keys = ["policy.files", "policy.dir", "policy.default_set"];
    let mut sources = keys.iter().filter_map(|key| settings.source(key));
    Some(Problem {
        source: sources.next().cloned().unwrap_or(Source::Default),
        // It says itself what it is about.
        key: String::new(),
        what: error.to_string(),
    })
}

fn missing_roots(settings: &Settings) -> Vec<Problem> {
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
