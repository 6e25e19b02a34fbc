use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue, Labels, Priority};
use sessionplane_core::domain::ids::RunId;
use sessionplane_core::domain::place::{Checkout, Directory};
use sessionplane_core::domain::session::Lineage;

use super::*;
use crate::cli::testing::{NOW, ago, asking, session};

fn place(workspace: &str, directory: &str) -> Place {
    Place {
        workspace: workspace.parse().unwrap(),
        directory: Directory::parse(directory).unwrap(),
    }
}

fn branch(name: &str) -> Checkout {
    Checkout {
        branch: Some(name.into()),
        commit: Some("1f2e3d4c5b6a7980".into()),
    }
}

fn ended(outcome: RunOutcome, seconds: u64) -> LastRun {
    LastRun {
        run: RunId::mint(ago(seconds), 7),
        outcome,
        settled_at: ago(seconds),
    }
}

fn failed(code: &str) -> RunOutcome {
    RunOutcome::Failed(Failure {
        code: code.to_owned(),
        details: String::new(),
        retryable: false,
    })
}

/// Seven sessions on one repository, told in another order than they are shown in.
fn fleet() -> Vec<SessionSummary> {
    let called = |session: SessionSummary, name: &str| SessionSummary {
        name: Some(name.parse().unwrap()),
        ..session
    };
    let dormant = SessionSummary {
        agent: "pi".parse().unwrap(),
        place: Some(place("home", "spikes")),
        checkout: Some(branch("spike/alloc")),
        last_run: Some(ended(failed("budget"), 9 * 86_400)),
        ..called(session(5), "old-spike")
    };
    let ready = SessionSummary {
        phase: Phase::Ready,
        since: Some(ago(200)),
        place: Some(place("home", "docs")),
        checkout: Some(branch("docs/guide")),
        last_run: Some(ended(RunOutcome::Completed, 200)),
        ..called(session(4), "docs")
    };
    let working = SessionSummary {
        agent: "pi".parse().unwrap(),
        phase: Phase::Working,
        since: Some(ago(41)),
        place: Some(place("home", "crates/core")),
        checkout: Some(branch("refactor/core")),
        queued: 2,
        last_run: Some(ended(RunOutcome::Completed, 900)),
        ..called(session(2), "refactor-core")
    };
    let beside = SessionSummary {
        phase: Phase::Working,
        paused: true,
        since: Some(ago(30)),
        place: Some(place("home", "crates/core")),
        checkout: Some(branch("refactor/core")),
        ..session(6)
    };
    let stalled = SessionSummary {
        agent: "claude".parse().unwrap(),
        phase: Phase::Working,
        since: Some(ago(3700)),
        stalled_since: Some(ago(370)),
        place: Some(place("home", ".")),
        checkout: Some(branch("main")),
        last_run: Some(ended(failed("interrupted"), 7200)),
        ..called(session(3), "dep-audit")
    };
    let asks = SessionSummary {
        agent: "codex".parse().unwrap(),
        place: Some(place("home", "crates/net")),
        checkout: Some(branch("fix/flaky")),
        ..called(asking(1, &[1]), "fix-flaky-tests")
    };
    let held = SessionSummary {
        phase: Phase::Paused,
        paused: true,
        since: Some(ago(60)),
        ..called(session(7), "held")
    };
    vec![dormant, ready, working, beside, stalled, asks, held]
}

fn shown(sessions: &[SessionSummary], width: usize) -> String {
    let mut sessions = sessions.to_vec();
    in_order(&mut sessions);
    let mut rows = table(&sessions, NOW, width);
    rows.push(summary_line(&sessions, false, width));
    let lines: Vec<_> = rows.iter().map(Row::text).collect();
    for line in &lines {
        assert!(visible::columns(line) <= width, "too wide: {line}");
    }
    lines.join("\n")
}

#[test]
fn c46_the_table_of_a_fleet_in_eighty_columns() {
    insta::assert_snapshot!(shown(&fleet(), 80));
}

#[test]
fn c46_the_table_of_a_fleet_in_a_wide_terminal() {
    let mut sessions = fleet();
    sessions[2].chosen.model = Some("deep-thought-2".to_owned());
    insta::assert_snapshot!(shown(&sessions, 120));
}

#[test]
fn c46_the_table_of_several_workspaces_with_long_words() {
    let mut sessions = fleet();
    sessions[1].place = Some(place("other", "a/very/deep/directory/in/another/workspace"));
    sessions[1].checkout = Some(branch("feature/日本語の枝の名前がとても長い"));
    sessions[2].agent = "an-agent-with-a-long-name".parse().unwrap();
    sessions[2].chosen.model = Some("a-model-with-a-long-name".to_owned());
    sessions[4].last_run = Some(ended(failed("a_code_that_is_far_too_long"), 7200));
    let long = "a-name-that-is-as-long-as-names-may-be-and-that-is-very-long-so";
    sessions[5].name = Some(long.parse().unwrap());
    sessions[5].questions.extend(asking(1, &[2]).questions);
    insta::assert_snapshot!(shown(&sessions, 80));
    for narrow in [60, 40, 25] {
        shown(&sessions, narrow);
    }
}

/// It would be pasted.
#[test]
fn c46_no_terminal_is_so_narrow_that_an_answers_command_is_cut() {
    let mut sessions = fleet();
    sessions[5].name = Some("zstd-research-and-more".parse().unwrap());
    for (width, way) in [
        (
            120,
            "answer: sessionctl answer zstd-research-and-more allow|deny",
        ),
        (
            70,
            "answer: sessionctl answer zstd-research-and-more allow|deny",
        ),
        (60, "sessionctl answer zstd-research-and-more allow|deny"),
        (50, "sessionctl answer zstd-research-and-more"),
        (30, "sessionctl questions"),
    ] {
        let text = shown(&sessions, width);
        let told = text.lines().find(|line| line.contains("sessionctl"));
        assert!(
            told.is_some_and(|told| told.ends_with(way)),
            "{width}: {text}"
        );
    }
    // Nor a name, for a column that says nothing.
    for session in &mut sessions {
        session.queued = 0;
    }
    let text = shown(&sessions, 70);
    assert!(
        !text.contains("QUEUE") && text.contains("zstd-research-and-more "),
        "{text}"
    );
}

#[test]
fn a_table_that_grows_keeps_its_columns() {
    let mut table = Growing::default();
    let sessions = fleet();
    let text = |rows: Vec<Row>| rows.iter().map(Row::text).collect::<Vec<_>>();
    let places = Places::default();
    let first = text(table.rows(&places, &sessions[..4], NOW, usize::MAX));
    assert!(first[0].starts_with("STATE"), "{first:?}");
    let at = first[0].find("AGENT").unwrap();
    let later = text(table.rows(&places, &sessions[1..2], NOW, usize::MAX));
    assert_eq!(later.len(), 1, "the heading stands once: {later:?}");
    assert_eq!(later[0].find("demo"), Some(at), "{later:?}");
    assert_eq!(
        table.line("gone", "docs").find("docs"),
        first[0].find("NAME")
    );
    let mut chosen = sessions[1].clone();
    chosen.chosen.model = Some("deep".to_owned());
    let other = text(table.rows(&places, &[chosen], NOW, usize::MAX));
    assert!(other.len() == 2 && other[0].contains("MODEL"), "{other:?}");
}

#[test]
fn a_pipe_gets_every_cell_whole() {
    let mut sessions = fleet();
    let directory = "a/very/deep/directory/in/a/workspace/that/no/terminal/has/room/for";
    sessions[1].place = Some(place("home", directory));
    let text = shown(&sessions, usize::MAX);
    assert!(text.contains(directory), "{text}");
    assert!(!text.contains('…'), "{text}");
}

#[test]
fn c46_what_needs_people_is_first_and_what_is_urgent_before_its_like() {
    let mut sessions = fleet();
    sessions[3].priority = Priority::parse(5).unwrap();
    in_order(&mut sessions);
    let names: Vec<_> = sessions.iter().map(|it| named(it).to_string()).collect();
    let id = session(6).id.to_string();
    let expected = [
        "fix-flaky-tests",
        "dep-audit",
        id.as_str(),
        "refactor-core",
        "docs",
        "held",
        "old-spike",
    ];
    assert_eq!(names, expected);
}

#[test]
fn two_that_work_in_one_directory_are_marked_and_a_dormant_one_is_not() {
    let mut sessions = fleet();
    let text = shown(&sessions, 120);
    assert_eq!(text.matches("*crates/core").count(), 2, "{text}");
    assert!(
        text.ends_with("* others work in this directory, too"),
        "{text}"
    );
    for session in &mut sessions {
        if session.phase == Phase::Working {
            session.phase = Phase::Dormant;
        }
    }
    assert!(!shown(&sessions, 120).contains('*'));
}

#[test]
fn only_what_a_row_says_but_its_age_is_a_change() {
    let working = fleet().remove(2);
    let later = SessionSummary {
        revision: 9,
        since: Some(ago(1)),
        ..working.clone()
    };
    assert_eq!(content(&working), content(&later));
    let more = SessionSummary {
        queued: 3,
        ..working.clone()
    };
    assert_ne!(content(&working), content(&more));
    assert_ne!(content(&asking(1, &[1])), content(&asking(1, &[2])));
}

#[test]
fn no_sessions_are_told_in_words() {
    let none = |filtered| none_line(filtered, 80).text();
    assert_eq!(
        none(false),
        "no sessions yet; create one: sessionctl new NAME"
    );
    assert_eq!(
        none(true),
        "no session is what the filter wants; all there are: sessionctl agents"
    );
    let many = vec![asking(1, &[1]), asking(2, &[1])];
    let words = summary_line(&many, true, 80).text();
    assert_eq!(words, "the first 2 sessions (more: --limit), 2 need you");
}

#[test]
fn c45_all_that_is_known_of_a_session_is_shown() {
    let asks = fleet().remove(5);
    let label = |key: &str, value: &str| {
        let (key, value) = (LabelKey::parse(key), LabelValue::parse(value));
        (key.unwrap(), value.unwrap())
    };
    let whole = SessionSummary {
        external_key: Some("ci 7\u{1b}[2J".parse().unwrap()),
        labels: Labels::of([label("team", "net"), label("urgent", "")]).unwrap(),
        priority: Priority::parse(5).unwrap(),
        lineage: Some(Lineage {
            parent: session(2).id,
            entry: None,
        }),
        stalled_since: Some(ago(370)),
        queued: 1,
        last_run: Some(ended(
            RunOutcome::Failed(Failure {
                code: "budget".to_owned(),
                details: "It cost more\nthan it may.".to_owned(),
                retryable: false,
            }),
            900,
        )),
        ..asks
    };
    insta::assert_snapshot!(session_lines(&whole, NOW).join("\n"));
}

#[test]
fn c45_who_was_paused_before_the_server_began_is_so_since_the_last_change_at_least() {
    let mut held = fleet().remove(6);
    held.last_run = Some(ended(RunOutcome::Completed, 90_000));
    held.updated_at = ago(600);
    held.since = None;
    let row = |session: &SessionSummary| shown(std::slice::from_ref(session), 120);
    assert!(row(&held).contains(" 10m\n"), "{}", row(&held));
    let lines = session_lines(&held, NOW).join("\n");
    assert!(lines.contains("paused for at least 10 min 0 s"), "{lines}");
    // Its run may have settled after that.
    held.last_run = Some(ended(RunOutcome::Completed, 300));
    assert!(row(&held).contains(" 5m\n"), "{}", row(&held));
    held.phase = Phase::Dormant;
    let lines = session_lines(&held, NOW).join("\n");
    assert!(lines.contains("dormant\n"), "{lines}");
    assert!(
        row(&held).contains(" 5m\n"),
        "its last run is what is known"
    );
}

#[test]
fn a_directory_that_is_cut_keeps_its_end_and_its_mark() {
    assert_eq!(path_in_columns(".worktrees/fix-a", 9), "\u{2026}es/fix-a");
    assert_eq!(path_in_columns("*.worktrees/fix-a", 9), "*\u{2026}s/fix-a");
    assert_eq!(path_in_columns("docs", 9), "docs");
    assert_eq!(path_in_columns("*docs", 1), "\u{2026}");
}
