//! Commands on a real terminal: what `attach` lays out there and the foot below it, and a question of
//! `rm`.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use sessionplane::v1;
use sessionplane::v1::session_event::Payload;
use sessionplane::v1::watch_sessions_response::Item;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Child;

use super::cli::{interrupt, reads_from, sends, sessionctl};
use super::fake::fleet::FleetStage;
use super::fake::{Fake, Stage, Step, soon};
use super::fleet_watching::{asking, session};
use super::wire;

/// A terminal: the side that a person has, and the side that a program has.
fn terminal() -> (tokio::fs::File, File) {
    let person: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let path = std::ffi::OsStr::from_bytes(name.as_bytes());
    let program = File::options().read(true).write(true).open(path).unwrap();
    (tokio::fs::File::from_std(File::from(person)), program)
}

fn spawned(fake: &Fake, arguments: &[&str], program: &File) -> Child {
    let side = || program.try_clone().unwrap();
    sessionctl(fake, arguments)
        .stdin(side())
        .stdout(side())
        .stderr(side())
        .spawn()
        .unwrap()
}

async fn observed() -> Fake {
    let queued = v1::QueueChanged {
        change: Some(v1::queue_changed::Change::Added(v1::PendingInput {
            input_id: format!("{}-i1", wire::RUN),
            kind: v1::InputKind::Steer.into(),
            text: "use tabs".to_owned(),
            origin: Some(wire::origin()),
            ..v1::PendingInput::default()
        })),
        depth: 1,
    };
    let used = v1::Usage {
        cost_usd: Some(0.25),
        ..v1::Usage::default()
    };
    let used = v1::UsageUpdated {
        usage: Some(used),
        session_usage: Some(used),
    };
    let steps = sends([
        wire::subscribed(false, false),
        wire::entries(vec![
            wire::user_entry(1, "what is here?"),
            wire::assistant_entry(2, "m-1", "# Two files\n"),
        ]),
        wire::snapshot(5, true),
        wire::event(6, Payload::QueueChanged(queued)),
        wire::event(7, Payload::UsageUpdated(used)),
        wire::message_started(8, "m-2"),
        wire::delta(9, "m-2", "One **loud** block.\n\nThe next one"),
    ]);
    let state = v1::GetStateResponse {
        state: Some(wire::state(true)),
    };
    Fake::start(Stage {
        states: [Ok(state)].into(),
        events: [Ok([steps, vec![Step::Hang]].concat())].into(),
        dispatches: [Ok(wire::dispatch_accepted())].into(),
        ..Stage::default()
    })
    .await
}

#[tokio::test]
async fn attach_on_a_terminal_lays_text_out_above_a_line_of_state() {
    let fake = observed().await;
    let (mut person, program) = terminal();
    let mut child = spawned(&fake, &["attach", "docs"], &program);
    drop(program);
    let foot = "The next one\r\n[docs | running | 1 waiting | m1 | $0.2500]\r\n> ";
    let shown = reads_from(&mut person, foot).await;
    assert!(shown.contains("\x1b[1m# Two files"), "{shown:?}");
    assert!(shown.contains("One \x1b[1mloud\x1b[0m block."), "{shown:?}");
    assert!(
        shown.contains("[docs | running | 0 waiting | m1]"),
        "{shown:?}"
    );
    person.write_all(b"use tabs\n").await.unwrap();
    let shown = reads_from(&mut person, "accepted: input").await;
    assert!(shown.contains("\x1b[2K> use tabs\r\n"), "{shown:?}");
    // Ctrl-D is read as the end of what is typed.
    person.write_all(b"\x04").await.unwrap();
    let left = reads_from(&mut person, "sessionctl attach docs").await;
    let last = left.rsplit("\x1b[2K").next().unwrap();
    assert!(
        !last.contains("[docs |") && !last.contains("> "),
        "{left:?}"
    );
    assert!(soon(child.wait()).await.unwrap().success());
}

#[tokio::test]
async fn who_attached_by_an_id_finds_the_session_by_its_name() {
    let fake = observed().await;
    let (mut person, program) = terminal();
    let mut child = spawned(&fake, &["attach", wire::SESSION], &program);
    drop(program);
    reads_from(&mut person, "]\r\n> ").await;
    person.write_all(b"\x04").await.unwrap();
    reads_from(&mut person, "sessionctl attach docs").await;
    assert!(soon(child.wait()).await.unwrap().success());
}

#[tokio::test]
async fn attach_in_plain_shows_neither_a_layout_nor_a_line_of_state() {
    for (plain, last) in [
        ("--plain", "The next one"),
        ("--json", "The next one"),
        ("--quiet", "block."),
    ] {
        let fake = observed().await;
        let (mut person, program) = terminal();
        let mut child = spawned(&fake, &[plain, "attach", "docs"], &program);
        drop(program);
        let mut shown = reads_from(&mut person, last).await;
        child.kill().await.unwrap();
        shown.retain(|c| c != '\r');
        assert!(
            !shown.contains("[docs |") && !shown.contains("\n> "),
            "{shown:?}"
        );
        if plain == "--plain" {
            assert!(!shown.contains('\x1b'), "{shown:?}");
            assert!(
                shown.contains("One **loud** block.\n\nThe next one"),
                "{shown:?}"
            );
        }
    }
}

#[tokio::test]
async fn c25_a_secret_is_typed_unseen_where_it_is_asked_for() {
    let steps = sends([
        wire::subscribed(false, false),
        wire::snapshot_of(super::answering::waiting(vec![super::answering::secret(1)])),
    ]);
    let state = v1::GetStateResponse {
        state: Some(wire::state(true)),
    };
    let fake = Fake::start(Stage {
        states: [Ok(state)].into(),
        events: [Ok([steps, vec![Step::Hang]].concat())].into(),
        dispatches: [Ok(wire::dispatch_done()), Ok(wire::dispatch_done())].into(),
        ..Stage::default()
    })
    .await;
    let told = std::sync::Arc::new(tokio::sync::Notify::new());
    fake.stage.lock().unwrap().on_dispatch = Some(told.clone());
    let (mut person, program) = terminal();
    let mut child = spawned(&fake, &["attach", "docs"], &program);
    drop(program);
    let mut shown = reads_from(&mut person, "]\r\n> ").await;
    assert!(
        shown.contains("/answer q1 (then type it, unseen)"),
        "{shown}"
    );
    person.write_all(b"/answer q1\n").await.unwrap();
    shown = reads_from(&mut person, "(not shown) ").await;
    person.write_all(b"hunter2\n").await.unwrap();
    soon(told.notified()).await;
    shown += &reads_from(&mut person, "> ").await;
    person.write_all(b"/answer q1 hunter3\n").await.unwrap();
    soon(told.notified()).await;
    shown += &reads_from(&mut person, "may still be seen").await;
    assert!(!shown.contains("hunter2"), "{shown:?}");
    assert!(shown.contains("> /answer q1 (a secret)"), "{shown:?}");
    child.kill().await.unwrap();
    let answers: Vec<_> = super::answering::responses(&fake);
    let text = |text: &str| v1::interaction_answer::Answer::Text(text.to_owned());
    let answers: Vec<_> = answers.into_iter().map(|(_, answer)| answer).collect();
    assert_eq!(answers, [text("hunter2"), text("hunter3")]);
}

/// Runs `sessionctl` behind a shell, as `&` does there. Its terminal is the shell's.
fn behind_a_shell(fake: &Fake, arguments: &[&str], program: &File) -> Child {
    let inner = sessionctl(fake, arguments);
    let inner = inner.as_std();
    let side = || program.try_clone().unwrap();
    tokio::process::Command::new("setsid")
        .args([
            "--ctty",
            "--wait",
            "sh",
            "-c",
            "set -m; \"$@\" & wait",
            "sh",
        ])
        .arg(inner.get_program())
        .args(inner.get_args())
        .envs(
            inner
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(side())
        .stdout(side())
        .stderr(side())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn a_text_that_waits_behind_a_shell_leaves_its_line_to_who_types_there() {
    let mut steps = sends([wire::accepted(false), wire::text("m-1", "What next?")]);
    let steered = std::sync::Arc::new(tokio::sync::Notify::new());
    steps.push(Step::Wait(steered.clone()));
    steps.extend(sends([wire::text("m-2", "Thanks."), wire::completed()]));
    let fake = Fake::start(Stage {
        invokes: [Ok(steps)].into(),
        ..Stage::default()
    })
    .await;
    let (mut person, program) = terminal();
    let mut child = behind_a_shell(&fake, &["invoke", "docs", "ask me"], &program);
    drop(program);
    reads_from(&mut person, "What next?\r\n").await;
    steered.notify_one();
    let shown = reads_from(&mut person, "completed: run").await;
    assert!(shown.contains("Thanks.\r\n"), "{shown:?}");
    assert!(soon(child.wait()).await.unwrap().success());
}

/// A server whose session has these entries, and in which nothing runs.
async fn at_rest(entries: Vec<v1::Entry>) -> Fake {
    let steps = sends([
        wire::subscribed(false, false),
        wire::entries(entries),
        wire::snapshot(5, false),
    ]);
    let state = v1::GetStateResponse {
        state: Some(wire::state(false)),
    };
    Fake::start(Stage {
        states: [Ok(state)].into(),
        events: [Ok([steps, vec![Step::Hang]].concat())].into(),
        ..Stage::default()
    })
    .await
}

#[tokio::test]
async fn attach_without_a_run_says_how_to_start_one_and_breaks_prose_between_words() {
    let prose = format!("{}`lease.token` is checked.\n", "a word ".repeat(10));
    let fake = at_rest(vec![wire::assistant_entry(2, "m-1", &prose)]).await;
    let (mut person, program) = terminal();
    let mut child = spawned(&fake, &["--no-color", "attach", "docs"], &program);
    drop(program);
    let shown = reads_from(&mut person, "]\r\n> ").await;
    assert!(!shown.contains("a line steers"), "{shown}");
    assert!(
        shown.contains("start one: sessionctl invoke docs"),
        "{shown}"
    );
    assert!(
        shown.contains(" word\r\n`lease.token` is checked.\r\n"),
        "{shown:?}"
    );
    person.write_all(b"/quit\n").await.unwrap();
    let left = reads_from(&mut person, "sessionctl attach docs").await;
    assert!(left.contains("detached; re-attach"), "{left}");
    assert!(soon(child.wait()).await.unwrap().success());
}

/// What the demo agent says of a hit.
const HIT: &str = "The best place is `a.py:2` (in `def f`):\n\n      1 | def f():\n    > 2 |     y = \
                   __name__ + \"_x_\" + _z_\n      3 |     return Acquire(_) | Recover(_)\n\nThen:\n";

#[tokio::test]
async fn attach_on_a_terminal_shows_a_hit_in_code_as_it_is_in_the_file() {
    let asked = wire::user_entry(1, "where is it?");
    let fake = at_rest(vec![asked, wire::assistant_entry(2, "m-1", HIT)]).await;
    let (mut person, program) = terminal();
    let mut child = spawned(&fake, &["--no-color", "attach", "docs"], &program);
    drop(program);
    let shown = reads_from(&mut person, "Then:").await;
    child.kill().await.unwrap();
    for line in [
        "      1 | def f():\r\n",
        "    > 2 |     y = __name__ + \"_x_\" + _z_\r\n",
        "      3 |     return Acquire(_) | Recover(_)\r\n",
    ] {
        assert!(shown.contains(line), "{line:?} is missing in {shown:?}");
    }
}

#[tokio::test]
async fn c61_what_is_deleted_is_the_session_that_a_person_said_yes_to() {
    use v1::delete_session_response::Answer;
    let deleted = v1::DeleteSessionResponse {
        answer: Some(Answer::Deleted(v1::SessionDeleted {})),
    };
    let fake = Fake::start(Stage {
        fleet: FleetStage {
            sessions: (0..2).map(|_| Ok(session(1, "docs", 5))).collect(),
            deletions: [Ok(deleted)].into(),
            ..FleetStage::default()
        },
        ..Stage::default()
    })
    .await;
    for (said, code, told) in [
        ("no\n", 1, "nothing was deleted"),
        ("y\n", 0, "deleted docs"),
    ] {
        let (mut person, program) = terminal();
        let mut child = spawned(&fake, &["rm", "docs"], &program);
        drop(program);
        reads_from(&mut person, "delete docs with its conversation").await;
        person.write_all(said.as_bytes()).await.unwrap();
        reads_from(&mut person, told).await;
        assert_eq!(soon(child.wait()).await.unwrap().code(), Some(code));
    }
    let asked = fake.look(|stage| stage.fleet.deleted.clone());
    assert_eq!(asked.len(), 1, "once, and not without a yes");
    // Its name may be another's by the time of the answer.
    let meant = v1::session_ref::Ref::Id(session(1, "", 5).id);
    assert_eq!(
        asked[0].session.clone().and_then(|it| it.r#ref),
        Some(meant)
    );
}

#[tokio::test]
async fn c46_a_list_that_is_watched_is_drawn_in_its_place_with_colours_where_they_are_wanted() {
    let told = |item| Step::Send(v1::WatchSessionsResponse { item: Some(item) });
    let steps = || {
        let changed = v1::SessionsChanged {
            sessions: vec![asking(1, "docs", 5, &[1]), session(2, "core", 6)],
            gone_session_ids: Vec::new(),
        };
        let bookmark = v1::WatchBookmark {
            bookmark: "b1".to_owned(),
        };
        vec![
            told(Item::Changed(changed)),
            told(Item::Bookmark(bookmark)),
            Step::Hang,
        ]
    };
    let fake = Fake::start(Stage {
        fleet: FleetStage {
            watches: [Ok(steps()), Ok(steps())].into(),
            ..FleetStage::default()
        },
        ..Stage::default()
    })
    .await;
    for (words, coloured) in [
        (&["agents", "--watch"][..], true),
        (&["--no-color", "agents", "--watch"], false),
    ] {
        let (mut person, program) = terminal();
        let mut child = spawned(&fake, words, &program);
        drop(program);
        // Once, and a second later in the same place.
        let shown = reads_from(&mut person, "\x1b[5F\x1b[J").await;
        let first = shown.lines().find(|line| line.contains("docs"));
        let first = first.unwrap_or_default();
        assert_eq!(
            first.contains("\x1b[1;33mneeds input"),
            coloured,
            "{shown:?}"
        );
        interrupt(&child).await;
        assert_eq!(soon(child.wait()).await.unwrap().code(), Some(130));
    }
}
