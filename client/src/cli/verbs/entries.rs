//! `sessionctl entries`: page by page, so that a long conversation needs no memory.

use std::collections::BTreeSet;

use sessionplane_core::contract::{CallOptions, EventFilter, SessionControl as _};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::EntryId;

use crate::cli::args::EntriesArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::pages::Pages;
use crate::cli::render::{connection_line, entry_lines};
use crate::cli::screen::Screen;
use crate::watch::{WatchItem, WatchOptions};

/// Most entries that are asked for at once.
const PAGE: u32 = 100;

/// What is said where the cursor is unknown.
const UNKNOWN: &str = "! there is no such entry; listing from the first";

pub(super) async fn run(
    args: EntriesArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    if args.follow {
        return follow(args, context, screen).await;
    }
    let session = args.session.session;
    let mut pages = Pages::new(context, &session, args.since);
    let mut left = args.limit.unwrap_or(u32::MAX);
    while left > 0 {
        let Some(page) = pages.next(left.min(PAGE), screen).await? else {
            break;
        };
        if page.full_backfill {
            screen.aside(UNKNOWN)?;
        }
        for entry in &page.entries {
            show(entry, context, screen)?;
        }
        left = left.saturating_sub(u32::try_from(page.entries.len()).unwrap_or(u32::MAX));
    }
    Ok(Exit::Done)
}

/// Prints the entries there are and those to come, each once, until Ctrl-C.
async fn follow(args: EntriesArgs, context: &Context, screen: &mut Screen) -> Result<Exit, Stop> {
    let session = args.session.session;
    let stop = |error| context.stop(error, Some(&session), Effect::Reads);
    let since: Option<EntryId> = match args.since.as_deref().map(str::parse) {
        None => None,
        Some(Ok(since)) => Some(since),
        Some(Err(error)) => return Err(Stop::usage(format!("--since: {error}"))),
    };
    // Asked for first: a session or a server that is not there is told at once.
    let call = context
        .client
        .get_state(session.clone(), None, CallOptions::default());
    let state = context.patiently(screen, Effect::Reads, call).await?;
    state.map_err(stop)?;
    let options = WatchOptions {
        entries_since: since,
        filter: EventFilter {
            types: BTreeSet::from(["entry_appended".to_owned()]),
            no_thinking: false,
        },
        open_deadline: context.opening(),
        ..WatchOptions::default()
    };
    let mut watch = context.client.watch(session.clone(), options);
    loop {
        let item = tokio::select! {
            item = watch.next() => item,
            () = context.interrupts.pressed() => {
                return Err(hint::interrupted(Effect::Reads, context));
            }
        };
        match item {
            Some(Ok(item)) => followed(&item, context, screen)?,
            Some(Err(error)) => return Err(stop(error)),
            None => return Ok(Exit::Done),
        }
    }
}

fn followed(item: &WatchItem, context: &Context, screen: &mut Screen) -> Result<(), Stop> {
    match item {
        WatchItem::Entries {
            entries,
            full_backfill,
        } => {
            if *full_backfill {
                screen.aside(UNKNOWN)?;
            }
            entries
                .iter()
                .try_for_each(|entry| show(entry, context, screen))
        }
        WatchItem::Event(envelope) => match &envelope.event.body {
            EventBody::EntryAppended { entry } => show(entry, context, screen),
            _ => Ok(()),
        },
        // A gap is of live events: no entry is missed by it.
        WatchItem::Reconnecting { attempt: 1, .. } | WatchItem::Reconnected { .. } => {
            match connection_line(item) {
                Some(line) => Ok(screen.aside(&line)?),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn show(entry: &Entry, context: &Context, screen: &mut Screen) -> Result<(), Stop> {
    if context.globals.json {
        return Ok(screen.json(&json::entry(entry))?);
    }
    Ok(screen.line(&entry_lines(entry).join("\n"))?)
}
