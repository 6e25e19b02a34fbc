//! What the commands of the control plane have in common: they are given, and answered.

use sessionplane_core::contract::{DispatchRequest, SessionControl as _};
use sessionplane_core::domain::command::{Acceptance, Command, DispatchAnswer};
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::input::InputFate;

use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::screen::Screen;

/// Gives a command and tells the answer.
pub(super) async fn give(
    request: DispatchRequest,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    give_and_say(request, context, screen, None).await
}

/// Gives a command that concerns no run.
pub(super) fn between_runs(session: SessionRef, command: Command) -> DispatchRequest {
    DispatchRequest {
        session,
        command,
        expected_run: None,
    }
}

/// Gives a command and tells the answer; an acceptance in `words`, or else as it came.
pub(super) async fn give_and_say(
    request: DispatchRequest,
    context: &Context,
    screen: &mut Screen,
    words: Option<String>,
) -> Result<Exit, Stop> {
    let session = request.session.clone();
    let kind = request.command.kind();
    let call = context.client.dispatch(request, context.call());
    let answer = context.patiently(screen, Effect::Writes, call).await?;
    let answer = answer.map_err(|error| context.stop(error, Some(&session), Effect::Writes))?;
    if context.globals.json {
        screen.json(&json::dispatched(&answer))?;
    }
    match answer {
        DispatchAnswer::Accepted(accepted) => {
            if !context.globals.json {
                screen.line(&words.unwrap_or_else(|| accepted_line(&accepted)))?;
            }
            Ok(Exit::Done)
        }
        DispatchAnswer::Rejected(rejection) => {
            screen.error(&hint::rejected(&session, kind, &rejection))?;
            Ok(Exit::Failed)
        }
    }
}

/// An accepted command in words.
pub(super) fn accepted_line(accepted: &Acceptance) -> String {
    let run = accepted.run;
    let Some(input) = accepted.input else {
        return run.map_or_else(
            || "accepted".to_owned(),
            |run| format!("accepted for run {run}"),
        );
    };
    let fate = match input.fate {
        InputFate::Pending => "waiting".to_owned(),
        InputFate::Delivered(entry) => format!("delivered as entry {entry}"),
        InputFate::Discarded(cause) => format!("not shown: {}", cause.as_str()),
    };
    format!("accepted: input {}, {fate}", input.id)
}
