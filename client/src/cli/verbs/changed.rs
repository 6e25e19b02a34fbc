//! What the commands that change a session have in common: the session is told as it is after them.

use std::future::Future;

use sessionplane_core::contract::CallOptions;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionRef;

use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::Effect;
use crate::cli::json;
use crate::cli::screen::Screen;
use crate::clock::mint_request_id;

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

/// Several sessions that one command changes, each by a call of its own.
pub(super) struct Each {
    left: std::vec::IntoIter<SessionRef>,
    alone: bool,
    given: Option<CallOptions>,
    worst: Exit,
}

impl Each {
    /// Those of a command line.
    ///
    /// # Errors
    /// When one call is named, and there are several.
    pub(super) fn of(sessions: Vec<SessionRef>, context: &Context) -> Result<Self, Stop> {
        let alone = sessions.len() == 1;
        if !alone && context.globals.request_id.is_some() {
            let words = "--request-id names one call; give one session with it";
            return Err(Stop::usage(words));
        }
        Ok(Self {
            left: sessions.into_iter(),
            alone,
            given: alone.then(|| context.call()),
            worst: Exit::Done,
        })
    }

    /// The next one, and the options of its call.
    pub(super) fn next(&mut self) -> Option<(SessionRef, CallOptions)> {
        let session = self.left.next()?;
        let options = self.given.take().unwrap_or_else(|| CallOptions {
            request_id: Some(mint_request_id()),
            deadline: None,
        });
        Some((session, options))
    }

    /// How one ended. A failure is told, and the others have their turn; nobody waits for them where
    /// no server is there, or who waits has left.
    pub(super) async fn ended(
        &mut self,
        end: Result<Exit, Stop>,
        context: &Context,
        screen: &mut Screen,
    ) -> Result<(), Stop> {
        let exit = match end {
            Ok(exit) => exit,
            Err(stop) if self.alone => return Err(stop),
            Err(stop) => match context.with_near_names(stop).await {
                Stop::Failed { exit, words, error }
                    if exit == Exit::Failed || exit == Exit::NotFound =>
                {
                    if context.globals.json {
                        screen.json(&json::error(&words, error.as_deref()))?;
                    }
                    screen.error(&words)?;
                    exit
                }
                stop => return Err(stop),
            },
        };
        self.worst = self.worst.worse(exit);
        Ok(())
    }

    /// The worst end of all.
    pub(super) fn end(&self) -> Exit {
        self.worst
    }
}
