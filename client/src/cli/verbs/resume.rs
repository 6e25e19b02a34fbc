//! `sessionctl resume`.

use sessionplane_core::contract::fleet::Fleet as _;

use super::changed::change;
use crate::cli::args::SessionArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::render::{named, phase_words};
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: SessionArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session;
    let call = context
        .client
        .resume_session(session.clone(), context.call());
    let words = |it: &sessionplane_core::domain::fleet::summary::SessionSummary| {
        format!("{} is {}", named(it), phase_words(it.phase, it.paused))
    };
    change(&session, call, words, context, screen).await
}
