//! What a newcomer sees of the demo agent: stories on a small folder.

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
use crate::suite::{Promises, Prompts, Subject};

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

/// The answer to a text, in a folder.
async fn answer_in(folder: TempDir, text: &str) -> String {
    let bench = Bench::new(on(folder, Pace::NONE));
    let mut opened = bench.open().await;
    said(&ask(&mut opened, text).await)
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_named_is_shown_with_its_lines() {
    let answer = answer_in(folder(), "show README").await;
    assert!(
        answer.starts_with("`README.md:1`, lines 1 to 3 of 3 lines:\n\n    1 | # Harbour"),
        "{answer}"
    );
    assert!(answer.contains("I am no language model"), "{answer}");
    for text in [
        "show src/gate.rs lines 6 to 7",
        "show gate.rs:6-7",
        "/show src/gate.rs:6-7",
        "open ./src/gate.rs:6-7",
    ] {
        let answer = answer_in(folder(), text).await;
        assert!(
            answer.starts_with("`src/gate.rs:6`, lines 6 to 7 of 10 lines:"),
            "{text}: {answer}"
        );
        assert!(
            answer.contains("    7 |     pub fn paint(&self) {"),
            "{answer}"
        );
        assert!(answer.contains("show src/gate.rs:8-10"), "{answer}");
    }
    let answer = answer_in(folder(), "show src/gate.rs:50-60").await;
    assert!(
        answer.starts_with("`src/gate.rs` has no line 50: it has 10 lines."),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_not_shown_is_told_why() {
    for (text, why) in [
        ("show ../secret.txt", "it leads out of the folder"),
        ("show /etc/passwd", "it leads out of the folder"),
        ("show .env.local", "such a file commonly holds secrets"),
        ("show .git/config", "that is git's own"),
        ("show nowhere.rs", "there is no such file"),
    ] {
        let folder = folder();
        write(folder.path(), ".env.local", "SECRET=1");
        write(folder.path(), ".git/config", "SECRET=1");
        let answer = answer_in(folder, text).await;
        assert!(answer.contains(why), "{text}: {answer}");
        assert!(!answer.contains("SECRET"), "{text}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_tree_and_the_counts_are_told_in_one_glance() {
    let answer = answer_in(folder(), "tree").await;
    assert!(
        answer.starts_with("This folder holds 4 files:\n\n    docs/"),
        "{answer}"
    );
    assert!(
        answer.contains("      boats/\n        crew.rs\n"),
        "{answer}"
    );
    for text in [
        "show src",
        "what is in src?",
        "list files in src",
        "/tree src",
    ] {
        let answer = answer_in(folder(), text).await;
        assert!(answer.contains("`src` holds 2 files:"), "{text}: {answer}");
        assert!(!answer.contains("docs"), "{text}: {answer}");
    }
    let answer = answer_in(folder(), "/tree nowhere").await;
    assert!(answer.starts_with("There is no `nowhere`"), "{answer}");
    let answer = answer_in(folder(), "how many lines of code?").await;
    assert!(
        answer.starts_with("This folder holds 4 files, 20 lines, "),
        "{answer}"
    );
    assert!(
        answer.contains("    Rust          2 files         14 lines\n"),
        "{answer}"
    );
    let answer = answer_in(folder(), "count lines in docs").await;
    assert!(
        answer.starts_with("`docs` holds 1 file, 3 lines, "),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn it_says_what_it_is_and_how_another_is_plugged_in() {
    for text in [
        "who are you?",
        "help",
        "how do I plug in a real agent?",
        "/about",
    ] {
        let answer = answer_in(folder(), text).await;
        assert!(
            answer.starts_with("I am no language model."),
            "{text}: {answer}"
        );
        assert!(answer.contains("[agents.NAME]"), "{text}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_asked_for_comes_before_its_uses() {
    let folder = folder();
    write(
        folder.path(),
        "src/uses.rs",
        "// HarbourGate, HarbourGate: the harbour's gate of gates.\nfn x(_: HarbourGate) {}\n",
    );
    write(folder.path(), "src/z.rs", "\n\npub struct HarbourGate;\n");
    let answer = answer_in(folder, "where is HarbourGate defined?").await;
    assert!(
        answer.starts_with("The best place is `src/z.rs:3` (in `struct HarbourGate`)"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn git_is_told_from_its_files() {
    let folder = folder();
    let git = |arguments: &[&str]| {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
            .args(arguments)
            .current_dir(folder.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", "/nonexistent")
            .output()
            .expect("git runs");
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "--quiet", "--initial-branch=quay"]);
    write(folder.path(), ".gitignore", "target\n");
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "-m", "Paint the gate"]);
    write(folder.path(), "docs/gate.md", "# Gates\n\nOf iron.\n");
    write(folder.path(), "new.md", "new\n");
    let bench = Bench::new(on(folder, Pace::NONE));
    let mut opened = bench.open().await;
    let events = ask(&mut opened, "which branch?").await;
    let answer = said(&events);
    assert!(answer.starts_with("On branch `quay`, at `"), "{answer}");
    assert!(answer.contains(" Ada: Paint the gate\n"), "{answer}");
    let names: Vec<String> = tools(&events).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["list", "git_branch"]);
    let answer = said(&ask(&mut opened, "git status").await);
    assert!(
        answer.contains("Changed (1):\n- docs/gate.md (changed)\n"),
        "{answer}"
    );
    assert!(
        answer.contains("Not known to git (1):\n- new.md\n"),
        "{answer}"
    );
    let answer = said(&ask(&mut opened, "last 3 commits").await);
    assert!(answer.contains("The last commit:\n\n- `"), "{answer}");
    let answer = said(&ask(&mut opened, "what is this project?").await);
    assert!(answer.contains("On branch `quay`, at `"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn without_git_it_says_so() {
    let answer = answer_in(folder(), "git status").await;
    assert!(
        answer.starts_with("I cannot tell that from git: there is no git repository"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn c25_where_several_files_are_called_so_it_asks_which() {
    let bench = Bench::new(on(with_twins(), Pace::NONE));
    let mut opened = bench.open().await;
    opened.prompt("show port.rs").await;
    let events = opened.read_to(|event| asked(event).is_some()).await;
    let (ask, question) = events.iter().find_map(asked).expect("it asks");
    assert_eq!(question.title, "Which `port.rs` do you mean?");
    let Shape::Select(choices) = &question.shape else {
        panic!("{question:?}");
    };
    let labels: Vec<_> = choices.iter().map(|choice| choice.label.as_str()).collect();
    assert_eq!(labels, ["north/port.rs", "south/port.rs"]);
    let choice = InteractionAnswer::Choice("2".to_owned());
    opened.answer(ask, Some(choice)).await;
    let answer = said(&opened.read_to_stop().await);
    assert!(answer.starts_with("`south/port.rs:1`"), "{answer}");
    // Nobody answers: it goes on, and says with what.
    opened.prompt("show port.rs").await;
    let events = opened.read_to(|event| asked(event).is_some()).await;
    let (ask, _) = events.iter().find_map(asked).expect("it asks");
    opened.answer(ask, None).await;
    let answer = said(&opened.read_to_stop().await);
    assert!(
        answer.starts_with("Nobody said which, so I take `north/port.rs`."),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn c19_c25_a_steer_takes_the_place_of_a_question() {
    let bench = Bench::new(on(with_twins(), Pace::NONE));
    let mut opened = bench.open().await;
    opened.prompt("show port.rs").await;
    opened.read_to(|event| asked(event).is_some()).await;
    let input = opened.input(1);
    opened.steer("rather show south/port.rs", input).await;
    let events = opened.read_to_stop().await;
    let withdrawn = |event: &EngineEvent| matches!(event, EngineEvent::AskWithdrawn { .. });
    assert!(events.iter().any(withdrawn), "{events:?}");
    let answer = said(&events);
    assert!(answer.contains("`south/port.rs:1`"), "{answer}");
    assert!(!answer.contains("north/port.rs"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn c19_a_steer_may_ask_for_something_else_altogether() {
    let bench = Bench::new(subject());
    let mut opened = bench.open().await;
    opened.prompt("where is the harbour gate painted?").await;
    let searches = |event: &EngineEvent| matches!(event, EngineEvent::ToolStarted { name, .. } if name == "search");
    opened.read_to(searches).await;
    let input = opened.input(1);
    opened.steer("how many lines of code?", input).await;
    let answer = said(&opened.read_to_stop().await);
    assert!(
        answer.starts_with("I turn to how much there is."),
        "{answer}"
    );
    assert!(answer.contains("    Rust "), "{answer}");
    assert!(!answer.contains("The best place"), "{answer}");
}

/// A folder that is large in every way: an answer all the same, and soon.
#[tokio::test(start_paused = true)]
async fn large_and_odd_files_keep_nobody_waiting() {
    let folder = folder();
    let huge = fs::File::create(folder.path().join("huge.rs")).expect("made");
    huge.set_len(10 << 30).expect("sparse");
    let minified = "var harbour=1;".repeat(30_000);
    write(folder.path(), "src/min.rs", &minified);
    fs::write(folder.path().join("binary.rs"), [0, 159, 146, 150]).expect("written");
    for number in 0..3_000 {
        write(folder.path(), &format!("many/{number}.md"), "harbour\n");
    }
    let bench = Bench::new(on(folder, Pace::NONE));
    let mut opened = bench.open().await;
    for text in [
        "where is the harbour gate painted?",
        "show huge.rs",
        "show binary.rs",
        "show min.rs",
        "how many lines?",
        "tree",
    ] {
        let events = ask(&mut opened, text).await;
        let answer = said(&events);
        assert!(answer.len() < 8 * 1024, "{text}: {} bytes", answer.len());
        assert!(answer.lines().count() < 70, "{text}: {answer}");
    }
    let answer = said(&ask(&mut opened, "show binary.rs").await);
    assert!(
        answer.starts_with("I cannot show `binary.rs`: it is no text."),
        "{answer}"
    );
}

/// C26: what a composer is offered does what it says.
#[tokio::test(start_paused = true)]
async fn c26_every_command_that_is_offered_works() {
    let bench = Bench::new(on(folder(), Pace::NONE));
    let offered = bench.engine.describe().commands.clone();
    assert_eq!(offered.len(), 8);
    let mut opened = bench.open().await;
    for command in offered {
        let argument = match command.name.as_str() {
            "show" => " README",
            "find" => " gate",
            _ => "",
        };
        let answer = said(&ask(&mut opened, &format!("/{}{argument}", command.name)).await);
        let sought = matches!(command.name.as_str(), "find");
        assert_eq!(answer.contains("The best place is"), sought, "{answer}");
        assert!(answer.contains("I am no language model"), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_takes_seconds_that_a_person_can_watch_and_steer() {
    let bench = Bench::new(on(folder(), Pace::default()));
    let mut opened = bench.open().await;
    let before = bench.clock.now();
    ask(&mut opened, "where is the harbour gate painted?").await;
    let took = bench.clock.now().since(before);
    let natural = Duration::from_secs(1)..Duration::from_secs(5);
    assert!(natural.contains(&took), "{took:?}");
}
