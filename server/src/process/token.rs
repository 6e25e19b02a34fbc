//! `sessiond token`: makes, lists and revokes the tokens of configured principals, beside a running
//! server or without one.
//!
//! What must never enter: a token anywhere but in the one line of standard output that shows it.

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::clock::Clock as _;

use super::date;
use super::{ProcessError, data_dir, data_directory};
use crate::adapters::authn::{
    BookError, Grant, LIFETIME_AT_MOST, Registered, State, TokenBook, TokenId, TokenRecord,
};
use crate::adapters::clock::TokioClock;
use crate::config::{ConfigError, Settings};

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
    /// List the tokens; their secrets are nowhere
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
struct Lifetime(Option<Duration>);

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
}

/// Does it. `file` is where the configuration came from.
///
/// # Errors
/// See [`TokenError`]. Nothing was changed, unless the answer cannot be written.
pub fn run(
    command: &TokenCommand,
    config: &Settings,
    file: Option<&Path>,
) -> Result<(), TokenError> {
    let directory = data_directory(config)?;
    let now = TokioClock::start().now();
    let book = TokenBook::of(&directory);
    let (out, aside) = (&mut io::stdout().lock(), &mut io::stderr().lock());
    match command {
        TokenCommand::Create(args) => {
            let grant = grant(args, config, file)?;
            data_dir::prepare(&directory)?;
            belongs_to_us(&directory)?;
            create(&book, &grant, args.json, now, (out, aside))
        }
        TokenCommand::List(args) => {
            let records = book.read()?;
            Ok(list(&records, args.json, now, out)?)
        }
        TokenCommand::Revoke(args) => {
            let ids = args.ids.iter().map(|text| id(text));
            let ids = ids.collect::<Result<Vec<_>, _>>()?;
            belongs_to_us(&directory)?;
            for id in ids {
                let words = if book.revoke(&id, now)? {
                    "is revoked: calls are refused and streams end within five seconds"
                } else {
                    "was revoked before"
                };
                writeln!(out, "token {id} {words}")?;
            }
            Ok(())
        }
    }
}

/// A file that another user makes in the data directory is one that the server refuses.
fn belongs_to_us(directory: &Path) -> Result<(), TokenError> {
    let Ok(found) = std::fs::metadata(directory) else {
        return Err(TokenError::Refused(format!(
            "there is no data directory {}; name the server's with --data-dir",
            directory.display()
        )));
    };
    let us = rustix::process::geteuid().as_raw();
    if found.uid() == us {
        return Ok(());
    }
    Err(TokenError::Refused(format!(
        "the data directory {} belongs to user {owner}, and this is user {us}; do it as the server's \
         user: sudo -u '#{owner}' sessiond token ...",
        directory.display(),
        owner = found.uid()
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

fn lifetime(text: &str) -> Result<Lifetime, String> {
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
                 instruction that names its sender"
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
    json: bool,
    now: Timestamp,
    (out, aside): (&mut impl Write, &mut impl Write),
) -> Result<(), TokenError> {
    let (record, token) = book.create(grant, now)?;
    if json {
        let mut object = object(&record, now);
        object["token"] = token.reveal().into();
        writeln!(out, "{object}")?;
        out.flush()?;
        return Ok(());
    }
    writeln!(out, "{}", token.reveal())?;
    out.flush()?;
    let groups = record.groups.as_deref().unwrap_or(&grant.holder.groups);
    let groups = if groups.is_empty() {
        "none".to_owned()
    } else {
        groups.join(", ")
    };
    writeln!(
        aside,
        "token {} of {} (tenant {}, {}): trust {}, groups {groups}, expires {}\n\
         it is shown this once; put it where its holder can read it and nobody else:\n  \
         SESSIONPLANE_TOKEN_FILE=FILE, or SESSIONPLANE_TOKEN",
        record.id,
        record.principal,
        record.tenant,
        kind_name(record.kind),
        trust_name(record.ceiling),
        record
            .expires
            .map_or_else(|| "never".to_owned(), date::moment),
    )?;
    Ok(())
}

fn list(
    records: &[TokenRecord],
    json: bool,
    now: Timestamp,
    out: &mut impl Write,
) -> io::Result<()> {
    if json {
        for record in records {
            writeln!(out, "{}", object(record, now))?;
        }
        return out.flush();
    }
    if records.is_empty() {
        writeln!(
            out,
            "no tokens; make one: sessiond token create --principal NAME"
        )?;
        return out.flush();
    }
    line(
        out,
        [
            "ID",
            "PRINCIPAL",
            "TENANT",
            "KIND",
            "TRUST",
            "CREATED",
            "EXPIRES",
        ],
    )?;
    for record in records {
        let expires = match record.state(now) {
            State::Revoked => "revoked".to_owned(),
            State::Expired => "expired".to_owned(),
            State::Live => record.expires.map_or_else(|| "never".to_owned(), date::day),
        };
        let created = date::day(record.created);
        line(
            out,
            [
                record.id.as_str(),
                record.principal.as_str(),
                record.tenant.as_str(),
                kind_name(record.kind),
                trust_name(record.ceiling),
                &created,
                &expires,
            ],
        )?;
    }
    out.flush()
}

/// A line of the table: 80 columns at most, whatever names there are.
fn line(out: &mut impl Write, columns: [&str; 7]) -> io::Result<()> {
    const WIDTHS: [usize; 7] = [8, 18, 12, 7, 9, 10, 10];
    let columns = columns.into_iter().zip(WIDTHS).map(|(text, width)| {
        let shown = if text.chars().count() > width {
            text.chars().take(width - 1).chain(['…']).collect()
        } else {
            text.to_owned()
        };
        format!("{shown:<width$}")
    });
    let line = columns.collect::<Vec<_>>().join(" ");
    writeln!(out, "{}", line.trim_end())
}

fn object(record: &TokenRecord, now: Timestamp) -> serde_json::Value {
    serde_json::json!({
        "id": record.id.as_str(),
        "principal": record.principal.as_str(),
        "tenant": record.tenant.as_str(),
        "kind": kind_name(record.kind),
        "trust": trust_name(record.ceiling),
        "groups": record.groups,
        "created": date::moment(record.created),
        "expires": record.expires.map(date::moment),
        "revoked": record.revoked.map(date::moment),
        "state": match record.state(now) {
            State::Live => "live",
            State::Expired => "expired",
            State::Revoked => "revoked",
        },
    })
}

fn kind_name(kind: PrincipalKind) -> &'static str {
    match kind {
        PrincipalKind::Human => "human",
        PrincipalKind::Service => "service",
        PrincipalKind::Agent => "agent",
    }
}

fn trust_name(trust: Trust) -> &'static str {
    match trust {
        Trust::Untrusted => "untrusted",
        Trust::Relayed => "relayed",
        Trust::Typed => "typed",
    }
}

#[cfg(test)]
#[path = "token/tests.rs"]
mod tests;
