//! The board: what it shows of a fleet that changes, and what keys do.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::fleet::labels::{Labels, Priority};
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{
    AgentName, InteractionId, RunId, SessionId, SessionName, WorkspaceName,
};
use sessionplane_core::domain::interaction::{Interaction, InteractionAnswer, Question, Shape};
use sessionplane_core::domain::place::{Checkout, Directory, Place};
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::session::LastRun;
use sessionplane_core::domain::settings::SettingsOverride;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;

use super::board::{Mode, Notice, Tab};
use super::*;
use crate::fleet_watch::FleetWatchItem;

mod screens;

const NOW: Timestamp = Timestamp::from_millis(10_000_000);

fn ago(seconds: u64) -> Timestamp {
    Timestamp::from_millis(NOW.as_millis() - seconds * 1000)
}

fn session(number: u128, name: &str, phase: Phase) -> SessionSummary {
    let id = SessionId::mint(ago(9_000), number);
    let running = phase.is_active();
    let run = RunId::mint(ago(60), number);
    SessionSummary {
        id,
        name: Some(SessionName::parse(name).unwrap()),
        external_key: None,
        agent: AgentName::parse("demo").unwrap(),
        labels: Labels::default(),
        priority: Priority::default(),
        paused: phase == Phase::Paused,
        place: Some(Place {
            workspace: WorkspaceName::parse("main").unwrap(),
            directory: Directory::parse(&format!("crates/{name}")).unwrap(),
        }),
        checkout: Some(Checkout {
            branch: Some(format!("topic/{name}").into()),
            commit: Some("0123456789abcdef".into()),
        }),
        lineage: None,
        phase,
        since: Some(ago(90)),
        stalled_since: None,
        active_run: running.then_some(run),
        last_run: Some(LastRun {
            run,
            outcome: RunOutcome::Completed,
            settled_at: ago(120),
        }),
        questions: Vec::new(),
        queued: 0,
        chosen: SettingsOverride::default(),
        usage: Usage::default(),
        created_at: ago(9_000),
        updated_at: ago(9_000),
        metadata_revision: 1,
        revision: 1,
    }
}

fn asking(number: u128, name: &str) -> SessionSummary {
    let mut session = session(number, name, Phase::NeedsInput);
    let run = session.active_run.unwrap();
    session.questions = vec![Interaction {
        id: InteractionId { run, ordinal: 1 },
        question: Question {
            title: "run `cargo test -p net`?".to_owned(),
            details: String::new(),
            shape: Shape::Confirm,
            default: None,
        },
        asked_at: ago(30),
        deadline: None,
        resolution: None,
    }];
    session
}

fn changed(sessions: Vec<SessionSummary>) -> FleetWatchItem {
    let gone = Vec::new();
    FleetWatchItem::Changed { sessions, gone }
}

/// Seven sessions, in no order.
fn fleet() -> Board {
    let mut stalled = session(5, "dep-audit", Phase::Working);
    stalled.stalled_since = Some(ago(360));
    let mut board = Board::default();
    board.told(changed(vec![
        session(1, "old-spike", Phase::Dormant),
        session(2, "docs", Phase::Ready),
        session(3, "refactor-core", Phase::Working),
        asking(4, "fix-flaky-tests"),
    ]));
    board.told(changed(vec![
        stalled,
        session(6, "bench", Phase::Paused),
        session(7, "wire", Phase::Compacting),
    ]));
    board.told(FleetWatchItem::Current);
    board
}

fn names(board: &Board) -> Vec<String> {
    board
        .rows()
        .into_iter()
        .map(|row| row.name.as_ref().unwrap().to_string())
        .collect()
}

fn press(board: &mut Board, code: KeyCode) -> Option<Act> {
    key(board, KeyEvent::new(code, KeyModifiers::NONE))
}

fn write(board: &mut Board, text: &str) {
    for letter in text.chars() {
        assert_eq!(press(board, KeyCode::Char(letter)), None);
    }
}

fn select(board: &mut Board, name: &str) {
    let wanted = board
        .rows()
        .into_iter()
        .find(|row| row.name.as_ref().is_some_and(|it| it.as_str() == name));
    board.selected = Some(wanted.unwrap().id);
}

fn screen(board: &Board, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| draw(board, NOW, true, frame))
        .unwrap();
    terminal.backend().to_string()
}

#[test]
fn c46_what_needs_people_comes_first_and_each_tab_counts_its_own() {
    let board = fleet();
    let order = [
        "fix-flaky-tests",
        "dep-audit",
        "refactor-core",
        "wire",
        "docs",
        "bench",
        "old-spike",
    ];
    assert_eq!(names(&board), order);
    let counts = Tab::ALL.map(|tab| board.count(tab));
    assert_eq!(counts, [7, 2, 3, 1, 2]);
    let selected = board.session().and_then(|it| it.name.clone()).unwrap();
    assert_eq!(selected.as_str(), "fix-flaky-tests", "it needs somebody");
}

#[test]
fn the_selection_follows_its_session_and_leaves_one_that_goes() {
    let mut board = fleet();
    select(&mut board, "docs");
    let mut asks = asking(2, "docs");
    asks.revision = 2;
    let id = asks.id;
    board.told(changed(vec![asks]));
    assert_eq!(board.selected, Some(id));
    let gone = FleetWatchItem::Changed {
        sessions: Vec::new(),
        gone: vec![id],
    };
    board.told(gone);
    assert_eq!(names(&board)[0], "fix-flaky-tests");
    assert_eq!(board.selected, Some(board.rows()[0].id));
}

#[test]
fn keys_move_within_the_rows_and_around_the_tabs() {
    let mut board = fleet();
    assert_eq!(press(&mut board, KeyCode::End), None);
    assert_eq!(
        board.session().unwrap().name.as_ref().unwrap().as_str(),
        "old-spike"
    );
    press(&mut board, KeyCode::Down);
    assert_eq!(
        board.session().unwrap().name.as_ref().unwrap().as_str(),
        "old-spike",
        "no further"
    );
    press(&mut board, KeyCode::Home);
    press(&mut board, KeyCode::Up);
    assert_eq!(
        board.session().unwrap().name.as_ref().unwrap().as_str(),
        "fix-flaky-tests"
    );
    press(&mut board, KeyCode::Left);
    assert_eq!(board.tab, Tab::Inactive);
    press(&mut board, KeyCode::Tab);
    assert_eq!(board.tab, Tab::All);
    press(&mut board, KeyCode::Char('4'));
    assert_eq!(
        (board.tab, names(&board)),
        (Tab::Ready, vec!["docs".to_owned()])
    );
}

#[test]
fn what_is_typed_is_done_to_the_session_that_was_selected_then() {
    let mut board = fleet();
    let (id, question) = board
        .session()
        .map(|it| (it.id, it.questions[0].id))
        .unwrap();
    assert_eq!(press(&mut board, KeyCode::Char('a')), None);
    // Something more urgent comes while it is typed.
    board.told(changed(vec![asking(8, "another")]));
    write(&mut board, "yes");
    let act = press(&mut board, KeyCode::Enter);
    let answer = InteractionAnswer::Confirmed(true);
    assert_eq!(act, Some(Act::Answer(id, question, answer)));
    assert_eq!(board.mode, Mode::Browse);
    select(&mut board, "refactor-core");
    let (id, run) = board
        .session()
        .map(|it| (it.id, it.active_run.unwrap()))
        .unwrap();
    press(&mut board, KeyCode::Char('s'));
    write(&mut board, "only the quick ones");
    let act = press(&mut board, KeyCode::Enter);
    assert_eq!(
        act,
        Some(Act::Steer(id, run, "only the quick ones".to_owned()))
    );
}

#[test]
fn an_answer_that_is_none_is_told_and_can_be_mended() {
    let mut board = fleet();
    press(&mut board, KeyCode::Char('a'));
    write(&mut board, "perhaps");
    assert_eq!(press(&mut board, KeyCode::Enter), None);
    assert!(
        matches!(&board.notice, Some(Notice::Failed(_))),
        "{:?}",
        board.notice
    );
    for _ in 0.."perhaps".len() {
        press(&mut board, KeyCode::Backspace);
    }
    write(&mut board, "no");
    let act = press(&mut board, KeyCode::Enter);
    assert!(matches!(act, Some(Act::Answer(..))), "{act:?}");
}

#[test]
fn nothing_is_aborted_by_one_key_and_nothing_that_has_settled() {
    let mut board = fleet();
    select(&mut board, "refactor-core");
    press(&mut board, KeyCode::Char('x'));
    assert_eq!(
        press(&mut board, KeyCode::Enter),
        None,
        "any other key is no"
    );
    press(&mut board, KeyCode::Char('x'));
    assert!(matches!(
        press(&mut board, KeyCode::Char('y')),
        Some(Act::Abort(..))
    ));
    press(&mut board, KeyCode::Char('x'));
    let mut settled = session(3, "refactor-core", Phase::Ready);
    settled.revision = 2;
    board.told(changed(vec![settled]));
    assert_eq!(press(&mut board, KeyCode::Char('y')), None);
    select(&mut board, "docs");
    press(&mut board, KeyCode::Char('x'));
    assert_eq!(board.mode, Mode::Browse, "nothing runs in it");
}

/// A question with a title, the `ordinal`-th of its run.
fn asks(session: &mut SessionSummary, ordinal: u32, shape: Shape) -> InteractionId {
    let mut asked = asking(4, "x").questions.remove(0);
    asked.id.ordinal = ordinal;
    asked.question.shape = shape;
    let id = asked.id;
    session.questions = vec![asked];
    id
}

#[test]
fn c25_an_answer_never_goes_to_another_question_than_the_one_it_was_begun_for() {
    let mut board = fleet();
    press(&mut board, KeyCode::Char('a'));
    write(&mut board, "yes");
    // Somebody else answers it, and the run asks something else.
    let mut next = asking(4, "fix-flaky-tests");
    asks(&mut next, 2, Shape::Confirm);
    board.told(changed(vec![next]));
    assert_eq!(press(&mut board, KeyCode::Enter), None);
    assert!(matches!(&board.notice, Some(Notice::Failed(_))));
    assert!(screen(&board, 80, 12).contains("was answered"));
}

#[test]
fn c20_a_steer_and_an_abort_go_to_the_run_that_they_were_begun_for() {
    let again = || {
        let mut again = session(3, "refactor-core", Phase::Working);
        again.active_run = Some(RunId::mint(ago(1), 99));
        again
    };
    let mut board = fleet();
    select(&mut board, "refactor-core");
    press(&mut board, KeyCode::Char('s'));
    write(&mut board, "go left");
    board.told(changed(vec![again()]));
    assert_eq!(press(&mut board, KeyCode::Enter), None, "another run");
    let mut board = fleet();
    select(&mut board, "refactor-core");
    press(&mut board, KeyCode::Char('x'));
    board.told(changed(vec![again()]));
    assert_eq!(press(&mut board, KeyCode::Char('y')), None, "another run");
    assert!(matches!(&board.notice, Some(Notice::Failed(_))));
}

#[test]
fn c61_a_secret_is_not_shown_while_it_is_typed() {
    let mut board = fleet();
    let mut secret = asking(4, "fix-flaky-tests");
    let id = asks(&mut secret, 1, Shape::Input { secret: true });
    board.told(changed(vec![secret]));
    press(&mut board, KeyCode::Char('a'));
    write(&mut board, "hunter2");
    let shown = screen(&board, 80, 24);
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("(not shown): *******_"), "{shown}");
    let act = press(&mut board, KeyCode::Enter);
    let answer = InteractionAnswer::Text("hunter2".to_owned());
    let Some(Act::Answer(_, asked, given)) = act else {
        panic!("{act:?}")
    };
    assert_eq!((asked, given), (id, answer));
}

#[test]
fn a_key_that_is_held_with_control_or_alt_does_nothing_to_a_session() {
    for modifiers in [KeyModifiers::CONTROL, KeyModifiers::ALT] {
        for letter in "oparsxjkq?".chars() {
            let mut board = fleet();
            let acted = key(&mut board, KeyEvent::new(KeyCode::Char(letter), modifiers));
            assert_eq!((acted, &board.mode), (None, &Mode::Browse), "{letter}");
        }
        let mut board = fleet();
        press(&mut board, KeyCode::Char('x'));
        let yes = key(&mut board, KeyEvent::new(KeyCode::Char('y'), modifiers));
        assert_eq!(yes, None);
    }
}

#[test]
fn c02_what_may_have_been_done_is_not_told_as_not_done() {
    let mut board = fleet();
    board.notice = Some(Notice::Unknown("no answer".to_owned()));
    let shown = screen(&board, 80, 12);
    assert!(
        shown.contains("whether it was done is unknown: no answer"),
        "{shown}"
    );
    assert!(!shown.contains("not done"), "{shown}");
}

#[test]
fn the_end_of_a_long_line_is_seen_while_it_is_typed() {
    let mut board = fleet();
    select(&mut board, "refactor-core");
    press(&mut board, KeyCode::Char('s'));
    write(&mut board, &"word ".repeat(40));
    write(&mut board, "and the end");
    for width in [24, 80] {
        let shown = screen(&board, width, 12);
        assert!(shown.contains("the end_"), "{shown}");
    }
}

#[test]
fn letters_of_a_paste_are_no_commands() {
    let mut board = fleet();
    pasted(&mut board, "q\nx\ny\n");
    assert_eq!((&board.mode, board.count(Tab::All)), (&Mode::Browse, 7));
    press(&mut board, KeyCode::Char('r'));
    let Mode::Typing { text, .. } = board.mode.clone() else {
        panic!("{:?}", board.mode)
    };
    assert_eq!(
        text, "fix-flaky-tests",
        "it begins with the name that it has"
    );
    key(
        &mut board,
        KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL),
    );
    pasted(&mut board, "fix-\u{1b}[2Jnet\n");
    assert_eq!(
        press(&mut board, KeyCode::Enter),
        None,
        "no name has an escape sequence's rest in it"
    );
    assert!(matches!(&board.notice, Some(Notice::Failed(_))));
}

#[test]
fn a_filter_works_as_it_is_typed_and_esc_takes_it_back() {
    let mut board = fleet();
    press(&mut board, KeyCode::Char('/'));
    write(&mut board, "TOPIC/d");
    assert_eq!(names(&board), ["dep-audit", "docs"]);
    press(&mut board, KeyCode::Enter);
    assert_eq!(board.count(Tab::All), 2);
    press(&mut board, KeyCode::Esc);
    assert_eq!(board.count(Tab::All), 7);
}
