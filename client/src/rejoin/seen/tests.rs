//! What a replay adds, and what it must not.

use sessionplane_core::domain::interaction::{
    Interaction, Question, Resolution, ResolutionCause, Shape,
};
use sessionplane_core::domain::time::Timestamp;

use super::*;

fn delta(message: &str, text: &str) -> InvokeEvent {
    InvokeEvent::Delta {
        message: message.to_owned(),
        channel: OutputChannel::Text,
        text: text.to_owned(),
    }
}

fn tool(call: &str) -> InvokeEvent {
    InvokeEvent::ToolStarted {
        call: call.to_owned(),
        name: "sh".to_owned(),
        input_json: sessionplane_core::domain::text::BoundedText::default(),
    }
}

fn text_of(seen: &mut Seen, events: impl IntoIterator<Item = InvokeEvent>) -> String {
    let new = events.into_iter().filter_map(|event| seen.admit(event));
    new.map(|event| match event {
        InvokeEvent::Delta { text, .. } => text,
        InvokeEvent::ToolStarted { call, .. } => format!("[{call}]"),
        _ => "~".to_owned(),
    })
    .collect()
}

#[test]
fn c12_a_replay_adds_only_what_is_new() {
    let mut seen = Seen::default();
    let first = [delta("a", "one "), tool("t1"), delta("b", "tw")];
    assert_eq!(text_of(&mut seen, first.clone()), "one [t1]tw");
    seen.replay();
    let more = [delta("b", "o "), tool("t2"), delta("c", "three")];
    let again = first.into_iter().chain(more);
    assert_eq!(text_of(&mut seen, again), "o [t2]three");
    assert_eq!(seen.text("b"), Some(4));
}

#[test]
fn c12_after_a_loss_only_the_message_that_was_cut_may_repeat() {
    let mut seen = Seen::default();
    text_of(
        &mut seen,
        [delta("a", "one "), delta("b", "two "), delta("c", "thr")],
    );
    seen.replay();
    let again = [
        InvokeEvent::Resumed { skipped: 2 },
        delta("b", "wo "),
        delta("c", "thr"),
        delta("c", "ee"),
    ];
    assert_eq!(text_of(&mut seen, again), "~wo ee");
    assert_eq!(seen.text("b"), None);
    assert_eq!(seen.text("c"), Some(5));
}

#[test]
fn a_replay_that_stops_before_what_was_seen_is_no_replay() {
    let mut seen = Seen::default();
    text_of(&mut seen, [delta("a", "one "), delta("b", "two")]);
    seen.replay();
    assert!(seen.lacks_its_replay(), "nothing was told again");
    text_of(&mut seen, [delta("a", "one ")]);
    assert!(seen.lacks_its_replay(), "half was told again");
    text_of(&mut seen, [delta("b", "two")]);
    assert!(!seen.lacks_its_replay());
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut seen = Seen::default();
    for message in 0..REMEMBERED * 2 {
        seen.admit(delta(&message.to_string(), "x"));
    }
    assert_eq!(seen.messages.all.len(), REMEMBERED);
}

#[test]
fn c12_a_replay_of_more_than_is_remembered_tells_nothing_twice() {
    let mut seen = Seen::default();
    let many = REMEMBERED + 3;
    let all = || (0..many).flat_map(|n| [delta(&n.to_string(), "x"), tool(&n.to_string())]);
    assert_eq!(text_of(&mut seen, all()).matches('x').count(), many);
    for _ in 0..2 {
        seen.replay();
        let more = [delta("new", "y"), tool("t")];
        let again = text_of(&mut seen, all().chain(more));
        assert!(
            ["y[t]", ""].contains(&again.as_str()),
            "{} bytes",
            again.len()
        );
    }
    seen.replay();
    let cut = [
        InvokeEvent::Resumed { skipped: 1 },
        delta("unheard of", "z"),
    ];
    assert_eq!(text_of(&mut seen, cut), "~z", "rather twice than never");
}

#[test]
fn c25_b33_a_question_that_a_replay_tells_again_is_told_once() {
    let id = InteractionId {
        run: "01K00000000000000000000002".parse().unwrap(),
        ordinal: 1,
    };
    let requested = InvokeEvent::InteractionRequested {
        interaction: Box::new(Interaction {
            id,
            question: Question {
                title: "Go on?".to_owned(),
                details: String::new(),
                shape: Shape::Confirm,
                default: None,
            },
            asked_at: Timestamp::from_millis(1),
            deadline: None,
            resolution: None,
        }),
    };
    let resolved = InvokeEvent::InteractionResolved {
        id,
        resolution: Box::new(Resolution {
            at: Timestamp::from_millis(2),
            cause: ResolutionCause::Expired,
            answer: None,
            origin: None,
        }),
    };
    let mut seen = Seen::default();
    assert!(seen.admit(requested.clone()).is_some());
    seen.replay();
    assert_eq!(seen.admit(requested.clone()), None);
    assert!(seen.admit(resolved.clone()).is_some(), "its end is news");
    seen.replay();
    assert_eq!(seen.admit(requested), None);
    assert_eq!(seen.admit(resolved), None);
}
