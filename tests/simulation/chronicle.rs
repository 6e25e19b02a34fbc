//! Every event that anybody saw, and every state that anybody was told: one order for all, and one
//! fold (C27, C30, C32, C34, C36).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sessionplane_core::contract::{EventFilter, SessionState};
use sessionplane_core::domain::event::{EventBody, EventEnvelope, OutputChannel};
use sessionplane_core::domain::ids::{RunId, SessionId};
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::view::SessionView;

use crate::books::Books;
use crate::executor::lock;
use crate::log::Log;
use crate::tally::Tally;

/// A serving incarnation of a session.
type Epoch = (SessionId, u64);

/// The chronicle. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Chronicle {
    log: Log,
    books: Books,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    events: BTreeMap<Epoch, BTreeMap<u64, EventEnvelope>>,
    states: BTreeMap<Epoch, BTreeMap<u64, SessionView>>,
    newest: BTreeMap<SessionId, Position>,
    spans: Vec<Span>,
    deltas: Vec<Deltas>,
    streams: Tally,
}

/// What one stream was sent: everything that its filter admits after `from` up to `to`.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) epoch: Epoch,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) filter: EventFilter,
    pub(crate) received: Vec<u64>,
}

/// What an invoke stream that was read to its end said, from a place on.
#[derive(Debug)]
pub(crate) struct Deltas {
    pub(crate) session: SessionId,
    pub(crate) run: RunId,
    pub(crate) from: Position,
    pub(crate) said: Vec<(String, OutputChannel, String)>,
}

impl Chronicle {
    pub(crate) fn new(log: Log, books: Books) -> Self {
        Self {
            log,
            books,
            inner: Arc::default(),
        }
    }

    /// The newest place that anybody has seen of a session.
    pub(crate) fn newest(&self, session: SessionId) -> Option<Position> {
        lock(&self.inner).newest.get(&session).copied()
    }

    fn see(&self, session: SessionId, position: Position) {
        let mut inner = lock(&self.inner);
        let newest = inner.newest.entry(session).or_insert(position);
        *newest = (*newest).max(position);
    }

    /// Somebody was sent an event.
    pub(crate) fn event(&self, envelope: &EventEnvelope) {
        let epoch = (envelope.session, envelope.epoch);
        let known = {
            let mut inner = lock(&self.inner);
            let events = inner.events.entry(epoch).or_default();
            let known = events.get(&envelope.seq).map(|known| known == envelope);
            if known.is_none() {
                events.insert(envelope.seq, envelope.clone());
            }
            known
        };
        self.log.ensure(known != Some(false), || {
            format!(
                "C34: two events have the number {}: {envelope:?}",
                envelope.seq
            )
        });
        if known.is_none() {
            if let Err(problem) = self.judge(envelope) {
                self.log.wrong(format!("{problem}: {envelope:?}"));
            }
            let (session, epoch, seq) = (envelope.session, envelope.epoch, envelope.seq);
            self.see(session, Position { epoch, seq });
        }
    }

    /// C39: what tells of a durable fact comes after its sync, and says what is stored.
    fn judge(&self, envelope: &EventEnvelope) -> Result<(), String> {
        let session = envelope.session;
        match (&envelope.event.body, envelope.event.run) {
            (EventBody::RunStarted { .. }, Some(run)) => self.books.know_run(session, run),
            (EventBody::CompactionStarted { .. }, None) => {
                self.books.know_compaction(session, envelope.event.at);
            }
            _ => {}
        }
        if self.books.bears_out(envelope) {
            Ok(())
        } else {
            Err("C39: it is told before it is durable, or otherwise than it is".to_owned())
        }
    }

    /// Somebody was told a state.
    pub(crate) fn state(&self, session: SessionId, state: &SessionState) {
        let Position { epoch, seq } = state.position;
        let same = {
            let mut inner = lock(&self.inner);
            let states = inner.states.entry((session, epoch)).or_default();
            let first = states.entry(seq).or_insert_with(|| state.view.clone());
            *first == state.view
        };
        self.log.ensure(same, || {
            format!("C27: two states at {:?}: {:?}", state.position, state.view)
        });
        self.see(session, state.position);
    }

    /// A stream ended or was left.
    pub(crate) fn span(&self, span: Span) {
        lock(&self.inner).spans.push(span);
    }

    /// An invoke stream ended with its terminal.
    pub(crate) fn deltas(&self, deltas: Deltas) {
        lock(&self.inner).deltas.push(deltas);
    }

    /// What became of a stream.
    pub(crate) fn stream(&self, what: &str) {
        lock(&self.inner).streams.add(format!("stream: {what}"), 1);
    }

    /// Judges all of it, at the world's end, and counts it.
    pub(crate) fn judge_all(&self, tally: &mut Tally) {
        let inner = std::mem::take(&mut *lock(&self.inner));
        for span in &inner.spans {
            self.judge_span(span, &inner);
        }
        for deltas in &inner.deltas {
            self.judge_deltas(deltas, &inner);
        }
        for (epoch, events) in &inner.events {
            self.judge_runs(*epoch, events);
            if let Some(states) = inner.states.get(epoch) {
                self.judge_fold(*epoch, events, states);
            }
        }
        let events: usize = inner.events.values().map(BTreeMap::len).sum();
        let states: usize = inner.states.values().map(BTreeMap::len).sum();
        tally.add("events", events as u64);
        tally.add("states", states as u64);
        tally.join(&inner.streams);
    }

    /// C32: everything that the filter admits was sent, nothing else, in order and once.
    fn judge_span(&self, span: &Span, inner: &Inner) {
        let ascending = span.received.windows(2).all(|pair| pair[0] < pair[1]);
        self.log
            .ensure(ascending, || format!("C34: out of order: {span:?}"));
        let Some(events) = inner.events.get(&span.epoch) else {
            return;
        };
        let admitted: Vec<u64> = events
            .range(span.from + 1..(span.to + 1).max(span.from + 1))
            .filter(|(_, event)| span.filter.admits(&event.event.body))
            .map(|(seq, _)| *seq)
            .collect();
        self.log.ensure(admitted == span.received, || {
            format!("C32: of {admitted:?} was sent: {span:?}")
        });
    }

    /// C8: the stream of an invoke says what the session's events say.
    fn judge_deltas(&self, deltas: &Deltas, inner: &Inner) {
        let Some(events) = inner.events.get(&(deltas.session, deltas.from.epoch)) else {
            return;
        };
        let from = deltas.from.seq + 1;
        let mut known = Vec::new();
        for (next, (seq, event)) in (from..).zip(events.range(from..)) {
            if next != *seq {
                return;
            }
            let mine = event.event.run == Some(deltas.run);
            match &event.event.body {
                EventBody::MessageDelta {
                    message,
                    channel,
                    text,
                } if mine => known.push((message.clone(), *channel, text.to_string())),
                EventBody::RunSettled { .. } if mine => {
                    self.log.ensure(known == deltas.said, || {
                        format!("C8: {known:?} was said, and was told as {deltas:?}")
                    });
                    return;
                }
                _ => {}
            }
        }
    }

    /// C36: one end for each beginning, and nothing of a run outside of the two.
    fn judge_runs(&self, epoch: Epoch, events: &BTreeMap<u64, EventEnvelope>) {
        let (mut active, mut last) = (None, 0);
        let mut inputs = std::collections::BTreeSet::new();
        for (seq, event) in events {
            if *seq != last + 1 {
                active = None;
            }
            let whole = *seq == last + 1;
            last = *seq;
            let run = event.event.run;
            match &event.event.body {
                EventBody::RunStarted { .. } => {
                    self.log.ensure(active.is_none(), || {
                        format!("C36: {active:?} had not settled before {event:?}")
                    });
                    active = run;
                }
                EventBody::RunSettled { .. } => {
                    self.log
                        .ensure(!whole || active.is_none() || active == run, || {
                            format!("C36: {active:?} was active, and another settled: {event:?}")
                        });
                    active = None;
                }
                EventBody::InputDelivered { input, .. }
                | EventBody::InputDiscarded { input, .. } => {
                    self.log.ensure(inputs.insert(*input), || {
                        format!("C20: it ended twice in {epoch:?}: {event:?}")
                    });
                }
                _ => {}
            }
        }
    }

    /// C27: each state is the fold of the one before it and the events between.
    fn judge_fold(
        &self,
        epoch: Epoch,
        events: &BTreeMap<u64, EventEnvelope>,
        states: &BTreeMap<u64, SessionView>,
    ) {
        let mut told = states.iter();
        let Some((mut at, first)) = told.next() else {
            return;
        };
        let mut view = first.clone();
        for (seq, state) in told {
            let between: Vec<&EventEnvelope> = events
                .range(at + 1..=*seq)
                .map(|(_, event)| event)
                .collect();
            if between.len() as u64 == seq - at {
                for envelope in between {
                    view.apply(&envelope.event);
                }
                self.log.ensure(view == *state, || {
                    format!("C27: {epoch:?} at {seq}: events say {view:?}, the state {state:?}")
                });
            }
            (at, view) = (seq, state.clone());
        }
    }
}
