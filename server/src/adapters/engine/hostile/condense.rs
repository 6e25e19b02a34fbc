//! What a hostile engine makes of being asked to compact.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use sessionplane_core::domain::compaction::Compacted;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::{EntryId, SessionId};
use sessionplane_core::domain::limits::MAX_ENTRY_TEXT_BYTES;
use sessionplane_core::domain::run::Failure;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::asides;
use super::plan::{Beat, Labels};

/// The longest pause before something is said, in milliseconds.
const PAUSE_MILLIS: u64 = 20;
/// How long one that says nothing does so before it leaves, in milliseconds.
const SILENCE_MILLIS: u64 = 200;

/// What it says, in order, and whether it leaves then. A plan ends the compaction, or leaves.
pub(super) fn draw(
    chance: &mut StdRng,
    labels: &mut Labels,
    session: SessionId,
) -> (Vec<Beat>, bool) {
    let fails = |labels: &mut Labels| {
        EngineEvent::CompactionFinished(Err(Failure {
            code: labels.next("code"),
            details: labels.next("details"),
            retryable: true,
        }))
    };
    let (mut leaves, mut silence) = (false, 0);
    let events = match chance.random_range(0..9) {
        0 => vec![summary("what was said", Some(foreign(chance, session)))],
        1 => vec![summary(&"long ".repeat(MAX_ENTRY_TEXT_BYTES / 2), None)],
        2 => vec![summary("", None)],
        // The first word counts.
        3 => vec![fails(labels), summary("after all", None)],
        4 => vec![
            summary("at first", None),
            fails(labels),
            summary("again", None),
        ],
        5 => vec![EngineEvent::Stopped {
            prompt: chance.random_range(0..=2),
            reason: StopReason::Completed,
        }],
        6 => chatter(chance, labels),
        7 => {
            (leaves, silence) = (true, SILENCE_MILLIS);
            vec![EngineEvent::TurnFinished]
        }
        _ => {
            leaves = true;
            Vec::new()
        }
    };
    let paused = |event| Beat {
        pause: Duration::from_millis(silence + chance.random_range(0..PAUSE_MILLIS)),
        event,
    };
    (events.into_iter().map(paused).collect(), leaves)
}

/// Speaks as in a run, of which there is none, and asks; then it ends somehow.
fn chatter(chance: &mut StdRng, labels: &mut Labels) -> Vec<EngineEvent> {
    let message = labels.next("m");
    vec![
        EngineEvent::CompactionStarted,
        EngineEvent::TurnStarted,
        EngineEvent::MessageStarted {
            message: message.clone(),
        },
        EngineEvent::MessageDelta {
            message,
            channel: OutputChannel::Text,
            text: "to whom?".to_owned(),
        },
        asides::unsound(chance, labels),
        EngineEvent::ToolFinished {
            call: labels.next("unknown"),
            output: "from nowhere".to_owned(),
            failed: false,
        },
        asides::compacted(chance, labels),
        asides::compacted(chance, labels),
    ]
}

fn summary(text: &str, first_kept: Option<EntryId>) -> EngineEvent {
    EngineEvent::CompactionFinished(Ok(Compacted {
        summary: text.to_owned(),
        first_kept,
        tokens_before: Some(1),
        tokens_after: Some(u64::MAX),
    }))
}

/// An entry that the session does not have: of another session, before its first, or to come.
fn foreign(chance: &mut StdRng, session: SessionId) -> EntryId {
    let another = SessionId::mint(Timestamp::from_millis(1), chance.random());
    let seqs = [(another, 1), (session, 0), (session, u64::MAX)];
    let (session, seq) = seqs[chance.random_range(0..seqs.len())];
    EntryId { session, seq }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;
    use crate::adapters::engine::hostile::LabelManner;

    #[test]
    fn c22_a_plan_ends_the_compaction_or_leaves_it() {
        let session = SessionId::mint(Timestamp::default(), 1);
        let (mut leaving, mut contradicting) = (0, 0);
        for seed in 0..100 {
            let mut chance = StdRng::seed_from_u64(seed);
            let mut labels = Labels::new(LabelManner::Plain);
            let (beats, leaves) = draw(&mut chance, &mut labels, session);
            let ends = |beat: &&Beat| {
                matches!(
                    beat.event,
                    EngineEvent::CompactionFinished(_) | EngineEvent::Stopped { .. }
                )
            };
            let ends = beats.iter().filter(ends).count();
            assert_eq!(leaves, ends == 0, "{beats:?}");
            leaving += usize::from(leaves);
            contradicting += usize::from(ends > 1);
        }
        assert!(leaving > 0 && contradicting > 0);
    }
}
