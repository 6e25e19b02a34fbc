//! `sessionctl entries`: page by page, so that a long conversation needs no memory.

use sessionplane_core::contract::{ListEntriesRequest, SessionControl as _};

use crate::cli::args::EntriesArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::Effect;
use crate::cli::json;
use crate::cli::render::entry_lines;
use crate::cli::screen::Screen;

/// Most entries that are asked for at once.
const PAGE: u32 = 100;

pub(super) async fn run(
    args: EntriesArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.session;
    let mut since = args.since;
    let mut left = args.limit.unwrap_or(u32::MAX);
    loop {
        let request = ListEntriesRequest {
            session: session.clone(),
            since: since.clone(),
            page_size: left.min(PAGE),
        };
        let call = context.client.list_entries(request, context.call());
        let page = context.patiently(screen, Effect::Reads, call).await?;
        let page = page.map_err(|error| context.stop(error, Some(&session), Effect::Reads))?;
        if page.full_backfill && since.is_some() {
            screen.aside("! there is no such entry; listing from the first")?;
        }
        for entry in &page.entries {
            if context.globals.json {
                screen.json(&json::entry(entry))?;
            } else {
                screen.line(&entry_lines(entry).join("\n"))?;
            }
        }
        left = left.saturating_sub(u32::try_from(page.entries.len()).unwrap_or(u32::MAX));
        since = match page.entries.last() {
            Some(last) if page.has_more && left > 0 => Some(last.id.to_string()),
            _ => return Ok(Exit::Done),
        };
    }
}
