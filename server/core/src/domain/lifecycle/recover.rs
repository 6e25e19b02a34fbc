//! A run that a crash cut: what the next start writes for it.

use crate::domain::audit::{AuditAction, AuditRecord};
use crate::domain::commit::Commit;
use crate::domain::entry::{Entry, EntryBody};
use crate::domain::ids::EntryId;
use crate::domain::input::{DiscardCause, InputFate, InputRecord, UndeliveredInput};
use crate::domain::interaction::{Interaction, Resolution, ResolutionCause, end_after};
use crate::domain::lease::{Holder, LeaseClause, LeaseToken};
use crate::domain::run::{Failure, RunOutcome, RunRecord, Settlement, code};
use crate::domain::session::{LastRun, StoredSession};
use crate::domain::time::Timestamp;

/// What the store says of a run that nobody drives any more.
#[derive(Clone, PartialEq, Debug)]
pub struct CutRun {
    /// The session.
    pub session: StoredSession,
    /// The run's record, unsettled.
    pub run: RunRecord,
    /// The inputs that joined it and are undecided; decided ones are left as they are.
    pub inputs: Vec<InputRecord>,
    /// Everything that it asked.
    pub interactions: Vec<Interaction>,
}

/// Settles a cut run: `interrupted`, or `aborted` if an abort had been accepted. Its undecided
/// inputs end as `interrupted`; a notice entry tells the reader of the conversation.
#[must_use]
pub fn interrupt(cut: CutRun, token: LeaseToken, now: Timestamp) -> Commit {
    let CutRun {
        session: StoredSession {
            record: session,
            mut head,
        },
        mut run,
        inputs,
        interactions,
    } = cut;
    let (expected_entries, expected_audits) = (head.entries, head.audits);
    let (cause, outcome) = if run.abort_requested {
        (DiscardCause::Aborted, RunOutcome::Aborted)
    } else {
        (DiscardCause::Interrupted, RunOutcome::Failed(interrupted()))
    };
    let discarded = discarded(inputs, cause);
    run.undelivered
        .extend(discarded.iter().map(|it| undelivered(it, cause)));
    let id = EntryId {
        session: session.id,
        seq: head.entries + 1,
    };
    let entry = Entry {
        id,
        parent: head.leaf,
        run: Some(run.id),
        at: now,
        path: head.path,
        body: notice(&outcome),
    };
    head.token = token;
    head.entries = id.seq;
    head.leaf = Some(id);
    head.audits += 1;
    run.final_entry = Some(id);
    let word = outcome.as_str();
    run.settled = Some(Settlement { at: now, outcome });
    head.last_run = LastRun::of(&run);
    head.usage = head.usage.plus(run.usage);
    let audit = AuditRecord {
        session: session.id,
        ordinal: head.audits,
        tenant: session.tenant,
        at: now,
        actor: None,
        action: AuditAction::Recover,
        request_digest: None,
        bytes: 0,
        request_id: None,
        run: Some(run.id),
        entries: vec![id],
        outcome: word,
        sandbox: None,
    };
    Commit {
        session: session.id,
        lease: LeaseClause::Recover(token),
        holder: Holder::Run(run.id),
        expected_entries,
        expected_audits,
        create: None,
        head,
        entries: vec![entry],
        runs: vec![run],
        inputs: discarded,
        interactions: closed(interactions, cause, now),
        bindings: Vec::new(),
        audits: vec![audit],
    }
}

/// An input as the record of its run names it.
fn undelivered(input: &InputRecord, cause: DiscardCause) -> UndeliveredInput {
    UndeliveredInput {
        id: input.id,
        kind: input.kind,
        cause,
        text: None,
    }
}

/// The inputs that were undecided, which nobody delivers any more.
fn discarded(inputs: Vec<InputRecord>, cause: DiscardCause) -> Vec<InputRecord> {
    let pending = inputs
        .into_iter()
        .filter(|input| input.fate == InputFate::Pending);
    let discarded = pending.map(|input| InputRecord {
        fate: InputFate::Discarded(cause),
        ..input
    });
    discarded.collect()
}

/// Nobody waits any more for an answer to what the run asked.
fn closed(asked: Vec<Interaction>, cause: DiscardCause, now: Timestamp) -> Vec<Interaction> {
    let cause = match cause {
        DiscardCause::Aborted => ResolutionCause::Aborted,
        DiscardCause::Failed | DiscardCause::Interrupted | DiscardCause::Lost => {
            ResolutionCause::EngineGone
        }
    };
    let ended = asked.iter().filter_map(|it| it.resolution.as_ref());
    let mut last = ended.map(|end| end.at).max();
    asked
        .into_iter()
        .filter(|interaction| interaction.resolution.is_none())
        .map(|interaction| {
            let at = end_after(last, now);
            last = Some(at);
            Interaction {
                resolution: Some(Resolution {
                    at,
                    cause,
                    answer: None,
                    origin: None,
                }),
                ..interaction
            }
        })
        .collect()
}

/// Gives up the lease of a compaction that a crash cut. The transcript is as it was: nothing but
/// the audit record tells of it.
#[must_use]
pub fn give_up_boundary(stored: StoredSession, token: LeaseToken, now: Timestamp) -> Commit {
    let StoredSession {
        record: session,
        mut head,
    } = stored;
    let (expected_entries, expected_audits) = (head.entries, head.audits);
    head.token = token;
    head.audits += 1;
    let audit = AuditRecord {
        session: session.id,
        ordinal: head.audits,
        tenant: session.tenant,
        at: now,
        actor: None,
        action: AuditAction::Recover,
        request_digest: None,
        bytes: 0,
        request_id: None,
        run: None,
        entries: Vec::new(),
        outcome: "failed",
        sandbox: None,
    };
    Commit {
        session: session.id,
        lease: LeaseClause::Recover(token),
        holder: Holder::Boundary,
        expected_entries,
        expected_audits,
        create: None,
        head,
        entries: Vec::new(),
        runs: Vec::new(),
        inputs: Vec::new(),
        interactions: Vec::new(),
        bindings: Vec::new(),
        audits: vec![audit],
    }
}

fn interrupted() -> Failure {
    Failure {
        code: code::INTERRUPTED.to_owned(),
        details: "the server stopped while the run was active; everything acknowledged is kept, \
                  and a new invoke goes on from here"
            .to_owned(),
        retryable: true,
    }
}

fn notice(outcome: &RunOutcome) -> EntryBody {
    EntryBody::Notice {
        code: outcome.code().unwrap_or(code::INTERRUPTED).to_owned(),
        text: "the server stopped while this run was active".to_owned(),
    }
}
