//! What the board shows: the sessions that there are, which of them are on the open tab, which one is
//! selected, and what is being typed.

use std::collections::BTreeMap;

use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{InteractionId, RunId, SessionId};

use crate::cli::render::order;
use crate::fleet_watch::FleetWatchItem;

/// Lines that can be scrolled over at most.
const MOST_ABOVE: u16 = 1000;

/// A part of the fleet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Tab {
    /// Every session.
    #[default]
    All,
    /// Those that wait for somebody's answer, and those that have shown nothing for long.
    NeedsYou,
    /// Those that something runs in.
    Working,
    /// Those that are at rest and warm, or whose messages wait.
    Ready,
    /// Those that are paused or dormant.
    Inactive,
}

impl Tab {
    /// All of them, in their order on the screen.
    pub(crate) const ALL: [Self; 5] = [
        Self::All,
        Self::NeedsYou,
        Self::Working,
        Self::Ready,
        Self::Inactive,
    ];

    /// Its title.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::All => "All",
            Self::NeedsYou => "Needs you",
            Self::Working => "Working",
            Self::Ready => "Ready",
            Self::Inactive => "Inactive",
        }
    }

    /// Whether a session is on it.
    pub(crate) fn has(self, session: &SessionSummary) -> bool {
        let needs = session.phase == Phase::NeedsInput || session.stalled_since.is_some();
        match self {
            Self::All => true,
            Self::NeedsYou => needs,
            Self::Working => matches!(session.phase, Phase::Working | Phase::Compacting),
            Self::Ready => matches!(session.phase, Phase::Ready | Phase::Queued),
            Self::Inactive => matches!(session.phase, Phase::Paused | Phase::Dormant),
        }
    }

    /// The one that is `by` places further, around the end.
    fn moved(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

/// How the watch stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    /// The first snapshot has not come yet.
    Opening,
    /// What is shown is what there is.
    Live,
    /// What is shown is what there was; why it was lost.
    Lost(String),
}

/// What is said in the last line until the next key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Notice {
    /// Something was done.
    Done(String),
    /// Something was not.
    Failed(String),
    /// Whether it was done, nobody knows.
    Unknown(String),
}

/// What a line that is being typed is for. It stays with what was seen when it was begun, whatever
/// takes its place meanwhile: the same question, the same run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// An answer to a question of a session.
    Answer {
        /// The session.
        session: SessionId,
        /// The question.
        question: InteractionId,
        /// Nobody is to see the answer.
        secret: bool,
    },
    /// A steer of a session's run.
    Steer(SessionId, RunId),
    /// Another name for a session.
    Rename(SessionId),
    /// What the shown sessions must have in them.
    Filter,
}

/// What the keys do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Mode {
    /// They move and command.
    #[default]
    Browse,
    /// They are typed into a line.
    Typing {
        /// What the line is for.
        purpose: Purpose,
        /// What stands before it.
        prompt: String,
        /// What stands in it.
        text: String,
    },
    /// Whether to abort this run of a session.
    ConfirmAbort(SessionId, RunId),
    /// All keys are listed, from this one on.
    Help(u16),
}

/// The board.
#[derive(Debug)]
pub(crate) struct Board {
    sessions: BTreeMap<SessionId, SessionSummary>,
    pub(crate) tab: Tab,
    pub(crate) selected: Option<SessionId>,
    /// How many lines of the selected session are above those that are shown.
    pub(crate) above: u16,
    pub(crate) filter: String,
    /// The filter of the command line, which only the server knows to apply; empty: all are told.
    pub(crate) wanted: String,
    /// Some session has had messages that wait.
    pub(crate) queues: bool,
    pub(crate) mode: Mode,
    pub(crate) link: Link,
    pub(crate) notice: Option<Notice>,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            sessions: BTreeMap::new(),
            tab: Tab::default(),
            selected: None,
            above: 0,
            filter: String::new(),
            wanted: String::new(),
            queues: false,
            mode: Mode::default(),
            link: Link::Opening,
            notice: None,
        }
    }
}

impl Board {
    /// One of the sessions that a filter of the command line wants.
    pub(crate) fn wanting(wanted: String) -> Self {
        Self {
            wanted,
            ..Self::default()
        }
    }

    /// Takes in what the watch told.
    pub(crate) fn told(&mut self, item: FleetWatchItem) {
        match item {
            FleetWatchItem::Changed { sessions, gone } => {
                for id in gone {
                    self.sessions.remove(&id);
                }
                self.queues |= sessions.iter().any(|session| session.queued > 0);
                let sessions = sessions.into_iter();
                self.sessions
                    .extend(sessions.map(|session| (session.id, session)));
            }
            FleetWatchItem::Current => self.link = Link::Live,
            FleetWatchItem::Reconnecting { error, .. } => {
                if !matches!(self.link, Link::Lost(_)) {
                    // What was told before hides it no more: what is shown is old from here on.
                    self.notice = None;
                }
                self.link = Link::Lost(error.message);
            }
        }
        self.keep_selection();
    }

    /// The sessions of the open tab that the filter admits, what needs people first.
    pub(crate) fn rows(&self) -> Vec<&SessionSummary> {
        let shown = |session: &&SessionSummary| self.tab.has(session) && self.admits(session);
        let mut rows: Vec<_> = self.sessions.values().filter(shown).collect();
        rows.sort_by_cached_key(|session| order(session));
        rows
    }

    /// How many sessions there are.
    pub(crate) fn size(&self) -> usize {
        self.sessions.len()
    }

    /// All sessions, in no order that means anything.
    pub(crate) fn all(&self) -> impl Iterator<Item = &SessionSummary> {
        self.sessions.values()
    }

    /// How many sessions a tab has that the filter admits.
    pub(crate) fn count(&self, tab: Tab) -> usize {
        let shown = |session: &&SessionSummary| tab.has(session) && self.admits(session);
        self.sessions.values().filter(shown).count()
    }

    /// The selected session.
    pub(crate) fn session(&self) -> Option<&SessionSummary> {
        self.sessions.get(&self.selected?)
    }

    /// Another session.
    pub(crate) fn of(&self, id: SessionId) -> Option<&SessionSummary> {
        self.sessions.get(&id)
    }

    /// Selects the session that is `by` rows further down; negative: up.
    pub(crate) fn step(&mut self, by: isize) {
        let rows: Vec<SessionId> = self.rows().iter().map(|row| row.id).collect();
        let at = rows.iter().position(|id| Some(*id) == self.selected);
        let last = rows.len().saturating_sub(1);
        let at = at.map_or(0, |at| at.saturating_add_signed(by).min(last));
        self.select(rows.get(at).copied());
    }

    fn select(&mut self, session: Option<SessionId>) {
        if self.selected != session {
            self.above = 0;
        }
        self.selected = session;
    }

    /// Shows what of the selected session is `by` lines further down; negative: up.
    pub(crate) fn scroll(&mut self, by: i16) {
        self.above = self.above.saturating_add_signed(by).min(MOST_ABOVE);
    }

    /// Opens the tab that is `by` places further.
    pub(crate) fn turn(&mut self, by: usize) {
        self.open(self.tab.moved(by));
    }

    /// Opens a tab.
    pub(crate) fn open(&mut self, tab: Tab) {
        self.tab = tab;
        self.keep_selection();
    }

    /// Shows only sessions that have this in them.
    pub(crate) fn narrow(&mut self, filter: &str) {
        filter.clone_into(&mut self.filter);
        self.keep_selection();
    }

    /// The selection stays on its session wherever that moves; one that is not shown any more gives
    /// way to the first that is.
    fn keep_selection(&mut self) {
        let stays = self
            .session()
            .is_some_and(|session| self.tab.has(session) && self.admits(session));
        if !stays {
            // All are put in order only where one is looked for: a fleet changes all the time.
            let first = self.rows().first().map(|row| row.id);
            self.select(first);
        }
    }

    /// Whether a session has every word of the filter in one of its fields.
    fn admits(&self, session: &SessionSummary) -> bool {
        if self.filter.is_empty() {
            return true;
        }
        let mut fields = vec![session.id.to_string(), session.agent.to_string()];
        fields.extend(session.name.as_ref().map(ToString::to_string));
        fields.extend(session.external_key.as_ref().map(ToString::to_string));
        fields.extend(session.place.as_ref().map(|it| it.directory.to_string()));
        let checkout = session.checkout.as_ref();
        fields.extend(checkout.and_then(|it| it.branch.as_deref().map(str::to_owned)));
        let labels = session.labels.iter();
        fields.extend(labels.map(|(key, value)| format!("{}={}", key.as_str(), value.as_str())));
        let words = self.filter.split_whitespace().map(str::to_lowercase);
        let found = |word: String| fields.iter().any(|it| it.to_lowercase().contains(&word));
        words.into_iter().all(found)
    }
}
