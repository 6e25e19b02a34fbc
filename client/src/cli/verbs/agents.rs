//! `sessionctl agents`, and what a bare `sessionctl` shows: the sessions there are.

mod watching;

use std::time::Duration;

use sessionplane_core::domain::fleet::summary::SessionSummary;

use crate::cli::args::{AgentsArgs, Globals};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::fleet;
use crate::cli::json;
use crate::cli::render::{in_order, summary_line, table};
use crate::cli::screen::{Row, Screen};
use crate::clock::now;

/// Sessions that a bare `sessionctl` shows at most.
const FIRST: usize = 200;
/// How long a bare `sessionctl` waits for a server.
const BRIEFLY: Duration = Duration::from_secs(2);

pub(super) async fn run(
    args: AgentsArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let (filter, limit) = (args.wanted.filter(), most(args.limit));
    if args.watch {
        return watching::run(filter, limit, context, screen).await;
    }
    let (sessions, more) = fleet::sessions(filter, limit, context, screen).await?;
    show(sessions, more, context.globals.json, screen)?;
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
    let found = fleet::sessions(String::new(), FIRST, &context, screen);
    let Ok(Ok((sessions, more))) = tokio::time::timeout(BRIEFLY, found).await else {
        return Ok(false);
    };
    if sessions.is_empty() {
        return Ok(false);
    }
    show(sessions, more, json, screen)?;
    Ok(true)
}

fn most(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

fn show(
    mut sessions: Vec<SessionSummary>,
    more: bool,
    as_json: bool,
    screen: &mut Screen,
) -> Result<(), Stop> {
    in_order(&mut sessions);
    if as_json {
        for session in &sessions {
            screen.json(&json::session(session))?;
        }
        if more {
            // Whoever reads the objects would take them for all there are.
            let words = format!("! these are the first {}; more: --limit", sessions.len());
            screen.notice(&words)?;
        }
        return Ok(());
    }
    let rows = rows(&sessions, more, screen.columns());
    Ok(screen.rows(&rows)?)
}

/// The whole table; without sessions only what is said of them.
fn rows(sessions: &[SessionSummary], more: bool, width: usize) -> Vec<Row> {
    let mut rows = if sessions.is_empty() {
        Vec::new()
    } else {
        table(sessions, now(), width)
    };
    rows.push(summary_line(sessions, more, width));
    rows
}
