//! An invoke: one commit admits a run, or the caller is told what is in the way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::conflate::Conflation;
use super::effect::Answer;
use super::input::{InvokeFacts, ReplyId};
use super::open::Finished;
use super::state::{Active, ActiveRun, EngineStatus, Phase};
use super::turn::Turn;
use crate::domain::access::Action;
use crate::domain::audit::AuditAction;
use crate::domain::binding::{Binding, BoundAnswer};
use crate::domain::entry::EntryBody;
use crate::domain::event::EventBody;
use crate::domain::ids::EntryId;
use crate::domain::lease::LeaseClause;
use crate::domain::rendering::rendered;
use crate::domain::run::{Failure, RunRecord, RunSettings, code};
use crate::domain::usage::Usage;

pub(super) fn invoke(turn: &mut Turn<'_>, reply: ReplyId, facts: &InvokeFacts) {
    let (run, admitted_in) = match &turn.session.active {
        Active::Nothing => return begin(turn, reply, facts),
        Active::Deletion(_) => (None, turn.session.durable_round),
        Active::Run(run) => (Some(run.record.id), run.admitted_in),
        Active::Compaction(compaction) => (None, compaction.admitted_in),
    };
    turn.answer_busy(reply, Answer::Busy { run }, admitted_in);
}

/// C15, C45: a session that is paused begins nothing, and one that was moved since its place was looked
/// at is looked at again. Observers see nothing of either.
fn begin(turn: &mut Turn<'_>, reply: ReplyId, facts: &InvokeFacts) {
    if facts.paused {
        return turn.answer(reply, Answer::Failed(paused()));
    }
    if turn.session.exists && turn.session.head.place != facts.place {
        return turn.answer(reply, Answer::Elsewhere);
    }
    let head = &mut turn.session.head;
    head.place.clone_from(&facts.place);
    head.checkout.clone_from(&facts.checkout);
    admit(turn, reply, facts);
}

fn paused() -> Failure {
    Failure {
        code: code::SESSION_PAUSED.to_owned(),
        details: "the session is paused; resume it, and invoke again".to_owned(),
        retryable: true,
    }
}

/// C11: session if new, lease token, run record, request binding, prompt entry, audit: one commit.
fn admit(turn: &mut Turn<'_>, reply: ReplyId, facts: &InvokeFacts) {
    let (id, token) = (facts.run, facts.token);
    let create = (!turn.session.exists).then(|| turn.session.record.clone());
    turn.session.exists = true;
    turn.answer_durable(reply, Answer::Admitted { run: id });

    let prompt = EntryBody::User {
        text: facts.text.clone(),
        omitted_bytes: 0,
        origin: facts.origin.clone(),
        input: None,
        data: facts.data.clone(),
    };
    let settings = facts
        .agent
        .models
        .resolve(&turn.session.head.chosen)
        .settings;
    let (record, base) = (
        record(turn, facts, settings.clone()),
        turn.session.head.leaf,
    );
    turn.publish_durable(
        id,
        EventBody::RunStarted {
            origin: facts.origin.clone(),
            entry: record.first_entry,
            agent: record.agent.clone(),
            settings,
        },
    );
    let entry = turn.append(id, token, prompt);
    debug_assert_eq!(
        entry, record.first_entry,
        "the prompt is the run's first entry"
    );

    let binding = facts.call.binding.clone().map(|key| Binding {
        key,
        session: turn.session.record.id,
        digest: facts.call.digest,
        answer: BoundAnswer::Run(id),
        at: turn.now,
    });
    turn.show_place();
    let commit = turn.commit(id, token);
    commit.lease = LeaseClause::Acquire(token);
    commit.create = create;
    commit.runs.push(record.clone());
    commit.bindings.extend(binding);
    let bytes = facts.text.len() as u64 + facts.data.as_ref().map_or(0, |data| data.bytes());
    turn.audit(
        id,
        token,
        AuditAction::Call(Action::Invoke),
        Some((facts.call.clone(), bytes)),
        "accepted",
    );
    turn.audit_sandbox(id, token, facts.agent.capabilities.sandbox);
    turn.session.active = Active::Run(active(turn, facts, record, base));
}

fn record(turn: &Turn<'_>, facts: &InvokeFacts, settings: RunSettings) -> RunRecord {
    let session = turn.session.record.id;
    let first = EntryId {
        session,
        seq: turn.session.head.entries + 1,
    };
    RunRecord {
        id: facts.run,
        session,
        agent: turn.session.record.agent.clone(),
        request_id: facts.call.request_id.clone(),
        origin: facts.origin.clone(),
        started_at: turn.now,
        first_entry: first,
        final_entry: None,
        usage: Usage::default(),
        undelivered: Vec::new(),
        settings,
        abort_requested: false,
        settled: None,
    }
}

fn active(
    turn: &Turn<'_>,
    facts: &InvokeFacts,
    record: RunRecord,
    base: Option<EntryId>,
) -> ActiveRun {
    let withholds = &facts.agent.withholds;
    ActiveRun {
        record,
        prompt: rendered(&facts.text, &facts.origin, facts.data.as_deref()),
        withheld: withholds.from_here(&facts.origin, facts.data.as_deref()),
        withholds: withholds.clone(),
        base,
        token: facts.token,
        generation: 1,
        phase: Phase::Active,
        engine: EngineStatus::Unopened,
        prompts: 0,
        capabilities: facts.agent.capabilities.clone(),
        queue: VecDeque::new(),
        next_ordinal: 1,
        judge_first: None,
        sealed_depth: 0,
        told_depth: 0,
        admitted_in: turn.session.next_round,
        turn: 0,
        messages: BTreeMap::new(),
        tools: BTreeMap::new(),
        asks: BTreeMap::new(),
        answers: Vec::new(),
        next_question: 1,
        last_end: None,
        compacting: false,
        compacted_in: 0,
        finished_messages: Finished::default(),
        finished_tools: Finished::default(),
        told_refusal: false,
        conflation: Conflation::default(),
        on_disconnect: facts.on_disconnect,
        streams: BTreeSet::from([facts.stream]),
        graces: BTreeSet::new(),
    }
}
