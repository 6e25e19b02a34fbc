//! What a list of events says under filters.

use std::collections::BTreeSet;

use sessionplane_core::domain::entry::{Entry, PathMarks};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::event::EventEnvelope;
use sessionplane_core::domain::text::BoundedText;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;

use super::*;

fn log(types: &[&str]) -> Log {
    let filter = EventFilter {
        types: types.iter().map(|&name| name.to_owned()).collect(),
        no_thinking: false,
    };
    Log::of(&filter, None, WIDTH)
}

/// Those of a message's and a tool call's events that a filter lets through, from their middle on
/// or from their beginning, as a list shows them.
fn shown(types: &[&str], from_the_middle: bool) -> String {
    let wanted: BTreeSet<_> = types.iter().copied().collect();
    let all = events();
    let mut log = log(types);
    let begins = |body: &EventBody| {
        matches!(
            body,
            EventBody::MessageStarted { .. } | EventBody::ToolStarted { .. }
        )
    };
    let events = all
        .into_iter()
        .filter(|body| wanted.is_empty() || wanted.contains(body.event_type()))
        .filter(|body| !(from_the_middle && begins(body)));
    let lines = events.flat_map(|body| log.lines(&item(body)));
    lines.map(|line| line + "\n").collect()
}

fn item(body: EventBody) -> WatchItem {
    WatchItem::Event(EventEnvelope {
        session: "01K00000000000000000000001".parse().unwrap(),
        epoch: 1,
        seq: 7,
        event: Event {
            at: Timestamp::default(),
            run: Some("01K00000000000000000000002".parse().unwrap()),
            body,
        },
    })
}

fn appended(seq: u64, parent: u64, body: EntryBody) -> EventBody {
    let id = |seq: u64| format!("01K00000000000000000000001-{seq}").parse().unwrap();
    EventBody::EntryAppended {
        entry: Box::new(Entry {
            id: id(seq),
            parent: Some(id(parent)),
            run: Some("01K00000000000000000000002".parse().unwrap()),
            path: PathMarks::default(),
            at: Timestamp::default(),
            body,
        }),
    }
}

fn events() -> Vec<EventBody> {
    let text = |text: &str| BoundedText::new(text, 100);
    vec![
        EventBody::MessageStarted {
            message: "m1".to_owned(),
        },
        EventBody::MessageDelta {
            message: "m1".to_owned(),
            channel: OutputChannel::Text,
            text: "one ".into(),
        },
        EventBody::MessageDelta {
            message: "m1".to_owned(),
            channel: OutputChannel::Text,
            text: "two".into(),
        },
        EventBody::MessageFinished {
            message: "m1".to_owned(),
        },
        appended(
            2,
            1,
            EntryBody::Assistant {
                message: "m1".to_owned(),
                model: None,
                text: text("one two"),
                thinking: BoundedText::default(),
                partial: false,
                usage: Usage::default(),
            },
        ),
        EventBody::ToolStarted {
            call: "t1".to_owned(),
            name: "sh".to_owned(),
            input_json: text("{}"),
        },
        EventBody::ToolProgress {
            call: "t1".to_owned(),
            output: text("half\n"),
        },
        EventBody::ToolFinished {
            call: "t1".to_owned(),
            failed: true,
            output: text("half\nall\n"),
            artifact: None,
        },
        appended(
            3,
            2,
            EntryBody::Tool {
                call_id: "t1".to_owned(),
                name: "sh".to_owned(),
                input_json: text("{}"),
                output: text("half\nall\n"),
                failed: true,
                artifact: None,
            },
        ),
    ]
}

#[test]
fn c32_a_filter_for_pieces_of_messages_shows_each_of_them() {
    let pieces = "7 message_delta text one\n7 message_delta text two\n";
    assert_eq!(shown(&["message_delta"], false), pieces);
    let with_ends = shown(&["message_delta", "message_started"], true);
    assert_eq!(with_ends, pieces, "no entry will tell them");
    let ends = shown(&["message_finished"], false);
    assert_eq!(ends, "7 message_finished m1\n");
}

#[test]
fn c32_a_filter_for_a_tools_progress_or_end_shows_its_output_and_its_failure() {
    let progress = shown(&["tool_progress"], false);
    assert_eq!(progress, "7 tool_progress t1 half\n");
    let end = "7 tool_finished t1 failed: all\n";
    assert_eq!(shown(&["tool_finished"], false), end);
    assert_eq!(shown(&["tool_finished", "tool_started"], true), end);
}

#[test]
fn c32_a_filter_for_entries_shows_them_whole_unless_all_of_it_was_shown_live() {
    for types in [
        &["entry_appended"][..],
        &["entry_appended", "message_started", "tool_started"],
        &["entry_appended", "message_started", "message_finished"],
        &["entry_appended", "message_delta", "tool_progress"],
    ] {
        let shown = shown(types, false);
        assert!(shown.contains("\n  one two\n"), "{types:?}: {shown}");
        assert!(shown.contains("\n  half\n  all\n"), "{types:?}: {shown}");
    }
    let all = shown(&[], false);
    assert_eq!(all.matches("one two").count(), 0, "told live: {all}");
    let late = shown(&[], true);
    assert!(late.contains(JOINED_MESSAGE), "{late}");
    assert_eq!(
        late.matches("one two").count(),
        0,
        "nothing of it was missed: {late}"
    );
    let whole = late_by_a_piece(&[]);
    assert!(
        whole.starts_with(&format!("{JOINED_MESSAGE}\n7 message_delta text two\n")),
        "told as it comes: {whole}"
    );
    assert!(whole.contains("\n-- the whole message --\n"), "{whole}");
    assert_eq!(whole.matches("one two").count(), 1, "{whole}");
}

/// What a list shows to somebody who came after a message's first piece.
fn late_by_a_piece(types: &[&str]) -> String {
    let mut log = log(types);
    let lines = events()
        .into_iter()
        .skip(2)
        .flat_map(|body| log.lines(&item(body)));
    lines.map(|line| line + "\n").collect()
}

#[test]
fn c24_an_entry_on_another_branch_says_what_it_follows() {
    let notice = || EntryBody::Notice {
        code: "n".to_owned(),
        text: String::new(),
    };
    let mut log = log(&[]);
    log.lines(&item(appended(5, 4, notice())));
    let lines = log.lines(&item(appended(6, 5, notice())));
    assert!(!lines.concat().contains("after entry"), "{lines:?}");
    let lines = log.lines(&item(appended(7, 2, notice())));
    assert_eq!(lines[1], "-- after entry 2 --");
}

#[test]
fn an_event_is_cut_for_a_terminal_only() {
    let long = || EventBody::ServingError {
        reason: "x".repeat(200),
    };
    assert_eq!(log(&[]).lines(&item(long()))[0].chars().count(), WIDTH);
    let mut whole = Log::of(&EventFilter::default(), None, usize::MAX);
    assert!(whole.lines(&item(long()))[0].ends_with(&"x".repeat(200)));
}

#[test]
fn the_reason_of_a_lost_connection_is_told_whole() {
    let reason =
        "this server is stopping, and the session has no run to be watched; subscribe again";
    let line = connection_line(&WatchItem::Reconnecting {
        attempt: 1,
        delay: std::time::Duration::ZERO,
        error: CallError::refused(Reason::Transport, reason),
    });
    let line = line.unwrap();
    assert!(
        line.lines().all(|line| line.chars().count() <= WIDTH),
        "{line}"
    );
    assert!(line.replace("\n ", "").contains(reason), "{line}");
}
