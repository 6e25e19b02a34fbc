//! What a restarted server shows beside entries and runs, against what its clients know: settings,
//! the leaf, questions, artifacts.
//!
//! What must never enter: a call.

use std::path::Path;

use sessionplane_client::contract::SessionState;
use sessionplane_client::domain::entry::EntryBody;
use sessionplane_client::domain::interaction::ResolutionCause;
use sessionplane_client::domain::run::{RunOutcome, code};

use crate::ledger::Ledger;
use crate::tree;

impl Ledger {
    /// C23, C24: what was acknowledged of settings and moves is what holds, and it is what the path
    /// to the leaf says.
    pub(crate) fn changes_hold(&self, state: &SessionState) {
        let leaf = state.view.leaf.map(|leaf| leaf.seq);
        let chosen = &state.view.chosen;
        assert_eq!(chosen, &tree::chosen_at(&self.entries, leaf));
        let acknowledged = &self.chosen;
        assert!(
            acknowledged.contains(chosen),
            "{chosen:?} is chosen, not {acknowledged:?}"
        );
        let passes = |seq: u64| tree::path(&self.entries, leaf).any(|it| it.id.seq == seq);
        let moved = self.moved_to.iter().any(|to| to.is_none_or(passes));
        assert!(moved, "{leaf:?} does not follow {:?}", self.moved_to);
    }

    /// C25, B31: no question is open once nothing runs; each is listed with how it ended, and an
    /// answer that was acknowledged is how.
    pub(crate) fn questions_have_ended(&self, state: &SessionState) {
        let newest = state.view.last_run.as_ref().map(|last| last.run);
        let asked = self.asked.values();
        for asked in asked.filter(|asked| Some(asked.id.run) == newest) {
            let listed = state.view.interactions.get(&asked.id);
            assert_eq!(listed, Some(asked), "it is not listed");
        }
        for (id, asked) in &state.view.interactions {
            let resolution = asked.resolution.as_ref();
            let cause = resolution.expect("nobody can answer any more").cause;
            let (answered, may_be) = (self.answered.contains(id), self.may_be_answered(*id));
            match cause {
                ResolutionCause::Answered => assert!(answered || may_be, "{id}: by whom?"),
                _ => assert!(!answered, "{id}: its answer was acknowledged"),
            }
            let run = self.settled.get(&id.run);
            let end = run.and_then(|run| run.settled.as_ref());
            let outcome = end.and_then(|end| RunOutcome::code(&end.outcome));
            let expired = asked.deadline.is_some() && cause == ResolutionCause::Expired;
            if outcome == Some(code::INTERRUPTED) && !answered && !may_be && !expired {
                assert_eq!(cause, ResolutionCause::EngineGone, "{id}");
            }
        }
    }

    /// C39: an entry that names an artifact was written after it.
    pub(crate) fn artifacts_are_there(&self, data_dir: &Path) {
        let folder = data_dir.join("artifacts");
        for entry in self.entries.values() {
            if let EntryBody::Tool {
                artifact: Some(artifact),
                ..
            } = &entry.body
            {
                let name = artifact.id.to_string();
                let file = folder.join(&name[name.len() - 2..]).join(&name);
                let kept = std::fs::metadata(&file).map(|kept| kept.len());
                let whole = kept.as_ref().is_ok_and(|kept| *kept >= artifact.bytes);
                assert!(whole, "{} names {name}: {kept:?}", entry.id);
            }
        }
    }
}
