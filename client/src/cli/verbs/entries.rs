//! `sessionctl entries`: page by page, so that a long conversation needs no memory.

use crate::cli::args::EntriesArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::json;
use crate::cli::pages::Pages;
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
    let mut pages = Pages::new(context, &session, args.since);
    let mut left = args.limit.unwrap_or(u32::MAX);
    while left > 0 {
        let Some(page) = pages.next(left.min(PAGE), screen).await? else {
            break;
        };
        if page.full_backfill {
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
    }
    Ok(Exit::Done)
}
