//! Boundary mutations that are over in one commit: they take the lease, write and give it up.
//!
//! They never start a run and never create a session. While a run or a compaction holds the
//! session they are `session_busy`.

use super::dispatch::{bind, reject};
use super::effect::Answer;
use super::input::{DispatchFacts, NavigationTarget, ReplyId};
use super::state::Active;
use super::turn::Turn;
use crate::domain::access::Action;
use crate::domain::audit::AuditAction;
use crate::domain::binding::BoundAnswer;
use crate::domain::command::{Acceptance, CommandKind, DispatchAnswer, RejectionCode};
use crate::domain::entry::EntryBody;
use crate::domain::error::{CallError, Reason};
use crate::domain::event::EventBody;
use crate::domain::ids::{EntryId, RunId};
use crate::domain::lease::{Holder, LeaseClause, LeaseToken};
use crate::domain::settings::SettingsOverride;

pub(super) fn set_model(
    turn: &mut Turn<'_>,
    reply: ReplyId,
    facts: DispatchFacts,
    model: Option<String>,
) {
    let models = &facts.agent.models;
    if let Some(spec) = model.as_deref().filter(|spec| models.model(spec).is_none()) {
        let known: Vec<&str> = models.models.iter().map(|it| it.spec.as_str()).collect();
        let message = format!(
            "the session's agent may not use a model {spec:?}; it may use: {}",
            known.join(", ")
        );
        return turn.answer(reply, reject(RejectionCode::InvalidCommand, message));
    }
    let chosen = SettingsOverride {
        model,
        ..turn.session.head.chosen.clone()
    };
    choose(turn, reply, facts, Action::SetModel, chosen);
}

pub(super) fn set_thinking(
    turn: &mut Turn<'_>,
    reply: ReplyId,
    facts: DispatchFacts,
    level: Option<String>,
) {
    let models = &facts.agent.models;
    let available = models.resolve(&turn.session.head.chosen).available_levels;
    if let Some(wrong) = level.as_ref().filter(|level| !available.contains(level)) {
        let message = if available.is_empty() {
            "the session's model has no thinking levels; choose another model first".to_owned()
        } else {
            format!(
                "the session's model has no thinking level {wrong:?}; it has: {}",
                available.join(", ")
            )
        };
        return turn.answer(reply, reject(RejectionCode::InvalidCommand, message));
    }
    let chosen = SettingsOverride {
        thinking_level: level,
        ..turn.session.head.chosen.clone()
    };
    choose(turn, reply, facts, Action::SetThinking, chosen);
}

/// The choice becomes an entry, so that it follows the path it was made on.
fn choose(
    turn: &mut Turn<'_>,
    reply: ReplyId,
    facts: DispatchFacts,
    action: Action,
    chosen: SettingsOverride,
) {
    let Some(token) = free(turn, reply, &facts) else {
        return;
    };
    if chosen != turn.session.head.chosen {
        open(turn, token);
        turn.append(Holder::Boundary, token, EntryBody::Settings { chosen });
        changed(turn, &facts);
    }
    accept(turn, reply, facts, action, token);
}

/// C24: moves the leaf to any entry that was published; settings follow.
pub(super) fn navigate(turn: &mut Turn<'_>, reply: ReplyId, facts: DispatchFacts, entry: EntryId) {
    let target = facts.target.clone().filter(|target| target.entry == entry);
    let Some(target) = target else {
        let message = format!("the session has no entry {entry}; list them with ListEntries");
        return turn.answer(reply, reject(RejectionCode::InvalidCommand, message));
    };
    let Some(token) = free(turn, reply, &facts) else {
        return;
    };
    if turn.session.head.leaf != Some(entry) {
        let NavigationTarget {
            entry,
            path,
            chosen,
        } = target;
        open(turn, token);
        let head = &mut turn.session.head;
        head.leaf = Some(entry);
        head.path = path;
        head.chosen = chosen;
        changed(turn, &facts);
    }
    accept(turn, reply, facts, Action::Navigate, token);
}

/// The token to write under, if nothing holds the session; else the caller is told. What is meant
/// for one run only is for none here: whoever waited for it means a moment that is over, or that
/// this command cannot be part of.
pub(super) fn free(
    turn: &mut Turn<'_>,
    reply: ReplyId,
    facts: &DispatchFacts,
) -> Option<LeaseToken> {
    if turn.session.exists
        && let Some(run) = facts.expected_run
    {
        turn.answer(reply, not_within(run, facts.command.kind()));
        return None;
    }
    if !unheld(turn, reply) {
        return None;
    }
    if facts.token.is_none() {
        let error = CallError::refused(Reason::Internal, "no token was minted");
        turn.answer(reply, Answer::Refused(error));
    }
    facts.token
}

/// Whether the session exists and nothing holds it; else the caller is told.
pub(super) fn unheld(turn: &mut Turn<'_>, reply: ReplyId) -> bool {
    if !turn.session.exists {
        let message = "the session does not exist yet; its first invoke creates it";
        let error = CallError::refused(Reason::NoSuchSession, message);
        turn.answer(reply, Answer::Refused(error));
        return false;
    }
    let (what, admitted_in) = match &turn.session.active {
        Active::Nothing => return true,
        Active::Deletion(_) => (
            "the session is being deleted".to_owned(),
            turn.session.durable_round,
        ),
        Active::Run(run) => (format!("run {} is active", run.record.id), run.admitted_in),
        Active::Compaction(compaction) => (
            "the transcript is being compacted".to_owned(),
            compaction.admitted_in,
        ),
    };
    let message = format!("{what}; wait until it is over, or abort it");
    let busy = reject(RejectionCode::SessionBusy, message);
    turn.answer_busy(reply, busy, admitted_in);
    false
}

fn not_within(run: RunId, command: CommandKind) -> Answer {
    let message = format!(
        "expected_run_id names run {run}, and {} acts between runs only; leave it out",
        command.as_str()
    );
    reject(RejectionCode::NoActiveRun, message)
}

/// Takes the lease and gives it up with the same commit.
pub(super) fn open(turn: &mut Turn<'_>, token: LeaseToken) {
    turn.commit(Holder::Boundary, token).lease = LeaseClause::Recover(token);
}

fn changed(turn: &mut Turn<'_>, facts: &DispatchFacts) {
    let head = &turn.session.head;
    let body = EventBody::StateChanged {
        leaf: head.leaf,
        chosen: head.chosen.clone(),
        resolved: facts.agent.models.resolve(&head.chosen),
        renamed: None,
    };
    turn.publish_durable(None, body);
}

/// Binds and answers. A command that changed nothing and binds nothing writes nothing at all.
fn accept(
    turn: &mut Turn<'_>,
    reply: ReplyId,
    facts: DispatchFacts,
    action: Action,
    token: LeaseToken,
) {
    let answer = BoundAnswer::Dispatched {
        run: None,
        input: None,
    };
    let binding = bind(turn, &facts.call, answer);
    if binding.is_some() || turn.commits() {
        open(turn, token);
        turn.commit(Holder::Boundary, token)
            .bindings
            .extend(binding);
        let call = Some((facts.call, 0));
        turn.audit(
            Holder::Boundary,
            token,
            AuditAction::Call(action),
            call,
            "accepted",
        );
    }
    let accepted = DispatchAnswer::Accepted(Acceptance {
        run: None,
        input: None,
    });
    turn.answer_durable(reply, Answer::Dispatched(accepted));
}
