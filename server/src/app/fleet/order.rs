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
    /// By attention, among paused sessions: after that one; at their beginning if there is none.
    Paused(Option<SessionId>),
    /// By attention, among dormant ones.
    Dormant(Option<SessionId>),
}

impl Place {
    /// The session that it is after, in the order of ids; none at the beginning.
    pub(super) fn id(&self) -> Option<SessionId> {
        match self {
            Self::After(SessionPlace::Id(id)) => Some(*id),
            Self::Paused(id) | Self::Dormant(id) => *id,
            Self::Start | Self::After(SessionPlace::Name(_)) | Self::Ranked(_) => None,
        }
    }

    /// The place as a token carries it.
    pub(super) fn encode(&self) -> String {
        let optional = |id: &Option<SessionId>| id.map(|id| id.to_string()).unwrap_or_default();
        match self {
            Self::Start => "s".to_owned(),
            Self::After(SessionPlace::Id(id)) => format!("i.{id}"),
            Self::After(SessionPlace::Name(name)) => format!("n.{name}"),
            Self::Ranked(Rank { level, since, id }) => {
                format!("r.{level}.{}.{id}", since.as_millis())
            }
            Self::Paused(id) => format!("p.{}", optional(id)),
            Self::Dormant(id) => format!("d.{}", optional(id)),
        }
    }

    /// The place that a token carries; none if it carries none.
    pub(super) fn decode(text: &str) -> Option<Self> {
        let optional = |id: &str| {
            if id.is_empty() {
                return Some(None);
            }
            id.parse::<SessionId>().ok().map(Some)
        };
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
            "p" => Self::Paused(optional(rest)?),
            "d" => Self::Dormant(optional(rest)?),
            _ => return None,
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
            Place::Paused(None),
            Place::Paused(Some(id)),
            Place::Dormant(Some(id)),
        ] {
            assert_eq!(Place::decode(&place.encode()), Some(place));
        }
        for wrong in ["", "x", "i.", "i.nothing", "n.A", "r.1.2", "p.x"] {
            assert_eq!(Place::decode(wrong), None, "{wrong}");
        }
    }
}
