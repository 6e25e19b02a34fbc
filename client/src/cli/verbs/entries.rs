//! `sessionctl entries`: page by page, so that a long conversation needs no memory.

use std::collections::BTreeSet;

use sessionplane_core::contract::{
    CallOptions, EventFilter, ListEntriesRequest, SessionControl as _,
};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::{EntryId, SessionRef};

use crate::cli::args::EntriesArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::pages::Pages;
use crate::cli::place::cursor;
use crate::cli::render::{Thread, connection_line, entry_lines};
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
    let since = cursor(args.since, &session, context, screen).await?;
    let mut list = List::after(since, context, screen);
    let mut pages = Pages::new(context, &session, since.map(|since| since.to_string()));
    let mut left = args.limit.unwrap_or(u32::MAX);
    while left > 0 {
        let Some(page) = pages.next(left.min(PAGE), list.screen).await? else {
            break;
        };
        if page.full_backfill {
            list.start_over()?;
        }
        for entry in &page.entries {
            list.show(entry)?;
        }
        left = left.saturating_sub(u32::try_from(page.entries.len()).unwrap_or(u32::MAX));
    }
    Ok(Exit::Done)
}

/// Prints the entries there are and those to come, each once, until Ctrl-C.
async fn follow(args: EntriesArgs, context: &Context, screen: &mut Screen) -> Result<Exit, Stop> {
    let session = args.session.session;
    let stop = |error| context.stop(error, Some(&session), Effect::Reads);
    let since = cursor(args.since, &session, context, screen).await?;
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
    let mut list = List::after(since, context, screen);
    let mut watch = context.client.watch(session.clone(), options);
    loop {
        let item = tokio::select! {
            item = watch.next() => item,
            () = context.interrupts.pressed() => {
                return Err(hint::interrupted(Effect::Reads, context));
            }
        };
        match item {
            Some(Ok(item)) => {
                context.stream_has_begun();
                list.followed(&item).await?;
            }
            Some(Err(error)) => return Err(stop(error)),
            None => return Ok(Exit::Done),
        }
    }
}

/// The entries that are printed.
struct List<'a> {
    context: &'a Context,
    screen: &'a mut Screen,
    thread: Thread,
}

impl<'a> List<'a> {
    /// Those after an entry.
    fn after(since: Option<EntryId>, context: &'a Context, screen: &'a mut Screen) -> Self {
        Self {
            context,
            screen,
            thread: Thread::after(since),
        }
    }

    async fn followed(&mut self, item: &WatchItem) -> Result<(), Stop> {
        match item {
            WatchItem::Entries {
                entries,
                full_backfill,
            } => {
                if *full_backfill {
                    self.start_over()?;
                }
                entries.iter().try_for_each(|entry| self.show(entry))
            }
            WatchItem::Event(envelope) => match &envelope.event.body {
                EventBody::EntryAppended { entry } if is_cut(entry) => {
                    let whole = self.whole(entry.id).await?;
                    self.show(whole.as_ref().unwrap_or(entry))
                }
                EventBody::EntryAppended { entry } => self.show(entry),
                _ => Ok(()),
            },
            // A gap is of live events: no entry is missed by it.
            WatchItem::Reconnecting { attempt: 1, .. } | WatchItem::Reconnected { .. } => {
                match connection_line(item) {
                    Some(line) => Ok(self.screen.aside(&line)?),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// An entry as the server keeps it, of which an event may carry the end only. None if it cannot
    /// be had now: its end says how much is missing.
    async fn whole(&mut self, id: EntryId) -> Result<Option<Entry>, Stop> {
        let before = EntryId {
            seq: id.seq.saturating_sub(1),
            ..id
        };
        let request = ListEntriesRequest {
            session: SessionRef::Id(id.session),
            since: (before.seq > 0).then(|| before.to_string()),
            page_size: 1,
        };
        let client = &self.context.client;
        let call = client.list_entries(request, CallOptions::default());
        let page = self.context.patiently(self.screen, Effect::Reads, call);
        let entries = page.await?.map_or_else(|_| Vec::new(), |page| page.entries);
        Ok(entries.into_iter().find(|entry| entry.id == id))
    }

    /// The place to go on from is unknown: whoever took entries before has them again.
    fn start_over(&mut self) -> Result<(), Stop> {
        self.thread = Thread::default();
        if self.context.globals.json {
            return Ok(self.screen.json(&json::full_backfill())?);
        }
        Ok(self.screen.notice(UNKNOWN)?)
    }

    fn show(&mut self, entry: &Entry) -> Result<(), Stop> {
        if self.context.globals.json {
            return Ok(self.screen.json(&json::entry(entry))?);
        }
        if let Some(line) = self.thread.turn(entry) {
            self.screen.line(&line)?;
        }
        Ok(self.screen.line(&entry_lines(entry).join("\n"))?)
    }
}

/// Whether the beginning of a text is missing.
fn is_cut(entry: &Entry) -> bool {
    let omitted_bytes = match &entry.body {
        EntryBody::User { omitted_bytes, .. } => *omitted_bytes,
        EntryBody::Assistant { text, thinking, .. } => text.omitted_bytes + thinking.omitted_bytes,
        EntryBody::Tool {
            input_json, output, ..
        } => input_json.omitted_bytes + output.omitted_bytes,
        EntryBody::Compaction { summary, .. } => summary.omitted_bytes,
        EntryBody::Settings { .. } | EntryBody::Notice { .. } => 0,
    };
    omitted_bytes > 0
}
