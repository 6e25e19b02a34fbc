//! What is known of tokens, for people and for programs.
//!
//! What must never enter: a token.

use std::io::{self, Write};

use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::domain::time::Timestamp;

use super::super::date;
use crate::adapters::authn::{State, TokenRecord, Uses};

/// Writes the tokens as a table, or as an object a line.
pub(super) fn list(
    records: &[TokenRecord],
    uses: &Uses,
    json: bool,
    now: Timestamp,
    out: &mut impl Write,
) -> io::Result<()> {
    let used = |record: &TokenRecord| uses.get(&record.id).copied();
    if json {
        for record in records {
            writeln!(out, "{}", object(record, used(record), now))?;
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
            "USED",
            "EXPIRES",
        ],
    )?;
    for record in records {
        let expires = match record.state(now) {
            State::Revoked => "revoked".to_owned(),
            State::Expired => "expired".to_owned(),
            State::Live => record.expires.map_or_else(|| "never".to_owned(), date::day),
        };
        let used = used(record).map_or_else(|| "-".to_owned(), |at| date::ago(at, now));
        line(
            out,
            [
                record.id.as_str(),
                record.principal.as_str(),
                record.tenant.as_str(),
                kind_name(record.kind),
                trust_name(record.ceiling),
                &used,
                &expires,
            ],
        )?;
    }
    out.flush()
}

/// A line of the table: 80 columns at most, whatever names there are.
fn line(out: &mut impl Write, columns: [&str; 7]) -> io::Result<()> {
    const WIDTHS: [usize; 7] = [8, 18, 12, 7, 9, 9, 10];
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

/// A token as an object; `used`: when it was used last, if that is known.
pub(super) fn object(
    record: &TokenRecord,
    used: Option<Timestamp>,
    now: Timestamp,
) -> serde_json::Value {
    serde_json::json!({
        "id": record.id.as_str(),
        "principal": record.principal.as_str(),
        "tenant": record.tenant.as_str(),
        "kind": kind_name(record.kind),
        "trust": trust_name(record.ceiling),
        "groups": record.groups,
        "created": date::moment(record.created),
        "used": used.map(date::moment),
        "expires": record.expires.map(date::moment),
        "revoked": record.revoked.map(date::moment),
        "state": match record.state(now) {
            State::Live => "live",
            State::Expired => "expired",
            State::Revoked => "revoked",
        },
    })
}

/// What a principal is, as configuration writes it.
pub(super) fn kind_name(kind: PrincipalKind) -> &'static str {
    match kind {
        PrincipalKind::Human => "human",
        PrincipalKind::Service => "service",
        PrincipalKind::Agent => "agent",
    }
}

/// A trust, as the command line writes it.
pub(super) fn trust_name(trust: Trust) -> &'static str {
    match trust {
        Trust::Untrusted => "untrusted",
        Trust::Relayed => "relayed",
        Trust::Typed => "typed",
    }
}
