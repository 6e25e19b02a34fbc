//! What callers of the fleet's writes are answered.

use sessionplane_core::domain::binding::{Binding, BoundAnswer};
use sessionplane_core::domain::command::{DispatchAnswer, Rejection};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::lifecycle::Answer;
use sessionplane_core::domain::session::SessionRecord;
use tokio::sync::oneshot;

use super::view::Viewer;
use crate::app::caller::AppCaller;
use crate::app::dispatch::lost;
use crate::app::session_loss::Loss;
use crate::app::session_mail::{Chore, Mail, NoReply, Reply};
use crate::app::single_flight::Flight;

/// What became of a change of a session.
pub(super) enum Judged {
    /// It is done: the session in that step, if it still exists.
    Done(Option<Box<SessionSummary>>),
    /// A run or a compaction is in the way.
    Rejected(Rejection),
    /// A name or a key is taken.
    Taken,
    /// The session works elsewhere by now than where was looked.
    Elsewhere,
}

impl AppCaller {
    pub(super) fn viewer(&self) -> Viewer {
        Viewer {
            context: self.context.clone(),
            principal: self.principal().clone(),
        }
    }

    /// The session as it is now, if it still exists.
    pub(super) async fn present(&self, id: SessionId) -> Result<SessionSummary, CallError> {
        let summary = self.viewer().summary(id).await?;
        let summary = summary.ok_or_else(CallError::no_such_session)?;
        Ok((*summary).clone())
    }

    /// Has the session's task do it. `record` is the session to be created, if it is.
    pub(super) async fn have_done(
        &self,
        session: SessionId,
        record: Option<&SessionRecord>,
        chore: Chore,
        flight: Option<Flight>,
    ) -> Result<Judged, CallError> {
        let (reply, answer) = oneshot::channel();
        let mail = Mail::Chore {
            chore,
            reply,
            flight,
        };
        let residents = &self.context.residents;
        residents
            .deliver(&self.context, session, record, mail)
            .await;
        let Reply {
            answer, changed, ..
        } = match answer.await {
            Ok(Ok(reply)) => reply,
            Ok(Err(NoReply::NameTaken)) => return Ok(Judged::Taken),
            Ok(Err(no)) => return Err(lost(&no)),
            Err(_) => return Err(lost(&NoReply::Lost(Loss::Right))),
        };
        match answer {
            Answer::Changed => Ok(Judged::Done(changed.map(|it| Box::new((*it).clone())))),
            Answer::Dispatched(DispatchAnswer::Rejected(no)) => Ok(Judged::Rejected(no)),
            Answer::Elsewhere => Ok(Judged::Elsewhere),
            Answer::Refused(error) => Err(error),
            _ => Err(unexpected()),
        }
    }
}

/// A bound answer of another method cannot be: the method is part of the key.
pub(super) fn check_bound(binding: &Binding) -> Result<(), CallError> {
    match binding.answer {
        BoundAnswer::Session => Ok(()),
        BoundAnswer::Run(_) | BoundAnswer::Dispatched { .. } => Err(unexpected()),
    }
}

pub(super) fn unexpected() -> CallError {
    CallError::unknown(
        Reason::Internal,
        "the session answered something else than was asked",
    )
}

/// The metadata are not of the revision that the caller means.
pub(crate) fn mismatch(etag: u64, revision: u64) -> CallError {
    let message = format!(
        "the session's metadata are of revision {revision}, not {etag}; look again, and repeat with \
         the etag that they have"
    );
    CallError::refused(Reason::EtagMismatch, message)
}

/// Others go on from the session that is to be deleted.
pub(crate) fn has_children(child: SessionId) -> CallError {
    let message = format!("other sessions branch off this one, such as {child}; delete them first");
    CallError::refused(Reason::HasChildren, message)
}

/// What was done to a session that is gone by the time of the answer.
pub(super) fn done(judged: Judged) -> Result<SessionSummary, CallError> {
    match judged {
        Judged::Done(summary) => summary
            .map(|summary| *summary)
            .ok_or_else(CallError::no_such_session),
        Judged::Rejected(_) | Judged::Taken | Judged::Elsewhere => Err(unexpected()),
    }
}
