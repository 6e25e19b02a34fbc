//! Breaks a plan: repeats, changes places, and says what makes no sense.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::{InputId, RunId};
use sessionplane_core::domain::run::Failure;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::asides;
use super::options::HostileOptions;
use super::plan::{Beat, Labels};

/// How many senseless events may follow the last one.
const LAST_STRAYS: usize = 16;
/// How far an event may move.
const REACH: usize = 6;

/// Breaks a plan as the options say. A stop stays in it, somewhere.
pub(super) fn mangle(
    mut beats: Vec<Beat>,
    options: &HostileOptions,
    chance: &mut StdRng,
    labels: &mut Labels,
) -> Vec<Beat> {
    for at in 0..beats.len() {
        if hit(chance, options.reorders) {
            let with = (at + chance.random_range(1..=REACH)).min(beats.len() - 1);
            beats.swap(at, with);
        }
    }
    let mut at = 0;
    while at < beats.len() {
        if hit(chance, options.repeats) {
            let again = beats[at].clone();
            let to = (at + chance.random_range(1..=REACH)).min(beats.len());
            beats.insert(to, again);
            // Past what was inserted at once, so that the plan stays finite.
            at += 1;
        }
        at += 1;
    }
    let mut broken = Vec::with_capacity(beats.len());
    for beat in beats {
        if hit(chance, options.strays) {
            broken.push(now(stray(options, chance, labels)));
        }
        broken.push(beat);
    }
    for _ in 0..LAST_STRAYS {
        if !hit(chance, options.strays) {
            break;
        }
        broken.push(now(stray(options, chance, labels)));
    }
    broken
}

pub(super) fn hit(chance: &mut StdRng, percent: u8) -> bool {
    chance.random_range(0..100) < percent
}

fn now(event: EngineEvent) -> Beat {
    Beat {
        pause: Duration::ZERO,
        event,
    }
}

/// Something that makes no sense: about unknown things, against what was said, or out of bounds.
fn stray(options: &HostileOptions, chance: &mut StdRng, labels: &mut Labels) -> EngineEvent {
    let unknown = InputId {
        run: RunId::mint(Timestamp::from_millis(1), chance.random()),
        ordinal: chance.random(),
    };
    // One that says it never asks does not ask nonsense either.
    let kinds = if options.asks > 0 { 14 } else { 13 };
    match chance.random_range(0..kinds) {
        0 => EngineEvent::InputShown { input: unknown },
        1 => EngineEvent::InputTakenBack { input: unknown },
        2 => EngineEvent::MessageDelta {
            message: labels.next("unknown"),
            channel: OutputChannel::Text,
            text: "about nothing".to_owned(),
        },
        3 => EngineEvent::MessageFinished {
            message: labels.next("unknown"),
            text: Some("what no delta said".to_owned()),
            usage: absurd_usage(chance),
        },
        4 => EngineEvent::ToolProgress {
            call: labels.next("unknown"),
            output: String::new(),
        },
        5 => EngineEvent::ToolFinished {
            call: labels.next("unknown"),
            output: "from nowhere".to_owned(),
            failed: true,
        },
        6 => EngineEvent::RetryScheduled {
            attempt: 0,
            max_attempts: 0,
            delay: Duration::MAX,
            reason: labels.next("reason"),
        },
        7 => EngineEvent::TurnFinished,
        8 => EngineEvent::MessageStarted {
            message: labels.next("unfinished"),
        },
        9 => EngineEvent::AskWithdrawn {
            ask: labels.next("unknown"),
        },
        // Of a compaction that did not start.
        10 => asides::compacted(chance, labels),
        11 => EngineEvent::CompactionStarted,
        13 => asides::unsound(chance, labels),
        _ => EngineEvent::Stopped {
            // Of the first prompt, and of one that there hardly is.
            prompt: chance.random_range(1..=2),
            reason: StopReason::Failed(Failure {
                code: labels.next("code"),
                details: labels.next("details"),
                retryable: chance.random(),
            }),
        },
    }
}

fn absurd_usage(chance: &mut StdRng) -> Usage {
    let costs = [f64::NAN, f64::INFINITY, -1.0, f64::MAX];
    Usage {
        input_tokens: Some(u64::MAX),
        output_tokens: None,
        cached_tokens: Some(chance.random()),
        cost_usd: Some(costs[chance.random_range(0..costs.len())]),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;
    use crate::adapters::engine::hostile::plan;

    fn plan_of(options: &HostileOptions) -> String {
        let mut chance = StdRng::seed_from_u64(options.seed);
        let mut labels = Labels::new(options.labels);
        let beats = plan::draw(&mut chance, &mut labels, 1);
        let beats = mangle(beats, options, &mut chance, &mut labels);
        let stops = |beat: &Beat| matches!(beat.event, EngineEvent::Stopped { .. });
        assert!(beats.iter().any(stops), "no stop is left in {options:?}");
        format!("{beats:?}")
    }

    #[test]
    fn a_seed_determines_the_plan_and_every_plan_stops() {
        for seed in 0..40 {
            let options = HostileOptions::wild(seed);
            assert_eq!(options, HostileOptions::wild(seed));
            assert_eq!(plan_of(&options), plan_of(&options));
        }
    }

    #[test]
    fn a_plan_is_finite_however_much_goes_wrong() {
        let tame = HostileOptions::tame(5);
        let always = HostileOptions {
            repeats: 100,
            reorders: 100,
            strays: 100,
            ..tame
        };
        assert!(plan_of(&always).len() > plan_of(&tame).len());
    }

    #[test]
    fn each_way_to_go_wrong_changes_the_plan() {
        let tame = HostileOptions::tame(5);
        let plain = plan_of(&tame);
        for options in [
            HostileOptions {
                repeats: 50,
                ..tame
            },
            HostileOptions {
                reorders: 50,
                ..tame
            },
            HostileOptions { strays: 50, ..tame },
        ] {
            assert_ne!(plan_of(&options), plain, "{options:?}");
        }
    }
}
