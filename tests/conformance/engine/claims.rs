//! C26: an engine can what it says, and does nothing that it does not say.

use sessionplane_core::domain::run::RunSettings;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::Subject;
use super::answers::text_of;
use super::bench::{Bench, session, stop_of};

pub(crate) async fn c26_it_does_nothing_that_it_does_not_claim(subject: Subject) {
    let bench = Bench::new(subject);
    let prompts = &bench.subject.prompts;
    let ends = [
        Some(prompts.plain),
        prompts.long_text,
        prompts.long_tool,
        prompts.steerable,
        prompts.asks,
        prompts.withdraws,
        prompts.recalls,
        prompts.settings,
    ];
    let claims = &bench.engine.describe().capabilities;
    for prompt in ends.into_iter().flatten() {
        let mut opened = bench.open().await;
        opened.prompt(prompt).await;
        for event in opened.read_answering().await {
            let claimed = match &event {
                EngineEvent::Asked { question, .. } => {
                    claims.interactions.contains(&question.kind())
                }
                EngineEvent::MessageFinished { usage, .. } => {
                    claims.usage || *usage == Usage::default()
                }
                EngineEvent::ToolProgress { .. } => claims.tool_progress,
                _ => true,
            };
            assert!(claimed, "{prompt:?} leads to {event:?}");
        }
    }
}

pub(crate) async fn c26_what_it_claims_of_models_is_in_its_list(subject: Subject) {
    let bench = Bench::new(subject);
    let description = bench.engine.describe();
    let (claims, policy) = (&description.capabilities, &description.models);
    assert_eq!(claims.model_selection, policy.selects_models());
    assert_eq!(claims.thinking, policy.thinks());
    if let Some(default) = &policy.default.model {
        assert!(policy.model(default).is_some(), "{default} is not allowed");
    }
    for model in &policy.models {
        let level = model.default_level.as_ref();
        let accepted = level.is_none_or(|level| model.thinking_levels.contains(level));
        assert!(accepted, "{model:?}");
    }
    for command in &description.commands {
        assert!(!command.name.starts_with('/') && !command.description.is_empty());
    }
}

pub(crate) async fn c23_it_uses_the_model_and_the_level_that_it_was_given(subject: Subject) {
    let bench = Bench::new(subject);
    let prompts = &bench.subject.prompts;
    for model in &bench.engine.describe().models.models {
        let levels = model.thinking_levels.iter().map(Some);
        let none = model.thinking_levels.is_empty().then_some(None);
        for level in levels.chain(none) {
            let settings = RunSettings {
                model: Some(model.spec.clone()),
                thinking_level: level.cloned(),
            };
            let mut opened = bench.open_with(session(1), Vec::new(), settings).await;
            let prompt = prompts.settings.expect("say how it tells its settings");
            opened.prompt(prompt).await;
            let events = opened.read_to_stop().await;
            let stop = events.last().and_then(stop_of);
            assert_eq!(stop, Some(&StopReason::Completed));
            let said = text_of(&events);
            assert!(said.contains(&model.spec), "{said}");
            assert!(level.is_none_or(|level| said.contains(level)), "{said}");
        }
    }
}
