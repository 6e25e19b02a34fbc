//! The phase of a session, derived from what is recorded elsewhere: there is no second record of it.

use std::time::Duration;

use crate::domain::time::Timestamp;
use crate::domain::view::Status;

/// What a session is at, as people and schedulers read it (C46). The order is that in which people
/// want to see them: what needs them first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// Its run waits for somebody's answer.
    NeedsInput,
    /// A run is active.
    Working,
    /// Its transcript is being compacted outside of a run.
    Compacting,
    /// Messages wait for it.
    Queued,
    /// Nothing runs, and its engine or its task is still in memory.
    Ready,
    /// Nothing runs, and nothing will until it is resumed.
    Paused,
    /// Nothing of it is in memory.
    Dormant,
}

impl Phase {
    /// All of them, in the order in which people want to see them.
    pub const ALL: [Self; 7] = [
        Self::NeedsInput,
        Self::Working,
        Self::Compacting,
        Self::Queued,
        Self::Ready,
        Self::Paused,
        Self::Dormant,
    ];

    /// The phase as it stands in filters, messages and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NeedsInput => "NEEDS_INPUT",
            Self::Working => "WORKING",
            Self::Compacting => "COMPACTING",
            Self::Queued => "QUEUED",
            Self::Ready => "READY",
            Self::Paused => "PAUSED",
            Self::Dormant => "DORMANT",
        }
    }

    /// The phase of that name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let is = |phase: &Self| phase.as_str().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(is)
    }

    /// The phase that a session of this one would be in if somebody had paused it, or had not; none where
    /// it is this one. Whether anything of a paused session is in memory is not told: it counts as dormant.
    #[must_use]
    pub fn if_paused(self, paused: bool) -> Option<Self> {
        match (self, paused) {
            (Self::Queued | Self::Ready | Self::Dormant, true) => Some(Self::Paused),
            (Self::Paused, false) => Some(Self::Dormant),
            _ => None,
        }
    }

    /// Whether a run or a compaction holds the session.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::NeedsInput | Self::Working | Self::Compacting)
    }
}

/// What a phase is derived from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, recorded elsewhere"
)]
pub struct PhaseFacts {
    /// Idle, running or compacting, as `GetState` tells it.
    pub status: Status,
    /// Its run has asked something that nobody has answered yet.
    pub asks: bool,
    /// Something of it is in memory that a run would find there.
    pub resident: bool,
    /// Somebody has paused it.
    pub paused: bool,
    /// Messages wait for it.
    pub messages: bool,
}

impl PhaseFacts {
    /// The phase. A run that was active when the session was paused goes on, and so does its phase.
    #[must_use]
    pub fn phase(self) -> Phase {
        match self.status {
            Status::Running if self.asks => Phase::NeedsInput,
            Status::Running => Phase::Working,
            Status::Compacting => Phase::Compacting,
            Status::Idle if self.paused => Phase::Paused,
            Status::Idle if self.messages => Phase::Queued,
            Status::Idle if self.resident => Phase::Ready,
            Status::Idle => Phase::Dormant,
        }
    }
}

/// Since when a session that works has shown nothing, if that is longer than `patience`. One that
/// waits for somebody is not stalled.
#[must_use]
pub fn stalled_since(
    phase: Phase,
    last_progress: Timestamp,
    now: Timestamp,
    patience: Duration,
) -> Option<Timestamp> {
    let works = matches!(phase, Phase::Working | Phase::Compacting);
    (works && now.since(last_progress) >= patience).then_some(last_progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: PhaseFacts = PhaseFacts {
        status: Status::Idle,
        asks: false,
        resident: false,
        paused: false,
        messages: false,
    };

    #[test]
    fn c46_b25_a_run_with_an_open_question_needs_input_and_is_not_working() {
        let running = PhaseFacts {
            status: Status::Running,
            ..IDLE
        };
        assert_eq!(running.phase(), Phase::Working);
        let asks = PhaseFacts {
            asks: true,
            ..running
        };
        assert_eq!(asks.phase(), Phase::NeedsInput);
        // What it asked before it was cut is nobody's to answer.
        let cut = PhaseFacts { asks: true, ..IDLE };
        assert_eq!(cut.phase(), Phase::Dormant);
    }

    #[test]
    fn c46_a_pause_holds_what_comes_after_the_run_that_is_active() {
        let facts = PhaseFacts {
            paused: true,
            messages: true,
            resident: true,
            ..IDLE
        };
        assert_eq!(facts.phase(), Phase::Paused);
        let running = PhaseFacts {
            status: Status::Running,
            ..facts
        };
        assert_eq!(running.phase(), Phase::Working);
        let resumed = PhaseFacts {
            paused: false,
            ..facts
        };
        assert_eq!(resumed.phase(), Phase::Queued);
        let delivered = PhaseFacts {
            messages: false,
            ..resumed
        };
        assert_eq!(delivered.phase(), Phase::Ready);
    }

    #[test]
    fn c46_who_works_and_shows_nothing_is_stalled_and_who_waits_for_somebody_is_not() {
        let at = Timestamp::from_millis;
        let patience = Duration::from_secs(60);
        let since = |phase, now| stalled_since(phase, at(1_000), at(now), patience);
        assert_eq!(since(Phase::Working, 60_999), None);
        assert_eq!(since(Phase::Working, 61_000), Some(at(1_000)));
        assert_eq!(since(Phase::Compacting, 90_000), Some(at(1_000)));
        for phase in [Phase::NeedsInput, Phase::Ready, Phase::Dormant] {
            assert_eq!(since(phase, 999_000), None, "{phase:?}");
        }
        // A clock that was set back makes nobody stalled.
        assert_eq!(since(Phase::Working, 10), None);
    }

    #[test]
    fn every_phase_is_found_by_its_name() {
        for phase in Phase::ALL {
            assert_eq!(Phase::named(&phase.as_str().to_lowercase()), Some(phase));
        }
        assert_eq!(Phase::named("BUSY"), None);
    }
}
