//! `sessionctl events`: what happens, one line each, until Ctrl-C.

use sessionplane_core::contract::SessionControl as _;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::ids::{EntryId, SessionRef};

use crate::cli::args::EventsArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::render::Log;
use crate::cli::screen::Screen;
use crate::watch::{WatchItem, WatchOptions};

pub(super) async fn run(
    args: EventsArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.session;
    let stop = |error| context.stop(error, Some(&session), Effect::Reads);
    // Asked for in any case: a session or a server that is not there is told at once.
    let newest = newest_entry(&session, context);
    let newest = context.patiently(screen, Effect::Reads, newest).await?;
    let newest = newest.map_err(stop)?;
    let entries_since = match (args.since, args.all) {
        (Some(entry), _) => Some(entry),
        (None, true) => None,
        (None, false) => newest,
    };
    let options = WatchOptions {
        entries_since,
        open_deadline: context.opening(),
        ..WatchOptions::default()
    };
    let mut log = Log::default();
    let mut watch = context.client.watch(session.clone(), options);
    loop {
        let item = tokio::select! {
            item = watch.next() => item,
            () = context.interrupts.pressed() => return Err(hint::interrupted(Effect::Reads, context)),
        };
        match item {
            Some(Ok(item)) => show(&item, &mut log, context, screen)?,
            Some(Err(error)) => return Err(stop(error)),
            None => return Ok(Exit::Done),
        }
    }
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
