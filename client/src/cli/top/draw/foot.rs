//! What stands below the board: what is being typed, what was told, or what can be done.

use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use super::Looks;
use crate::cli::render::named;
use crate::cli::top::board::{Board, Link, Mode, Notice, Purpose};
use crate::cli::visible;
use crate::cli::wrap::wrapped;

const KEYS: &str = "enter attach  a answer  s steer  x abort  p pause  r rename  / filter  ? help";

/// The lines below the board on a terminal of this size, at least one. What was told is never cut, as
/// long as half of the terminal has room for it.
pub(super) fn lines(board: &Board, looks: Looks, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width).max(1);
    match &board.mode {
        Mode::Typing {
            purpose,
            prompt,
            text,
        } if board.notice.is_none() => {
            return vec![typed_line(*purpose, prompt, text, width)];
        }
        _ => {}
    }
    let (words, style) = told(board, looks);
    let most = usize::from(area.height / 2).max(1);
    let mut lines = broken(&words, width);
    if lines.len() > most {
        let rest = lines.split_off(most - 1).join(" ");
        lines.push(visible::clipped_to_columns(&rest, width));
    }
    let lines = lines.into_iter().map(|line| Line::styled(line, style));
    lines.collect()
}

/// What was told, or what can be done, and how it looks.
fn told(board: &Board, looks: Looks) -> (String, Style) {
    if let Mode::ConfirmAbort(session, _) = &board.mode {
        let name = board.of(*session).map(|it| named(it).to_string());
        let name = name.unwrap_or_default();
        let words = format!("abort the run of {name}? y: yes, any other key: no");
        return (words, Style::new());
    }
    let wrong = looks.colour(Color::Red);
    match (&board.notice, &board.link) {
        (Some(Notice::Failed(words)), _) => (format!("not done: {words}"), wrong),
        (Some(Notice::Unknown(words)), _) => {
            (format!("whether it was done is unknown: {words}"), wrong)
        }
        (Some(Notice::Done(words)), _) => (words.clone(), Style::new()),
        (None, Link::Lost(why)) => (format!("connection lost, trying again: {why}"), wrong),
        (None, Link::Opening | Link::Live) => {
            (KEYS.to_owned(), Style::new().add_modifier(Modifier::DIM))
        }
    }
}

/// Words in lines: broken between words, and a word that is longer than a line within.
fn broken(words: &str, width: usize) -> Vec<String> {
    let lines = wrapped(&visible::line(words), 0, width, "");
    let lines = lines
        .lines()
        .flat_map(|line| visible::broken(line, width, width));
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return vec![String::new()];
    }
    lines
}

/// The line that is being typed, its end in sight however long it is. Of a secret only how much of it
/// was typed.
fn typed_line(purpose: Purpose, prompt: &str, text: &str, width: usize) -> Line<'static> {
    let secret = matches!(purpose, Purpose::Answer { secret: true, .. });
    let text = if secret {
        "*".repeat(text.chars().count())
    } else {
        text.to_owned()
    };
    let prompt = visible::clipped_to_columns(prompt, width / 2);
    // One column is the cursor's.
    let room = width.saturating_sub(visible::columns(&prompt) + 1);
    let text = visible::end_in_columns(&text, room);
    Line::raw(format!("{prompt}{text}_"))
}
