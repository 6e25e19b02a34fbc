//! What a key means, in each mode.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{InteractionId, RunId, SessionId, SessionName};
use sessionplane_core::domain::interaction::{InteractionAnswer, Shape};

use super::board::{Board, Mode, Notice, Purpose, Tab};
use crate::cli::answering;
use crate::cli::render::named;

/// Longest line that is typed, in characters; a longer text belongs into a file.
const LONGEST_LINE: usize = 4096;
/// Rows of one page.
const PAGE: isize = 10;

/// What is to be done outside of the board.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    /// The board is left.
    Quit,
    /// The program stops, and the shell has the terminal until it goes on.
    Suspend,
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
    match event.code {
        KeyCode::Char('c') if event.modifiers.contains(KeyModifiers::CONTROL) => {
            return Some(Act::Quit);
        }
        KeyCode::Char('z') if event.modifiers.contains(KeyModifiers::CONTROL) => {
            return Some(Act::Suspend);
        }
        _ => {}
    }
    board.notice = None;
    match board.mode.clone() {
        Mode::Browse if is_chord(event) => None,
        Mode::Browse => browse(board, event.code),
        Mode::Typing {
            purpose,
            prompt,
            text,
        } => typing(board, event, purpose, prompt, text),
        Mode::ConfirmAbort(session, run) => {
            let yes = event.code == KeyCode::Char('y') && !is_chord(event);
            confirm(board, yes, session, run)
        }
        Mode::Help(above) => {
            board.mode = match event.code {
                KeyCode::Down | KeyCode::Char('j') => Mode::Help(above.saturating_add(1)),
                KeyCode::Up | KeyCode::Char('k') => Mode::Help(above.saturating_sub(1)),
                _ => Mode::Browse,
            };
            None
        }
    }
}

/// Whether it is more than the key itself: who is used to Ctrl-P elsewhere does not mean to pause.
fn is_chord(event: KeyEvent) -> bool {
    !(event.modifiers - KeyModifiers::SHIFT).is_empty()
}

fn browse(board: &mut Board, code: KeyCode) -> Option<Act> {
    match code {
        KeyCode::Char('q') => return Some(Act::Quit),
        KeyCode::Down | KeyCode::Char('j') => board.step(1),
        KeyCode::Up | KeyCode::Char('k') => board.step(-1),
        KeyCode::Char('J') => board.scroll(1),
        KeyCode::Char('K') => board.scroll(-1),
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
        KeyCode::Char('?' | 'h') => board.mode = Mode::Help(0),
        KeyCode::Char('/') => {
            board.mode = Mode::Typing {
                purpose: Purpose::Filter,
                prompt: "filter: ".to_owned(),
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
    let id = session.id;
    let mode = match code {
        KeyCode::Enter | KeyCode::Char('o') => return Some(Act::Attach(id)),
        KeyCode::Char('p') => return Some(Act::Pause(id, !session.paused)),
        KeyCode::Char('a') => answer_to(session),
        KeyCode::Char('s') => session.active_run.map(|run| Mode::Typing {
            purpose: Purpose::Steer(id, run),
            prompt: format!("steer {}: ", named(session)),
            text: String::new(),
        }),
        KeyCode::Char('x') => session.active_run.map(|run| Mode::ConfirmAbort(id, run)),
        KeyCode::Char('r') => Some(Mode::Typing {
            purpose: Purpose::Rename(id),
            prompt: "new name: ".to_owned(),
            text: session
                .name
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
        }),
        _ => return None,
    };
    if let Some(mode) = mode {
        board.mode = mode;
    } else {
        let problem = if code == KeyCode::Char('a') {
            "it asks nothing"
        } else {
            "nothing runs in it"
        };
        board.notice = Some(Notice::Failed(problem.to_owned()));
    }
    None
}

/// A line for an answer to what was asked first and is open.
fn answer_to(session: &SessionSummary) -> Option<Mode> {
    let mut open = session.questions.iter();
    let asked = open.find(|asked| asked.resolution.is_none())?;
    let secret = matches!(asked.question.shape, Shape::Input { secret: true });
    let way = if secret {
        "not shown".to_owned()
    } else {
        answering::example(&asked.question)
    };
    Some(Mode::Typing {
        purpose: Purpose::Answer {
            session: session.id,
            question: asked.id,
            secret,
        },
        prompt: format!("answer {} ({way}): ", named(session)),
        text: String::new(),
    })
}

fn confirm(board: &mut Board, yes: bool, session: SessionId, run: RunId) -> Option<Act> {
    board.mode = Mode::Browse;
    if !yes {
        return None;
    }
    // Another run may be active by now, which nobody has said yes to.
    let still = board.of(session).and_then(|session| session.active_run) == Some(run);
    if !still {
        board.notice = Some(Notice::Failed("its run has settled".to_owned()));
    }
    still.then_some(Act::Abort(session, run))
}

fn typing(
    board: &mut Board,
    event: KeyEvent,
    purpose: Purpose,
    prompt: String,
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
        KeyCode::Enter => return entered(board, purpose, prompt, text),
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char('u') if control => text.clear(),
        KeyCode::Char(c) if !is_chord(event) && text.chars().count() < LONGEST_LINE => text.push(c),
        _ => {}
    }
    retype(board, purpose, prompt, text);
    None
}

/// Puts a text into the line; a filter works while it is typed.
fn retype(board: &mut Board, purpose: Purpose, prompt: String, text: String) {
    if purpose == Purpose::Filter {
        board.narrow(&text);
    }
    board.mode = Mode::Typing {
        purpose,
        prompt,
        text,
    };
}

/// Text that was pasted goes into the line that is being typed, as one line; elsewhere it is nothing:
/// its letters are no commands.
pub(crate) fn pasted(board: &mut Board, paste: &str) {
    let Mode::Typing {
        purpose,
        prompt,
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
    retype(board, purpose, prompt, text);
}

fn entered(board: &mut Board, purpose: Purpose, prompt: String, text: String) -> Option<Act> {
    board.mode = Mode::Browse;
    match act(board, purpose, &text) {
        Ok(act) => act,
        Err(problem) => {
            board.notice = Some(Notice::Failed(problem));
            retype(board, purpose, prompt, text);
            None
        }
    }
}

/// What a line means that was typed to its end.
fn act(board: &mut Board, purpose: Purpose, text: &str) -> Result<Option<Act>, String> {
    let of = |id| board.of(id).ok_or("the session is gone");
    let act = match purpose {
        Purpose::Answer {
            session, question, ..
        } => {
            let mut asked = of(session)?.questions.iter();
            let open = asked.find(|asked| asked.id == question && asked.resolution.is_none());
            let open = open.ok_or("this question was answered, or waits no more; esc leaves it")?;
            let answer = answering::from_text(&open.question, text)?;
            Act::Answer(session, question, answer)
        }
        Purpose::Steer(..) if text.trim().is_empty() => return Err("it is empty".to_owned()),
        Purpose::Steer(session, run) if of(session)?.active_run == Some(run) => {
            Act::Steer(session, run, text.to_owned())
        }
        Purpose::Steer(..) => return Err("its run has settled; esc leaves it".to_owned()),
        Purpose::Rename(session) => {
            let name = SessionName::parse(text.trim()).map_err(|error| error.to_string())?;
            Act::Rename(of(session)?.id, name)
        }
        Purpose::Filter => {
            board.narrow(text);
            return Ok(None);
        }
    };
    Ok(Some(act))
}
