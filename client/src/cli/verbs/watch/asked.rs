//! Which questions are new. Values only; holds the ids of those that are open.

use std::collections::{HashMap, HashSet};

use sessionplane_core::contract::fleet::FleetInteraction;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{InteractionId, SessionId};
use sessionplane_core::domain::interaction::Interaction;

/// A question, and the session that asks it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Asked {
    pub(super) session: SessionSummary,
    pub(super) interaction: Interaction,
}

impl Asked {
    /// As a list of questions tells it.
    pub(super) fn told(&self) -> FleetInteraction {
        FleetInteraction {
            session: self.session.id,
            name: self.session.name.clone(),
            interaction: self.interaction.clone(),
        }
    }
}

/// The questions that are open, each told once.
pub(super) struct Questions {
    open: HashMap<SessionId, HashSet<InteractionId>>,
    /// What is open by now is not news.
    silent: bool,
}

impl Questions {
    /// `all`: those too that are open already.
    pub(super) fn new(all: bool) -> Self {
        Self {
            open: HashMap::new(),
            silent: !all,
        }
    }

    /// All that was open at the beginning is known.
    pub(super) fn current(&mut self) {
        self.silent = false;
    }

    /// The questions of a session that are new.
    pub(super) fn of(&mut self, session: &SessionSummary) -> Vec<Asked> {
        let open = session.questions.iter();
        let open = open.filter(|asked| asked.resolution.is_none());
        let now: HashSet<_> = open.clone().map(|asked| asked.id).collect();
        let before = if now.is_empty() {
            self.open.remove(&session.id)
        } else {
            self.open.insert(session.id, now)
        };
        if self.silent {
            return Vec::new();
        }
        let before = before.unwrap_or_default();
        let new = open.filter(|asked| !before.contains(&asked.id));
        let asked = new.map(|asked| Asked {
            session: session.clone(),
            interaction: asked.clone(),
        });
        asked.collect()
    }

    /// A session is not wanted any more, or is no more.
    pub(super) fn forget(&mut self, session: SessionId) {
        self.open.remove(&session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::testing::{asking, session};

    fn ids(asked: &[Asked]) -> Vec<u32> {
        asked.iter().map(|one| one.interaction.id.ordinal).collect()
    }

    #[test]
    fn c25_a_question_is_told_once_however_often_its_session_changes() {
        let mut questions = Questions::new(false);
        assert_eq!(ids(&questions.of(&asking(1, &[1]))), [0; 0], "no news");
        questions.current();
        assert_eq!(ids(&questions.of(&asking(1, &[1, 2]))), [2]);
        assert_eq!(ids(&questions.of(&asking(1, &[1, 2]))), [0; 0]);
        assert_eq!(ids(&questions.of(&asking(2, &[1]))), [1], "another's");
        questions.of(&session(1));
        assert_eq!(ids(&questions.of(&asking(1, &[3]))), [3]);
        questions.forget(session(1).id);
        assert!(!questions.open.contains_key(&session(1).id), "it is let go");
    }

    #[test]
    fn c25_what_is_open_already_is_told_to_who_asks_for_it() {
        let mut questions = Questions::new(true);
        assert_eq!(ids(&questions.of(&asking(1, &[1]))), [1]);
    }
}
