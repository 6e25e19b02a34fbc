//! Places in the orders that sessions are listed in.

use std::cmp::Ordering;

use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{SessionId, SessionName};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::repository::SessionPlace;

/// How a session stands among those that people may have to look at, first things first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Rank {
    level: u8,
    /// Who has waited longest comes first.
    since: Timestamp,
    id: SessionId,
}

impl Rank {
    /// Of a session of which something is in memory; none for paused and dormant ones, which an index
    /// has.
    pub(super) fn of(session: &SessionSummary) -> Option<Self> {
        let level = match session.phase {
            Phase::NeedsInput => 0,
            Phase::Working | Phase::Compacting if session.stalled_since.is_some() => 1,
            Phase::Working => 2,
            Phase::Compacting => 3,
            Phase::Queued => 4,
            Phase::Ready => 5,
            Phase::Paused | Phase::Dormant => return None,
        };
        Some(Self {
            level,
            since: session.since.unwrap_or_default(),
            id: session.id,
        })
    }
}

/// Where a page begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// At the beginning.
    Start,
    /// After a session in an index, or among those that are in memory by id.
    After(SessionPlace),
    /// By attention, among those that are in memory: after that one.
    Ranked(Rank),
    /// By id, among all sessions, since too many have a name that begins as is wanted.
    Wide(SessionId),
    /// By attention, among paused sessions.
    Paused(From),
    /// By attention, among dormant ones.
    Dormant(From),
}

/// Where a page begins in the order of ids.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct From {
    /// After that session; at the beginning if there is none.
    pub(super) after: Option<SessionId>,
    /// Too many have a name that begins as is wanted: others than those are looked through as well.
    pub(super) wide: bool,
}

impl From {
    /// The same as a place.
    pub(super) fn place(self) -> Place {
        match self.after {
            None => Place::Start,
            Some(after) if self.wide => Place::Wide(after),
            Some(after) => Place::After(SessionPlace::Id(after)),
        }
    }

    fn encode(self) -> String {
        let mark = if self.wide { "w" } else { "" };
        let after = self.after.map(|id| id.to_string()).unwrap_or_default();
        format!("{mark}.{after}")
    }

    /// What follows a kind.
    fn decode(mark: &str, after: &str) -> Option<Self> {
        let after = match after {
            "" => None,
            id => Some(id.parse().ok()?),
        };
        let wide = match mark {
            "" => false,
            "w" => true,
            _ => return None,
        };
        Some(Self { after, wide })
    }
}

impl Place {
    /// The same in the order of ids.
    pub(super) fn by_id(&self) -> From {
        let (after, wide) = match self {
            Self::After(SessionPlace::Id(id)) => (Some(*id), false),
            Self::Wide(id) => (Some(*id), true),
            Self::Paused(from) | Self::Dormant(from) => return *from,
            Self::Start | Self::After(SessionPlace::Name(_)) | Self::Ranked(_) => (None, false),
        };
        From { after, wide }
    }

    /// The place as a token carries it.
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Start => "s".to_owned(),
            Self::After(SessionPlace::Id(id)) => format!("i.{id}"),
            Self::After(SessionPlace::Name(name)) => format!("n.{name}"),
            Self::Ranked(Rank { level, since, id }) => {
                format!("r.{level}.{}.{id}", since.as_millis())
            }
            Self::Wide(id) => format!("w.{id}"),
            Self::Paused(from) => format!("p{}", from.encode()),
            Self::Dormant(from) => format!("d{}", from.encode()),
        }
    }

    /// The place that a token carries; none if it carries none.
    pub(super) fn decode(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once('.').unwrap_or((text, ""));
        Some(match kind {
            "s" => Self::Start,
            "i" => Self::After(SessionPlace::Id(rest.parse().ok()?)),
            "n" => Self::After(SessionPlace::Name(SessionName::parse(rest).ok()?)),
            "r" => {
                let mut parts = rest.splitn(3, '.');
                let level = parts.next()?.parse().ok()?;
                let since = Timestamp::from_millis(parts.next()?.parse().ok()?);
                let id = parts.next()?.parse().ok()?;
                Self::Ranked(Rank { level, since, id })
            }
            "w" => Self::Wide(rest.parse().ok()?),
            _ => match kind.split_at_checked(1)? {
                ("p", mark) => Self::Paused(From::decode(mark, rest)?),
                ("d", mark) => Self::Dormant(From::decode(mark, rest)?),
                _ => return None,
            },
        })
    }
}

/// Compares by name; sessions without one are not compared.
pub(super) fn by_name(a: &SessionSummary, b: &SessionSummary) -> Ordering {
    a.name.cmp(&b.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c64_every_place_is_read_back_as_it_was_written() {
        let id = SessionId::mint(Timestamp::from_millis(7), 7);
        let rank = Rank {
            level: 2,
            since: Timestamp::from_millis(99),
            id,
        };
        for place in [
            Place::Start,
            Place::After(SessionPlace::Id(id)),
            Place::After(SessionPlace::Name(SessionName::parse("a-b").unwrap())),
            Place::Ranked(rank),
            Place::Wide(id),
            Place::Paused(From::default()),
            Place::Paused(From {
                after: Some(id),
                wide: true,
            }),
            Place::Dormant(From {
                after: Some(id),
                wide: false,
            }),
        ] {
            assert_eq!(Place::decode(&place.encode()), Some(place));
        }
        for wrong in [
            "",
            "x",
            "i.",
            "i.nothing",
            "n.A",
            "r.1.2",
            "p.x",
            "px.",
            "w.",
        ] {
            assert_eq!(Place::decode(wrong), None, "{wrong}");
        }
    }
}
