//! Which questions are new. Values only; holds the ids of those that are open, and the newest of those
//! whose sessions are out of sight.

use std::collections::{HashMap, HashSet, VecDeque};

use sessionplane_core::contract::fleet::FleetInteraction;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{InteractionId, SessionId};
use sessionplane_core::domain::interaction::Interaction;

/// Questions out of sight that are remembered at most.
const PAST: usize = 10_000;

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
    /// Those of sessions that were not wanted any more: they may be wanted again, with the same
    /// question.
    past: VecDeque<InteractionId>,
    /// What is open by now is not news.
    silent: bool,
}

impl Questions {
    /// `all`: those too that are open already.
    pub(super) fn new(all: bool) -> Self {
        Self {
            open: HashMap::new(),
            past: VecDeque::new(),
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
        let new =
            open.filter(|asked| !before.contains(&asked.id) && !self.past.contains(&asked.id));
        let asked = new.map(|asked| Asked {
            session: session.clone(),
            interaction: asked.clone(),
        });
        asked.collect()
    }

    /// A session is not wanted any more, or is no more.
    pub(super) fn forget(&mut self, session: SessionId) {
        for id in self.open.remove(&session).unwrap_or_default() {
            if self.past.contains(&id) {
                continue;
            }
            if self.past.len() == PAST {
                self.past.pop_front();
            }
            self.past.push_back(id);
        }
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
    fn c25_a_question_is_told_once_though_its_session_is_out_of_sight_meanwhile() {
        let mut questions = Questions::new(true);
        assert_eq!(ids(&questions.of(&asking(1, &[1]))), [1]);
        for _ in 0..2 {
            questions.forget(session(1).id);
            assert_eq!(ids(&questions.of(&asking(1, &[1]))), [0; 0]);
        }
        assert_eq!(ids(&questions.of(&asking(1, &[1, 2]))), [2]);
        questions.forget(session(1).id);
        assert_eq!(questions.past.len(), 2, "each once");
        questions.past = asking(9, &[7]).questions.iter().map(|it| it.id).collect();
        questions.past.resize(PAST, questions.past[0]);
        questions.of(&asking(1, &[3]));
        questions.forget(session(1).id);
        assert_eq!(questions.past.len(), PAST, "it is bounded");
    }

    #[test]
    fn c25_what_is_open_already_is_told_to_who_asks_for_it() {
        let mut questions = Questions::new(true);
        assert_eq!(ids(&questions.of(&asking(1, &[1]))), [1]);
    }
}
