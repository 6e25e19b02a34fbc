//! What the commands that change a session have in common: the session is told as it is after them.

use std::future::Future;

use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionRef;

use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::Effect;
use crate::cli::json;
use crate::cli::screen::Screen;

/// Waits for a call that changes `session` and tells what is true then, in `words` or as JSON.
pub(super) async fn change(
    session: &SessionRef,
    call: impl Future<Output = Result<SessionSummary, CallError>>,
    words: impl FnOnce(&SessionSummary) -> String,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let changed = context.patiently(screen, Effect::Writes, call).await?;
    let changed = changed.map_err(|error| context.stop(error, Some(session), Effect::Writes))?;
    if context.globals.json {
        screen.json(&json::session(&changed))?;
    } else {
        screen.line(&words(&changed))?;
    }
    Ok(Exit::Done)
}
