//! How a session's task ends: it leaves the table of those that are served, and what is left is told.

use super::super::residents::{Departed, Retired};
use super::super::session_loss::lose;
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
            End::Stopping => {
                if is_cut {
                    context.work.cut(id);
                }
                context.residents.leave(id);
                drop(at_work);
            }
        }
    }
}
