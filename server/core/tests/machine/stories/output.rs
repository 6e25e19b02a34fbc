//! What the engine says, and what of it is kept.

use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::limits::{MAX_OPEN_BYTES_PER_RUN, MAX_OPEN_PER_RUN};
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::engine::EngineEvent;

use super::story::Story;

/// The entries after the prompt, each in a few words.
fn told(story: &mut Story) -> Vec<String> {
    story.shell.settle_disk();
    let entries = story.shell.store.entries[1..].iter();
    let words = entries.map(|entry| match &entry.body {
        EntryBody::Assistant { message, text, .. } => format!("{message}: {}", text.text),
        EntryBody::Tool {
            call_id,
            name,
            input_json,
            output,
            failed,
            ..
        } => {
            let failed = if *failed { " failed" } else { "" };
            let (input, output) = (&input_json.text, &output.text);
            format!("{call_id} {name} [{input}] [{output}]{failed}")
        }
        EntryBody::Notice { code, .. } => code.clone(),
        EntryBody::User { text, .. } => text.to_string(),
        other => other.kind().to_owned(),
    });
    words.collect()
}

fn finishes_whole(story: &mut Story, message: &str, text: &str) {
    story.says(EngineEvent::MessageFinished {
        message: message.to_owned(),
        text: Some(text.to_owned()),
        usage: Usage {
            output_tokens: Some(1),
            ..Usage::default()
        },
    });
}

#[test]
fn c29_a_finish_whose_start_was_lost_is_kept_with_all_that_it_says() {
    let mut story = Story::working();
    finishes_whole(&mut story, "m", "the answer");
    story.finishes_tool("c");
    assert_eq!(told(&mut story), ["m: the answer", "c unknown [] [done]"]);
    let types = story.news().event_types().join(" ");
    assert!(
        types.contains("message_finished") && types.contains("tool_finished"),
        "{types}"
    );
    assert_eq!(story.stored_run().usage.output_tokens, Some(1));
    story.finishes_message("n", Some(5));
    assert_eq!(told(&mut story).len(), 2, "it says nothing");
    story.stops();
    story.ends();
}

#[test]
fn c29_what_a_repeated_line_says_is_not_kept_twice() {
    let mut story = Story::working();
    story.starts_message("m", "the answer");
    finishes_whole(&mut story, "m", "the answer");
    story.starts_tool("c");
    story.finishes_tool("c");
    let once = told(&mut story);
    story.starts_message("m", "the answer");
    finishes_whole(&mut story, "m", "the answer");
    story.starts_tool("c");
    story.finishes_tool("c");
    assert_eq!(told(&mut story), once);
    // A finish is a repeat in a later turn, too.
    story.says(EngineEvent::TurnStarted);
    finishes_whole(&mut story, "m", "the answer");
    story.finishes_tool("c");
    assert_eq!(told(&mut story), once);
    assert_eq!(story.stored_run().usage.output_tokens, Some(1));
    story.stops();
    story.ends();
}

#[test]
fn c29_an_engine_that_uses_its_ids_again_in_a_later_turn_loses_nothing() {
    let mut story = Story::working();
    for _ in 0..2 {
        story.says(EngineEvent::TurnStarted);
        story.starts_message("m", "said");
        story.finishes_message("m", None);
        story.starts_tool("c");
        story.finishes_tool("c");
        story.says(EngineEvent::TurnFinished);
    }
    let turn = ["m: said", "c shell [{}] [done]"];
    assert_eq!(told(&mut story), [turn, turn].concat());
    story.stops();
    story.ends();
}

#[test]
fn c37_a_tool_that_the_engine_forgot_is_cut_with_its_turn() {
    let mut story = Story::working();
    for turn in 0..=MAX_OPEN_PER_RUN {
        story.says(EngineEvent::TurnStarted);
        story.starts_tool(&format!("c{turn}"));
        story.progresses(&format!("c{turn}"), "so far");
        story.says(EngineEvent::TurnFinished);
    }
    let told_of = told(&mut story);
    assert_eq!(told_of.len(), MAX_OPEN_PER_RUN + 1, "no slot is lost");
    assert_eq!(told_of[0], "c0 shell [{}] [] failed");
    let news = story.news();
    let cut = |body: &&EventBody| matches!(body, EventBody::ToolFinished { failed: true, .. });
    assert_eq!(
        news.events().iter().filter(|body| cut(body)).count(),
        MAX_OPEN_PER_RUN + 1
    );
    story.finishes_tool(&format!("c{MAX_OPEN_PER_RUN}"));
    assert_eq!(told(&mut story), told_of, "it comes too late");
    story.stops();
    story.ends();
}

#[test]
fn c60_the_conversation_says_once_that_more_is_open_than_is_kept() {
    let mut story = Story::working();
    for n in 0..MAX_OPEN_PER_RUN + 2 {
        story.starts_tool(&format!("c{n}"));
    }
    for n in 0..MAX_OPEN_PER_RUN + 2 {
        story.starts_message(&format!("m{n}"), "lost");
    }
    assert_eq!(told(&mut story), ["output_dropped"]);
    finishes_whole(&mut story, &format!("m{MAX_OPEN_PER_RUN}"), "whole");
    story.finishes_tool(&format!("c{MAX_OPEN_PER_RUN}"));
    let kept = told(&mut story);
    assert_eq!(
        kept[1..],
        [
            format!("m{MAX_OPEN_PER_RUN}: whole"),
            format!("c{MAX_OPEN_PER_RUN} unknown [] [done]")
        ],
        "what is whole at its end is kept"
    );
    story.stops();
    story.ends();
}

#[test]
fn c60_all_that_an_engine_has_open_keeps_a_common_bound_and_says_what_went() {
    const SAID: usize = 1024 * 1024;
    let mut story = Story::working();
    let name = |n: usize| format!("m{n}");
    for n in 0..MAX_OPEN_PER_RUN {
        // The invariants see the bytes that are open after every step.
        story.starts_message(&name(n), &"x".repeat(SAID - 3));
        story.continues_message(&name(n), "end");
    }
    for n in 0..MAX_OPEN_PER_RUN {
        story.finishes_message(&name(n), None);
        story.shell.settle_disk();
    }
    let mut kept = 0;
    for entry in &story.shell.store.entries[1..] {
        let EntryBody::Assistant { text, .. } = &entry.body else {
            panic!("{entry:?}");
        };
        assert!(text.text.ends_with("end"), "the tail is what is kept");
        assert_eq!(text.text.len() as u64 + text.omitted_bytes, SAID as u64);
        kept += text.text.len();
    }
    let bound = MAX_OPEN_BYTES_PER_RUN;
    assert!(kept <= bound && kept > bound / 2, "{kept} of {bound}");
    story.stops();
    story.ends();
}
