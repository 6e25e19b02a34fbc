//! Listing and exporting records.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use sessionplane_core::contract::audit::{AuditFilter, AuditItem};
use sessionplane_core::domain::audit::{ChainRecord, Link};
use sessionplane_core::domain::time::Timestamp;

use super::{PAGE, page};
use crate::cli::args::{ExportArgs, ListArgs};
use crate::cli::audit_file::{Header, end_json, record_json};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::render::rfc3339;
use crate::cli::screen::Screen;
use crate::cli::visible;

const HEADING: &str =
    "SEQ     TIME                 WHO           ACTION          DECISION  SESSION";

pub(super) async fn list(
    args: ListArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let filter = AuditFilter {
        session: args.session,
        principal: args.principal,
        action: args.action,
        decision: args.decision,
        ..AuditFilter::default()
    };
    let limit = args.limit as usize;
    let mut after = args.after.unwrap_or_default();
    if filter.is_empty() && args.after.is_none() {
        // Nothing before the newest ones is wanted.
        let end = page(u64::MAX, 1, AuditFilter::default(), context, screen).await?;
        after = end.end.seq.saturating_sub(limit as u64);
    }
    let mut newest: VecDeque<AuditItem> = VecDeque::new();
    loop {
        let found = page(after, PAGE, filter.clone(), context, screen).await?;
        for item in found.items {
            if newest.len() == limit {
                newest.pop_front();
            }
            newest.push_back(item);
        }
        match found.next {
            Some(next) => after = next,
            None => break,
        }
    }
    if context.globals.json {
        for item in &newest {
            screen.json(&record_json(item))?;
        }
        return Ok(Exit::Done);
    }
    if newest.is_empty() {
        screen.aside("no records")?;
        return Ok(Exit::Done);
    }
    screen.line(HEADING)?;
    let width = screen.width();
    for item in &newest {
        screen.line(&visible::clipped(&row(item), width))?;
    }
    Ok(Exit::Done)
}

/// A record in 80 columns.
fn row(item: &AuditItem) -> String {
    let record = match &item.record {
        Ok(record) => record,
        Err(problem) => return format!("{:<7} cannot be read: {problem}", item.seq),
    };
    let time = rfc3339(Timestamp::from_millis(record.time_ms));
    // The time to the second; the whole of it is in the JSON.
    let time = time.split_once('.').map_or(time.as_str(), |(time, _)| time);
    let cell = |text: &str, width| visible::fitted(text, width);
    let session = record.session.map(|id| id.to_string()).unwrap_or_default();
    // Its last characters tell sessions apart: the first ones are a time.
    let session = session.get(session.len().saturating_sub(8)..).unwrap_or("");
    format!(
        "{:<7} {}Z {} {} {} {session}",
        item.seq,
        time.replace('T', " "),
        cell(who(record), 13),
        cell(&action(record), 15),
        cell(&record.decision, 9),
    )
}

fn who(record: &ChainRecord) -> &str {
    record
        .principal
        .as_deref()
        .or(record.peer.as_deref())
        .unwrap_or("-")
}

fn action(record: &ChainRecord) -> String {
    match record.count {
        Some(count) if count > 1 => format!("{} x{count}", record.action),
        _ => record.action.clone(),
    }
}

pub(super) async fn export(
    args: ExportArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let mut file = opened(args.to.as_deref())?;
    let mut after = args.after;
    let mut end = None;
    let (mut is_first, mut records) = (true, 0_u64);
    loop {
        let found = page(after, PAGE, AuditFilter::default(), context, screen).await?;
        let mut lines = Vec::new();
        if is_first {
            is_first = false;
            let header = Header {
                tenant: found.tenant.clone(),
                genesis: found.genesis,
                after: args.after,
            };
            lines.push(header.json());
            end = Some(Link {
                seq: args.after,
                hash: found.genesis,
            });
        }
        for item in &found.items {
            lines.push(record_json(item));
            records += 1;
            end = Some(Link {
                seq: item.seq,
                hash: item.hash,
            });
        }
        if found.next.is_none() {
            lines.extend(end.map(end_json));
        }
        for line in lines {
            match &mut file {
                None => screen.json(&line)?,
                Some((file, path)) => writeln!(file, "{line}").map_err(|error| {
                    Stop::failed(
                        Exit::Failed,
                        format!("cannot write {}: {error}", path.display()),
                    )
                })?,
            }
        }
        match found.next {
            Some(next) => after = next,
            None => break,
        }
    }
    if let Some((file, path)) = file {
        synced(file, path)?;
        screen.aside(&format!("{records} records in {}", path.display()))?;
    }
    Ok(Exit::Done)
}

/// A new file; nothing is written over.
fn opened(path: Option<&Path>) -> Result<Option<(BufWriter<File>, &Path)>, Stop> {
    let Some(path) = path else { return Ok(None) };
    let file = File::options().write(true).create_new(true).open(path);
    let file =
        file.map_err(|error| Stop::usage(format!("cannot write {}: {error}", path.display())))?;
    Ok(Some((BufWriter::new(file), path)))
}

fn synced(file: BufWriter<File>, path: &Path) -> Result<(), Stop> {
    let file = file
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error);
    let synced = file.and_then(|file| file.sync_all());
    synced.map_err(|error| {
        Stop::failed(
            Exit::Failed,
            format!("cannot write {}: {error}", path.display()),
        )
    })
}
