//! What a person must know before a run begins: what was given for a new session is not used of one
//! that is there.

use sessionplane_core::contract::{CallOptions, SessionControl as _};
use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::ids::{AgentName, SessionRef};

use crate::cli::context::Context;
use crate::cli::exit::Stop;
use crate::cli::hint::Effect;
use crate::cli::screen::Screen;

/// Tells that an agent, or a parent, is given in vain. Asks only where one is given; whether the
/// session is there a moment later only the invoke itself will find out.
pub(super) async fn warn(
    session: &SessionRef,
    agent: Option<&AgentName>,
    branches: bool,
    context: &Context,
    screen: &mut Screen,
) -> Result<(), Stop> {
    if agent.is_none() && !branches {
        return Ok(());
    }
    let options = CallOptions::default();
    let call = context.client.get_state(session.clone(), None, options);
    let state = match context.patiently(screen, Effect::Reads, call).await? {
        Ok(state) => state,
        // A new session, or one that this caller may not see.
        Err(error) if error.outcome == Outcome::Refused && error.reason != Reason::Transport => {
            return Ok(());
        }
        Err(error) => return Err(context.stop(error, Some(session), Effect::Reads)),
    };
    let its = &state.view.session.agent;
    let unused: Vec<_> = [
        agent.filter(|agent| *agent != its).map(|_| "--agent"),
        branches.then_some("--parent"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if unused.is_empty() {
        return Ok(());
    }
    let (what, are) = (
        unused.join(" and "),
        if unused.len() > 1 { "are" } else { "is" },
    );
    Ok(screen.notice(&format!(
        "! {session} exists already: {what} {are} not used; its agent is {its}"
    ))?)
}
