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
    let mut log = Log::of(&filter, entries_since, screen.width());
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
            let known = nearest(name).map_or_else(
                || format!("it knows {}", EVENT_TYPES.join(", ")),
                |near| format!("the nearest that it knows is {near}"),
            );
            screen.aside(&format!(
                "! this program knows no events of type {name}; {known}"
            ))?;
        }
    }
    Ok(EventFilter {
        types,
        no_thinking: args.no_thinking,
    })
}

/// The type that was probably meant: one that is written with a few other characters, or that begins
/// as the given one does.
fn nearest(name: &str) -> Option<&'static str> {
    // No type is longer: what is compared stays small.
    let short = (3..=32).contains(&name.chars().count());
    let all = EVENT_TYPES.into_iter().filter(|_| short);
    let near = all.map(|known| {
        let begins = known.starts_with(name);
        (if begins { 0 } else { distance(name, known) }, known)
    });
    let (distance, near) = near.min()?;
    (distance <= 3).then_some(near)
}

/// How many characters must be added, taken away or changed to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<_> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, c) in one.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], at + 1);
        for (to, d) in other.iter().enumerate() {
            let changed = before + usize::from(c != *d);
            before = row[to + 1];
            row[to + 1] = changed.min(before + 1).min(row[to] + 1);
        }
    }
    row[other.len()]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c32_a_mistyped_type_of_events_leads_to_the_one_that_was_meant() {
        assert_eq!(nearest("run_setled"), Some("run_settled"));
        assert_eq!(nearest("message"), Some("message_delta"));
        assert_eq!(nearest("tool_start"), Some("tool_started"));
        assert_eq!(nearest("weather"), None);
        assert_eq!(nearest(&"x".repeat(10_000)), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
