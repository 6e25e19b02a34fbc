//! Everything that one commit makes durable: the joined steps of all inputs that waited.

use super::effect::{Effect, Step};
use crate::domain::commit::Commit;
use crate::domain::lease::LeaseClause;

/// The round that is being gathered.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Round {
    commit: Option<Box<Commit>>,
    after: Vec<Effect>,
}

impl Round {
    /// Adds what a step wants durable, and what is to be done then.
    pub fn join(&mut self, step: Step) {
        if let Some(later) = step.commit {
            match &mut self.commit {
                Some(commit) => join(commit, *later),
                none => *none = Some(later),
            }
        }
        self.after.extend(step.after_commit);
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commit.is_none()
    }

    /// Effects that wait although there is nothing to write: the caller performs them at once if
    /// no other round is in flight.
    pub fn take_effects_without_commit(&mut self) -> Vec<Effect> {
        if self.commit.is_some() {
            Vec::new()
        } else {
            std::mem::take(&mut self.after)
        }
    }

    /// Hands out the commit and its effects, and starts anew.
    pub fn take(&mut self) -> Option<(Commit, Vec<Effect>)> {
        let commit = self.commit.take()?;
        Some((*commit, std::mem::take(&mut self.after)))
    }
}

/// Joins a later part onto an earlier one of the same session. A record that both write keeps its
/// later form.
fn join(commit: &mut Commit, later: Commit) {
    commit.lease = join_lease(commit.lease, later.lease);
    commit.holder = later.holder;
    commit.create = commit.create.take().or(later.create);
    commit.head = later.head;
    commit.entries.extend(later.entries);
    commit.bindings.extend(later.bindings);
    commit.audits.extend(later.audits);
    for run in later.runs {
        commit.runs.retain(|earlier| earlier.id != run.id);
        commit.runs.push(run);
    }
    for interaction in later.interactions {
        commit
            .interactions
            .retain(|earlier| earlier.id != interaction.id);
        commit.interactions.push(interaction);
    }
    for input in later.inputs {
        commit.inputs.retain(|earlier| earlier.id != input.id);
        commit.inputs.push(input);
    }
}

fn join_lease(earlier: LeaseClause, later: LeaseClause) -> LeaseClause {
    match (earlier, later) {
        // Taken and given up within one round: nobody holds it afterwards.
        (LeaseClause::Acquire(_), LeaseClause::Release(token)) => LeaseClause::Recover(token),
        (LeaseClause::Acquire(token), _) => LeaseClause::Acquire(token),
        (_, later) => later,
    }
}
