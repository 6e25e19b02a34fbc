//! What callers of the fleet's writes are answered.

use sessionplane_core::domain::binding::{Binding, BoundAnswer, SessionAnswer};
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::command::{DispatchAnswer, Rejection};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::lifecycle::Answer;
use sessionplane_core::domain::session::SessionRecord;
use tokio::sync::oneshot;

use super::view::Viewer;
use crate::app::caller::{AppCaller, store};
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

/// What a call was answered.
pub(super) struct Repeated {
    pub(super) session: SessionSummary,
    /// How far what runs there was held in, if the call was about that.
    pub(super) sandbox: Option<SandboxLevel>,
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

    /// C3: what an accepted call was answered, for whoever repeats it. What it decided is told as it
    /// was then; what the session is at, as it is now.
    pub(super) async fn repeated(&self, binding: Binding) -> Result<Repeated, CallError> {
        let id = binding.session;
        let answer = decided(binding)?;
        if answer.is_none() {
            // Its channel may not have heard yet that it is gone.
            let stored = self.context.ports.repository.session(id).await;
            stored
                .map_err(store)?
                .ok_or_else(|| CallError::session_deleted(id))?;
        }
        let summary = self.viewer().summary(id).await?;
        let summary = summary.ok_or_else(|| CallError::session_deleted(id))?;
        let summary = (*summary).clone();
        let Some(answer) = answer else {
            return Ok(Repeated {
                session: summary,
                sandbox: None,
            });
        };
        Ok(Repeated {
            sandbox: answer.placed.as_ref().map(|placed| placed.sandbox),
            session: summary.decided(*answer),
        })
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

/// What a bound call decided. An answer of another method cannot be: the method is part of the key.
pub(super) fn decided(binding: Binding) -> Result<Option<Box<SessionAnswer>>, CallError> {
    match binding.answer {
        BoundAnswer::Session(answer) => Ok(answer),
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

/// Others go on from the session that is to be deleted. One is named that the caller may see.
pub(crate) fn has_children(child: Option<SessionId>) -> CallError {
    let such = child.map_or_else(String::new, |child| format!(", such as {child}"));
    let message = format!("other sessions branch off this one{such}; delete them first");
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
