//! `sessionctl runs`: page by page, newest first.

use sessionplane_core::contract::{
    Agent as _, CallOptions, ListEntriesRequest, ListRunsRequest, SessionControl as _,
};
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::ids::{EntryId, RunId, SessionRef};
use sessionplane_core::domain::run::RunRecord;

use crate::cli::args::RunsArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::program::PROGRAM;
use crate::cli::render::{run_row, runs_heading};
use crate::cli::screen::Screen;
use crate::cli::visible;
use crate::clock::now;

/// Most runs that are asked for at once.
const PAGE: u32 = 100;

pub(super) async fn run(
    args: RunsArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.session;
    let mut left = if args.all { u32::MAX } else { args.limit };
    let (mut before, mut shown) = (args.before, 0_u32);
    let more = loop {
        let size = left.min(PAGE);
        let (page, has_more) = page(&session, before, size, context, screen).await?;
        for run in &page {
            show(run, shown == 0, args.prompts, context, screen).await?;
            shown = shown.saturating_add(1);
        }
        before = page.last().map(|run| run.id);
        left = left.saturating_sub(u32::try_from(page.len()).unwrap_or(u32::MAX));
        if left == 0 || !has_more || page.is_empty() {
            break has_more;
        }
    };
    if context.globals.json {
        return Ok(Exit::Done);
    }
    if shown == 0 {
        screen.aside("no runs")?;
    }
    if let Some(last) = before.filter(|_| more) {
        let word = hint::word(&session);
        screen.aside(&format!(
            "older ones: {PROGRAM} runs {word} --before {last}"
        ))?;
    }
    Ok(Exit::Done)
}

async fn page(
    session: &SessionRef,
    before: Option<RunId>,
    page_size: u32,
    context: &Context,
    screen: &mut Screen,
) -> Result<(Vec<RunRecord>, bool), Stop> {
    let request = ListRunsRequest {
        session: session.clone(),
        before,
        page_size,
    };
    let call = context.client.list_runs(request, CallOptions::default());
    let page = context.patiently(screen, Effect::Reads, call).await?;
    let page = page.map_err(|error| context.stop(error, Some(session), Effect::Reads))?;
    Ok((page.runs, page.has_more))
}

async fn show(
    run: &RunRecord,
    is_first: bool,
    prompts: bool,
    context: &Context,
    screen: &mut Screen,
) -> Result<(), Stop> {
    let prompt = if prompts {
        prompt(run, context, screen).await?
    } else {
        None
    };
    if context.globals.json {
        let mut told = json::run(run);
        if prompts {
            told["prompt"] = prompt.into();
        }
        return Ok(screen.json(&told)?);
    }
    if is_first {
        screen.line(&runs_heading())?;
    }
    let width = screen.width();
    screen.line(&run_row(run, now(), width))?;
    if let Some(prompt) = prompt {
        let line = prompt.lines().find(|line| !line.trim().is_empty());
        let line = format!("  > {}", line.unwrap_or_default().trim());
        screen.line(&visible::clipped(&line, width))?;
    }
    Ok(())
}

/// What the run was started with; none if its entry cannot be read.
async fn prompt(
    run: &RunRecord,
    context: &Context,
    screen: &mut Screen,
) -> Result<Option<String>, Stop> {
    let EntryId { session, seq } = run.first_entry;
    let before = (seq > 1).then(|| {
        EntryId {
            session,
            seq: seq - 1,
        }
        .to_string()
    });
    let session = SessionRef::Id(session);
    let request = ListEntriesRequest {
        session: session.clone(),
        since: before,
        page_size: 1,
    };
    let call = context.client.list_entries(request, CallOptions::default());
    let page = context.patiently(screen, Effect::Reads, call).await?;
    let page = page.map_err(|error| context.stop(error, Some(&session), Effect::Reads))?;
    let entry = page
        .entries
        .into_iter()
        .find(|entry| entry.id == run.first_entry);
    Ok(entry.and_then(|entry| match entry.body {
        EntryBody::User { text, .. } => Some(text.to_string()),
        _ => None,
    }))
}
