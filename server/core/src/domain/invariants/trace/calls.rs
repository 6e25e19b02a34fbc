//! What callers are told: one answer a call, a yes only for what is durable, nothing kept of a no.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::durable::Durable;
use crate::domain::command::DispatchAnswer;
use crate::domain::commit::Commit;
use crate::domain::invariants::{Held, ensure};
use crate::domain::lifecycle::{Answer, Input, ReplyId};
use crate::domain::provenance::Digest;

/// The calls of a session. Their request digests must differ, so that a record tells its call.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    known: BTreeSet<ReplyId>,
    /// Stepped and not answered; the digest of a request that may write.
    open: BTreeMap<ReplyId, Option<Digest>>,
    refused: HashSet<Digest>,
}

impl Calls {
    pub(super) fn stepping(&mut self, input: &Input) -> Held {
        let (reply, digest) = match input {
            Input::Invoke { reply, facts } => (*reply, Some(facts.call.digest)),
            Input::Dispatch { reply, facts } => (*reply, Some(facts.call.digest)),
            Input::Create { reply, facts } | Input::Move { reply, facts } => {
                (*reply, Some(facts.call.digest))
            }
            Input::Delete { reply, call, .. } => (*reply, Some(call.digest)),
            Input::Attach { reply, .. } => (*reply, None),
            _ => return Ok(()),
        };
        ensure(self.known.insert(reply), "T17", || {
            format!("{reply:?} is a call of its own")
        })?;
        self.open.insert(reply, digest);
        Ok(())
    }

    pub(super) fn committed(&self, commit: &Commit) -> Held {
        let of_refused =
            |digest: Option<Digest>| digest.is_some_and(|it| self.refused.contains(&it));
        let audit = commit
            .audits
            .iter()
            .find(|audit| of_refused(audit.request_digest));
        ensure(audit.is_none(), "T18", || {
            format!("a refused call left {audit:?}")
        })?;
        let binding = commit
            .bindings
            .iter()
            .find(|binding| of_refused(Some(binding.digest)));
        ensure(binding.is_none(), "T18", || {
            format!("a refused call left {binding:?}")
        })
    }

    pub(super) fn answering(&mut self, reply: ReplyId, answer: &Answer, durable: &Durable) -> Held {
        let call = self.open.remove(&reply);
        ensure(call.is_some(), "T17", || {
            format!("{reply:?} is answered twice, or was never stepped")
        })?;
        let digest = call.flatten();
        let recorded = digest.is_some_and(|digest| durable.requests.contains(&digest));
        let stands = match answer {
            Answer::Attached { .. } => return Ok(()),
            Answer::Admitted { run } => Some(durable.runs.contains_key(run)),
            Answer::Dispatched(DispatchAnswer::Accepted(accepted)) => {
                let input = accepted
                    .input
                    .is_none_or(|input| durable.inputs.contains_key(&input.id));
                let run = accepted
                    .run
                    .is_none_or(|run| durable.runs.contains_key(&run));
                // A command that changes nothing and binds nothing leaves nothing.
                let nothing = accepted.run.is_none() && !recorded;
                return ensure(run && input && (recorded || nothing), "T17", || {
                    format!("{answer:?} is not durable")
                });
            }
            Answer::Changed => Some(true),
            Answer::Busy { .. }
            | Answer::Failed(_)
            | Answer::Elsewhere
            | Answer::Refused(_)
            | Answer::Dispatched(DispatchAnswer::Rejected(_)) => None,
        };
        if let Some(stands) = stands {
            return ensure(stands && recorded, "T17", || {
                format!("{answer:?} is not durable")
            });
        }
        self.refused.extend(digest);
        ensure(!recorded, "T18", || {
            format!("{answer:?}, and yet there is a record of the call")
        })
    }

    /// The callers of what was open learn that the outcome is unknown.
    pub(super) fn restarted(&mut self) {
        self.open.clear();
    }

    pub(super) fn open(&self) -> usize {
        self.open.len()
    }
}
