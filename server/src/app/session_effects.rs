//! The acting half of a session's task: what the machine decided is done here, in order.

use std::sync::Arc;

use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::lifecycle::{Effect, EngineTag};
use sessionplane_core::ports::engine::{EngineCommand, EngineError, OpenSession};

use crate::failpoint;

use super::engine_host::{EngineLink, Opening};
use super::session_mail::Reply;
use super::session_task::SessionTask;
use super::transcript::StoredTranscript;

impl SessionTask {
    /// Executes effects in order. Events of one batch are published together; answers come last.
    pub(super) fn perform(&mut self, effects: Vec<Effect>) {
        if effects.is_empty() {
            return;
        }
        let position = self.channel.position();
        let (mut events, mut answers, mut placed) = (Vec::new(), Vec::new(), None);
        for effect in effects {
            match effect {
                Effect::Publish(event) => events.push(event),
                Effect::Answer(id, answer) => answers.push((id, answer)),
                Effect::Show(place, checkout) => placed = Some((place, checkout)),
                Effect::OpenEngine(tag) => self.open_engine(tag),
                Effect::Tell(tag, command) => self.tell(tag, command),
                Effect::DropEngine(tag) => {
                    if self.engine.as_ref().is_some_and(|engine| engine.tag == tag) {
                        self.engine = None;
                    }
                }
                Effect::StartTimer { tag, timer, after } => {
                    self.timers
                        .start(&self.context.ports.clock, tag, timer, after);
                }
                Effect::CancelTimer(timer) => self.timers.cancel(timer),
                Effect::Ignored { tag, what } => {
                    tracing::debug!(session = %self.session.id(), run = ?tag.run, what, "ignored an engine report");
                }
            }
        }
        let settled = events
            .iter()
            .any(|event| matches!(event.body, EventBody::RunSettled { .. }));
        match placed {
            Some(placed) => {
                let now = self.context.ports.clock.now();
                self.channel.publish_at(events, placed, now);
            }
            None => self.channel.publish(events),
        }
        if settled {
            self.look_at_checkout();
        }
        for (id, answer) in answers {
            failpoint::reach("session::before-answer");
            if let Some((reply, flight)) = self.replies.remove(&id) {
                // A caller that left does not miss its answer; its binding is kept all the same.
                let _ = reply.send(Ok(Reply::of(&self.channel, answer, position)));
                drop(flight);
            }
        }
    }

    fn open_engine(&mut self, tag: EngineTag) {
        failpoint::reach("session::before-engine-open");
        let context = &self.context;
        let record = self.session.record();
        let engine = context.agents.engine(&record.agent);
        let (leaf, settings) = match (self.session.run(), self.session.compaction()) {
            (Some(run), _) => (run.base(), run.record().settings.clone()),
            (None, Some(compaction)) => (self.session.head().leaf, compaction.settings().clone()),
            (None, None) => return,
        };
        // A session without an entry of its own goes on from its parent's.
        let leaf = leaf.or(record.lineage.and_then(|lineage| lineage.entry));
        let repository = context.ports.repository.clone();
        let transcript = Arc::new(StoredTranscript::new(leaf, repository));
        let opening = Opening {
            tag,
            engine: engine.cloned().map_err(|error| EngineError(error.message)),
            open: OpenSession {
                session: self.session.id(),
                leaf,
                settings,
                place: self.session.head().place.clone(),
                transcript: transcript.clone(),
            },
            transcript,
            artifacts: context.ports.artifacts.clone(),
            entropy: context.ports.entropy.clone(),
            timeout: context.config.engine_open_timeout,
            seat: self.seat.clone(),
        };
        let link = EngineLink::open(
            opening,
            &context.ports.clock,
            context.ports.spawner.as_ref(),
        );
        self.engine = Some(link);
    }

    fn tell(&mut self, tag: EngineTag, command: EngineCommand) {
        failpoint::reach("session::before-engine-told");
        let told = match self.engine.as_mut().filter(|engine| engine.tag == tag) {
            Some(engine) => engine.tell(command),
            // Its end is already on its way to the machine.
            None => return,
        };
        if let Err(error) = told {
            tracing::warn!(session = %self.session.id(), %error, "a command did not reach the engine");
        }
    }
}
