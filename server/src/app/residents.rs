//! The sessions that have a task, and how to reach it. At most one task per session.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::session::SessionRecord;
use sessionplane_core::ports::clock::TaskHandle;
use tokio::sync::{mpsc, watch};

use super::context::Context;
use super::session_mail::{Birth, Mail};
use super::session_task::SessionTask;

/// Mails that wait for one session at most; further callers wait in their own calls.
const MAILBOX: usize = 256;

/// The sessions that have a task.
pub(crate) struct Residents {
    table: Mutex<BTreeMap<SessionId, Resident>>,
    count: watch::Sender<usize>,
}

struct Resident {
    mailbox: mpsc::Sender<Mail>,
    task: Option<Box<dyn TaskHandle>>,
}

/// The handle of a task that was taken out of the table by itself. Dropping it cancels the task, so
/// it is dropped when nothing is left to be done.
pub(crate) struct Departed(
    #[allow(dead_code, reason = "held for its drop")] Option<Box<dyn TaskHandle>>,
);

/// What became of a task that wanted to leave.
pub(crate) enum Retired {
    /// It is out of the table: the next mail makes a new one.
    Left(Departed),
    /// Mail came in meanwhile: go on with it.
    Stays(mpsc::Receiver<Mail>, Vec<Mail>),
}

impl Default for Residents {
    fn default() -> Self {
        Self {
            table: Mutex::default(),
            count: watch::Sender::new(0),
        }
    }
}

impl Residents {
    /// Reaches the session's task, if it has one. Gives the mail back if not.
    pub(crate) async fn send(&self, session: SessionId, mut mail: Mail) -> Result<(), Mail> {
        loop {
            let mut changes = self.count.subscribe();
            let Some(mailbox) = self.known(session) else {
                return Err(mail);
            };
            match mailbox.send(mail).await {
                Ok(()) => return Ok(()),
                Err(refused) => mail = refused.0,
            }
            self.changed(session, &mailbox, &mut changes).await;
        }
    }

    /// Reaches the session's task, starting it if there is none. `record` is the session to be
    /// created, if it is not stored yet.
    pub(crate) async fn deliver(
        &self,
        context: &Arc<Context>,
        session: SessionId,
        record: Option<&SessionRecord>,
        mut mail: Mail,
    ) {
        loop {
            let mut changes = self.count.subscribe();
            let mailbox = self.mailbox(context, session, record);
            match mailbox.send(mail).await {
                Ok(()) => return,
                Err(refused) => mail = refused.0,
            }
            self.changed(session, &mailbox, &mut changes).await;
        }
    }

    /// Waits until a task that refuses mail has left or takes mail again. Between the two its
    /// session's run may be abandoned, and nobody can say what became of it.
    async fn changed(
        &self,
        session: SessionId,
        refused: &mpsc::Sender<Mail>,
        changes: &mut watch::Receiver<usize>,
    ) {
        let still = |mailbox: mpsc::Sender<Mail>| mailbox.same_channel(refused);
        while self.known(session).is_some_and(still) {
            // The sender lives as long as `self`, so this never fails.
            let _ = changes.changed().await;
        }
    }

    fn known(&self, session: SessionId) -> Option<mpsc::Sender<Mail>> {
        let table = self.lock();
        table.get(&session).map(|resident| resident.mailbox.clone())
    }

    fn mailbox(
        &self,
        context: &Arc<Context>,
        session: SessionId,
        record: Option<&SessionRecord>,
    ) -> mpsc::Sender<Mail> {
        let mut table = self.lock();
        if let Some(resident) = table.get(&session) {
            return resident.mailbox.clone();
        }
        let (mailbox, receiver) = mpsc::channel(MAILBOX);
        table.insert(
            session,
            Resident {
                mailbox: mailbox.clone(),
                task: None,
            },
        );
        let birth = record.map_or(Birth::Stored(session), |record| {
            Birth::Unborn(record.clone())
        });
        let task = SessionTask::run(context.clone(), birth, receiver);
        let handle = context.ports.spawner.spawn("session", Box::pin(task));
        if let Some(resident) = table.get_mut(&session) {
            resident.task = Some(handle);
        }
        self.count.send_replace(table.len());
        mailbox
    }

    /// Takes an idle session's task out, unless mail came in meanwhile.
    pub(crate) async fn retire(
        &self,
        session: SessionId,
        receiver: &mut mpsc::Receiver<Mail>,
    ) -> Retired {
        receiver.close();
        let mut mails = Vec::new();
        // Ends when the last send that was under way has come in; later ones are refused.
        while let Some(mail) = receiver.recv().await {
            mails.push(mail);
        }
        let mut table = self.lock();
        if mails.is_empty() {
            return Retired::Left(self.remove(&mut table, session));
        }
        let (mailbox, receiver) = mpsc::channel(MAILBOX);
        if let Some(resident) = table.get_mut(&session) {
            resident.mailbox = mailbox;
        }
        self.count.send_replace(table.len());
        Retired::Stays(receiver, mails)
    }

    /// Takes mail again for a session whose task gave its mailbox up, until it can be served anew.
    pub(crate) fn reopen(&self, session: SessionId) -> mpsc::Receiver<Mail> {
        let (mailbox, receiver) = mpsc::channel(MAILBOX);
        let mut table = self.lock();
        if let Some(resident) = table.get_mut(&session) {
            resident.mailbox = mailbox;
        }
        self.count.send_replace(table.len());
        receiver
    }

    /// Takes a failed or stopping session's task out; what is still in its mailbox is dropped, and
    /// its callers hear that the outcome is unknown. The task's last act: nothing is awaited after it.
    pub(crate) fn leave(&self, session: SessionId) {
        let departed = self.remove(&mut self.lock(), session);
        drop(departed);
    }

    /// Cancels every task, wherever it is.
    pub(crate) fn cancel(&self) {
        let tasks = std::mem::take(&mut *self.lock());
        self.count.send_replace(0);
        // Not under the lock: a handle's drop is none of the table's business.
        drop(tasks);
    }

    /// Waits until no session has a task.
    pub(crate) async fn drained(&self) {
        let mut count = self.count.subscribe();
        // The sender lives as long as `self`, so this ends by the count alone.
        let _ = count.wait_for(|count| *count == 0).await;
    }

    fn remove(&self, table: &mut BTreeMap<SessionId, Resident>, session: SessionId) -> Departed {
        let resident = table.remove(&session);
        self.count.send_replace(table.len());
        Departed(resident.and_then(|resident| resident.task))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Resident>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
