//! `sessionctl agents`, and what a bare `sessionctl` shows: the sessions there are.

mod watching;

use std::time::Duration;

use sessionplane_core::domain::fleet::summary::SessionSummary;

use crate::cli::args::{AgentsArgs, Globals};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::fleet;
use crate::cli::json;
use crate::cli::render::{none_line, summary_line, table};
use crate::cli::screen::{Row, Screen};
use crate::clock::now;

/// Sessions that a bare `sessionctl` shows at most.
const FIRST: usize = 200;
/// How long a bare `sessionctl` waits for a server.
const BRIEFLY: Duration = Duration::from_secs(2);
/// How long a bare `sessionctl` reads on, when it has as many as it shows, for those that come first.
const READING_ON: Duration = Duration::from_millis(800);
/// How long `sessionctl agents` does.
const PATIENTLY: Duration = Duration::from_secs(15);

pub(super) async fn run(
    args: AgentsArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let (filter, limit) = (args.wanted.filter(), most(args.limit));
    if args.watch {
        return watching::run(filter, limit, context, screen).await;
    }
    let filtered = !filter.is_empty();
    let (sessions, more) = fleet::sessions(filter, limit, PATIENTLY, context, screen).await?;
    if sessions.is_empty() && !context.globals.json {
        screen.rows(&[none_line(filtered, screen.columns())])?;
        return Ok(Exit::Done);
    }
    show(&sessions, more, context.globals.json, screen)?;
    Ok(Exit::Done)
}

/// Shows what there is, if a server is there and has any; whether it did.
pub(crate) async fn bare(mut globals: Globals, screen: &mut Screen) -> Result<bool, Stop> {
    let json = globals.json;
    globals.timeout = Some(globals.timeout.map_or(BRIEFLY, |given| given.min(BRIEFLY)));
    // Who has no server yet, or no token for it, is told the first steps instead.
    let Ok(context) = Context::new(globals) else {
        return Ok(false);
    };
    let found = fleet::sessions(String::new(), FIRST, READING_ON, &context, screen);
    let Ok(Ok((sessions, more))) = tokio::time::timeout(BRIEFLY, found).await else {
        return Ok(false);
    };
    if sessions.is_empty() {
        return Ok(false);
    }
    show(&sessions, more, json, screen)?;
    Ok(true)
}

fn most(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

fn show(
    sessions: &[SessionSummary],
    more: bool,
    as_json: bool,
    screen: &mut Screen,
) -> Result<(), Stop> {
    if as_json {
        for session in sessions {
            screen.json(&json::session(session))?;
        }
        if more {
            // Whoever reads the objects would take them for all there are.
            let words = format!("! these are the first {}; more: --limit", sessions.len());
            screen.notice(&words)?;
        }
        return Ok(());
    }
    let rows = rows(sessions, more, screen.columns());
    Ok(screen.rows(&rows)?)
}

/// The whole table.
fn rows(sessions: &[SessionSummary], more: bool, width: usize) -> Vec<Row> {
    let mut rows = table(sessions, now(), width);
    rows.push(summary_line(sessions, more, width));
    rows
}
