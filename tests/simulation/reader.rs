//! Observers that come, fall behind, leave and come back, each with a filter of its own (C30 to
//! C33, B01, B04).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane_core::contract::{
    CallOptions, EventFilter, EventItem, EventsRequest, ResultStream, SessionControl as _,
};
use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::event::{EventBody, EventEnvelope};
use sessionplane_core::domain::ids::{EntryId, SessionId, SessionName, SessionRef};
use sessionplane_core::domain::position::Position;
use sessionplane_core::ports::artifact_store::ArtifactStore as _;
use tokio_util::sync::CancellationToken;

use crate::books::Books;
use crate::chronicle::{Chronicle, Span};
use crate::ledger::Ledger;
use crate::log::Log;
use crate::rng::Rng;
use crate::server::{Connection, Host};

/// What every client shares.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) host: Arc<Host>,
    pub(crate) books: Books,
    pub(crate) chronicle: Chronicle,
    pub(crate) ledger: Ledger,
    pub(crate) log: Log,
    /// Whoever listens to a run, and whether that ended.
    pub(crate) listeners: Arc<Mutex<Vec<CancellationToken>>>,
    /// The world comes to its end.
    pub(crate) done: CancellationToken,
}

impl Shared {
    /// A call that the server refused or lost: what may not be is wrong.
    pub(crate) fn refused(&self, who: &str, error: &CallError) {
        self.log.tell(who, error);
        let expected = match error.outcome {
            Outcome::Refused => true,
            Outcome::Unknown => {
                matches!(
                    error.reason,
                    Reason::ServingLost
                        | Reason::StoreFailed
                        | Reason::ServerDraining
                        | Reason::DeadlineExceeded
                        // Of a deletion that has aborted something.
                        | Reason::EtagMismatch
                        | Reason::HasChildren
                )
            }
            Outcome::StreamEnded => false,
        };
        let bad = [
            Reason::Internal,
            Reason::PermissionDenied,
            Reason::RequestIdReused,
        ];
        if !expected || bad.contains(&error.reason) {
            self.log.wrong(format!("{who}: {error:?}"));
        }
    }
}

/// An observer of one session.
pub(crate) struct Reader {
    shared: Shared,
    who: String,
    session: SessionName,
    filter: EventFilter,
    rng: Rng,
    /// It reads as fast as it can and leaves only with the server.
    faithful: bool,
    resume: Option<Position>,
    /// The entries that it has: all up to this one.
    known: u64,
    id: Option<SessionId>,
}

/// One stream, as far as it was read.
struct Opened {
    session: SessionId,
    epoch: u64,
    resumed: bool,
    /// After this place it gets everything.
    from: Option<u64>,
    to: u64,
    live: bool,
    received: Vec<u64>,
    backfill: Vec<Entry>,
    full: bool,
}

impl Reader {
    pub(crate) fn new(
        shared: Shared,
        who: String,
        session: SessionName,
        faithful: bool,
        mut rng: Rng,
    ) -> Self {
        let filter = if faithful {
            EventFilter::default()
        } else {
            filter(&mut rng)
        };
        Self {
            shared,
            who,
            session,
            filter,
            rng,
            faithful,
            resume: None,
            known: 0,
            id: None,
        }
    }

    /// Observes until the world comes to its end.
    pub(crate) async fn run(mut self) {
        while !self.shared.done.is_cancelled() {
            let connection = self.shared.host.connect().await;
            self.observe(&connection).await;
            drop(connection);
            let pause = if self.faithful { 1 } else { 400 };
            let pause = self.rng.millis(pause) + Duration::from_micros(700);
            self.shared.host.executor.sleep(pause).await;
        }
    }

    fn wrong(&self, what: &str) {
        self.shared.log.wrong(format!("{}: {what}", self.who));
    }

    async fn observe(&mut self, connection: &Connection) {
        let since = self.id.map(|session| EntryId {
            session,
            seq: self.known,
        });
        let request = EventsRequest {
            session: SessionRef::Name(self.session.clone()),
            resume: self.resume,
            entries_since: since.filter(|id| id.seq > 0).map(|id| id.to_string()),
            filter: self.filter.clone(),
        };
        let caller = connection.caller();
        let opening = caller.events(request, CallOptions::default());
        match connection.call(opening).await {
            Err(_) => {}
            Ok(Err(error)) => {
                self.shared.log.tell(&self.who, &error);
                if error.reason == Reason::Internal {
                    self.wrong(&format!("{error:?}"));
                }
            }
            Ok(Ok(stream)) => self.read(connection, stream).await,
        }
    }

    async fn read(&mut self, connection: &Connection, mut stream: ResultStream<EventItem>) {
        let mut opened = None;
        let mut left = self.rng.below(60);
        loop {
            if !self.faithful {
                if left == 0 {
                    break;
                }
                left -= 1;
                if self.rng.one_in(12) {
                    let pause = self.rng.millis(300);
                    let pause = self.shared.host.executor.sleep(pause);
                    // A handle on a server that is gone would keep it alive.
                    if connection.call(pause).await.is_err() {
                        break;
                    }
                }
            }
            let done = self.shared.done.clone();
            let next = connection.call(stream.next());
            // C33: a stream is never silent for much longer than between two heartbeats.
            let silence = match &opened {
                Some(Opened { live: true, .. }) => 2 * self.shared.host.config.heartbeat,
                _ => Duration::from_secs(3600),
            };
            let next = self.shared.host.executor.within(silence, next);
            let item = tokio::select! {
                biased;
                item = next => item,
                () = done.cancelled() => break,
            };
            let Some(item) = item else {
                self.wrong(&format!("C33: nothing came for {silence:?}"));
                break;
            };
            let Ok(item) = item else {
                break;
            };
            self.shared.log.tell(&self.who, &item);
            match item {
                None => {
                    self.wrong("C35: a stream ended in silence");
                    break;
                }
                Some(Err(error)) => {
                    if error.reason == Reason::ObserverTooSlow {
                        self.shared.chronicle.stream("too slow");
                    }
                    if error.outcome != Outcome::StreamEnded {
                        self.wrong(&format!("C2: a stream ended with {error:?}"));
                    }
                    break;
                }
                Some(Ok(item)) => {
                    if let Err(problem) = self.take(&mut opened, item).await {
                        self.wrong(&problem);
                        break;
                    }
                }
            }
        }
        drop(stream);
        if let Some(opened) = opened {
            self.leave(opened);
        }
    }

    fn leave(&mut self, opened: Opened) {
        let Some(from) = opened.from else {
            // It left before the snapshot and has nothing to go on from.
            return;
        };
        let (epoch, seq) = (opened.epoch, opened.to);
        self.resume = Some(Position { epoch, seq });
        if !self.faithful && self.rng.one_in(6) {
            self.resume = None;
        }
        self.shared.chronicle.span(Span {
            epoch: (opened.session, opened.epoch),
            from,
            to: opened.to,
            filter: self.filter.clone(),
            received: opened.received,
        });
    }

    async fn take(&mut self, opened: &mut Option<Opened>, item: EventItem) -> Result<(), String> {
        let Some(stream) = opened else {
            *opened = Some(self.subscribed(&item)?);
            return Ok(());
        };
        match item {
            EventItem::Subscribed { .. } => Err("C31: subscribed twice".to_owned()),
            EventItem::Entries {
                entries,
                full_backfill,
            } => {
                if stream.live || stream.resumed || (full_backfill && !stream.backfill.is_empty()) {
                    return Err("C31: entries out of place".to_owned());
                }
                stream.full |= full_backfill;
                stream.backfill.extend(entries);
                Ok(())
            }
            EventItem::Snapshot(state) => self.snapshot(stream, &state),
            EventItem::Event(envelope) => {
                self.event(stream, &envelope)?;
                self.artifact(&envelope).await
            }
            EventItem::Heartbeat(position) => {
                if !stream.live || position.epoch != stream.epoch || position.seq < stream.to {
                    return Err(format!("C33: a heartbeat at {position:?}"));
                }
                stream.to = position.seq;
                Ok(())
            }
        }
    }

    fn subscribed(&mut self, item: &EventItem) -> Result<Opened, String> {
        let EventItem::Subscribed {
            session,
            epoch,
            resumed,
            gap,
            ..
        } = *item
        else {
            return Err(format!("C31: first comes {item:?}"));
        };
        let asked = self.resume.filter(|_| resumed);
        if gap != (self.resume.is_some() && !resumed) {
            return Err("C31: a gap where none is, or none where one is".to_owned());
        }
        if resumed && asked.is_none_or(|from| from.epoch != epoch) {
            return Err("C32: resumed from nowhere".to_owned());
        }
        if resumed {
            self.shared.chronicle.stream("resumed");
        } else if gap {
            self.shared.chronicle.stream("gap");
        }
        if self.id.is_some_and(|known| known != session) {
            return Err("C14: the name stands for another session".to_owned());
        }
        self.id = Some(session);
        Ok(Opened {
            session,
            epoch,
            resumed,
            from: asked.map(|from| from.seq),
            to: asked.map_or(0, |from| from.seq),
            live: false,
            received: Vec::new(),
            backfill: Vec::new(),
            full: false,
        })
    }

    fn snapshot(
        &mut self,
        stream: &mut Opened,
        state: &sessionplane_core::contract::SessionState,
    ) -> Result<(), String> {
        let Position { epoch, seq } = state.position;
        if stream.live || epoch != stream.epoch || seq < stream.to {
            return Err(format!("C31: a snapshot at {:?}", state.position));
        }
        self.shared.chronicle.state(stream.session, state);
        (stream.live, stream.to) = (true, seq);
        if stream.resumed {
            return Ok(());
        }
        stream.from = Some(seq);
        // C29, C31: every durable entry up to the snapshot's, once and in order.
        let after = if stream.full { 0 } else { self.known };
        let mut next = after;
        for entry in &stream.backfill {
            next += 1;
            let stored = self.shared.books.entry(stream.session, next);
            if stored.as_ref() != Some(entry) {
                return Err(format!(
                    "C29: entry {next} is {stored:?} and was sent as {entry:?}"
                ));
            }
        }
        if next != state.view.entries || state.view.leaf.is_some_and(|leaf| leaf.seq > next) {
            return Err(format!("C31: entries up to {next} came before {state:?}"));
        }
        self.known = next;
        stream.backfill.clear();
        Ok(())
    }

    fn event(&mut self, stream: &mut Opened, envelope: &EventEnvelope) -> Result<(), String> {
        let right = envelope.session == stream.session && envelope.epoch == stream.epoch;
        if !right || !(stream.live || stream.resumed) {
            return Err(format!("C31: an event out of place: {envelope:?}"));
        }
        let jumped = envelope.seq != stream.to + 1;
        if envelope.seq <= stream.to || (jumped && self.filter.is_open()) {
            return Err(format!("C30: after {} comes {envelope:?}", stream.to));
        }
        stream.to = envelope.seq;
        let body = &envelope.event.body;
        if !self.filter.admits(body) {
            return Err(format!("C32: the filter does not admit {envelope:?}"));
        }
        self.shared.chronicle.event(envelope);
        stream.received.push(envelope.seq);
        if let EventBody::EntryAppended { entry } = body {
            // B01: what was sent before and what is sent now are all of them.
            if entry.id.seq != self.known + 1 {
                return Err(format!("B01: after entry {} comes {entry:?}", self.known));
            }
            self.known = entry.id.seq;
        }
        Ok(())
    }

    /// C30: an artifact that is named is there, whole.
    async fn artifact(&self, envelope: &EventEnvelope) -> Result<(), String> {
        let named: Option<&ArtifactRef> = match &envelope.event.body {
            EventBody::ToolFinished { artifact, .. } => artifact.as_ref(),
            EventBody::EntryAppended { entry } => match &entry.body {
                EntryBody::Tool { artifact, .. } => artifact.as_ref(),
                _ => None,
            },
            _ => None,
        };
        let Some(named) = named else {
            return Ok(());
        };
        let read = self
            .shared
            .host
            .artifacts
            .read(named.id, 0, usize::MAX)
            .await;
        match read {
            Ok(Some(content)) if content.len() as u64 == named.bytes => Ok(()),
            other => Err(format!(
                "C30: {named:?} is {:?}",
                other.map(|it| it.map(|it| it.len()))
            )),
        }
    }
}

/// All events, some types, or all but thinking.
fn filter(rng: &mut Rng) -> EventFilter {
    let types: &[&str] = match rng.below(5) {
        0 | 1 => &[],
        2 => &["run_started", "run_settled", "entry_appended"],
        3 => &["message_delta", "tool_finished", "from_the_future"],
        _ => &[
            "queue_changed",
            "input_delivered",
            "input_discarded",
            "interaction_requested",
        ],
    };
    let types: BTreeSet<String> = types.iter().map(|&it| it.to_owned()).collect();
    EventFilter {
        types,
        no_thinking: rng.one_in(3),
    }
}
