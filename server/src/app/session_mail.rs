//! What a session's task is sent, and what it answers.

use std::sync::Arc;

use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::command::CommandKind;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::fleet::metadata::MetadataChange;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{RunId, SessionId};
use sessionplane_core::domain::lifecycle::{
    Answer, CallFacts, DetachCause, DispatchFacts, InvokeFacts, PlaceFacts, StreamId,
};
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::session::SessionRecord;
use tokio::sync::oneshot;

use super::channel::Channel;
use super::session_loss::Loss;
use super::single_flight::Flight;

/// How a session's task begins.
pub(crate) enum Birth {
    /// From its stored rows.
    Stored(SessionId),
    /// With the record that its first admission stores.
    Unborn(SessionRecord),
}

/// An answer, and where in the session's events it was given.
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    /// The stream position before the events that were told with it.
    pub(crate) position: Position,
    /// The channel that the position is a place in. Whoever reads on from the position reads here:
    /// by the time the answer is read, the session may have another channel.
    pub(crate) channel: Arc<Channel>,
    /// C2: the session in the step of a change of it: by the time the answer is read it may have been
    /// deleted, and the change was made all the same.
    pub(crate) changed: Option<Arc<SessionSummary>>,
}

impl Reply {
    /// An answer of the session as its channel shows it now.
    pub(crate) fn of(channel: &Arc<Channel>, answer: Answer, position: Position) -> Self {
        let changed = matches!(answer, Answer::Changed);
        Self {
            answer,
            position,
            changed: changed.then(|| channel.shown()).flatten(),
            channel: channel.clone(),
        }
    }
}

/// Why a call got no [`Reply`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoReply {
    /// A session of that name or key was created by another call meanwhile.
    NameTaken,
    /// The session is not served: the call did nothing.
    Refused(CallError),
    /// The commit was refused or failed: its effect is unknown to the caller.
    Lost(Loss),
}

/// Where a reply goes.
pub(crate) type ReplyTo = oneshot::Sender<Result<Reply, NoReply>>;
/// Completes when an invoke stream is gone.
pub(crate) type Gone = oneshot::Receiver<DetachCause>;

/// The refusal of what would begin on a server that stops.
pub(crate) fn draining() -> CallError {
    let message = "this server is stopping and begins nothing new; repeat the call, over a new \
                   connection, when another has taken its place";
    CallError::refused(Reason::ServerDraining, message)
}

/// A change of the session itself, that no run and no engine has a part in.
pub(crate) enum Chore {
    /// It is created, at rest.
    Create(Box<PlaceFacts>),
    /// It works elsewhere from now on.
    Move(Box<PlaceFacts>),
    /// Its metadata change, if they are of this revision; of any if none is given.
    Change {
        call: Box<CallFacts>,
        action: Action,
        change: Box<MetadataChange>,
        etag: Option<u64>,
    },
    /// It ends.
    Delete {
        call: Box<CallFacts>,
        etag: Option<u64>,
    },
}

/// What a session's task is sent.
pub(crate) enum Mail {
    /// Start a run.
    Invoke {
        facts: Box<InvokeFacts>,
        reply: ReplyTo,
        gone: Gone,
        flight: Option<Flight>,
    },
    /// Modulate the run.
    Dispatch {
        facts: Box<DispatchFacts>,
        reply: ReplyTo,
        flight: Option<Flight>,
    },
    /// Change the session itself.
    Chore {
        chore: Chore,
        reply: ReplyTo,
        flight: Option<Flight>,
    },
    /// A further stream joins the run.
    Attach {
        run: RunId,
        stream: StreamId,
        on_disconnect: OnDisconnect,
        reply: ReplyTo,
        gone: Gone,
    },
}

impl Mail {
    /// Whether it asks for something that goes on once it is answered, where nothing is going on.
    pub(crate) fn begins_work(&self) -> bool {
        match self {
            Self::Invoke { .. } => true,
            Self::Dispatch { facts, .. } => facts.command.kind() == CommandKind::Compact,
            Self::Attach { .. } | Self::Chore { .. } => false,
        }
    }

    /// Whether a run would find in memory what it leaves there.
    pub(crate) fn warms(&self) -> bool {
        matches!(self, Self::Invoke { .. } | Self::Dispatch { .. })
    }

    /// Answers that nothing of it was done.
    pub(crate) fn refuse(self, error: CallError) {
        let (Self::Invoke { reply, .. }
        | Self::Dispatch { reply, .. }
        | Self::Chore { reply, .. }
        | Self::Attach { reply, .. }) = self;
        // A caller that left does not miss its answer.
        let _ = reply.send(Err(NoReply::Refused(error)));
    }
}
