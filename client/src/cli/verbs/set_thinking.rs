//! `sessionctl set-thinking`.

use sessionplane_core::domain::command::Command;

use super::dispatch::{between_runs, give_and_say};
use crate::cli::args::SetThinkingArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: SetThinkingArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let words = match &args.level {
        Some(level) => format!("the runs to come think at the level {level}"),
        None => "the runs to come think as the agent or the model says".to_owned(),
    };
    let command = Command::SetThinking { level: args.level };
    let request = between_runs(args.session.session, command);
    give_and_say(request, context, screen, Some(words)).await
}
