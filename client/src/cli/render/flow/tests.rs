//! What a person sees of a run, whenever they came.

use sessionplane_core::domain::entry::PathMarks;
use sessionplane_core::domain::settings::{Resolved, SettingsOverride};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;

use super::*;

fn delta(channel: OutputChannel, text: &str) -> InvokeEvent {
    InvokeEvent::Delta {
        message: "m1".to_owned(),
        channel,
        text: text.to_owned(),
    }
}

#[test]
fn thinking_is_never_part_of_the_answer() {
    let mut flow = Flow::default();
    let events = [
        delta(OutputChannel::Thinking, "hm"),
        delta(OutputChannel::Text, "yes"),
    ];
    let pieces: Vec<_> = events
        .iter()
        .flat_map(|event| flow.invoked(event))
        .collect();
    assert_eq!(
        pieces,
        [
            Piece::Aside("hm".to_owned()),
            Piece::Break,
            Piece::Answer("yes".to_owned()),
        ]
    );
}

/// A question is told as asked and as answered once that is durable: a text that a program reads is not
/// broken by it.
#[test]
fn c25_what_becomes_of_a_question_in_the_midst_of_a_text_does_not_break_the_text() {
    use sessionplane_core::domain::interaction::{Resolution, ResolutionCause};
    let mut flow = Flow::default();
    let resolved = InvokeEvent::InteractionResolved {
        id: "01ARZ3NDEKTSV4RRFFQ69G5FAV-q1".parse().unwrap(),
        resolution: Box::new(Resolution {
            at: Timestamp::default(),
            cause: ResolutionCause::Aborted,
            answer: None,
            origin: None,
        }),
    };
    let events = [
        delta(OutputChannel::Text, "I turn "),
        resolved,
        delta(OutputChannel::Text, "to the log"),
    ];
    let pieces: Vec<_> = events
        .iter()
        .flat_map(|event| flow.invoked(event))
        .collect();
    assert!(!pieces.contains(&Piece::Break), "{pieces:?}");
    let text: String = pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Answer(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, "I turn to the log");
    assert!(matches!(&pieces[1], Piece::Aside(line) if line.contains("-q1")));
}

#[test]
fn a_tool_interrupts_the_text_and_shows_its_end() {
    let mut flow = Flow::default();
    let output = (1..=8).map(|n| format!("line {n}")).collect::<Vec<_>>();
    let events = [
        delta(OutputChannel::Text, "let me look"),
        InvokeEvent::ToolStarted {
            call: "t1".to_owned(),
            name: "sh".to_owned(),
            input_json: BoundedText::new(&format!("{{\"cmd\":\"{}\"}}", "x".repeat(90)), 4096),
        },
        InvokeEvent::ToolEnded {
            call: "t1".to_owned(),
            failed: true,
            output: BoundedText::new(&output.join("\n"), 4096),
            artifact: None,
        },
    ];
    let pieces = events.iter().flat_map(|event| flow.invoked(event));
    let said: String = pieces
        .map(|piece| match piece {
            Piece::Answer(text)
            | Piece::Prose(text)
            | Piece::Aside(text)
            | Piece::Question(text) => text,
            Piece::Break => "\n".to_owned(),
        })
        .collect();
    insta::assert_snapshot!(said);
}

fn run() -> RunId {
    "01K00000000000000000000002".parse().unwrap()
}

fn event(body: EventBody) -> Event {
    Event {
        at: Timestamp::default(),
        run: Some(run()),
        body,
    }
}

fn appended(seq: u64, body: EntryBody) -> Event {
    let entry = Entry {
        id: format!("01K00000000000000000000001-{seq}").parse().unwrap(),
        parent: format!("01K00000000000000000000001-{}", seq - 1)
            .parse()
            .ok(),
        run: Some(run()),
        path: PathMarks::default(),
        at: Timestamp::default(),
        body,
    };
    event(EventBody::EntryAppended {
        entry: Box::new(entry),
    })
}

fn message_entry(partial: bool) -> Event {
    let body = EntryBody::Assistant {
        message: "m1".to_owned(),
        model: None,
        text: BoundedText::new("the whole\n", 100),
        thinking: BoundedText::default(),
        partial,
        usage: Usage::default(),
    };
    appended(2, body)
}

fn tool_entry() -> Event {
    let body = EntryBody::Tool {
        call_id: "t1".to_owned(),
        name: "sh".to_owned(),
        input_json: BoundedText::new("{}", 100),
        output: BoundedText::new("one\ntwo\n", 100),
        failed: false,
        artifact: None,
    };
    appended(3, body)
}

fn piece_of(text: &str) -> Event {
    event(EventBody::MessageDelta {
        message: "m1".to_owned(),
        channel: OutputChannel::Text,
        text: text.into(),
    })
}

fn message(start: bool) -> Event {
    let message = "m1".to_owned();
    event(if start {
        EventBody::MessageStarted { message }
    } else {
        EventBody::MessageFinished { message }
    })
}

fn tool_started() -> Event {
    event(EventBody::ToolStarted {
        call: "t1".to_owned(),
        name: "sh".to_owned(),
        input_json: BoundedText::new("{}", 100),
    })
}

fn progress(output: &str) -> Event {
    event(EventBody::ToolProgress {
        call: "t1".to_owned(),
        output: BoundedText::new(output, 100),
    })
}

fn tool_finished() -> Event {
    event(EventBody::ToolFinished {
        call: "t1".to_owned(),
        failed: false,
        output: BoundedText::new("one\ntwo\n", 100),
        artifact: None,
    })
}

fn shown(flow: &mut Flow, events: impl IntoIterator<Item = Event>) -> String {
    let pieces = events.into_iter().flat_map(|event| flow.observed(&event));
    let said = pieces.map(|piece| match piece {
        Piece::Answer(text) | Piece::Prose(text) | Piece::Aside(text) | Piece::Question(text) => {
            text
        }
        Piece::Break => "|".to_owned(),
    });
    said.collect()
}

#[test]
fn for_a_person_a_text_comes_block_by_block_and_its_last_line_is_under_way() {
    let mut flow = Flow::attended(true, None);
    let prose = |text: &str| Piece::Prose(text.to_owned());
    flow.observed(&message(true));
    assert_eq!(flow.observed(&piece_of("# One\n\nT")), [prose("# One\n\n")]);
    assert_eq!(flow.observed(&piece_of("wo wor")), []);
    assert_eq!(flow.under_way(), Some("Two wor"));
    assert_eq!(flow.observed(&message(false)), [prose("Two wor")]);
    assert_eq!(flow.under_way(), None);
    flow.observed(&tool_started());
    flow.observed(&progress("1/3\n2/3\n"));
    assert_eq!(flow.under_way(), Some("* sh: 2/3"));
    flow.observed(&tool_finished());
    assert_eq!(flow.under_way(), None);
}

#[test]
fn for_a_person_thinking_comes_line_by_line() {
    let mut flow = Flow::attended(true, None);
    let thinking = |text: &str| {
        event(EventBody::MessageDelta {
            message: "m1".to_owned(),
            channel: OutputChannel::Thinking,
            text: text.into(),
        })
    };
    let aside = |text: &str| Piece::Aside(text.to_owned());
    flow.observed(&message(true));
    assert_eq!(flow.observed(&thinking("let me")), []);
    assert_eq!(flow.under_way(), Some("let me"));
    assert_eq!(
        flow.observed(&thinking(" see\nif")),
        [aside("let me see\n")]
    );
    let long = "x".repeat(LINE_BYTES);
    assert_eq!(
        flow.observed(&thinking(&long)),
        [aside(&format!("if{long}"))]
    );
    flow.observed(&thinking("end"));
    assert_eq!(flow.observed(&message(false)), [aside("end")]);
}

#[test]
fn a_text_that_another_piece_interrupts_is_given_out_first() {
    let mut flow = Flow::attended(true, None);
    flow.observed(&message(true));
    flow.observed(&piece_of("let me look"));
    let pieces = flow.observed(&tool_started());
    assert_eq!(pieces[0], Piece::Prose("let me look".to_owned()));
    assert_eq!(pieces[1], Piece::Break);
}

#[test]
fn what_began_before_is_shown_as_it_comes_and_then_whole_by_its_entry() {
    let events = [
        piece_of("wh"),
        piece_of("ole\n"),
        message(false),
        message_entry(false),
        progress("one\n"),
        progress("one\ntwo\n"),
        tool_finished(),
        tool_entry(),
    ];
    assert_eq!(
        shown(&mut Flow::default(), events),
        "… joined in the middle of a message\nwhole\n|-- the whole message --\n|the whole\n\
         … joined in the middle of tool call t1: one\n|* sh {}\n  one\n  two\n"
    );
}

#[test]
fn what_was_shown_from_its_beginning_is_not_shown_again() {
    let all = [
        message(true),
        piece_of("the whole\n"),
        message(false),
        message_entry(false),
        tool_started(),
        progress("one\n"),
        tool_finished(),
        tool_entry(),
    ];
    let mut flow = Flow::default();
    let once = "the whole\n|* sh {}\n  one\n  two\n";
    assert_eq!(shown(&mut flow, all), once);
    flow.forget();
    let again = [message_entry(false), tool_entry()];
    assert_eq!(shown(&mut flow, again), "", "it had ended before the loss");
}

#[test]
fn a_tools_result_is_shown_once_whichever_tells_it_first() {
    let events = [tool_started(), tool_entry(), tool_finished()];
    assert_eq!(
        shown(&mut Flow::default(), events),
        "* sh {}\n  one\n  two\n"
    );
}

#[test]
fn a_message_that_was_lost_in_the_middle_is_shown_whole() {
    let mut flow = Flow::default();
    shown(&mut flow, [message(true), piece_of("the ")]);
    flow.forget();
    let rest = shown(&mut flow, [piece_of("hole\n"), message_entry(false)]);
    assert_eq!(
        rest,
        "… joined in the middle of a message\nhole\n|-- the whole message --\n|the whole\n"
    );
}

#[test]
fn a_message_whose_end_was_missed_is_shown_whole_and_said_to_be() {
    let mut flow = Flow::default();
    shown(&mut flow, [message(true), piece_of("the ")]);
    flow.forget();
    assert_eq!(
        shown(&mut flow, [message_entry(false)]),
        "-- the whole message --\n|the whole\n"
    );
    assert_eq!(shown(&mut flow, [message_entry(false)]), "", "once");
}

#[test]
fn a_message_of_which_nothing_but_its_beginnings_mark_was_missed_is_not_shown_again() {
    let events = [piece_of("the "), piece_of("whole\n"), message_entry(true)];
    assert_eq!(
        shown(&mut Flow::default(), events),
        "… joined in the middle of a message\nthe whole\n|(cut off)\n"
    );
}

#[test]
fn for_a_person_what_was_joined_in_the_middle_comes_line_by_line_as_it_is() {
    let mut flow = Flow::attended(true, None);
    let mark = Piece::Aside("… joined in the middle of a message\n".to_owned());
    assert_eq!(flow.observed(&piece_of("e();")), [mark]);
    assert_eq!(flow.under_way(), Some("e();"));
    let line = Piece::Answer("e();\n".to_owned());
    assert_eq!(flow.observed(&piece_of("\n```")), [line]);
    let pieces = flow.observed(&message(false));
    assert_eq!(pieces, [Piece::Answer("```".to_owned())]);
    let pieces = flow.observed(&message_entry(false));
    let whole = Piece::Prose("the whole\n".to_owned());
    assert_eq!(pieces.last(), Some(&whole), "laid out: {pieces:?}");
    assert!(pieces.contains(&Piece::Aside("-- the whole message --\n".to_owned())));
}

#[test]
fn a_message_that_was_cut_off_says_so() {
    let events = [message(true), piece_of("the wh"), message_entry(true)];
    assert_eq!(shown(&mut Flow::default(), events), "the wh|(cut off)\n");
}

#[test]
fn a_tool_that_never_came_back_is_marked_when_the_run_settles() {
    let mut flow = Flow::default();
    let started = InvokeEvent::ToolStarted {
        call: "t1".to_owned(),
        name: "sh".to_owned(),
        input_json: BoundedText::new("{}", 100),
    };
    let aborted = InvokeEvent::Failed {
        code: "aborted".to_owned(),
        details: String::new(),
        retryable: false,
        run: None,
    };
    flow.invoked(&started);
    let mark = Piece::Aside("* sh (not finished)\n".to_owned());
    assert_eq!(flow.invoked(&aborted), [mark]);
    assert_eq!(flow.invoked(&aborted), [], "once");
}

#[test]
fn a_result_that_does_not_follow_its_tools_line_has_one_of_its_own() {
    let other = event(EventBody::ToolStarted {
        call: "t2".to_owned(),
        name: "read".to_owned(),
        input_json: BoundedText::new("{}", 100),
    });
    let events = [tool_started(), other, tool_finished()];
    assert_eq!(
        shown(&mut Flow::default(), events),
        "* sh {}\n* read {}\n* sh\n  one\n  two\n"
    );
}

#[test]
fn a_tool_whose_end_was_missed_is_told_by_its_entry_or_marked() {
    let mut flow = Flow::default();
    shown(&mut flow, [tool_started()]);
    flow.forget();
    assert_eq!(shown(&mut flow, [tool_entry()]), "  one\n  two\n");
    let mut flow = Flow::default();
    shown(&mut flow, [tool_started()]);
    flow.forget();
    let mark = Piece::Aside("* sh (not finished)\n".to_owned());
    assert_eq!(flow.missed_end(run()), [mark]);
}

fn on_branch(seq: u64, parent: u64) -> Event {
    let notice = EntryBody::Notice {
        code: "n".to_owned(),
        text: seq.to_string(),
    };
    let mut event = appended(seq, notice);
    if let EventBody::EntryAppended { entry } = &mut event.body {
        entry.parent = format!("01K00000000000000000000001-{parent}").parse().ok();
    }
    event
}

fn state_changed(leaf: u64, model: &str) -> Event {
    let mut resolved = Resolved::default();
    resolved.settings.model = Some(model.to_owned());
    event(EventBody::StateChanged {
        leaf: format!("01K00000000000000000000001-{leaf}").parse().ok(),
        chosen: SettingsOverride::default(),
        resolved,
        renamed: None,
    })
}

#[test]
fn c45_a_transcript_says_that_its_session_has_another_name() {
    let renamed = |to: Option<&str>| {
        let mut event = state_changed(4, "m1");
        if let EventBody::StateChanged { renamed, .. } = &mut event.body {
            *renamed = Some(to.map(|name| name.parse().unwrap()));
        }
        event
    };
    let mut flow = Flow::attended(false, None);
    shown(&mut flow, [on_branch(4, 3), state_changed(4, "m1")]);
    assert_eq!(
        shown(&mut flow, [renamed(Some("guide")), renamed(None)]),
        "! the session is named guide now\n! the session has no name any more\n"
    );
}

#[test]
fn c24_a_transcript_says_where_it_goes_on_from_another_entry_and_with_what() {
    let mut flow = Flow::attended(false, None);
    let known = shown(&mut flow, [on_branch(4, 3), state_changed(4, "m1")]);
    assert_eq!(known, "|! n: 4\n! model m1\n");
    assert_eq!(shown(&mut flow, [state_changed(4, "m1")]), "", "no news");
    assert_eq!(
        shown(&mut flow, [on_branch(5, 4), state_changed(5, "m2")]),
        "|! n: 5\n! model m2\n"
    );
    let navigated = [state_changed(2, "m1"), on_branch(6, 2), on_branch(7, 6)];
    assert_eq!(
        shown(&mut flow, navigated),
        "! at entry 2, model m1\n-- after entry 2 --\n|! n: 6\n|! n: 7\n"
    );
}
