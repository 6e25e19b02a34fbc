//! What a store finds a session by: the rows that its indexes have of it, and whether it is among
//! those that a term asks for.
//!
//! One place, so that what is written, what is searched and what is verified cannot differ. How a
//! store keeps an index must never enter.

use super::filter::StoredTerm;
use crate::domain::ids::SessionName;
use crate::domain::place::Place;
use crate::domain::session::{SessionRecord, StoredSession};

impl SessionRecord {
    /// The terms that have the session, but for its name, which has an index of its own. `place` is
    /// that of its head.
    #[must_use]
    pub fn terms(&self, place: Option<&Place>) -> Vec<StoredTerm> {
        let labels = self.metadata.labels.iter();
        let labels = labels.map(|(key, value)| StoredTerm::Label(key.clone(), value.clone()));
        let mut terms = vec![StoredTerm::Every, StoredTerm::Agent(self.agent.clone())];
        terms.extend(labels);
        terms.extend(self.metadata.paused.then_some(StoredTerm::Paused));
        terms.extend(self.lineage.map(|it| StoredTerm::Parent(it.parent)));
        terms.extend(place.map(|place| StoredTerm::Workspace(place.workspace.clone())));
        terms
    }
}

impl StoredTerm {
    /// Whether a session is among those that this asks for.
    #[must_use]
    pub fn has(&self, session: &StoredSession) -> bool {
        let record = &session.record;
        match self {
            Self::NamePrefix(prefix) => {
                let name = record.metadata.name.as_ref().map(SessionName::as_str);
                name.is_some_and(|name| name.starts_with(prefix.as_str()))
            }
            Self::Label(key, value) => record.metadata.labels.get(key) == Some(value),
            Self::Parent(id) => record.lineage.is_some_and(|it| it.parent == *id),
            Self::Paused => record.metadata.paused,
            Self::Workspace(name) => {
                let place = session.head.place.as_ref();
                place.is_some_and(|place| place.workspace == *name)
            }
            Self::Agent(name) => record.agent == *name,
            Self::Every => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fleet::labels::{LabelKey, LabelValue, Labels};
    use crate::domain::fleet::metadata::Metadata;
    use crate::domain::ids::SessionId;
    use crate::domain::place::Directory;
    use crate::domain::session::{Lineage, SessionHead};
    use crate::domain::time::Timestamp;

    fn label(key: &str, value: &str) -> (LabelKey, LabelValue) {
        let key = LabelKey::parse(key).unwrap();
        (key, LabelValue::parse(value).unwrap())
    }

    fn session() -> StoredSession {
        let mut metadata = Metadata::first(None, Timestamp::from_millis(1));
        metadata.labels = Labels::of([label("team", "net"), label("gpu", "")]).unwrap();
        metadata.paused = true;
        let record = SessionRecord {
            id: SessionId::from_bytes([1; 16]),
            tenant: "acme".parse().unwrap(),
            external_key: None,
            agent: "coder".parse().unwrap(),
            created_at: Timestamp::from_millis(1),
            lineage: Some(Lineage {
                parent: SessionId::from_bytes([2; 16]),
                entry: None,
            }),
            metadata,
        };
        let place = Place {
            workspace: "main".parse().unwrap(),
            directory: Directory::root(),
        };
        let head = SessionHead {
            place: Some(place),
            ..SessionHead::empty()
        };
        StoredSession { record, head }
    }

    #[test]
    fn a_session_is_among_those_of_each_of_its_terms_and_of_no_other() {
        let full = session();
        let terms = full.record.terms(full.head.place.as_ref());
        assert_eq!(terms.len(), 7);
        assert!(terms.iter().all(|term| term.has(&full)));
        let mut bare = session();
        bare.record.metadata = Metadata::first(None, Timestamp::from_millis(1));
        bare.record.lineage = None;
        bare.head.place = None;
        bare.record.agent = "reviewer".parse().unwrap();
        let left: Vec<_> = terms.into_iter().filter(|term| term.has(&bare)).collect();
        assert_eq!(left, [StoredTerm::Every]);
        assert_eq!(bare.record.terms(None).len(), 2);
    }
}
