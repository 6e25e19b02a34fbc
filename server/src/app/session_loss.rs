//! Sessions that cannot be served: their task is no more, or never came to be. Whoever calls is told
//! so, and nobody that such a session is idle.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::event::{Event, EventBody};
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::ports::repository::CommitError;
use tokio::sync::mpsc;

use super::channel::Channel;
use super::context::Context;
use super::recovery;
use super::session_mail::Mail;

/// Why this face lost a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Another has the right to write it, or its task is no more.
    Right,
    /// The store did not confirm what was written: whether it is kept is unknown.
    Store,
    /// It exists no more.
    Deleted,
}

impl Loss {
    /// What a failed commit says of the session.
    pub(super) fn of(error: &CommitError) -> Self {
        match error {
            CommitError::Store(_) => Self::Store,
            _ => Self::Right,
        }
    }

    pub(super) fn reason(self) -> Reason {
        match self {
            Self::Right => Reason::ServingLost,
            Self::Store => Reason::StoreFailed,
            Self::Deleted => Reason::NoSuchSession,
        }
    }

    /// What is told, for people.
    pub(super) fn told(self) -> &'static str {
        match self {
            Self::Right => "the server lost the right to write this session",
            Self::Store => "the store failed, and what it did not confirm may be kept or not",
            Self::Deleted => "the session was deleted",
        }
    }
}

/// The pause before the second attempt to settle a lost run; it doubles from there.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Settles, from its records, the run of a session whose task is no more, and only then lets a new
/// task begin. Until then nobody is told that the session is idle, and nobody reads a state that the
/// settlement is about to change. Observers are told that this face lost it once the run is settled,
/// or once it is known that this takes longer; calls are then refused until it is.
pub(super) async fn lose(context: &Context, session: SessionId, loss: Loss) {
    // Kept here, so that it is not made anew from rows that are about to change.
    let channel = context.channels.get(session);
    if let Err(error) = recovery::abandon(&context.ports, session).await {
        tracing::error!(%session, %error, "a lost run could not be settled; trying again");
        close(context, channel.as_deref(), loss);
        let mailbox = context.residents.reopen(session);
        if !settle_later(context, session, mailbox, loss).await {
            return context.residents.leave(session);
        }
    }
    // One that was made meanwhile goes as well: no task will publish to it.
    let made = context.channels.forget(session);
    let shown = [&channel, &made].map(|it| it.as_deref().and_then(Channel::shown));
    for channel in [channel, made] {
        close(context, channel.as_deref(), loss);
    }
    hand_over(
        context,
        session,
        shown.into_iter().flatten().max_by_key(|it| it.revision),
    )
    .await;
    context.residents.leave(session);
}

/// Tries until the run is settled, and meanwhile refuses every call. False if the server stops
/// before: the next start settles the run then.
async fn settle_later(
    context: &Context,
    session: SessionId,
    mut mailbox: mpsc::Receiver<Mail>,
    loss: Loss,
) -> bool {
    let mut pause = FIRST_PAUSE;
    loop {
        let refusal = refusal(loss, pause);
        let refuse = async {
            while let Some(mail) = mailbox.recv().await {
                mail.refuse(refusal.clone());
            }
        };
        let sleep = context.ports.clock.sleep(pause);
        let waiting = async {
            tokio::select! {
                biased;
                () = sleep => {}
                () = refuse => {}
            }
        };
        let stopping = context.stopping.cancelled();
        if let Either::Left(_) = select(Box::pin(stopping), Box::pin(waiting)).await {
            return false;
        }
        match recovery::abandon(&context.ports, session).await {
            Ok(_) => {
                drain(&mut mailbox, &refusal).await;
                return true;
            }
            Err(error) => {
                tracing::error!(%session, %error, "a lost run still could not be settled");
            }
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Tells who watches the fleet what became of a session that they were shown at work. If its rows cannot
/// be read, the store has failed, and the process ends.
async fn hand_over(context: &Context, session: SessionId, shown: Option<Arc<SessionSummary>>) {
    if shown.is_none() {
        return;
    }
    match context.open_channel(session).await {
        Ok(Some(channel)) => channel.succeed(shown),
        Ok(None) => {}
        Err(error) => tracing::error!(%session, %error, "a lost session cannot be shown"),
    }
}

fn refusal(loss: Loss, pause: Duration) -> CallError {
    let message = "the server lost this session and could not settle its run yet; try again";
    CallError::refused(loss.reason(), message).retry_after(pause)
}

/// Publishes that nothing more will come. A second call only wakes whoever waits.
pub(super) fn close(context: &Context, channel: Option<&Channel>, loss: Loss) {
    let Some(channel) = channel else {
        return;
    };
    let run = channel.with_view(|view| view.active_run);
    let body = EventBody::ServingError {
        reason: loss.told().to_owned(),
    };
    let at = context.ports.clock.now();
    channel.close(Event { at, run, body }, loss);
}

/// Refuses every call to a session that could not be loaded. The next one tries anew.
pub(super) async fn turn_away(
    context: &Context,
    session: SessionId,
    mut mailbox: mpsc::Receiver<Mail>,
    error: &CallError,
) {
    drain(&mut mailbox, error).await;
    context.residents.leave(session);
}

/// Refuses what is in a mailbox and what is on its way into it; later mail is given back.
pub(super) async fn drain(mailbox: &mut mpsc::Receiver<Mail>, error: &CallError) {
    mailbox.close();
    while let Some(mail) = mailbox.recv().await {
        mail.refuse(error.clone());
    }
}
