//! How a session's task ends: it leaves the table of those that are served, and what is left is told.

use sessionplane_core::domain::error::CallError;
use sessionplane_core::ports::repository::CommitError;

use super::super::invoke::no_parent;
use super::super::residents::{Departed, Retired};
use super::super::session_loss::{Loss, close, drain, lose};
use super::super::session_mail::NoReply;
use super::{End, SessionTask};

impl SessionTask {
    /// Leaves the table, if no mail came in meanwhile.
    pub(super) async fn retire(&mut self) -> Option<Departed> {
        let (id, residents) = (self.session.id(), &self.context.residents);
        match residents.retire(id, &mut self.mailbox).await {
            Retired::Left(departed) => Some(departed),
            Retired::Stays(mailbox, mails) => {
                self.mailbox = mailbox;
                for mail in mails {
                    self.mail(mail).await;
                }
                None
            }
        }
    }

    pub(super) async fn leave(mut self, end: End) {
        let (context, channel) = (self.context.clone(), self.channel.clone());
        let (id, seat) = (channel.session(), self.seat.clone());
        self.cool_down();
        if matches!(end, End::Deleted) {
            self.turn_all_away();
            close(&context, Some(&self.channel), Loss::Deleted);
            drain(&mut self.mailbox, &CallError::no_such_session()).await;
            context.deleted.notify_one();
        }
        let is_cut = matches!(end, End::Stopping) && !self.session.is_free();
        // It wakes all who watch, tens of thousands maybe: a stop settles what it cut before that.
        let at_work = self.at_work.take_if(|_| matches!(end, End::Stopping));
        // With the mailbox goes what nobody will read; who sends from here on waits for the next
        // task. With the engine's link goes the engine, and no other is opened before it has gone.
        drop(self);
        seat.vacated(context.ports.clock.as_ref()).await;
        match end {
            End::Idle(departed) => {
                channel.rest(context.config.idle_ring_bytes);
                drop(departed);
            }
            End::Failed(loss) => lose(&context, id, loss).await,
            End::Unborn => {
                context.channels.forget(id);
                context.residents.leave(id);
            }
            End::Deleted => context.residents.leave(id),
            End::Stopping => {
                if is_cut {
                    context.work.cut(id);
                }
                context.residents.leave(id);
                drop(at_work);
            }
        }
    }

    /// The commit did not happen, or nobody knows. The state in memory is ahead of the store and
    /// goes; callers hear that the outcome is unknown.
    pub(super) fn fail(&mut self, error: &CommitError) -> End {
        let (no, end) = match error {
            CommitError::AlreadyExists => (NoReply::NameTaken, End::Unborn),
            // It was deleted after it was looked up: nothing came of the new session.
            CommitError::NoParent => (NoReply::Refused(no_parent()), End::Unborn),
            other => {
                let loss = Loss::of(other);
                (NoReply::Lost(loss), End::Failed(loss))
            }
        };
        if matches!(end, End::Failed(_)) {
            tracing::error!(session = %self.session.id(), %error, "a commit failed; the session's task ends");
        }
        for (reply, _) in std::mem::take(&mut self.replies).into_values() {
            // A caller that left does not miss its answer.
            let _ = reply.send(Err(no.clone()));
        }
        end
    }
}
