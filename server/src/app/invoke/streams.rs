//! What an invoke streams: of a run that was admitted or joined, or the one event of one that was not.

use std::sync::Arc;

use futures_util::stream;
use sessionplane_core::contract::{InvokeEvent, ResultStream};
use sessionplane_core::domain::ids::RunId;
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::run::{Failure, RunOutcome, RunRecord, code};
use sessionplane_core::ports::workspaces::PlaceError;

use crate::app::channel::{Channel as EventChannel, RunSoFar};
use crate::app::cursor::Cursor;
use crate::app::invoke_stream::{Attachment, InvokeStream};

/// The stream of a run that was admitted, from its first event on.
pub(super) fn admitted(
    channel: Arc<EventChannel>,
    run: RunId,
    position: Position,
    attachment: Attachment,
) -> ResultStream<InvokeEvent> {
    let accepted = InvokeEvent::Accepted {
        session: channel.session(),
        run,
        position,
        joined: false,
    };
    let cursor = Cursor::after(channel, position.seq);
    Box::pin(InvokeStream::new(cursor, run, vec![accepted], attachment))
}

/// The stream of a run that is active: what is retained of it, and what follows. It is read from the
/// ring like everything else, so that a joiner that does not read keeps nothing alive.
pub(super) fn joined(
    channel: Arc<EventChannel>,
    run: RunId,
    so_far: &RunSoFar,
    attachment: Attachment,
) -> ResultStream<InvokeEvent> {
    let position = Position {
        epoch: channel.epoch(),
        seq: so_far.before,
    };
    let mut first = vec![InvokeEvent::Accepted {
        session: channel.session(),
        run,
        position,
        joined: true,
    }];
    if so_far.skipped > 0 {
        let skipped = so_far.skipped;
        first.push(InvokeEvent::Resumed { skipped });
    }
    let cursor = Cursor::after(channel, so_far.before);
    let stream = InvokeStream::new(cursor, run, first, attachment);
    Box::pin(stream.replaying_up_to(so_far.newest))
}

/// C7: one event, a typed answer. Observers see nothing.
pub(super) fn busy(run: Option<RunId>) -> ResultStream<InvokeEvent> {
    let details = match run {
        Some(run) => {
            format!("run {run} is active in this session; steer it, queue a follow_up, or abort it")
        }
        None => "the session is being compacted; wait until it is over, or abort it".to_owned(),
    };
    failed(Failure {
        code: code::SESSION_BUSY.to_owned(),
        details,
        retryable: true,
    })
}

/// C15, C45: an invoke that is not admitted. Observers see nothing.
pub(super) fn failed(failure: Failure) -> ResultStream<InvokeEvent> {
    let Failure {
        code,
        details,
        retryable,
    } = failure;
    let failed = InvokeEvent::Failed {
        code,
        details,
        retryable,
        run: None,
    };
    Box::pin(stream::iter([Ok(failed)]))
}

/// C45: the place is named, and never replaced by another.
pub(super) fn unavailable(details: String) -> Failure {
    Failure {
        code: code::DIRECTORY_UNAVAILABLE.to_owned(),
        details,
        retryable: true,
    }
}

/// What is said of a place that is not there.
pub(super) fn missing(error: &PlaceError) -> String {
    format!("{error}; put it back, or move the session with ChangeDirectory")
}

/// The terminal that a settled run projects to.
pub(crate) fn terminal(run: RunRecord) -> InvokeEvent {
    let outcome = run.settled.as_ref().map(|settled| settled.outcome.clone());
    let run = Box::new(run);
    match outcome {
        Some(RunOutcome::Completed) => InvokeEvent::Completed { run },
        Some(RunOutcome::Failed(failure)) => InvokeEvent::Failed {
            code: failure.code,
            details: failure.details,
            retryable: failure.retryable,
            run: Some(run),
        },
        Some(RunOutcome::Aborted) => InvokeEvent::Failed {
            code: code::ABORTED.to_owned(),
            details: "the run was aborted".to_owned(),
            // C9: an abort is a settled outcome; nothing replays it on its own.
            retryable: false,
            run: Some(run),
        },
        None => InvokeEvent::Failed {
            code: code::INTERRUPTED.to_owned(),
            details: "the run has no recorded end".to_owned(),
            retryable: true,
            run: Some(run),
        },
    }
}
