//! `sessionctl events`: what happens, one line each, until Ctrl-C.

use std::collections::BTreeSet;

use sessionplane_core::contract::{EventFilter, SessionControl as _};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::event::EVENT_TYPES;
use sessionplane_core::domain::ids::{EntryId, SessionRef};

use crate::cli::args::EventsArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::place::cursor;
use crate::cli::render::Log;
use crate::cli::screen::Screen;
use crate::watch::{WatchItem, WatchOptions};

pub(super) async fn run(
    args: EventsArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let filter = filter(&args, screen)?;
    let session = args.session.session;
    let stop = |error| context.stop(error, Some(&session), Effect::Reads);
    // Asked for in any case: a session or a server that is not there is told at once.
    let newest = newest_entry(&session, context);
    let newest = context.patiently(screen, Effect::Reads, newest).await?;
    let newest = newest.map_err(stop)?;
    let since = cursor(args.since, &session, context, screen).await?;
    let entries_since = match (since, args.all) {
        (Some(entry), _) => Some(entry),
        (None, true) => None,
        (None, false) => newest,
    };
    let mut log = Log::of(&filter, entries_since);
    let options = WatchOptions {
        entries_since,
        filter,
        open_deadline: context.opening(),
        ..WatchOptions::default()
    };
    let mut watch = context.client.watch(session.clone(), options);
    loop {
        let item = tokio::select! {
            item = watch.next() => item,
            () = context.interrupts.pressed() => return Err(hint::interrupted(Effect::Reads, context)),
        };
        match item {
            Some(Ok(item)) => {
                context.stream_has_begun();
                show(&item, &mut log, context, screen)?;
            }
            Some(Err(error)) => return Err(stop(error)),
            None => return Ok(Exit::Done),
        }
    }
}

/// What is wanted. A type that this client does not know may be a newer server's, or a typo.
fn filter(args: &EventsArgs, screen: &mut Screen) -> Result<EventFilter, Stop> {
    let types = args.filter.iter().map(|name| name.trim().to_owned());
    let types: BTreeSet<_> = types.filter(|name| !name.is_empty()).collect();
    if types.is_empty() && !args.filter.is_empty() {
        return Err(Stop::usage("--filter names no type of events"));
    }
    for name in &types {
        if !EVENT_TYPES.contains(&name.as_str()) {
            screen.aside(&format!("! this program knows no events of type {name}"))?;
        }
    }
    Ok(EventFilter {
        types,
        no_thinking: args.no_thinking,
    })
}

/// The newest entry there is: what came before it is not news.
async fn newest_entry(
    session: &SessionRef,
    context: &Context,
) -> Result<Option<EntryId>, CallError> {
    let state = context
        .client
        .get_state(session.clone(), None, context.call());
    let view = state.await?.view;
    Ok((view.entries > 0).then_some(EntryId {
        session: view.session.id,
        seq: view.entries,
    }))
}

fn show(
    item: &WatchItem,
    log: &mut Log,
    context: &Context,
    screen: &mut Screen,
) -> Result<(), Stop> {
    let about_connection = matches!(
        item,
        WatchItem::Reconnecting { .. } | WatchItem::Reconnected { .. }
    );
    if context.globals.json {
        screen.json(&json::watched(item))?;
        return Ok(());
    }
    for line in log.lines(item) {
        if about_connection {
            screen.aside(&line)?;
        } else {
            screen.line(&line)?;
        }
    }
    Ok(())
}
