//! What a key means, in each mode.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{InteractionId, RunId, SessionId, SessionName};

use super::board::{Board, Mode, Notice, Purpose, Tab};
use crate::cli::answering;
use sessionplane_core::domain::interaction::InteractionAnswer;

/// Longest line that is typed, in characters; a longer text belongs into a file.
const LONGEST_LINE: usize = 4096;
/// Rows of one page.
const PAGE: isize = 10;

/// What is to be done outside of the board.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    /// The board is left.
    Quit,
    /// A session is attached to; the board comes back after that.
    Attach(SessionId),
    /// A question is answered.
    Answer(SessionId, InteractionId, InteractionAnswer),
    /// A run is steered.
    Steer(SessionId, RunId, String),
    /// A run is aborted.
    Abort(SessionId, RunId),
    /// A session is renamed.
    Rename(SessionId, SessionName),
    /// A session is paused, or let go on.
    Pause(SessionId, bool),
}

/// Takes a key in; says what is to be done about it.
pub(crate) fn key(board: &mut Board, event: KeyEvent) -> Option<Act> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    if control && event.code == KeyCode::Char('c') {
        return Some(Act::Quit);
    }
    board.notice = None;
    match board.mode.clone() {
        Mode::Browse => browse(board, event.code),
        Mode::Typing {
            purpose,
            session,
            text,
        } => typing(board, event, purpose, session, text),
        Mode::ConfirmAbort(session) => confirm(board, event.code, session),
        Mode::Help => {
            board.mode = Mode::Browse;
            None
        }
    }
}

fn browse(board: &mut Board, code: KeyCode) -> Option<Act> {
    match code {
        KeyCode::Char('q') => return Some(Act::Quit),
        KeyCode::Down | KeyCode::Char('j') => board.step(1),
        KeyCode::Up | KeyCode::Char('k') => board.step(-1),
        KeyCode::PageDown => board.step(PAGE),
        KeyCode::PageUp => board.step(-PAGE),
        KeyCode::Home | KeyCode::Char('g') => board.step(isize::MIN),
        KeyCode::End | KeyCode::Char('G') => board.step(isize::MAX),
        KeyCode::Tab | KeyCode::Right => board.turn(1),
        KeyCode::BackTab | KeyCode::Left => board.turn(Tab::ALL.len() - 1),
        KeyCode::Char(digit @ '1'..='5') => {
            let at = digit.to_digit(10).map_or(0, |digit| digit as usize - 1);
            board.open(Tab::ALL[at]);
        }
        KeyCode::Char('?' | 'h') => board.mode = Mode::Help,
        KeyCode::Char('/') => {
            board.mode = Mode::Typing {
                purpose: Purpose::Filter,
                session: None,
                text: board.filter.clone(),
            };
        }
        KeyCode::Esc => board.narrow(""),
        code => return about_session(board, code),
    }
    None
}

/// Keys that are about the selected session.
fn about_session(board: &mut Board, code: KeyCode) -> Option<Act> {
    let session = board.session()?;
    let (id, running) = (session.id, session.active_run.is_some());
    let type_for = |board: &mut Board, purpose, text| {
        board.mode = Mode::Typing {
            purpose,
            session: Some(id),
            text,
        };
    };
    match code {
        KeyCode::Enter | KeyCode::Char('o') => return Some(Act::Attach(id)),
        KeyCode::Char('p') => return Some(Act::Pause(id, !session.paused)),
        KeyCode::Char('a') if session.questions.is_empty() => {
            board.notice = Some(Notice::Failed("it asks nothing".to_owned()));
        }
        KeyCode::Char('a') => type_for(board, Purpose::Answer, String::new()),
        KeyCode::Char('s' | 'x') if !running => {
            board.notice = Some(Notice::Failed("nothing runs in it".to_owned()));
        }
        KeyCode::Char('s') => type_for(board, Purpose::Steer, String::new()),
        KeyCode::Char('x') => board.mode = Mode::ConfirmAbort(id),
        KeyCode::Char('r') => {
            let name = session.name.as_ref().map(ToString::to_string);
            type_for(board, Purpose::Rename, name.unwrap_or_default());
        }
        _ => {}
    }
    None
}

fn confirm(board: &mut Board, code: KeyCode, session: SessionId) -> Option<Act> {
    board.mode = Mode::Browse;
    if code != KeyCode::Char('y') {
        return None;
    }
    let run = board.of(session).and_then(|session| session.active_run);
    if run.is_none() {
        board.notice = Some(Notice::Failed("its run has settled".to_owned()));
    }
    run.map(|run| Act::Abort(session, run))
}

fn typing(
    board: &mut Board,
    event: KeyEvent,
    purpose: Purpose,
    session: Option<SessionId>,
    mut text: String,
) -> Option<Act> {
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    match event.code {
        KeyCode::Esc => {
            board.mode = Mode::Browse;
            if purpose == Purpose::Filter {
                board.narrow("");
            }
            return None;
        }
        KeyCode::Enter => return entered(board, purpose, session, text),
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char('u') if control => text.clear(),
        KeyCode::Char(c) if !control && text.chars().count() < LONGEST_LINE => text.push(c),
        _ => {}
    }
    retype(board, purpose, session, text);
    None
}

/// Puts a text into the line; a filter works while it is typed.
fn retype(board: &mut Board, purpose: Purpose, session: Option<SessionId>, text: String) {
    if purpose == Purpose::Filter {
        board.narrow(&text);
    }
    board.mode = Mode::Typing {
        purpose,
        session,
        text,
    };
}

/// Text that was pasted goes into the line that is being typed, as one line; elsewhere it is nothing:
/// its letters are no commands.
pub(crate) fn pasted(board: &mut Board, paste: &str) {
    let Mode::Typing {
        purpose,
        session,
        mut text,
    } = board.mode.clone()
    else {
        return;
    };
    let line = paste
        .trim_end_matches(['\r', '\n'])
        .replace(['\r', '\n'], " ");
    let room = LONGEST_LINE.saturating_sub(text.chars().count());
    text.extend(line.chars().filter(|c| !c.is_control()).take(room));
    retype(board, purpose, session, text);
}

fn entered(
    board: &mut Board,
    purpose: Purpose,
    session: Option<SessionId>,
    text: String,
) -> Option<Act> {
    board.mode = Mode::Browse;
    if purpose == Purpose::Filter {
        board.narrow(&text);
        return None;
    }
    let known = session.and_then(|id| board.of(id));
    let act = match known {
        None => Err("the session is gone".to_owned()),
        Some(session) => act(session, purpose, &text),
    };
    match act {
        Ok(act) => Some(act),
        Err(problem) => {
            board.notice = Some(Notice::Failed(problem));
            retype(board, purpose, session, text);
            None
        }
    }
}

fn act(session: &SessionSummary, purpose: Purpose, text: &str) -> Result<Act, String> {
    match purpose {
        Purpose::Answer => {
            let open = session.questions.first();
            let open = open.ok_or("the question was answered, or waits no more")?;
            let answer = answering::from_text(&open.question, text)?;
            Ok(Act::Answer(session.id, open.id, answer))
        }
        Purpose::Steer if text.trim().is_empty() => Err("it is empty".to_owned()),
        Purpose::Steer => {
            let run = session.active_run.ok_or("its run has settled")?;
            Ok(Act::Steer(session.id, run, text.to_owned()))
        }
        Purpose::Rename => {
            let name = SessionName::parse(text.trim()).map_err(|error| error.to_string())?;
            Ok(Act::Rename(session.id, name))
        }
        Purpose::Filter => Err("a filter does nothing to a session".to_owned()),
    }
}
