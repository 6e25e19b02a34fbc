//! `sessionctl compact`: begins a compaction, and waits for its outcome if that is asked for.

use sessionplane_core::domain::command::Command;

use super::{compaction, dispatch};
use crate::cli::args::{CompactArgs, TextSource};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint;
use crate::cli::program::PROGRAM;
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: CompactArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.session.clone();
    let instructions = instructions(&args, context).await?;
    // Nothing that happens from here on is missed.
    let before = if args.wait {
        Some(context.state(&session, screen).await?)
    } else {
        None
    };
    let request = dispatch::between_runs(session.clone(), Command::Compact { instructions });
    let word = hint::word(&session);
    let words = match &before {
        Some(_) => "compacting".to_owned(),
        None => format!("compacting\n  watch it: {PROGRAM} attach {word}"),
    };
    let given = dispatch::give_and_say(request, context, screen, Some(words)).await?;
    match before.filter(|_| given == Exit::Done) {
        Some(before) => compaction::until_over(&session, &before, context, screen).await,
        None => Ok(given),
    }
}

async fn instructions(
    args: &CompactArgs,
    context: &Context,
) -> Result<Option<std::sync::Arc<str>>, Stop> {
    if args.instructions.is_none() && args.text_file.is_none() {
        return Ok(None);
    }
    let source = TextSource {
        text: args.instructions.clone(),
        text_file: args.text_file.clone(),
    };
    Ok(Some(context.text(source).await?.into()))
}
