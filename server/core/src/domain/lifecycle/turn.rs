//! One call of the machine: the state it changes and the step it builds.

use super::effect::{Answer, Effect, Step};
use super::input::{CallFacts, EngineTag, ReplyId};
use super::state::{ActiveRun, Session};
use crate::domain::audit::{AuditAction, AuditRecord};
use crate::domain::capabilities::SandboxLevel;
use crate::domain::commit::Commit;
use crate::domain::entry::{Entry, EntryBody};
use crate::domain::event::{Event, EventBody};
use crate::domain::ids::{EntryId, RunId};
use crate::domain::lease::{Holder, LeaseClause, LeaseToken};
use crate::domain::time::Timestamp;

/// The state, the time and the step so far.
pub(super) struct Turn<'a> {
    pub(super) session: &'a mut Session,
    pub(super) now: Timestamp,
    step: Step,
}

impl<'a> Turn<'a> {
    pub(super) fn new(session: &'a mut Session, now: Timestamp) -> Self {
        Self {
            session,
            now,
            step: Step::default(),
        }
    }

    /// Closes the step: the commit carries the head as it stands now.
    pub(super) fn finish(self) -> Step {
        let mut step = self.step;
        if let Some(commit) = &mut step.commit {
            commit.head = self.session.head.clone();
        }
        step
    }

    /// The active run if the tag is of it, and its end is not yet decided.
    pub(super) fn live_run(&mut self, tag: EngineTag) -> Option<&mut ActiveRun> {
        let run = self.session.active.run_mut()?;
        let settling = matches!(run.phase, super::state::Phase::Settling { .. });
        (run.tag() == tag && !settling).then_some(run)
    }

    /// The commit that this step makes, begun on the first call.
    pub(super) fn commit(&mut self, by: impl Into<Holder>, token: LeaseToken) -> &mut Commit {
        let holder = by.into();
        let head = &mut self.session.head;
        let session = self.session.record.id;
        let commit = self.step.commit.get_or_insert_with(|| {
            Box::new(Commit {
                session,
                lease: LeaseClause::Hold(token),
                holder,
                expected_entries: head.entries,
                expected_audits: head.audits,
                create: None,
                head: head.clone(),
                entries: Vec::new(),
                runs: Vec::new(),
                inputs: Vec::new(),
                interactions: Vec::new(),
                bindings: Vec::new(),
                audits: Vec::new(),
            })
        });
        head.token = token;
        commit
    }

    /// Writes the run's record as it stands now; once it has settled, up to the newest entry.
    pub(super) fn write_run(&mut self) {
        let leaf = self.session.head.leaf;
        let Some(run) = self.session.active.run_mut() else {
            return;
        };
        run.record.final_entry = leaf.filter(|_| run.record.settled.is_some());
        let (token, record) = (run.token, run.record.clone());
        let commit = self.commit(record.id, token);
        commit.runs.retain(|earlier| earlier.id != record.id);
        commit.runs.push(record);
    }

    /// Appends an entry behind the leaf; it is told once it is durable.
    pub(super) fn append(
        &mut self,
        by: impl Into<Holder>,
        token: LeaseToken,
        body: EntryBody,
    ) -> EntryId {
        let (session, holder) = (self.session.record.id, by.into());
        let run = holder.run();
        self.commit(holder, token);
        let head = &mut self.session.head;
        let id = EntryId {
            session,
            seq: head.entries + 1,
        };
        let parent = head.leaf.map(|leaf| leaf.seq);
        let path = head.path.then(parent, id.seq, &body);
        if let EntryBody::Settings { chosen } = &body {
            head.chosen = chosen.clone();
        }
        let entry = Entry {
            id,
            parent: head.leaf,
            run,
            at: self.now,
            path,
            body,
        };
        head.entries = id.seq;
        head.leaf = Some(id);
        head.path = path;
        self.publish_durable(
            run,
            EventBody::EntryAppended {
                entry: Box::new(entry.for_event()),
            },
        );
        self.commit(holder, token).entries.push(entry);
        id
    }

    /// Writes the audit record of this step's commit. `call` is absent where the server acts.
    pub(super) fn audit(
        &mut self,
        by: impl Into<Holder>,
        token: LeaseToken,
        action: AuditAction,
        call: Option<(CallFacts, u64)>,
        outcome: &'static str,
    ) {
        let holder = by.into();
        let entries = self
            .commit(holder, token)
            .entries
            .iter()
            .map(|entry| entry.id)
            .collect();
        let head = &mut self.session.head;
        head.audits += 1;
        let (facts, bytes) = call.unzip();
        let record = AuditRecord {
            session: self.session.record.id,
            ordinal: head.audits,
            tenant: self.session.record.tenant.clone(),
            at: self.now,
            request_digest: facts.as_ref().map(|facts| facts.digest),
            request_id: facts.as_ref().and_then(|facts| facts.request_id.clone()),
            actor: facts.map(|facts| facts.actor),
            action,
            bytes: bytes.unwrap_or(0),
            run: holder.run(),
            entries,
            outcome,
            sandbox: None,
        };
        self.commit(holder, token).audits.push(record);
    }

    /// C53: the audit record that was just written says what keeps the agent in.
    pub(super) fn audit_sandbox(
        &mut self,
        by: impl Into<Holder>,
        token: LeaseToken,
        sandbox: SandboxLevel,
    ) {
        if let Some(record) = self.commit(by.into(), token).audits.last_mut() {
            record.sandbox = Some(sandbox);
        }
    }

    /// Publishes something ephemeral at once.
    pub(super) fn publish(&mut self, run: impl Into<Option<RunId>>, body: EventBody) {
        let event = self.event(run.into(), body);
        self.step.live.push(Effect::Publish(event));
    }

    /// Publishes something that tells of a durable fact, once it is one.
    pub(super) fn publish_durable(&mut self, run: impl Into<Option<RunId>>, body: EventBody) {
        let event = self.event(run.into(), body);
        self.step.after_commit.push(Effect::Publish(event));
    }

    /// Tells the fleet where the session works, once that is durable.
    pub(super) fn show_place(&mut self) {
        let head = &self.session.head;
        let show = Effect::Show(head.place.clone(), head.checkout.clone());
        self.step.after_commit.push(show);
    }

    pub(super) fn live(&mut self, effect: Effect) {
        self.step.live.push(effect);
    }

    pub(super) fn after_commit(&mut self, effect: Effect) {
        self.step.after_commit.push(effect);
    }

    /// Whether this step makes a commit so far.
    pub(super) fn commits(&self) -> bool {
        self.step.commit.is_some()
    }

    /// Answers at once.
    pub(super) fn answer(&mut self, reply: ReplyId, answer: Answer) {
        self.step.live.push(Effect::Answer(reply, answer));
    }

    /// Answers once this step, or the round it joins, is durable.
    pub(super) fn answer_durable(&mut self, reply: ReplyId, answer: Answer) {
        self.step.after_commit.push(Effect::Answer(reply, answer));
    }

    /// Tells that the session is busy, but not before state shows it: once the admission of what
    /// holds the session is durable.
    pub(super) fn answer_busy(&mut self, reply: ReplyId, answer: Answer, admitted_in: u64) {
        if admitted_in <= self.session.durable_round {
            self.answer(reply, answer);
        } else {
            self.answer_durable(reply, answer);
        }
    }
    fn event(&self, run: Option<RunId>, body: EventBody) -> Event {
        Event {
            at: self.now,
            run,
            body,
        }
    }
}
