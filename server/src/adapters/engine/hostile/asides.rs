//! What a hostile engine does besides talking: it asks, and it compacts.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use sessionplane_core::domain::compaction::Compacted;
use sessionplane_core::domain::interaction::{
    Choice, FieldKind, FormField, InteractionAnswer, Question, Shape,
};
use sessionplane_core::domain::run::Failure;
use sessionplane_core::ports::engine::EngineEvent;

use super::mangle::hit;
use super::options::HostileOptions;
use super::plan::{Beat, Labels};

/// The longest time that a question may stay open, in milliseconds. Short, so that an engine that
/// nobody answers comes to its end.
const OPEN_MILLIS: u64 = 200;
/// The longest time that a compaction takes, in milliseconds.
const COMPACTION_MILLIS: u64 = 50;

/// Puts questions and compactions into a plan, but not before its first event.
pub(super) fn insert(
    beats: Vec<Beat>,
    options: &HostileOptions,
    chance: &mut StdRng,
    labels: &mut Labels,
) -> Vec<Beat> {
    let mut all: Vec<Beat> = Vec::with_capacity(beats.len());
    for beat in beats {
        let begun = !all.is_empty();
        if begun && options.asks > 0 && hit(chance, options.asks) {
            all.push(after(0, ask(chance, labels)));
        }
        if begun && options.compacts > 0 && hit(chance, options.compacts) {
            all.push(after(0, EngineEvent::CompactionStarted));
            let takes = chance.random_range(0..COMPACTION_MILLIS);
            all.push(after(takes, compacted(chance, labels)));
        }
        all.push(beat);
    }
    all
}

fn after(millis: u64, event: EngineEvent) -> Beat {
    Beat {
        pause: Duration::from_millis(millis),
        event,
    }
}

/// A question that can be asked.
fn ask(chance: &mut StdRng, labels: &mut Labels) -> EngineEvent {
    let shape = match chance.random_range(0..5) {
        0 => Shape::Approval(choices()),
        1 => Shape::Select(choices()),
        2 => Shape::Confirm,
        3 => Shape::Input {
            secret: chance.random(),
        },
        _ => Shape::Form(fields()),
    };
    let default = chance.random::<bool>().then(|| answer(&shape));
    EngineEvent::Asked {
        ask: labels.next("q"),
        question: Question {
            title: "What now?".to_owned(),
            details: String::new(),
            shape,
            default,
        },
        timeout: Some(Duration::from_millis(chance.random_range(20..=OPEN_MILLIS))),
    }
}

/// A question that nobody could answer: it has nothing to choose, or a default that is none.
pub(super) fn unsound(chance: &mut StdRng, labels: &mut Labels) -> EngineEvent {
    let shapes = [
        Shape::Select(Vec::new()),
        Shape::Approval(vec![
            Choice {
                id: String::new(),
                label: String::new(),
            };
            2
        ]),
        Shape::Form(Vec::new()),
        Shape::Confirm,
    ];
    let shape = shapes[chance.random_range(0..shapes.len())].clone();
    // Over at once, or never: it is closed in any case.
    let timeouts = [Duration::ZERO, Duration::MAX];
    EngineEvent::Asked {
        ask: labels.next("unsound"),
        question: Question {
            title: labels.next("title"),
            details: String::new(),
            shape,
            default: Some(InteractionAnswer::Choice("none".to_owned())),
        },
        timeout: Some(timeouts[chance.random_range(0..timeouts.len())]),
    }
}

fn choices() -> Vec<Choice> {
    let choice = |id: &str| Choice {
        id: id.to_owned(),
        label: id.to_uppercase(),
    };
    ["allow", "deny", "later"].map(choice).into()
}

fn fields() -> Vec<FormField> {
    let field = |name: &str, kind| FormField {
        name: name.to_owned(),
        label: String::new(),
        kind,
        required: false,
    };
    vec![
        field("text", FieldKind::Text),
        field("number", FieldKind::Number),
        field("boolean", FieldKind::Boolean),
        field("select", FieldKind::Select(choices())),
    ]
}

fn answer(shape: &Shape) -> InteractionAnswer {
    match shape {
        Shape::Approval(_) | Shape::Select(_) => InteractionAnswer::Choice("deny".to_owned()),
        Shape::Confirm => InteractionAnswer::Confirmed(false),
        Shape::Input { .. } => InteractionAnswer::Text("whatever".to_owned()),
        Shape::Form(_) => {
            let number = ("number".to_owned(), "7".to_owned());
            InteractionAnswer::Fields([number].into())
        }
    }
}

/// How a compaction ends: well, without a summary, or not at all.
pub(super) fn compacted(chance: &mut StdRng, labels: &mut Labels) -> EngineEvent {
    if chance.random_ratio(1, 3) {
        return EngineEvent::CompactionFinished(Err(Failure {
            code: labels.next("code"),
            details: "the context is what it was".to_owned(),
            retryable: true,
        }));
    }
    let summary = if chance.random_ratio(1, 4) {
        String::new()
    } else {
        "what was said".to_owned()
    };
    EngineEvent::CompactionFinished(Ok(Compacted {
        summary,
        first_kept: None,
        tokens_before: chance.random::<bool>().then_some(u64::MAX),
        tokens_after: chance.random::<bool>().then_some(1),
    }))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;
    use crate::adapters::engine::hostile::LabelManner;
    use crate::adapters::engine::hostile::plan;

    fn plan_of(options: &HostileOptions) -> Vec<EngineEvent> {
        let mut chance = StdRng::seed_from_u64(options.seed);
        let mut labels = Labels::new(LabelManner::Plain);
        let beats = plan::draw(&mut chance, &mut labels, 1);
        let beats = insert(beats, options, &mut chance, &mut labels);
        beats.into_iter().map(|beat| beat.event).collect()
    }

    fn count(events: &[EngineEvent], of: impl Fn(&EngineEvent) -> bool) -> usize {
        events.iter().filter(|event| of(event)).count()
    }

    #[test]
    fn c25_it_asks_sound_questions_of_every_kind() {
        let mut kinds = std::collections::BTreeSet::new();
        for seed in 0..20 {
            let tame = HostileOptions::tame(seed);
            for event in plan_of(&HostileOptions { asks: 50, ..tame }) {
                if let EngineEvent::Asked { question, .. } = event {
                    assert!(question.is_sound(), "{question:?}");
                    kinds.insert(question.kind());
                }
            }
        }
        assert_eq!(kinds.len(), 5);
    }

    #[test]
    fn c25_its_unsound_questions_cannot_be_asked() {
        let mut chance = StdRng::seed_from_u64(3);
        let mut labels = Labels::new(LabelManner::Plain);
        for _ in 0..40 {
            let EngineEvent::Asked { question, .. } = unsound(&mut chance, &mut labels) else {
                panic!("no question");
            };
            assert!(!question.is_sound(), "{question:?}");
        }
    }

    #[test]
    fn a_tame_engine_neither_asks_nor_compacts_and_each_compaction_is_a_pair() {
        let tame = HostileOptions::tame(7);
        let started = |event: &EngineEvent| *event == EngineEvent::CompactionStarted;
        let finished = |event: &EngineEvent| matches!(event, EngineEvent::CompactionFinished(_));
        let asked = |event: &EngineEvent| matches!(event, EngineEvent::Asked { .. });
        let plain = plan_of(&tame);
        assert_eq!(count(&plain, |event| started(event) || asked(event)), 0);
        let compacts = plan_of(&HostileOptions {
            compacts: 50,
            ..tame
        });
        assert!(count(&compacts, started) > 0);
        assert_eq!(count(&compacts, started), count(&compacts, finished));
    }
}
