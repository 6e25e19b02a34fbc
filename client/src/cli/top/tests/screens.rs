//! How the board looks, in terminals of every size.

use sessionplane_core::domain::run::Failure;

use super::*;

#[test]
fn the_board_fits_eighty_columns() {
    insta::assert_snapshot!(screen(&fleet(), 80, 24));
}

#[test]
fn a_wide_terminal_has_the_details_beside() {
    insta::assert_snapshot!(screen(&fleet(), 130, 20));
}

#[test]
fn help_and_loss_are_shown_over_what_there_was() {
    let mut board = fleet();
    board.link = Link::Lost("connection refused".to_owned());
    insta::assert_snapshot!(screen(&board, 80, 12));
    press(&mut board, KeyCode::Char('?'));
    insta::assert_snapshot!(screen(&board, 80, 20));
}

#[test]
fn what_was_told_last_does_not_hide_that_the_connection_is_lost() {
    let lost = |message: &str| FleetWatchItem::Reconnecting {
        attempt: 1,
        delay: Duration::from_secs(1),
        error: CallError::refused(Reason::Overloaded, message.to_owned()),
    };
    let mut board = fleet();
    board.notice = Some(Notice::Done("answered".to_owned()));
    board.told(lost("broken pipe"));
    let shown = screen(&board, 80, 12);
    assert!(shown.contains("broken pipe"), "{shown}");
    // What is told of a key that was pressed since stays.
    board.notice = Some(Notice::Failed("no connection".to_owned()));
    board.told(lost("refused"));
    let shown = screen(&board, 80, 12);
    assert!(shown.contains("not done: no connection"), "{shown}");
}

#[test]
fn c46_a_narrow_terminal_tells_what_needs_whom_and_what_is_asked() {
    let mut board = fleet();
    let mut nameless = session(9, "other", Phase::Working);
    nameless.name = None;
    let id = nameless.id.to_string();
    board.told(changed(vec![nameless]));
    for width in [20, 30, 40, 60, 80] {
        let shown = screen(&board, width, 12);
        assert!(shown.contains("fix-fl"), "{shown}");
        // Ids of one time begin alike.
        assert!(shown.contains(&id[20..]), "{shown}");
        if width >= 24 {
            assert!(shown.contains("needs input"), "{shown}");
        }
    }
    press(&mut board, KeyCode::Char('a'));
    for (width, height) in [(40, 10), (20, 9)] {
        let shown = screen(&board, width, height);
        assert!(shown.contains("? run"), "{shown}");
    }
}

#[test]
fn two_that_work_in_one_directory_are_marked() {
    let mut board = fleet();
    let mut beside = session(9, "beside", Phase::Working);
    beside.place = session(3, "refactor-core", Phase::Working).place;
    board.told(changed(vec![beside]));
    let shown = screen(&board, 100, 12);
    assert_eq!(shown.matches("*crates/refac").count(), 2, "{shown}");
}

#[test]
fn every_key_can_be_read_however_low_the_terminal_is() {
    let mut board = fleet();
    press(&mut board, KeyCode::Char('?'));
    for height in [7, 12] {
        let mut seen = String::new();
        for above in 0..30 {
            board.mode = Mode::Help(above);
            seen += &screen(&board, 80, height);
        }
        for key in ["up, down, j, k", "answer its question", "q, Ctrl-C"] {
            assert!(seen.contains(key), "{key}");
        }
    }
    press(&mut board, KeyCode::Down);
    assert!(matches!(board.mode, Mode::Help(_)), "{:?}", board.mode);
    press(&mut board, KeyCode::Char('q'));
    assert_eq!(board.mode, Mode::Browse);
}

#[test]
fn all_of_a_session_can_be_read_beneath_the_table() {
    let mut board = fleet();
    assert!(!screen(&board, 80, 18).contains("last run"));
    let mut seen = String::new();
    for _ in 0..20 {
        press(&mut board, KeyCode::Char('J'));
        seen += &screen(&board, 80, 18);
    }
    assert!(
        seen.contains("last run") && seen.contains("updated"),
        "{seen}"
    );
    press(&mut board, KeyCode::Down);
    assert_eq!(board.above, 0, "another session's from its beginning");
}

#[test]
fn the_selected_session_is_seen_wherever_it_is_among_a_thousand() {
    let mut board = Board::default();
    let many = (1..=1000).map(|number| session(number, &format!("s-{number}"), Phase::Working));
    board.told(changed(many.collect()));
    for code in [KeyCode::End, KeyCode::PageUp, KeyCode::Up, KeyCode::Home] {
        press(&mut board, code);
        let name = board.session().and_then(|it| it.name.clone()).unwrap();
        let shown = screen(&board, 80, 12);
        assert!(
            shown.contains(&format!("working     {name} ")),
            "{name}: {shown}"
        );
        assert!(shown.contains("> working"), "{shown}");
    }
}

#[test]
fn no_size_of_a_terminal_makes_it_panic() {
    let mut board = fleet();
    for mode in ['?', 'a', 'x'] {
        board.mode = Mode::Browse;
        select(&mut board, "fix-flaky-tests");
        press(&mut board, KeyCode::Char(mode));
        for width in [1, 2, 10, 40, 79, 119, 120, 300] {
            for height in [1, 2, 3, 5, 15, 16, 60] {
                screen(&board, width, height);
            }
        }
    }
}

#[test]
fn what_others_wrote_does_not_steer_the_terminal() {
    let mut board = Board::default();
    let mut hostile = asking(1, "hostile");
    hostile.questions[0].question.title = "\u{1b}[2J\u{202e}sure?".to_owned();
    hostile.checkout = Some(Checkout {
        branch: Some("\u{1b}]0;x\u{7}".into()),
        commit: None,
    });
    board.told(changed(vec![hostile]));
    board.told(FleetWatchItem::Current);
    let shown = screen(&board, 120, 20);
    assert!(
        !shown.contains('\u{1b}') && !shown.contains('\u{202e}'),
        "{shown}"
    );
    assert!(shown.contains("\\e[2J"));
}

#[test]
fn a_notice_is_read_in_full_however_long_it_is() {
    let mut board = fleet();
    let words = "a name is 1 to 63 characters of a-z, 0-9 and inner hyphens, and this one has \
                 another character in it, which is no letter: \u{e9}";
    board.notice = Some(Notice::Failed(words.to_owned()));
    let shown = screen(&board, 80, 12);
    assert!(shown.contains("which is no letter: \u{e9}"), "{shown}");
    assert!(shown.contains("> needs input"), "{shown}");
    board.notice = None;
    board.link = Link::Lost("x".repeat(150));
    let shown = screen(&board, 80, 12);
    assert_eq!(shown.matches('x').count() - fleet_of_x(), 150, "{shown}");
    // Where there is no room for it, that is seen.
    board.link = Link::Lost("x ".repeat(150));
    assert!(screen(&board, 20, 6).contains('\u{2026}'));
}

/// How often an x is on the board itself.
fn fleet_of_x() -> usize {
    screen(&fleet(), 80, 10)
        .lines()
        .take(9)
        .collect::<String>()
        .matches('x')
        .count()
}

#[test]
fn a_tall_terminal_shows_more_of_the_session_and_how_its_last_run_ended() {
    let mut board = fleet();
    let mut failed = session(2, "docs", Phase::Ready);
    failed.last_run = failed.last_run.map(|last| LastRun {
        outcome: RunOutcome::Failed(Failure {
            code: "budget".to_owned(),
            details: "it cost too much".to_owned(),
            retryable: false,
        }),
        ..last
    });
    board.told(changed(vec![failed]));
    select(&mut board, "docs");
    let shown = screen(&board, 80, 30);
    for words in ["LAST RUN", "failed: b", "it cost too much", "updated"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn c46_where_sessions_work_is_told_by_the_end_that_differs() {
    let mut board = Board::default();
    let at = |number: u128, name: &str| {
        let mut session = session(number, name, Phase::Working);
        session.place.as_mut().unwrap().directory =
            Directory::parse(&format!(".worktrees/fix-a-long-one-{name}")).unwrap();
        session
    };
    board.told(changed(vec![at(1, "aa"), at(2, "bb")]));
    for width in [80, 140] {
        let shown = screen(&board, width, 12);
        for end in ["long-one-aa ", "long-one-bb "] {
            assert!(shown.contains(end), "{shown}");
        }
    }
}

#[test]
fn a_column_of_queues_is_there_from_the_first_one_on() {
    let mut board = fleet();
    assert!(!screen(&board, 80, 12).contains("QUEUE"));
    let mut queued = session(2, "docs", Phase::Queued);
    queued.queued = 1;
    board.told(changed(vec![queued]));
    assert!(screen(&board, 90, 12).contains("QUEUE"));
    board.told(changed(vec![session(2, "docs", Phase::Ready)]));
    assert!(screen(&board, 90, 12).contains("QUEUE"), "nothing moves");
}

#[test]
fn c46_where_the_filter_of_the_command_line_wants_none_it_is_blamed() {
    let mut board = Board::wanting("labels.team = \"wbe\"".to_owned());
    board.told(FleetWatchItem::Current);
    let shown = screen(&board, 100, 12);
    assert!(
        shown.contains("the filter of the command line wants: labels.team = \"wbe\""),
        "{shown}"
    );
    assert!(!shown.contains("no session yet"), "{shown}");
    board.told(changed(vec![session(1, "docs", Phase::Ready)]));
    let shown = screen(&board, 100, 12);
    assert!(shown.contains("only labels.team = \"wbe\""), "{shown}");
}
