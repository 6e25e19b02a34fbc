//! `sessionctl abort`.

use sessionplane_core::contract::DispatchRequest;
use sessionplane_core::domain::command::Command;

use super::dispatch;
use crate::cli::args::AbortArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: AbortArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let request = DispatchRequest {
        session: args.session.session,
        command: Command::Abort,
        expected_run: args.expected_run,
    };
    dispatch::give(request, context, screen).await
}
