//! `sessiond token`: makes, lists and revokes the tokens of configured principals, beside a running
//! server or without one.
//!
//! What is inside: `shown` puts into words what is known of tokens. What must never enter: a token
//! anywhere but in the one line of standard output that shows it.

mod shown;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::clock::Clock as _;

use self::shown::{kind_name, list, object, trust_name};
use super::date;
use super::{ProcessError, data_dir, data_directory};
use crate::adapters::authn::{BookError, Grant, LIFETIME_AT_MOST, Registered, TokenBook, TokenId};
use crate::adapters::clock::TokioClock;
use crate::config::{ConfigError, Settings};

/// What the data directory's user is told to do.
const COMMAND: &str = "sessiond token";

/// How long a token lives unless told otherwise.
const LIFETIME: &str = "90d";

/// What `sessiond token` does.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token for a configured principal and show it, once
    ///
    /// The token is the only line of standard output. A running server knows it within two seconds.
    /// A principal can have two live tokens: the old one and its successor.
    Create(CreateArgs),
    /// List the tokens, and when each was used last, as of a minute ago; their secrets are nowhere
    List(ListArgs),
    /// End a token: calls are refused and streams end within five seconds
    Revoke(RevokeArgs),
}

/// What a new token is to be.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Who gets it: a NAME of [identity.principals.NAME]
    #[arg(long, value_name = "NAME")]
    principal: String,
    /// The principal's tenant, to be sure: another one than configured is refused
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// The principal's kind, to be sure: another one than configured is refused
    #[arg(long)]
    kind: Option<Kind>,
    /// The most trust that it can give to a text
    #[arg(long, default_value = "relayed")]
    trust: TrustCeiling,
    /// How long it lives: 90d, 12h, 15m, 30s or never
    #[arg(long, value_name = "TIME", default_value = LIFETIME, value_parser = lifetime)]
    expires: Lifetime,
    /// Give it only these of the principal's groups; may be repeated
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// Put it in a new file that nobody but you can read, instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
}

/// How to list them.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// What to end.
#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// Ids: the eight characters after sp_
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

/// What a principal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Human,
    Service,
    Agent,
}

/// The most trust that a token can give to a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TrustCeiling {
    /// What it sends is data
    Untrusted,
    /// What it sends is an instruction that somebody relayed
    Relayed,
    /// Refused here
    #[value(hide = true)]
    Typed,
}

/// How long a token lives; none: until it is revoked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lifetime(Option<Duration>);

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The configuration or the data directory is unusable.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The configuration is unusable.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The tokens cannot be read or changed.
    #[error(transparent)]
    Book(#[from] BookError),
    /// It makes no sense, or must not be.
    #[error("{0}")]
    Refused(String),
    /// Nobody reads the answer.
    #[error("the answer cannot be written: {0}")]
    Output(#[from] io::Error),
    /// Nobody has seen the token that was made.
    #[error("the token cannot be shown: {error}; {fate}")]
    Unseen {
        /// What the system said.
        #[source]
        error: io::Error,
        /// What has become of the token.
        fate: String,
    },
}

/// Does it. `file` is where the configuration came from.
///
/// # Errors
/// See [`TokenError`]. A token that could not be shown is revoked again; of several that are to be
/// revoked those are that can be. Else nothing was changed.
pub fn run(
    command: &TokenCommand,
    config: &Settings,
    file: Option<&Path>,
) -> Result<(), TokenError> {
    let directory = data_directory(config)?;
    let now = TokioClock::start().now();
    let book = TokenBook::of(&directory);
    match command {
        TokenCommand::Create(args) => {
            let grant = grant(args, config, file)?;
            put(args, &grant, config)
        }
        TokenCommand::List(args) => {
            is_there(&directory)?;
            let (records, uses) = (book.read()?, book.uses());
            Ok(list(
                &records,
                &uses,
                args.json,
                now,
                &mut io::stdout().lock(),
            )?)
        }
        TokenCommand::Revoke(args) => {
            is_there(&directory)?;
            data_dir::belongs_to_us(&directory, COMMAND)?;
            revoke(&book, &args.ids, now, &mut io::stdout().lock())
        }
    }
}

/// What a person who logs in gets.
pub(super) struct Wanted {
    pub(super) principal: String,
    pub(super) expires: Lifetime,
    pub(super) out: PathBuf,
}

/// Makes a token that can say of texts that they were typed, for a person who was asked.
pub(super) fn make(
    wanted: Wanted,
    config: &Settings,
    file: Option<&Path>,
) -> Result<(), TokenError> {
    let args = CreateArgs {
        principal: wanted.principal,
        tenant: None,
        kind: None,
        trust: TrustCeiling::Relayed,
        expires: wanted.expires,
        groups: Vec::new(),
        out: Some(wanted.out),
        json: false,
    };
    let mut grant = grant(&args, config, file)?;
    if grant.holder.kind != PrincipalKind::Human {
        let (name, kind) = (&grant.holder.id, kind_name(grant.holder.kind));
        return Err(TokenError::Refused(format!(
            "{name} is of kind {kind}, and only a human logs in; use sessiond token create"
        )));
    }
    grant.ceiling = Trust::Typed;
    put(&args, &grant, config)
}

/// Makes it, and shows it where it is to be shown.
fn put(args: &CreateArgs, grant: &Grant, config: &Settings) -> Result<(), TokenError> {
    let directory = data_directory(config)?;
    let (now, book) = (TokioClock::start().now(), TokenBook::of(&directory));
    let (out, aside) = (&mut io::stdout().lock(), &mut io::stderr().lock());
    data_dir::belongs_to_us(&directory, COMMAND)?;
    data_dir::prepare(&directory)?;
    match args.out.as_deref() {
        None => create(&book, grant, args, now, (out, aside)),
        Some(path) => {
            let mut file = Private::make(path)?;
            let made = create(&book, grant, args, now, (&mut file, aside));
            // Nothing was made, or it is revoked again.
            made.inspect_err(|_| drop(fs::remove_file(path)))
        }
    }
}

/// Whoever is not told of where the data is would take another server's tokens for none at all.
fn is_there(directory: &Path) -> Result<(), TokenError> {
    let why = match fs::metadata(directory) {
        Ok(found) if found.is_dir() => return Ok(()),
        // Where it may be there, another one is not the way out.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(TokenError::Refused(format!(
                "the data directory {} cannot be looked at: {error}; do it as the server's user",
                directory.display()
            )));
        }
        _ => "there is no data directory",
    };
    Err(TokenError::Refused(format!(
        "{why} {}; name the server's with --data-dir",
        directory.display()
    )))
}

/// Never repeats what it was given: it may be a secret.
fn id(text: &str) -> Result<TokenId, TokenError> {
    TokenId::parse(text).ok_or_else(|| {
        TokenError::Refused(
            "that is no token id: an id is the eight letters and digits after sp_; `sessiond token \
             list` shows them"
                .to_owned(),
        )
    })
}

pub(super) fn lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "never" {
        return Ok(Lifetime(None));
    }
    let length = date::length(text)?;
    if length.is_zero() || length > LIFETIME_AT_MOST {
        return Err("must be more than nothing and at most ten years (3660d), or never".to_owned());
    }
    Ok(Lifetime(Some(length)))
}

fn grant(args: &CreateArgs, config: &Settings, file: Option<&Path>) -> Result<Grant, TokenError> {
    let ceiling = match args.trust {
        TrustCeiling::Untrusted => Trust::Untrusted,
        TrustCeiling::Relayed => Trust::Relayed,
        TrustCeiling::Typed => {
            return Err(TokenError::Refused(
                "no token can say of a text that a person typed it: whoever holds the token could \
                 claim that for any text. Make it with --trust relayed; what it sends is then an \
                 instruction that names its sender (a person at a terminal: sessiond login)"
                    .to_owned(),
            ));
        }
    };
    let (registered, _wrong) = config.identity.registered();
    let known = registered
        .iter()
        .find(|one| one.id.as_str() == args.principal);
    let holder = known.ok_or_else(|| unknown_principal(&args.principal, &registered, file))?;
    fits(args, holder)?;
    let absent = args
        .groups
        .iter()
        .find(|group| !holder.groups.contains(group));
    if let Some(group) = absent {
        return Err(TokenError::Refused(format!(
            "{} is not in the group {group:?}; a token has its principal's groups ({}) or fewer",
            holder.id,
            holder.groups.join(", ")
        )));
    }
    Ok(Grant {
        holder: holder.clone(),
        groups: (!args.groups.is_empty()).then(|| args.groups.clone()),
        ceiling,
        lifetime: args.expires.0,
    })
}

fn unknown_principal(name: &str, known: &[Registered], file: Option<&Path>) -> TokenError {
    let place = match file {
        Some(file) => format!("add [identity.principals.{name}] to {}", file.display()),
        None => format!(
            "name the server's configuration with --config, with [identity.principals.{name}] in it"
        ),
    };
    let there = match known {
        [] => "none is configured".to_owned(),
        known => {
            let names: Vec<&str> = known.iter().map(|one| one.id.as_str()).collect();
            format!("there are: {}", names.join(", "))
        }
    };
    TokenError::Refused(format!(
        "there is no principal {name:?}; {there}\n  {place}, and start the server again: it reads \
         its principals at the start"
    ))
}

/// Whether the principal is what the command line takes it for.
fn fits(args: &CreateArgs, holder: &Registered) -> Result<(), TokenError> {
    let other = |what: &str, is: &str| {
        TokenError::Refused(format!(
            "the {what} of {} is {is} in the configuration; leave --{what} out, or change it there",
            holder.id
        ))
    };
    if args
        .tenant
        .as_deref()
        .is_some_and(|tenant| tenant != holder.tenant.as_str())
    {
        return Err(other("tenant", holder.tenant.as_str()));
    }
    let kind = args.kind.map(|kind| match kind {
        Kind::Human => PrincipalKind::Human,
        Kind::Service => PrincipalKind::Service,
        Kind::Agent => PrincipalKind::Agent,
    });
    if kind.is_some_and(|kind| kind != holder.kind) {
        return Err(other("kind", kind_name(holder.kind)));
    }
    Ok(())
}

fn create(
    book: &TokenBook,
    grant: &Grant,
    args: &CreateArgs,
    now: Timestamp,
    (out, aside): (&mut impl Write, &mut impl Write),
) -> Result<(), TokenError> {
    let (record, token) = book.create(grant, now)?;
    let shown = if args.json {
        let mut object = object(&record, None, now);
        object["token"] = token.reveal().into();
        writeln!(out, "{object}")
    } else {
        writeln!(out, "{}", token.reveal())
    };
    if let Err(error) = shown.and_then(|()| out.flush()) {
        return Err(unseen(book, &record.id, now, error));
    }
    if args.json {
        return Ok(());
    }
    let groups = record.groups.as_deref().unwrap_or(&grant.holder.groups);
    let groups = if groups.is_empty() {
        "none".to_owned()
    } else {
        groups.join(", ")
    };
    // The token was shown, whether anybody reads this or not.
    let _unread = writeln!(
        aside,
        "token {} of {} (tenant {}, {}): trust {}, groups {groups}, expires {}\n\
         it counts for the server of {}\n\
         {}",
        record.id,
        record.principal,
        record.tenant,
        kind_name(record.kind),
        trust_name(record.ceiling),
        record
            .expires
            .map_or_else(|| "never".to_owned(), date::moment),
        book.path()
            .parent()
            .unwrap_or_else(|| book.path())
            .display(),
        place(args.out.as_deref()),
    );
    Ok(())
}

/// What is to be done with a token that was shown.
fn place(out: Option<&Path>) -> String {
    match out {
        None => "it is shown this once; put it where its holder can read it and nobody else:\n  \
                 SESSIONPLANE_TOKEN_FILE=FILE, or SESSIONPLANE_TOKEN"
            .to_owned(),
        Some(path) => format!(
            "it is in {path}, which only you can read, and nowhere else; give it to its holder:\n  \
             SESSIONPLANE_TOKEN_FILE={path}",
            path = path.display()
        ),
    }
}

/// A new file that nobody but its maker can read; flushed, it is on the disk.
struct Private(File);

impl Private {
    fn make(path: &Path) -> Result<Self, TokenError> {
        let mut new = OpenOptions::new();
        let opened = new.write(true).create_new(true).mode(0o600).open(path);
        opened.map(Self).map_err(|error| {
            let why = if error.kind() == io::ErrorKind::AlreadyExists {
                "is there already, and is not replaced; name another file".to_owned()
            } else {
                format!("cannot be made: {error}")
            };
            TokenError::Refused(format!("{} {why}; no token was made", path.display()))
        })
    }
}

impl Write for Private {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }
}

/// A token that nobody has seen would take one of its principal's two places for nothing.
fn unseen(book: &TokenBook, id: &TokenId, now: Timestamp, error: io::Error) -> TokenError {
    let fate = match book.revoke(id, now) {
        Ok(_) => format!("it was made, and token {id} is revoked again"),
        Err(failed) => format!("revoke it: sessiond token revoke {id} ({failed})"),
    };
    TokenError::Unseen { error, fate }
}

/// Ends all that can be ended: one that is mistyped saves no other.
fn revoke(
    book: &TokenBook,
    texts: &[String],
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), TokenError> {
    let (mut failed, mut written) = (Vec::new(), Ok(()));
    for text in texts {
        let done = id(text).and_then(|id| Ok((book.revoke(&id, now)?, id)));
        let line = match done {
            Ok((true, id)) => {
                format!(
                    "token {id} is revoked: calls are refused and streams end within five seconds"
                )
            }
            Ok((false, id)) => format!("token {id} was revoked before"),
            Err(error) => {
                failed.push(error);
                continue;
            }
        };
        written = written.and(writeln!(out, "{line}"));
    }
    match failed.pop() {
        None => Ok(written?),
        Some(only) if failed.is_empty() => Err(only),
        Some(last) => {
            let mut all: Vec<String> = failed.iter().map(ToString::to_string).collect();
            all.push(last.to_string());
            Err(TokenError::Refused(all.join("\n  ")))
        }
    }
}

#[cfg(test)]
#[path = "token/tests.rs"]
mod tests;
