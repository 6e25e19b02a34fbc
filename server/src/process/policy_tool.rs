//! `sessiond policy`: what policies are written against, what is wrong with some, and whether they say
//! what is meant.
//!
//! What must never enter: a start of the server.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use sessionplane_core::domain::ids::{PrincipalId, TenantId};

use crate::adapters::authn::{OWNER_ID, OWNER_TENANT};
use crate::adapters::authz::expectations::hold;
use crate::adapters::authz::{CedarAuthorizer, DEFAULT_SET, PolicySource, SCHEMA};
use crate::adapters::plain_file;
use crate::config::{self, Sources};

/// Largest table of expectations that is read, in bytes.
const MAX_TABLE_BYTES: u64 = 1024 * 1024;

/// What to do with policies.
#[derive(Debug, Clone, Subcommand)]
pub enum PolicyCommand {
    /// The schema that policies are checked against: what they may name.
    Schema,
    /// The default set: what holds unless it is turned off.
    Default,
    /// Say everything that is wrong with policies: file, line, the way out. Exit 1 if anything is.
    Lint {
        /// Files of policies; without any those of the configuration.
        files: Vec<PathBuf>,
    },
    /// Hold policies to a table of expectations. Exit 1 if anything is otherwise.
    Test {
        /// The table (TOML), as docs/policy.md describes it.
        table: PathBuf,
        /// Files of policies; without any those of the configuration. The default set is among them,
        /// unless the configuration turns it off.
        files: Vec<PathBuf>,
    },
}

/// Does it, and tells what a shell is told.
#[must_use]
pub fn run(command: &PolicyCommand, sources: &Sources) -> ExitCode {
    let told = match command {
        PolicyCommand::Schema => Ok(SCHEMA.to_owned()),
        PolicyCommand::Default => Ok(DEFAULT_SET.to_owned()),
        PolicyCommand::Lint { files } => lint(files, sources),
        PolicyCommand::Test { table, files } => test(table, files, sources),
    };
    match told {
        Ok(text) => match std::io::stdout().write_all(text.as_bytes()) {
            // Whoever reads only the beginning has read enough.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        },
        Err(text) => {
            // A closed standard error has nobody to tell.
            let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn lint(files: &[PathBuf], sources: &Sources) -> Result<String, String> {
    let opened = opened(files, sources)?;
    Ok(format!("{} policies are right\n", opened.count()))
}

fn test(table: &Path, files: &[PathBuf], sources: &Sources) -> Result<String, String> {
    let opened = opened(files, sources)?;
    let place = table.display();
    let unreadable = |what: String| format!("{place}: {what}");
    let text = plain_file::read(table, MAX_TABLE_BYTES);
    let text = text.map_err(|error| unreadable(format!("cannot be read: {error}")))?;
    let text = String::from_utf8(text);
    let text = text.map_err(|_| unreadable("is no text in UTF-8".to_owned()))?;
    let outcome = hold(&opened, &text).map_err(unreadable)?;
    let all = outcome.right + outcome.wrong.len();
    if outcome.wrong.is_empty() {
        return Ok(format!("{all} expectations hold\n"));
    }
    let wrong = outcome.wrong.iter().map(|line| format!("\n  {line}"));
    let wrong: String = wrong.collect();
    let right = outcome.right;
    Err(format!(
        "{place}: {right} of {all} expectations hold{wrong}"
    ))
}

/// The policies of these files, or of the configuration, as a server would have them.
fn opened(files: &[PathBuf], sources: &Sources) -> Result<CedarAuthorizer, String> {
    let settings = config::load(sources).map_err(|error| error.to_string())?;
    let mut paths = settings.policy.paths();
    if !files.is_empty() {
        (paths.files, paths.dir) = (files.to_vec(), None);
    }
    let sources: Vec<PolicySource> = paths.read().map_err(|error| error.to_string())?;
    let parsed = (TenantId::parse(OWNER_TENANT), PrincipalId::parse(OWNER_ID));
    let (Ok(tenant), Ok(owner)) = parsed else {
        return Err("a built-in name is malformed".to_owned());
    };
    CedarAuthorizer::open((tenant, owner), &sources).map_err(|error| error.to_string())
}
