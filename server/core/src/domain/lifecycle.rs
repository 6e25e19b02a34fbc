//! The session state machine: decides purely, acts nowhere.
//!
//! [`step`] takes the state of one session, one input and the time, changes the state and says what
//! must be done: `live` effects at once, a `commit` to make durable, and `after_commit` effects once
//! it is. A shell owns the state, executes what the machine says, and feeds back what comes of it
//! as further inputs. At most one commit is in flight; while it is, inputs that
//! [must wait](Session::must_wait) do so in order and the others are stepped. With each input the shell says how many reports of the
//! engine it holds already, so that nothing is decided that one of them makes wrong.
//!
//! One file per kind of input. Nothing here performs I/O, reads a clock or draws a random number:
//! facts arrive inside inputs.

mod abort;
mod admit;
mod attach;
mod boundary;
mod committed;
mod compaction;
mod conflate;
mod dispatch;
mod effect;
mod engine_output;
mod handed;
mod input;
mod interaction;
mod open;
mod placing;
mod pump;
mod recover;
mod round;
mod settle;
mod state;
mod turn;
mod waiting;

pub use effect::{Answer, Effect, Step};
pub use input::{
    AgentFacts, CallFacts, DetachCause, DispatchFacts, EngineTag, Input, InvokeFacts,
    NavigationTarget, PlaceFacts, ReplyId, StreamId, Timer,
};
pub use placing::Deletion;
pub use recover::{CutRun, give_up_boundary, interrupt};
pub use round::Round;
pub use state::{ActiveCompaction, ActiveRun, EngineStatus, Phase, QueuedInput, Session};
pub use waiting::{Unread, Waiting};

use super::time::Timestamp;
use turn::Turn;

/// Decides what one input means for a session.
///
/// The state is changed in memory at once; `commit` describes the same change for the store. If
/// that commit fails, the caller must drop the state: it is ahead of what is durable.
///
/// `unread` counts the engine inputs ([`Input::is_engine`]) that came after this one and that the
/// shell will step, wherever they wait: behind a commit, in the rest of a burst, in a channel.
/// Nothing is handed over before they are judged, since one of them may say that the engine has
/// stopped; nor while one of those that the shell has looked at is known to say so.
pub fn step(session: &mut Session, input: Input, unread: Unread, now: Timestamp) -> Step {
    session.unread = unread;
    if let Some(run) = session.active.run_mut().filter(|_| input.is_engine()) {
        run.judge_first = run.judge_first.map(|left| left.saturating_sub(1));
    }
    let mut turn = Turn::new(session, now);
    match input {
        Input::Invoke { reply, facts } => admit::invoke(&mut turn, reply, &facts),
        Input::Dispatch { reply, facts } => dispatch::dispatch(&mut turn, reply, *facts),
        Input::Attach {
            reply,
            run,
            stream,
            on_disconnect,
        } => {
            attach::attach(&mut turn, reply, run, stream, on_disconnect);
        }
        Input::Detach { run, stream, cause } => attach::detach(&mut turn, run, stream, cause),
        Input::EngineOpened { tag, revalidation } => {
            engine_output::opened(&mut turn, tag, revalidation);
        }
        Input::EngineGone { tag, reason } => engine_output::gone(&mut turn, tag, &reason),
        Input::Engine {
            tag,
            event,
            artifact,
        } => engine_output::event(&mut turn, tag, event, artifact),
        Input::Timer { tag, timer } => attach::timer(&mut turn, tag, timer),
        Input::Create { reply, facts } => placing::create(&mut turn, reply, *facts),
        Input::Move { reply, facts } => placing::change(&mut turn, reply, *facts),
        Input::Delete {
            reply,
            call,
            token,
            etag,
        } => {
            let call = *call;
            let deletion = Deletion {
                reply,
                call,
                token,
                etag,
            };
            placing::delete(&mut turn, deletion);
        }
        Input::Kept => placing::kept(&mut turn),
        Input::Noted {
            token,
            place,
            checkout,
        } => placing::noted(&mut turn, token, &place, checkout),
        Input::Committed { round } => committed::committed(&mut turn, round),
    }
    abort::end_if_all_is_judged(&mut turn);
    pump::pump(&mut turn);
    turn.finish()
}
