//! The stream of an invoke, read to its end or left before (C5, C6, C8).

use futures_util::StreamExt as _;
use sessionplane_core::contract::{InvokeEvent, ResultStream};
use sessionplane_core::domain::error::{CallError, Outcome};
use sessionplane_core::domain::ids::{RequestId, RunId, SessionId};
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::run::RunRecord;

use crate::chronicle::Deltas;
use crate::reader::Shared;
use crate::rng::Rng;
use crate::server::Connection;

/// Whoever listens to a run that it started or joined.
pub(crate) struct Invoking {
    shared: Shared,
    who: String,
    id: Option<RequestId>,
    rng: Rng,
    accepted: Option<Deltas>,
    /// The run was started by an earlier call.
    joined: bool,
    /// Events were skipped: what was said is not all.
    skipped: bool,
}

impl Invoking {
    pub(crate) fn new(shared: Shared, who: String, id: Option<RequestId>, rng: Rng) -> Self {
        Self {
            shared,
            who,
            id,
            rng,
            accepted: None,
            joined: false,
            skipped: false,
        }
    }

    pub(crate) async fn listen(
        mut self,
        mut stream: ResultStream<InvokeEvent>,
        connection: Connection,
    ) {
        let leaves = self.rng.one_in(3);
        let mut left = self.rng.below(30);
        loop {
            if leaves && left == 0 {
                break;
            }
            left = left.saturating_sub(1);
            if self.rng.one_in(20) {
                let pause = self.rng.millis(200);
                let pause = self.shared.host.executor.sleep(pause);
                // Who is told nothing any more keeps no handle on the server that is gone.
                if connection.call(pause).await.is_err() {
                    break;
                }
            }
            let Ok(item) = connection.call(stream.next()).await else {
                break;
            };
            self.shared.log.tell(&self.who, &item);
            let over = match item {
                None => Err("C5: a stream ended without a terminal".to_owned()),
                Some(Err(error)) => ended(&error).map(|()| true),
                Some(Ok(event)) if event.is_terminal() => {
                    let rest = connection.call(stream.next()).await;
                    if matches!(rest, Ok(Some(_))) {
                        Err(format!("C5: after its terminal comes {rest:?}"))
                    } else {
                        self.terminal(&event).map(|()| true)
                    }
                }
                Some(Ok(event)) => self.take(event).map(|()| false),
            };
            match over {
                Ok(false) => {}
                Ok(true) => break,
                Err(problem) => {
                    self.shared.log.wrong(format!("{}: {problem}", self.who));
                    break;
                }
            }
        }
    }

    fn take(&mut self, event: InvokeEvent) -> Result<(), String> {
        match event {
            InvokeEvent::Accepted {
                session,
                run,
                position,
                joined,
            } => {
                self.joined = joined;
                self.accept(session, run, position)
            }
            _ if self.accepted.is_none() => Err(format!("C6: first comes {event:?}")),
            InvokeEvent::Resumed { .. } => {
                self.skipped = true;
                Ok(())
            }
            InvokeEvent::Delta {
                message,
                channel,
                text,
            } => {
                if let Some(deltas) = &mut self.accepted {
                    deltas.said.push((message, channel, text));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn accept(&mut self, session: SessionId, run: RunId, from: Position) -> Result<(), String> {
        if self.accepted.is_some() {
            return Err("C6: accepted twice".to_owned());
        }
        self.shared.books.accepted(session, run, self.id.as_ref());
        self.accepted = Some(Deltas {
            session,
            run,
            from,
            said: Vec::new(),
        });
        Ok(())
    }

    fn terminal(&mut self, event: &InvokeEvent) -> Result<(), String> {
        let (record, code): (Option<&RunRecord>, Option<&str>) = match event {
            InvokeEvent::Completed { run } => (Some(run), None),
            InvokeEvent::Failed { run, code, .. } => (run.as_deref(), Some(code)),
            _ => return Ok(()),
        };
        let Some(record) = record else {
            let refusals = ["session_busy", "session_paused", "directory_unavailable"];
            let held = code.is_some_and(|code| refusals.contains(&code));
            match code {
                Some("session_paused") => self.shared.chronicle.stream("held"),
                Some("directory_unavailable") => self.shared.chronicle.stream("nowhere"),
                _ => {}
            }
            return if self.accepted.is_none() && held {
                Ok(())
            } else {
                Err(format!("C7: {event:?}"))
            };
        };
        let stored = self.shared.books.settled(record.id);
        let outcome = record.settled.as_ref();
        if stored.as_ref().and_then(|it| it.settled.as_ref()) != outcome {
            return Err(format!("C10: {event:?} is told, and stored is {stored:?}"));
        }
        if outcome.and_then(|it| it.outcome.code()) != code {
            return Err(format!("C9: another outcome: {event:?}"));
        }
        let Some(deltas) = self.accepted.take() else {
            return Err(format!("C6: no event before {event:?}"));
        };
        if deltas.run != record.id {
            return Err(format!(
                "C12: another run ended than was accepted: {event:?}"
            ));
        }
        // Whoever joins what has ended by then is told no more than the end.
        let recorded = self.joined && deltas.said.is_empty();
        let live = deltas.from.epoch > 0 && !(recorded || self.skipped);
        if live {
            self.shared.chronicle.deltas(deltas);
        }
        Ok(())
    }
}

fn ended(error: &CallError) -> Result<(), String> {
    if error.outcome == Outcome::StreamEnded {
        Ok(())
    } else {
        Err(format!("C2: a stream ended with {error:?}"))
    }
}
