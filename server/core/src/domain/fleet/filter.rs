//! What a caller looks for among the sessions: conditions, and which of them an index can answer.
//!
//! How callers spell a filter is in `parse`.

use super::labels::{LabelKey, LabelValue, Priority};
use super::phase::Phase;
use super::summary::SessionSummary;
use crate::domain::ids::{AgentName, ExternalKey, SessionId, SessionName, WorkspaceName};
use crate::domain::time::Timestamp;

/// Which sessions are wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Filter {
    /// Those that all of these want; all sessions if there are none.
    All(Vec<Self>),
    /// Those that one of these wants; none if there are none.
    Any(Vec<Self>),
    /// Those that this does not want.
    Not(Box<Self>),
    /// Those for which this holds.
    Is(Condition),
}

impl Default for Filter {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

/// How two values compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Less, or earlier.
    Less,
    /// Less or equal, or not later.
    AtMost,
    /// Greater, or later.
    Greater,
    /// Greater or equal, or not earlier.
    AtLeast,
}

impl Comparison {
    fn holds<T: Ord>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::Greater => left > right,
            Self::AtLeast => left >= right,
        }
    }
}

/// A text that is wanted: whole, or its beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// This and nothing else.
    Whole(String),
    /// Whatever begins with this; spelled with a closing `*`.
    Prefix(String),
}

impl Pattern {
    /// Whether a text is wanted; one that is not there never is.
    #[must_use]
    pub fn matches(&self, text: Option<&str>) -> bool {
        text.is_some_and(|text| match self {
            Self::Whole(whole) => text == whole,
            Self::Prefix(prefix) => text.starts_with(prefix.as_str()),
        })
    }
}

/// A time of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Time {
    /// When it was created.
    Created,
    /// When its metadata changed last.
    Updated,
    /// When its last run settled; a session without one is never found by it.
    LastRun,
}

/// One thing that is asked of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Its phase is that one.
    Phase(Phase),
    /// It has shown nothing for long though it works, or not.
    Stalled(bool),
    /// It is paused, or not, whatever runs.
    Paused(bool),
    /// It runs that agent.
    Agent(AgentName),
    /// It has a label of that key.
    HasLabel(LabelKey),
    /// It has that label with that value.
    Label(LabelKey, LabelValue),
    /// Its name.
    Name(Pattern),
    /// Its external key.
    ExternalKey(Pattern),
    /// It branches off that session.
    Parent(SessionId),
    /// Its workspace.
    Workspace(WorkspaceName),
    /// Its directory.
    Directory(Pattern),
    /// Its branch.
    Branch(Pattern),
    /// Its priority.
    Priority(Comparison, Priority),
    /// One of its times.
    Time(Time, Comparison, Timestamp),
}

impl Condition {
    fn holds(&self, session: &SessionSummary) -> bool {
        let place = session.place.as_ref();
        match self {
            Self::Phase(phase) => session.phase == *phase,
            Self::Stalled(wanted) => session.stalled_since.is_some() == *wanted,
            Self::Paused(wanted) => session.paused == *wanted,
            Self::Agent(agent) => session.agent == *agent,
            Self::HasLabel(key) => session.labels.get(key).is_some(),
            Self::Label(key, value) => session.labels.get(key) == Some(value),
            Self::Name(pattern) => pattern.matches(session.name.as_ref().map(SessionName::as_str)),
            Self::ExternalKey(pattern) => {
                pattern.matches(session.external_key.as_ref().map(ExternalKey::as_str))
            }
            Self::Parent(id) => session.lineage.is_some_and(|it| it.parent == *id),
            Self::Workspace(name) => place.is_some_and(|place| place.workspace == *name),
            Self::Directory(pattern) => pattern.matches(place.map(|it| it.directory.as_str())),
            Self::Branch(pattern) => {
                let checkout = session.checkout.as_ref();
                pattern.matches(checkout.and_then(|it| it.branch.as_deref()))
            }
            Self::Priority(comparison, priority) => comparison.holds(&session.priority, priority),
            Self::Time(time, comparison, at) => {
                let of = match time {
                    Time::Created => Some(session.created_at),
                    Time::Updated => Some(session.updated_at),
                    Time::LastRun => session.last_run.as_ref().map(|last| last.settled_at),
                };
                of.is_some_and(|of| comparison.holds(&of, at))
            }
        }
    }
}

/// Where to look: every session that a filter wants is among those of its term.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IndexTerm {
    /// The session of that name, if there is one: what leads to it is looked up.
    Name(SessionName),
    /// The session of that external key, likewise.
    ExternalKey(ExternalKey),
    /// Sessions that have a task: a table in memory has them.
    Live,
    /// Sessions that an index of the store has.
    Stored(StoredTerm),
}

/// What an index of the store can answer, the one with probably the fewest sessions first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StoredTerm {
    /// Sessions whose name begins so, in the order of names.
    NamePrefix(String),
    /// Sessions with that label.
    Label(LabelKey, LabelValue),
    /// Sessions that branch off that one.
    Parent(SessionId),
    /// Sessions that are paused.
    Paused,
    /// Sessions of that workspace.
    Workspace(WorkspaceName),
    /// Sessions of that agent.
    Agent(AgentName),
    /// All sessions of the tenant.
    Every,
}

impl Filter {
    /// Whether a session is wanted.
    #[must_use]
    pub fn wants(&self, session: &SessionSummary) -> bool {
        match self {
            Self::All(filters) => filters.iter().all(|filter| filter.wants(session)),
            Self::Any(filters) => filters.iter().any(|filter| filter.wants(session)),
            Self::Not(filter) => !filter.wants(session),
            Self::Is(condition) => condition.holds(session),
        }
    }

    /// The term of an index that has all the wanted sessions and, as far as can be told without
    /// counting, the fewest others.
    #[must_use]
    pub fn index_term(&self) -> IndexTerm {
        let every = IndexTerm::Stored(StoredTerm::Every);
        self.terms().into_iter().min().unwrap_or(every)
    }

    /// Terms of which each has all the wanted sessions.
    fn terms(&self) -> Vec<IndexTerm> {
        match self {
            Self::All(filters) => filters.iter().flat_map(Self::terms).collect(),
            Self::Any(filters) => {
                // Only what every branch agrees on.
                let mut branches = filters.iter().map(Self::terms);
                let first = branches.next().unwrap_or_default();
                branches.fold(first, |mut common, terms| {
                    common.retain(|term| terms.contains(term));
                    common
                })
            }
            Self::Not(_) => Vec::new(),
            Self::Is(condition) => condition.term().into_iter().collect(),
        }
    }
}

impl Condition {
    fn term(&self) -> Option<IndexTerm> {
        let stored = match self {
            Self::Phase(Phase::Paused) | Self::Paused(true) => StoredTerm::Paused,
            Self::Phase(Phase::NeedsInput | Phase::Working | Phase::Compacting | Phase::Ready)
            | Self::Stalled(true) => return Some(IndexTerm::Live),
            Self::Name(Pattern::Whole(text)) => match SessionName::parse(text) {
                Ok(name) => return Some(IndexTerm::Name(name)),
                // No session has it: few have a name that begins so.
                Err(_) => StoredTerm::NamePrefix(text.clone()),
            },
            Self::Name(Pattern::Prefix(text)) => StoredTerm::NamePrefix(text.clone()),
            Self::ExternalKey(Pattern::Whole(text)) => {
                return ExternalKey::parse(text).ok().map(IndexTerm::ExternalKey);
            }
            Self::Label(key, value) => StoredTerm::Label(key.clone(), value.clone()),
            Self::Parent(id) => StoredTerm::Parent(*id),
            Self::Workspace(name) => StoredTerm::Workspace(name.clone()),
            Self::Agent(name) => StoredTerm::Agent(name.clone()),
            Self::Phase(Phase::Dormant | Phase::Queued)
            | Self::Stalled(false)
            | Self::Paused(false)
            | Self::HasLabel(_)
            | Self::ExternalKey(Pattern::Prefix(_))
            | Self::Directory(_)
            | Self::Branch(_)
            | Self::Priority(..)
            | Self::Time(..) => return None,
        };
        Some(IndexTerm::Stored(stored))
    }
}

mod parse;
mod wrong;
pub use parse::{FilterError, MAX_CONDITIONS, MAX_FILTER_BYTES};

#[cfg(test)]
mod tests;
