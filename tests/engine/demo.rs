//! What a newcomer sees of the demo agent: stories on a small folder.

#[path = "demo/naming.rs"]
mod naming;
#[path = "demo/places.rs"]
mod places;
#[path = "demo/questions.rs"]
mod questions;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::capabilities::{Capabilities, SandboxLevel, Steering};
use sessionplane_core::domain::compaction::CompactionTrigger;
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::interaction::{InteractionAnswer, InteractionKind, Shape};
use sessionplane_core::domain::provenance::Channel;
use sessionplane_core::domain::text::BoundedText;
use sessionplane_core::ports::clock::Clock as _;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};
use sessionplane_server::adapters::engine::demo::{DemoEngine, Pace};
use tempfile::TempDir;

use crate::suite::bench::{Bench, Opened, asked, conversation, conversation_of, session, stop_of};
use crate::suite::{Patience, Promises, Prompts, Subject};

/// A folder about a harbour.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [
        ("README.md", "# Harbour\n\nKeeps boats apart.\n"),
        (
            "src/gate.rs",
            "//! The harbour gate.\n\npub struct Gate;\n\nimpl Gate {\n    /// Paints the harbour gate, \
             once a year.\n    pub fn paint(&self) {\n        let gate = \"red\";\n    }\n}\n",
        ),
        (
            "src/boats/crew.rs",
            "/// Paints boats.\nfn crew() {\n    // a boat has a crew\n}\n",
        ),
        (
            "docs/gate.md",
            "# Gates\n\nA gate is painted by its keeper.\n",
        ),
        ("target/gate.rs", "harbour gate painted\n"),
    ];
    for (path, text) in files {
        write(folder.path(), path, text);
    }
    folder
}

/// The same with two files of one name.
fn with_twins() -> TempDir {
    let folder = folder();
    write(folder.path(), "north/port.rs", "fn north() {}\n");
    write(folder.path(), "south/port.rs", "fn south() {}\n");
    folder
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    fs::write(path, text).expect("written");
}

/// The demo agent on a folder, at a pace.
fn on(folder: TempDir, pace: Pace) -> Subject {
    Subject {
        factory: Box::new(move |clock, spawner| {
            let engine = DemoEngine::in_folder(folder.path(), clock, spawner);
            Arc::new(engine.expect("a folder").at_pace(pace))
        }),
        capabilities: Capabilities {
            steering: Some(Steering {
                after_tools: true,
                preempts_text: false,
            }),
            follow_up: true,
            tool_progress: true,
            navigate: true,
            interactions: [InteractionKind::Select].into(),
            sandbox: SandboxLevel::Confined,
            ..Capabilities::default()
        },
        prompts: Prompts {
            plain: "where is the harbour gate painted?",
            long_text: Some("where is the harbour gate painted?"),
            overflows: Some("where is the harbour gate painted?"),
            too_long: None,
            long_tool: Some("where is the harbour gate painted?"),
            steerable: Some("where is the harbour gate painted?"),
            steer: "also boats",
            asks: Some("show port.rs"),
            ..Prompts::default()
        },
        promises: Promises::ALL,
        patience: Patience::VIRTUAL,
    }
}

/// The demo agent as the suite tries it: at a pace at which it can be interrupted.
pub(crate) fn subject() -> Subject {
    let delta = Duration::from_millis(20);
    let tool = Duration::from_secs(1);
    on(with_twins(), Pace { delta, tool })
}

/// Asks, and returns everything that was said and done.
async fn ask(opened: &mut Opened, text: &str) -> Vec<EngineEvent> {
    opened.prompt(text).await;
    let events = opened.read_to_stop().await;
    assert_eq!(
        events.last().and_then(stop_of),
        Some(&StopReason::Completed)
    );
    events
}

fn said(events: &[EngineEvent]) -> String {
    let said = |event: &EngineEvent| match event {
        EngineEvent::MessageDelta {
            channel: OutputChannel::Text,
            text,
            ..
        } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(said).collect()
}

fn tools(events: &[EngineEvent]) -> Vec<(String, String)> {
    let tool = |event: &EngineEvent| match event {
        EngineEvent::ToolStarted {
            name, input_json, ..
        } => Some((name.clone(), input_json.clone())),
        _ => None,
    };
    events.iter().filter_map(tool).collect()
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_with_places_and_lines() {
    let bench = Bench::new(on(folder(), Pace::NONE));
    let mut opened = bench.open().await;
    let events = ask(&mut opened, "Where is the harbour gate painted?").await;
    let answer = said(&events);
    assert!(
        answer.starts_with("The best place is `src/gate.rs:6` (in `fn paint`):"),
        "{answer}"
    );
    assert!(
        answer.contains(">  6 |     /// Paints the harbour gate, once a year."),
        "{answer}"
    );
    assert!(answer.contains("`docs/gate.md:3`"), "{answer}");
    assert!(answer.contains("I am no language model"), "{answer}");
    assert!(
        !answer.contains("target/gate.rs"),
        "what is built was searched: {answer}"
    );
    let names: Vec<String> = tools(&events).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names[..2], ["list", "search"]);
    assert!(names[2..].iter().all(|name| name == "read"));
    assert!(
        events
            .iter()
            .any(|event| matches!(event, EngineEvent::ToolProgress { .. }))
    );
    let thinks = |event: &EngineEvent| {
        matches!(
            event,
            EngineEvent::MessageDelta {
                channel: OutputChannel::Thinking,
                ..
            }
        )
    };
    assert!(events.iter().any(thinks), "it does not tell its plan");
}

#[tokio::test(start_paused = true)]
async fn a_steer_between_tools_narrows_the_search_and_it_says_so() {
    let bench = Bench::new(subject());
    let mut opened = bench.open().await;
    opened.prompt("where is the harbour gate painted?").await;
    let searches = |event: &EngineEvent| matches!(event, EngineEvent::ToolStarted { name, .. } if name == "search");
    opened.read_to(searches).await;
    let input = opened.input(1);
    opened.steer("look in docs", input).await;
    let events = opened.read_to_stop().await;
    let answer = said(&events);
    assert!(answer.starts_with("I look only in `docs`."), "{answer}");
    assert!(
        answer.contains("`docs/gate.md:3`") && !answer.contains("src/gate.rs"),
        "{answer}"
    );
    let (name, arguments) = &tools(&events)[0];
    assert_eq!(name, "search", "it looks again at once");
    assert!(arguments.contains("\"in\":[\"docs\"]"), "{arguments}");
}

#[tokio::test(start_paused = true)]
async fn a_follow_up_and_a_reopened_session_remember_what_it_was_about() {
    let bench = Bench::new(on(folder(), Pace::NONE));
    let mut opened = bench.open().await;
    ask(&mut opened, "where is the gate painted?").await;
    let input = opened.input(1);
    opened.follow_up("and what about boats?", input).await;
    let answer = said(&opened.read_to_stop().await);
    assert!(
        answer.starts_with("I keep in mind what we had: `gate` and `painted`."),
        "{answer}"
    );
    assert!(answer.contains("`src/boats/crew.rs:1`"), "{answer}");

    let id = session(7);
    let mut reopened = bench.reopen(id, conversation(id, 4)).await;
    let answer = said(&ask(&mut reopened, "and is it painted?").await);
    assert!(
        answer.starts_with("I keep in mind what we had: `earlier`"),
        "{answer}"
    );
}

/// A steer of an earlier run narrowed the question; it did not take its place.
#[tokio::test(start_paused = true)]
async fn a_reopened_session_remembers_what_was_steered() {
    let bench = Bench::new(on(folder(), Pace::NONE));
    let id = session(8);
    let earlier = [
        (Channel::Invoke, "where is the gate painted?"),
        (Channel::Steer, "look in docs only"),
    ];
    let earlier = earlier.map(|(channel, text)| (channel, text.to_owned()));
    let mut opened = bench.reopen(id, conversation_of(id, earlier)).await;
    let answer = said(&ask(&mut opened, "and who is its keeper?").await);
    assert!(
        answer.starts_with("I keep in mind what we had: `gate` and `painted`."),
        "{answer}"
    );
    assert!(answer.contains("`docs/gate.md:3`"), "{answer}");
    assert!(!answer.contains("src/gate.rs"), "{answer}");
}

/// A session may go on from another agent's, of which there is only a summary.
#[tokio::test(start_paused = true)]
async fn c22_a_summary_of_another_agent_is_what_it_was_about() {
    let bench = Bench::new(on(folder(), Pace::NONE));
    let id = session(9);
    let mut earlier = conversation(id, 1);
    earlier[0].body = EntryBody::Compaction {
        summary: BoundedText::new("They asked where the gate is painted.", 1024),
        first_kept: None,
        tokens_before: None,
        tokens_after: None,
        trigger: CompactionTrigger::Manual,
    };
    let mut opened = bench.reopen(id, earlier).await;
    let answer = said(&ask(&mut opened, "and who is its keeper?").await);
    let kept = answer.lines().next().unwrap_or_default();
    assert!(
        kept.starts_with("I keep in mind") && kept.contains("`gate`"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_greeting_gets_an_overview_and_a_hint() {
    let bench = Bench::new(on(folder(), Pace::NONE));
    let mut opened = bench.open().await;
    let answer = said(&ask(&mut opened, "hello, what is this?").await);
    assert!(
        answer.starts_with("This folder holds 4 files, mostly 2 .md"),
        "{answer}"
    );
    assert!(
        answer.contains("# Harbour") && answer.contains("steer me"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pasted_line_is_found_and_an_example_of_the_question_is_not() {
    let folder = folder();
    write(
        folder.path(),
        "src/closed.rs",
        "fn closed() -> String {\n    \"the harbour gate is closed\".to_owned()\n}\n",
    );
    write(
        folder.path(),
        "docs/faq.md",
        "Ask: where is the harbour gate painted?\n",
    );
    let bench = Bench::new(on(folder, Pace::NONE));
    let mut opened = bench.open().await;
    let answer = said(&ask(&mut opened, "the harbour gate is closed").await);
    assert!(
        answer.starts_with("The best place is `src/closed.rs:2`"),
        "{answer}"
    );
    let answer = said(&ask(&mut opened, "Where is the harbour gate painted?").await);
    assert!(!answer.contains("docs/faq.md"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_said_plainly() {
    let bench = Bench::new(on(folder(), Pace::NONE));
    let mut opened = bench.open().await;
    let answer = said(&ask(&mut opened, "where are zeppelins moored?").await);
    assert!(
        answer.starts_with("I found no line with `zeppelins` and `moored`"),
        "{answer}"
    );
    let answer = said(&ask(&mut opened, "which gate is a zeppelin?").await);
    assert!(answer.starts_with("No place holds all of it."), "{answer}");
    assert!(
        answer.contains("None of these files holds `zeppelin`."),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_is_too_deep_is_not_told_as_the_whole() {
    let folder = folder();
    let deep = "deep/".repeat(33);
    write(folder.path(), &format!("{deep}zeppelin.md"), "zeppelins\n");
    let bench = Bench::new(on(folder, Pace::NONE));
    let mut opened = bench.open().await;
    let answer = said(&ask(&mut opened, "where are zeppelins moored?").await);
    assert!(answer.contains("I did not get to its end"), "{answer}");
    let answer = said(&ask(&mut opened, "hello, what is this?").await);
    assert!(
        answer.starts_with("This folder holds more than 4 files"),
        "{answer}"
    );
}

/// Who made a file chose its name.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn no_file_name_speaks_to_a_terminal() {
    let folder = folder();
    let red = "\u{1b}[31m\u{202e}";
    for name in [
        format!("{red}moor/{red}/zeppelin.rs"),
        format!("{red}zeppelin.rs"),
        format!("README.{red}"),
    ] {
        write(folder.path(), &name, "zeppelin\n");
    }
    fs::remove_file(folder.path().join("README.md")).expect("removed");
    let bench = Bench::new(on(folder, Pace::NONE));
    let mut opened = bench.open().await;
    for question in [
        "where is the zeppelin?".to_owned(),
        "hello, what is this?".to_owned(),
        format!("show {red}zeppelin.rs"),
        format!("zeppelin in {red}moor/{red}"),
        format!("zeppelin not in {red}moor/{red}"),
        format!("gate in {red}nowhere/"),
    ] {
        for event in ask(&mut opened, &question).await {
            // The arguments of a call are data, not a display.
            let shown = match &event {
                EngineEvent::ToolStarted { .. } => continue,
                event => event.texts().collect::<String>(),
            };
            assert!(
                !shown.contains(['\u{1b}', '\u{202e}']),
                "{question:?}: {event:?}"
            );
        }
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn b48_no_question_and_no_link_reads_outside_of_the_folder() {
    let outside = tempfile::tempdir().expect("a folder");
    write(
        outside.path(),
        "secret.txt",
        "harbour gate painted: SECRET\n",
    );
    let folder = folder();
    let link = |to: &Path, name: &str| {
        std::os::unix::fs::symlink(to, folder.path().join(name)).expect("linked");
    };
    link(outside.path(), "linked");
    link(&outside.path().join("secret.txt"), "linked.txt");
    let absolute = outside.path().join("secret.txt").display().to_string();
    let bench = Bench::new(on(folder, Pace::NONE));
    let mut opened = bench.open().await;
    for question in [
        "where is the harbour gate painted?",
        "show linked.txt and linked/secret.txt",
        &format!("what does {absolute} say about the harbour gate?"),
        &format!("look in ../{absolute} for the harbour gate"),
    ] {
        let events = ask(&mut opened, question).await;
        assert!(!format!("{events:?}").contains("SECRET"), "{question}");
    }
}
