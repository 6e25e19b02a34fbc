//! What can be asked of the demo agent: files, trees, counts, definitions, git, and what is ambiguous.

use super::*;

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
    // Nor does a longer name stand for it, however often.
    let longer =
        "fn old_harbour_gate(_: HarbourGate) -> HarbourGate {}\nstruct HarbourGateKeeper;\n";
    write(folder.path(), "src/a.rs", longer);
    let bench = Bench::new(on(folder, Pace::NONE));
    let mut opened = bench.open().await;
    for (text, place) in [
        (
            "where is HarbourGate defined?",
            "`src/z.rs:3` (in `struct HarbourGate`)",
        ),
        (
            "show the HarbourGate struct",
            "`src/z.rs:3` (in `struct HarbourGate`)",
        ),
        ("show the Gate struct", "`src/gate.rs:3` (in `struct Gate`)"),
    ] {
        let answer = said(&ask(&mut opened, text).await);
        let best = format!("The best place is {place}");
        assert!(answer.starts_with(&best), "{text}: {answer}");
    }
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

/// What is asked of it as of a real agent is answered plainly, and never by a search for its words.
#[tokio::test(start_paused = true)]
async fn who_asks_for_work_is_told_that_it_only_reads() {
    for (text, instead) in [
        ("fix the failing gate", "    /find failing gate\n"),
        ("can you run the tests?", "    /find tests\n"),
        ("delete README.md", "    show README.md\n"),
        ("please write me a poem", "    /find poem\n"),
    ] {
        let answer = answer_in(folder(), text).await;
        assert!(
            answer.starts_with("That is work, and I cannot do it"),
            "{text}: {answer}"
        );
        assert!(
            answer.contains("I am no language model"),
            "{text}: {answer}"
        );
        assert!(
            answer.contains(instead) && answer.contains("`/about`"),
            "{text}: {answer}"
        );
        assert!(!answer.contains("The best place"), "{text}: {answer}");
    }
    // In a steer it changes nothing.
    let bench = Bench::new(subject());
    let mut opened = bench.open().await;
    opened.prompt("where is the harbour gate painted?").await;
    let searches = |event: &EngineEvent| matches!(event, EngineEvent::ToolStarted { name, .. } if name == "search");
    opened.read_to(searches).await;
    let input = opened.input(1);
    opened.steer("fix the gate", input).await;
    let answer = said(&opened.read_to_stop().await);
    assert!(
        answer.starts_with("I only read, and cannot do that"),
        "{answer}"
    );
    assert!(
        answer.contains("The best place is `src/gate.rs:6`"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_files_of_a_kind_are_listed() {
    for (text, first) in [
        (
            "list all the rust files",
            "This folder holds 2 files ending with .rs:",
        ),
        (
            "which .md files are there?",
            "This folder holds 2 files ending with .md:",
        ),
        (
            "show me the md files in docs",
            "`docs` holds 1 file ending with .md:",
        ),
    ] {
        let answer = answer_in(folder(), text).await;
        assert!(answer.starts_with(first), "{text}: {answer}");
        assert!(!answer.contains("best place"), "{text}: {answer}");
    }
    let answer = answer_in(folder(), "which files paint gates?").await;
    assert!(answer.starts_with("The best place is"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_folder_without_files_says_so_and_what_to_do() {
    for text in [
        "hello",
        "what is this project?",
        "tree",
        "how many lines?",
        "where is main?",
    ] {
        let empty = tempfile::tempdir().expect("a folder");
        let answer = answer_in(empty, text).await;
        assert!(
            answer.starts_with("I see no file in this folder"),
            "{text}: {answer}"
        );
        assert!(
            answer.contains("sessiond --workspace FOLDER"),
            "{text}: {answer}"
        );
    }
    let empty = tempfile::tempdir().expect("a folder");
    let answer = answer_in(empty, "show README").await;
    assert!(
        answer.starts_with("I see no file in this folder"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_readme_introduces_the_folder_in_prose_that_fits_a_screen() {
    let folder = folder();
    let long = "Keeps boats apart, whatever the weather and whoever steers. ".repeat(6);
    let readme = format!(
        "# Harbour [![Build]][ci]\n\n[Build]: https://example.org/a.svg\n[![x](y)](z)\n<p align=\"center\">\n\n{long}\n\n```\ngate\n```\n"
    );
    write(folder.path(), "README.md", &readme);
    let answer = answer_in(folder, "what is this project?").await;
    let introduced = "`README.md:1` introduces it:\n\n    # Harbour [![Build]][ci]\n    \n    Keeps boats apart,";
    assert!(answer.contains(introduced), "{answer}");
    assert!(
        !answer.contains("example.org") && !answer.contains("<p"),
        "{answer}"
    );
    assert!(
        answer.contains("steers. \n\n") || answer.contains("steers.\n\n"),
        "it is whole: {answer}"
    );
    assert!(
        answer.lines().take(12).all(|line| line.len() < 120),
        "{answer}"
    );
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
