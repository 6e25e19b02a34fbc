//! `sessionctl resume`.

use sessionplane_core::contract::fleet::Fleet as _;
use sessionplane_core::domain::fleet::summary::SessionSummary;

use super::changed::{Each, change};
use crate::cli::args::PausedArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::render::{named, phase_words};
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: PausedArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let words =
        |it: &SessionSummary| format!("{} is {}", named(it), phase_words(it.phase, it.paused));
    let mut each = Each::of(args.sessions, context)?;
    while let Some((session, options)) = each.next() {
        let call = context.client.resume_session(session.clone(), options);
        let end = change(&session, call, words, context, screen).await;
        each.ended(end, context, screen).await?;
    }
    Ok(each.end())
}
