//! C25: questions that an engine asks, what it is told of them, and what it does then.

use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::Subject;
use super::answers::text_of;
use super::bench::{Bench, Opened, an_answer, asked, stop_of};

/// The names of the questions that were asked, in order.
fn names(events: &[EngineEvent]) -> Vec<String> {
    let name = |event: &EngineEvent| asked(event).map(|(ask, _)| ask.to_owned());
    events.iter().filter_map(name).collect()
}

fn withdrawn(events: &[EngineEvent]) -> Vec<String> {
    let name = |event: &EngineEvent| match event {
        EngineEvent::AskWithdrawn { ask } => Some(ask.clone()),
        _ => None,
    };
    events.iter().filter_map(name).collect()
}

fn completed(bench: &Bench, events: &[EngineEvent]) {
    let stop = events.last().and_then(stop_of);
    if bench.subject.promises.orderly {
        assert_eq!(stop, Some(&StopReason::Completed), "{events:?}");
    } else {
        let lives = bench.subject.promises.lives;
        assert!(stop.is_some() || !lives, "it did not stop");
    }
}

/// Opens it and gives it a prompt.
async fn begin(bench: &Bench, prompt: &str) -> Opened {
    let mut opened = bench.open().await;
    opened.prompt(prompt).await;
    opened
}

pub(crate) async fn c25_it_is_told_the_answer(subject: Subject) {
    let bench = Bench::new(subject);
    let Some(prompt) = bench.subject.prompts.asks else {
        let kinds = &bench.subject.capabilities.interactions;
        assert!(kinds.is_empty(), "say how to make it ask");
        return;
    };
    let mut opened = begin(&bench, prompt).await;
    let events = opened.read_answering().await;
    completed(&bench, &events);
    if bench.subject.promises.orderly {
        assert!(!names(&events).is_empty(), "it asked nothing");
        assert_eq!(withdrawn(&events), [""; 0], "it did not hear the answer");
        assert_eq!(opened.read_at_rest().await, []);
    }
}

/// Who expired, or may not ask, is told so: it must not wait for ever.
pub(crate) async fn c25_it_is_told_that_nobody_answers(subject: Subject) {
    let bench = Bench::new(subject);
    let Some(prompt) = bench.subject.prompts.asks else {
        return;
    };
    let mut opened = begin(&bench, prompt).await;
    let mut events = Vec::new();
    loop {
        let read = opened.read_to(|event| asked(event).is_some()).await;
        let ask = names(&read).pop();
        events.extend(read);
        match ask {
            Some(ask) => opened.answer(&ask, None).await,
            None => break,
        }
    }
    completed(&bench, &events);
    if bench.subject.promises.orderly {
        assert_eq!(withdrawn(&events), [""; 0], "it did not hear it");
    }
}

pub(crate) async fn c25_several_questions_are_answered_in_another_order(subject: Subject) {
    let bench = Bench::new(subject);
    let Some(prompt) = bench.subject.prompts.asks_three else {
        return;
    };
    let mut opened = begin(&bench, prompt).await;
    let pending = opened.read_at_rest().await;
    let mut open: Vec<_> = pending.iter().filter_map(asked).collect();
    assert_eq!(open.len(), 3, "all three wait: {pending:?}");
    assert_eq!(pending.iter().find_map(stop_of), None);
    open.reverse();
    for (ask, question) in &open {
        opened.answer(ask, an_answer(question)).await;
    }
    let events = opened.read_to_stop().await;
    completed(&bench, &events);
    let said = text_of(&events);
    let at: Vec<_> = open.iter().map(|(ask, _)| said.find(*ask)).collect();
    assert!(at.iter().all(Option::is_some), "{said}");
    assert!(at.is_sorted(), "not in the order of the answers: {said}");
}

pub(crate) async fn c25_a_withdrawn_question_takes_no_answer(subject: Subject) {
    let bench = Bench::new(subject);
    let Some(prompt) = bench.subject.prompts.withdraws else {
        return;
    };
    let mut opened = begin(&bench, prompt).await;
    let taken_back = |event: &EngineEvent| matches!(event, EngineEvent::AskWithdrawn { .. });
    let mut events = opened.read_to(taken_back).await;
    if bench.subject.promises.orderly {
        let back = withdrawn(&events).pop().expect("it takes a question back");
        let question = events.iter().rev().find_map(asked);
        let (_, question) = question.expect("it asked before");
        assert_eq!(names(&events).pop().as_ref(), Some(&back));
        // It crossed with the withdrawal.
        opened.answer(&back, an_answer(question)).await;
    }
    events.extend(opened.read_to_stop().await);
    completed(&bench, &events);
    if bench.subject.promises.orderly {
        // What is asked later is not taken for answered.
        let unanswered = names(&events).len();
        assert!(withdrawn(&events).len() + 1 >= unanswered, "{events:?}");
        assert_eq!(opened.read_at_rest().await, []);
    }
}
