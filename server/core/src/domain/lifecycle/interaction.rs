//! Questions: asked by the engine, answered once, by whoever comes first.
//!
//! A question is durable before anybody sees it, and an answer before the engine is told it. One
//! that nobody answered is told to the engine too, so that it never waits for nothing. After an
//! abort the engine is told no answer any more, whatever was accepted before: it might act on it.

use std::time::Duration;

use super::dispatch::{bind, reachable, reject};
use super::effect::{Answer, Effect};
use super::engine_output::{gone, ignore};
use super::input::{DispatchFacts, EngineTag, ReplyId, Timer};
use super::state::{EngineStatus, OpenAsk, OwedAnswer, Phase};
use super::turn::Turn;
use crate::domain::access::Action;
use crate::domain::audit::AuditAction;
use crate::domain::binding::BoundAnswer;
use crate::domain::command::{Acceptance, DispatchAnswer, RejectionCode};
use crate::domain::event::EventBody;
use crate::domain::ids::InteractionId;
use crate::domain::interaction::{
    Interaction, InteractionAnswer, Question, Resolution, ResolutionCause, end_after,
};
use crate::domain::lease::LeaseToken;
use crate::domain::limits::{MAX_ASK_BYTES, MAX_LABEL_BYTES, MAX_OPEN_INTERACTIONS};
use crate::domain::provenance::Origin;
use crate::ports::engine::EngineCommand;

pub(super) fn asked(
    turn: &mut Turn<'_>,
    tag: EngineTag,
    ask: String,
    question: Question,
    timeout: Option<Duration>,
) {
    let now = turn.now;
    let Some((run, id)) = turn.live_run(tag).zip(tag.run) else {
        return;
    };
    // Before it was told an answer, an engine has no reason to ask again.
    let owed = run.answers.iter().any(|owed| owed.ask == ask);
    if owed || run.asks.values().any(|open| open.ask == ask) {
        return ignore(turn, tag, "a question was asked twice");
    }
    if run.phase != Phase::Active {
        return ignore(turn, tag, "a question after the abort");
    }
    let allowed = run.capabilities.interactions.contains(&question.kind());
    let room = run.asks.len() + run.answers.len() < MAX_OPEN_INTERACTIONS;
    let named = ask.len() <= MAX_LABEL_BYTES;
    if !(allowed && room && named && question.is_sound()) {
        return refuse(turn, tag, ask);
    }
    let (ordinal, token) = (run.next_question, run.token);
    run.next_question += 1;
    let record = Interaction {
        id: InteractionId { run: id, ordinal },
        question,
        asked_at: now,
        deadline: timeout.map(|timeout| now.after(timeout)),
        resolution: None,
    };
    let open = OpenAsk {
        ask,
        record: record.clone(),
    };
    run.asks.insert(ordinal, open);
    turn.commit(id, token).interactions.push(record.clone());
    turn.audit(id, token, AuditAction::EngineOutput, None, "accepted");
    let interaction = Box::new(record);
    turn.publish_durable(id, EventBody::InteractionRequested { interaction });
    if let Some(after) = timeout {
        let timer = Timer::Interaction(ordinal);
        turn.live(Effect::StartTimer { tag, timer, after });
    }
}

/// It is told at once that nobody answers, or it would wait for ever: under the whole name that it
/// gave the question, since it knows it by no other.
pub(super) fn refuse(turn: &mut Turn<'_>, tag: EngineTag, ask: String) {
    if ask.len() > MAX_ASK_BYTES {
        let reason = format!("the agent named a question with {} bytes", ask.len());
        return gone(turn, tag, &reason);
    }
    let answer = None;
    turn.live(Effect::Tell(tag, EngineCommand::Answer { ask, answer }));
    ignore(turn, tag, "a question that cannot be asked here");
}

pub(super) fn withdrawn(turn: &mut Turn<'_>, tag: EngineTag, ask: &str) {
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    // An answer that is on its way finds nobody who waits for it.
    run.answers.retain(|owed| owed.ask != ask);
    let open = run.asks.iter().find(|(_, open)| open.ask == ask);
    let Some((ordinal, token)) = open.map(|(ordinal, _)| (*ordinal, run.token)) else {
        return ignore(turn, tag, "a question was withdrawn that is not open");
    };
    resolve(turn, ordinal, ResolutionCause::EngineGone, None, None);
    turn.audit(tag.run, token, AuditAction::EngineOutput, None, "accepted");
}

/// C25: one answer, once. What comes later finds no such interaction.
pub(super) fn respond(
    turn: &mut Turn<'_>,
    reply: ReplyId,
    facts: DispatchFacts,
    id: InteractionId,
    answer: &InteractionAnswer,
) {
    let open = open(turn, &facts, id);
    let (ask, token) = match open {
        Err(no) => return turn.answer(reply, no),
        Ok((open, token)) => match open.record.question.check(answer) {
            Err(problem) => {
                let no = reject(RejectionCode::InvalidCommand, problem);
                return turn.answer(reply, no);
            }
            Ok(()) => (open.ask.clone(), token),
        },
    };
    let origin = Some(facts.origin.clone());
    resolve(
        turn,
        id.ordinal,
        ResolutionCause::Answered,
        Some(answer),
        origin,
    );
    let bound = BoundAnswer::Dispatched {
        run: Some(id.run),
        input: None,
    };
    let binding = bind(turn, &facts.call, bound);
    turn.commit(id.run, token).bindings.extend(binding);
    let call = Some((facts.call, 0));
    turn.audit(
        id.run,
        token,
        AuditAction::Call(Action::Respond),
        call,
        "accepted",
    );
    owe(turn, ask, Some(answer.clone()));
    let accepted = DispatchAnswer::Accepted(Acceptance {
        run: Some(id.run),
        input: None,
    });
    turn.answer_durable(reply, Answer::Dispatched(accepted));
}

/// The open question that a caller names, with what is needed to answer it.
fn open<'t>(
    turn: &'t Turn<'_>,
    facts: &DispatchFacts,
    id: InteractionId,
) -> Result<(&'t OpenAsk, LeaseToken), Answer> {
    let gone = || {
        let message = format!("no question {id} is open: it was answered, or its run went on");
        reject(RejectionCode::NoSuchInteraction, message)
    };
    let run = turn.session.active.run().ok_or_else(gone)?;
    if run.record.id != id.run || run.phase != Phase::Active {
        return Err(gone());
    }
    if facts.expected_run.is_some() {
        reachable(Some(run), facts)?;
    }
    let open = run.asks.get(&id.ordinal).ok_or_else(gone)?;
    Ok((open, run.token))
}

/// The deadline passed: the engine is told the default, or that nobody answered.
pub(super) fn expire(turn: &mut Turn<'_>, tag: EngineTag, ordinal: u32) {
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    let Some((open, token)) = run.asks.get(&ordinal).map(|open| (open.clone(), run.token)) else {
        return;
    };
    let answer = open.record.question.default;
    resolve(
        turn,
        ordinal,
        ResolutionCause::Expired,
        answer.as_ref(),
        None,
    );
    turn.audit(tag.run, token, AuditAction::Expire, None, "accepted");
    owe(turn, open.ask, answer);
}

/// The engine is told once the round that this step joins is durable.
fn owe(turn: &mut Turn<'_>, ask: String, answer: Option<InteractionAnswer>) {
    let decided_in = turn.session.next_round;
    if let Some(run) = turn.session.active.run_mut() {
        run.answers.push(OwedAnswer {
            ask,
            answer,
            decided_in,
        });
    }
}

/// Tells the engine what was answered, in that order, as far as it is durable.
pub(super) fn tell(turn: &mut Turn<'_>) {
    let durable = turn.session.durable_round;
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    if run.phase != Phase::Active || run.engine != EngineStatus::Working {
        return;
    }
    let tag = run.tag();
    let is_due = |owed: &OwedAnswer| owed.decided_in <= durable;
    let (due, rest) = std::mem::take(&mut run.answers)
        .into_iter()
        .partition::<Vec<_>, _>(is_due);
    run.answers = rest;
    for OwedAnswer { ask, answer, .. } in due {
        turn.live(Effect::Tell(tag, EngineCommand::Answer { ask, answer }));
    }
}

/// Closes every open question, and forgets what the engine was still to be told: it is not told
/// one by one.
pub(super) fn close_all(turn: &mut Turn<'_>, cause: ResolutionCause) {
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    run.answers.clear();
    let open: Vec<u32> = run.asks.keys().copied().collect();
    for ordinal in open {
        resolve(turn, ordinal, cause, None, None);
    }
}

/// Takes a question off the open ones; its end is in this step's commit, told after it.
fn resolve(
    turn: &mut Turn<'_>,
    ordinal: u32,
    cause: ResolutionCause,
    answer: Option<&InteractionAnswer>,
    origin: Option<Origin>,
) {
    let now = turn.now;
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    let Some(OpenAsk { mut record, .. }) = run.asks.remove(&ordinal) else {
        return;
    };
    let at = end_after(run.last_end, now);
    run.last_end = Some(at);
    let (id, token) = (run.record.id, run.token);
    let resolution = Resolution {
        at,
        cause,
        answer: answer.and_then(|answer| record.question.showable(answer)),
        origin,
    };
    record.resolution = Some(resolution.clone());
    let told = EventBody::InteractionResolved {
        id: record.id,
        resolution: Box::new(resolution),
    };
    turn.commit(id, token).interactions.push(record);
    turn.live(Effect::CancelTimer(Timer::Interaction(ordinal)));
    turn.publish_durable(id, told);
}
