//! `sessionctl navigate`.

use sessionplane_core::domain::command::Command;

use super::dispatch::{between_runs, give_and_say};
use crate::cli::args::NavigateArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: NavigateArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.session;
    let entry = args.entry.id(&session, context, screen).await?;
    let words = format!("the next run goes on from entry {}", entry.seq);
    let request = between_runs(session, Command::Navigate { entry });
    give_and_say(request, context, screen, Some(words)).await
}
