//! What the machine wants done. The shell executes it; nothing here does.

use std::time::Duration;

use super::input::{EngineTag, ReplyId, Timer};
use crate::domain::command::DispatchAnswer;
use crate::domain::commit::Commit;
use crate::domain::error::CallError;
use crate::domain::event::Event;
use crate::domain::ids::RunId;
use crate::domain::place::{Checkout, Place};
use crate::domain::run::Failure;
use crate::ports::engine::EngineCommand;

/// An answer to a caller.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// The invoke was admitted. The shell adds the stream position that stood *before* the first
    /// event of the same batch of effects, so that the caller misses nothing.
    Admitted {
        /// The run.
        run: RunId,
    },
    /// The invoke met an active run or a compaction.
    Busy {
        /// The run in the way; none if it is a compaction.
        run: Option<RunId>,
    },
    /// The dispatch was judged.
    Dispatched(DispatchAnswer),
    /// The invoke is not admitted, and a new one may be.
    Failed(Failure),
    /// The session works elsewhere by now than where was looked: look again.
    Elsewhere,
    /// The session is as it was asked to be: created, moved, changed or deleted.
    Changed,
    /// The join was judged: whether the run is still active.
    Attached {
        /// Its events go on; else its record holds the terminal.
        active: bool,
    },
    /// The host refuses.
    Refused(CallError),
}

/// One thing to do.
#[allow(
    clippy::large_enum_variant,
    reason = "the large variant is the common one, and effects are moved once"
)]
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// Number the event, fold it into the view, show it to observers: one step.
    Publish(Event),
    /// Answer a caller, after every other effect of the same batch.
    Answer(ReplyId, Answer),
    /// The session's stored rows say this of its place now: told to the fleet with the events of the
    /// same batch, in one step. It exists from now on if it did not before.
    Show(Option<Place>, Option<Checkout>),
    /// Open the session's engine for the run, or for the compaction.
    OpenEngine(EngineTag),
    /// Hand the engine a command.
    Tell(EngineTag, EngineCommand),
    /// Give the engine up at once, whatever it is doing.
    DropEngine(EngineTag),
    /// Report [`super::Input::Timer`] after the delay; replaces a running timer of the same kind.
    StartTimer {
        /// For which run.
        tag: EngineTag,
        /// Which one.
        timer: Timer,
        /// When.
        after: Duration,
    },
    /// Forget a running timer.
    CancelTimer(Timer),
    /// Tell the log that the engine reported something that made no sense and was ignored.
    Ignored {
        /// For which run.
        tag: EngineTag,
        /// What.
        what: &'static str,
    },
}

/// What one input led to.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Step {
    /// To do at once.
    pub live: Vec<Effect>,
    /// To make durable, together with whatever else waits for the next round.
    pub commit: Option<Box<Commit>>,
    /// To do once the round that this step joined is durable. If there is no round at all, at
    /// once.
    pub after_commit: Vec<Effect>,
}
