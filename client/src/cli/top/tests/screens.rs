//! How the board looks, in terminals of every size.

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
    assert!(!screen(&board, 80, 24).contains("last run"));
    let mut seen = String::new();
    for _ in 0..20 {
        press(&mut board, KeyCode::Char('J'));
        seen += &screen(&board, 80, 24);
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
