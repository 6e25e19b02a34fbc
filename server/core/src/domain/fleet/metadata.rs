//! Changes of what people may change of a session outside of any run: name, labels, priority, pause.
//!
//! They are compared with and counted in a revision of their own, and touch nothing that a run
//! writes (C40).

use super::labels::{LabelKey, LabelValue, Labels, Priority, TooManyLabels};
use crate::domain::ids::SessionName;
use crate::domain::time::Timestamp;

/// What may be changed of a session outside of any run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// Its name, unique in the tenant.
    pub name: Option<SessionName>,
    /// Its labels.
    pub labels: Labels,
    /// Its priority.
    pub priority: Priority,
    /// Nothing new runs until it is resumed.
    pub paused: bool,
    /// When it was changed last.
    pub updated_at: Timestamp,
    /// Grows by one with each change; 1 when the session was created.
    pub revision: u64,
}

/// A change. What is none stays.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MetadataChange {
    /// Another name; within, none takes the name away.
    pub name: Option<Option<SessionName>>,
    /// What happens to the labels.
    pub labels: Option<LabelsChange>,
    /// Another priority.
    pub priority: Option<Priority>,
    /// Paused, or resumed.
    pub paused: Option<bool>,
}

/// What happens to a session's labels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LabelsChange {
    /// These take the place of all that there are.
    Replace(Labels),
    /// Each key is set, or taken away; the others stay.
    Merge(Vec<(LabelKey, Option<LabelValue>)>),
}

impl LabelsChange {
    fn applied(&self, labels: &Labels) -> Result<Labels, TooManyLabels> {
        let changes = match self {
            Self::Replace(labels) => return Ok(labels.clone()),
            Self::Merge(changes) => changes,
        };
        let kept = labels
            .iter()
            .filter(|(key, _)| changes.iter().all(|(changed, _)| changed != *key));
        let set = changes
            .iter()
            .filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
        let kept = kept.map(|(key, value)| (key.clone(), value.clone()));
        Labels::of(kept.chain(set))
    }
}

impl Metadata {
    /// Of a session that is being created.
    #[must_use]
    pub fn first(name: Option<SessionName>, now: Timestamp) -> Self {
        Self {
            name,
            labels: Labels::default(),
            priority: Priority::default(),
            paused: false,
            updated_at: now,
            revision: 1,
        }
    }

    /// With a change. It counts also where all stays as it was: each accepted change is bound to its
    /// request and told in the audit trail.
    ///
    /// # Errors
    /// When it would have too many labels.
    pub fn changed(&self, change: &MetadataChange, now: Timestamp) -> Result<Self, TooManyLabels> {
        let mut next = self.clone();
        if let Some(name) = &change.name {
            next.name.clone_from(name);
        }
        if let Some(labels) = &change.labels {
            next.labels = labels.applied(&self.labels)?;
        }
        if let Some(priority) = change.priority {
            next.priority = priority;
        }
        if let Some(paused) = change.paused {
            next.paused = paused;
        }
        // A clock that was set back does not make a change older than the one before.
        next.updated_at = now.max(self.updated_at);
        next.revision = self.revision.saturating_add(1);
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> LabelKey {
        LabelKey::parse(text).unwrap()
    }

    fn value(text: &str) -> LabelValue {
        LabelValue::parse(text).unwrap()
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn c40_each_change_counts_and_no_clock_takes_it_back() {
        let first = Metadata::first(None, at(5));
        let name = Some(SessionName::parse("docs").unwrap());
        let change = MetadataChange {
            name: Some(name.clone()),
            ..MetadataChange::default()
        };
        let second = first.changed(&change, at(9)).unwrap();
        assert_eq!((second.name.clone(), second.revision), (name, 2));
        assert_eq!(second.updated_at, at(9));
        assert_eq!(second.changed(&change, at(20)).unwrap().revision, 3);
        let paused = MetadataChange {
            paused: Some(true),
            ..MetadataChange::default()
        };
        let third = second.changed(&paused, at(3)).unwrap();
        assert_eq!((third.revision, third.updated_at), (3, at(9)));
        assert_eq!(third.name, second.name);
    }

    #[test]
    fn labels_are_merged_key_by_key_or_replaced_as_a_whole() {
        let mut metadata = Metadata::first(None, at(1));
        let mut apply = |labels| {
            let change = MetadataChange {
                labels: Some(labels),
                ..MetadataChange::default()
            };
            metadata = metadata.changed(&change, at(2)).unwrap();
            let labels = metadata.labels.iter();
            labels
                .map(|(key, value)| format!("{}={}", key.as_str(), value.as_str()))
                .collect::<Vec<_>>()
        };
        let set = vec![(key("a"), Some(value("1"))), (key("b"), Some(value("2")))];
        assert_eq!(apply(LabelsChange::Merge(set)), ["a=1", "b=2"]);
        let change = vec![(key("a"), None), (key("b"), Some(value("3")))];
        assert_eq!(apply(LabelsChange::Merge(change)), ["b=3"]);
        let whole = Labels::of([(key("c"), value(""))]).unwrap();
        assert_eq!(apply(LabelsChange::Replace(whole)), ["c="]);
    }

    #[test]
    fn c60_a_merge_does_not_lead_over_the_bound() {
        let many = |from: usize, to: usize| {
            let labels = (from..to).map(|number| (key(&format!("l{number}")), Some(value("x"))));
            MetadataChange {
                labels: Some(LabelsChange::Merge(labels.collect())),
                ..MetadataChange::default()
            }
        };
        let first = Metadata::first(None, at(1));
        let full = first.changed(&many(0, 32), at(2)).unwrap();
        assert_eq!(
            full.changed(&many(32, 33), at(3)),
            Err(TooManyLabels { given: 33 })
        );
    }
}
