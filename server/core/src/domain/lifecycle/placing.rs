//! What the fleet does to a session at rest: it is created, moved, looked at again, or deleted.
//!
//! Like every boundary mutation these take the lease, write and give it up in one commit; while a run
//! or a compaction holds the session they are `session_busy`.

use super::boundary::{open, unheld};
use super::dispatch::bind;
use super::effect::Answer;
use super::input::{CallFacts, PlaceFacts, ReplyId};
use super::state::{Active, Session};
use super::turn::Turn;
use crate::domain::access::Action;
use crate::domain::audit::{AuditAction, AuditRecord};
use crate::domain::binding::{Binding, BoundAnswer, Placed, SessionAnswer};
use crate::domain::commit::DeletionCommit;
use crate::domain::error::{CallError, Reason};
use crate::domain::fleet::metadata::Metadata;
use crate::domain::lease::{Holder, LeaseToken};
use crate::domain::place::{Checkout, Place};
use crate::domain::time::Timestamp;

/// A deletion, from when nothing else holds the session until the store has judged it. Nothing else
/// is decided meanwhile: whoever comes waits.
#[derive(Clone, PartialEq, Debug)]
pub struct Deletion {
    pub(super) reply: ReplyId,
    pub(super) call: CallFacts,
    pub(super) token: LeaseToken,
    pub(super) etag: Option<u64>,
}

impl Deletion {
    /// Where its answer goes.
    #[must_use]
    pub fn reply(&self) -> ReplyId {
        self.reply
    }

    /// The token that it is done under.
    #[must_use]
    pub fn token(&self) -> LeaseToken {
        self.token
    }

    /// The revision of the metadata that it is meant for; of any if none. It is this deletion's own:
    /// another one may wait behind it, and mean another.
    #[must_use]
    pub fn etag(&self) -> Option<u64> {
        self.etag
    }
}

/// A session at rest: what its first invoke would create, without the run.
pub(super) fn create(turn: &mut Turn<'_>, reply: ReplyId, facts: PlaceFacts) {
    if turn.session.exists {
        let error = CallError::refused(Reason::Internal, "the session exists already");
        return turn.answer(reply, Answer::Refused(error));
    }
    let record = turn.session.record.clone();
    turn.session.exists = true;
    open(turn, facts.token);
    turn.commit(Holder::Boundary, facts.token).create = Some(record);
    let metadata = turn.session.record.metadata.clone();
    place(turn, reply, facts, Action::Create, Some(metadata));
}

/// C53: from here on the session works elsewhere. What version control said of the former place is
/// not said of the new one.
pub(super) fn change(turn: &mut Turn<'_>, reply: ReplyId, facts: PlaceFacts) {
    if !unheld(turn, reply) {
        return;
    }
    let stands = turn.session.head.place.as_ref().map(|it| &it.workspace);
    if facts.within.is_some() && facts.within.as_ref() != stands {
        return turn.answer(reply, Answer::Elsewhere);
    }
    open(turn, facts.token);
    place(turn, reply, facts, Action::ChangeDirectory, None);
}

/// `metadata` are those that the call decided, if it did.
fn place(
    turn: &mut Turn<'_>,
    reply: ReplyId,
    facts: PlaceFacts,
    action: Action,
    metadata: Option<Metadata>,
) {
    let PlaceFacts {
        call,
        token,
        place,
        checkout,
        sandbox,
        within: _,
    } = facts;
    let head = &mut turn.session.head;
    head.place.clone_from(&place);
    head.checkout.clone_from(&checkout);
    let placed = Some(Placed {
        place,
        checkout,
        sandbox,
    });
    let answer = SessionAnswer { metadata, placed };
    let answer = BoundAnswer::Session(Some(Box::new(answer)));
    let binding = bind(turn, &call, answer);
    let commit = turn.commit(Holder::Boundary, token);
    commit.bindings.extend(binding);
    let call = Some((call, 0));
    let action = AuditAction::Call(action);
    turn.audit(Holder::Boundary, token, action, call, "accepted");
    turn.audit_sandbox(Holder::Boundary, token, sandbox);
    turn.show_place();
    turn.answer_durable(reply, Answer::Changed);
}

/// C45: what version control says after a run, where that is something new. A run that has begun
/// meanwhile notes it at its own end.
pub(super) fn noted(
    turn: &mut Turn<'_>,
    token: LeaseToken,
    place: &Place,
    checkout: Option<Checkout>,
) {
    let session = &mut *turn.session;
    let free = session.exists && matches!(session.active, Active::Nothing);
    let head = &mut session.head;
    if !free || head.place.as_ref() != Some(place) || head.checkout == checkout {
        return;
    }
    head.checkout = checkout;
    open(turn, token);
    let action = AuditAction::Checkout;
    turn.audit(Holder::Boundary, token, action, None, "completed");
    turn.show_place();
}

/// The session takes nothing else until the store has judged its end.
pub(super) fn delete(turn: &mut Turn<'_>, deletion: Deletion) {
    if unheld(turn, deletion.reply) {
        turn.session.active = Active::Deletion(deletion);
    }
}

/// The store refused: nothing of the session is gone.
pub(super) fn kept(turn: &mut Turn<'_>) {
    if turn.session.deletion().is_some() {
        turn.session.active = Active::Nothing;
    }
}

impl Session {
    /// The deletion that waits for the store. It is handed over once no commit is in flight or being
    /// gathered.
    #[must_use]
    pub fn deletion(&self) -> Option<&Deletion> {
        match &self.active {
            Active::Deletion(deletion) => Some(deletion),
            Active::Nothing | Active::Run(_) | Active::Compaction(_) => None,
        }
    }

    /// What the store is asked for a deletion, once all that was decided before it is durable: the
    /// head that it expects is the one that stands. `metadata` is the revision that they have.
    #[must_use]
    pub fn deletion_commit(&self, metadata: u64, now: Timestamp) -> Option<DeletionCommit> {
        let Deletion { call, token, .. } = self.deletion()?;
        let binding = call.binding.clone().map(|key| Binding {
            key,
            session: self.record.id,
            digest: call.digest,
            answer: BoundAnswer::Session(None),
            at: now,
        });
        let audit = AuditRecord {
            session: self.record.id,
            ordinal: self.head.audits + 1,
            tenant: self.record.tenant.clone(),
            at: now,
            actor: Some(call.actor.clone()),
            action: AuditAction::Call(Action::Delete),
            request_digest: Some(call.digest),
            bytes: 0,
            request_id: call.request_id.clone(),
            run: None,
            entries: Vec::new(),
            outcome: "accepted",
            sandbox: None,
        };
        Some(DeletionCommit {
            session: self.record.id,
            token: *token,
            expected_entries: self.head.entries,
            expected_audits: self.head.audits,
            expected_metadata: metadata,
            bindings: binding.into_iter().collect(),
            audit,
        })
    }
}
