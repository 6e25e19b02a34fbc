//! `sessionctl set-model`.

use sessionplane_core::domain::command::Command;

use super::dispatch::{between_runs, give_and_say};
use crate::cli::args::SetModelArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: SetModelArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let words = match &args.model {
        Some(model) => format!("the runs to come use the model {model}"),
        None => "the runs to come use what the agent says".to_owned(),
    };
    let command = Command::SetModel { model: args.model };
    let request = between_runs(args.session.session, command);
    give_and_say(request, context, screen, Some(words)).await
}
