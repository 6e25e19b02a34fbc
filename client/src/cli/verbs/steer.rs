//! `sessionctl steer`.

use sessionplane_core::contract::DispatchRequest;
use sessionplane_core::domain::command::Command;

use super::dispatch;
use crate::cli::args::TextArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: TextArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let (text, given) = context.said(args.text).await?;
    let request = DispatchRequest {
        session: args.session.session,
        command: Command::Steer {
            text: text.into(),
            given,
        },
        expected_run: args.expected_run,
    };
    dispatch::give(request, context, screen).await
}
