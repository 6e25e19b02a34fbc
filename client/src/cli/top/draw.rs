//! The board as a screen: tabs with counts, the table, the selected session beside or beneath it, and
//! one line of what is being typed, told, or can be done.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Clear, Paragraph, Row, Table, TableState, Wrap};
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::time::Timestamp;

use super::board::{Board, Link, Mode, Notice, Purpose, Tab};
use crate::cli::render::{Desk, branch, brief, named, question_lines, session_lines, state};
use crate::cli::visible;

/// From this width on the selected session stands beside the table; below, beneath it.
const WIDE: u16 = 120;
/// From this height on there is room for the selected session at all.
const HIGH: u16 = 16;

/// The keys, for those who ask.
const HELP: [(&str, &str); 15] = [
    ("up, down, j, k", "select a session"),
    ("tab, left, right, 1-5", "open a tab"),
    ("enter, o", "attach to it; Ctrl-D comes back"),
    ("a", "answer its question"),
    ("s", "steer its run"),
    ("x", "abort its run"),
    ("p", "pause it, or let it go on"),
    ("r", "rename it"),
    ("/", "show only sessions with these words"),
    ("esc", "show all again"),
    ("page up, page down", "ten rows"),
    ("home, end, g, G", "first, last"),
    ("?, h", "this"),
    ("Ctrl-Z", "back to the shell; fg comes back"),
    ("q, Ctrl-C", "leave"),
];

/// Draws the board as it is at `now`; `colours` says whether there may be any.
pub(crate) fn draw(board: &Board, now: Timestamp, colours: bool, frame: &mut Frame<'_>) {
    let looks = Looks { colours };
    let [tabs, middle, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(tab_line(board, looks), tabs);
    let (table, beside) = parts(middle);
    sessions(board, now, looks, frame, table);
    if let Some(beside) = beside {
        let block = Block::new().borders(Borders::TOP | Borders::LEFT);
        let lines = board.session().map(|it| details(it, now));
        let text = Paragraph::new(lines.unwrap_or_default()).wrap(Wrap { trim: false });
        frame.render_widget(text.block(block), beside);
    }
    frame.render_widget(foot_line(board, looks, foot.width), foot);
    if board.mode == Mode::Help {
        help(frame, middle);
    }
}

/// How the screen may look.
#[derive(Clone, Copy)]
struct Looks {
    colours: bool,
}

impl Looks {
    fn colour(self, colour: Color) -> Style {
        if self.colours {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }
}

fn parts(middle: Rect) -> (Rect, Option<Rect>) {
    if middle.width >= WIDE {
        let halves = [Constraint::Percentage(62), Constraint::Percentage(38)];
        let [table, beside] = Layout::horizontal(halves).areas(middle);
        return (table, Some(beside));
    }
    if middle.height >= HIGH {
        let halves = [Constraint::Min(6), Constraint::Length(9)];
        let [table, beneath] = Layout::vertical(halves).areas(middle);
        return (table, Some(beneath));
    }
    (middle, None)
}

fn tab_line(board: &Board, looks: Looks) -> Line<'static> {
    let mut spans = Vec::new();
    for tab in Tab::ALL {
        let count = board.count(tab);
        let mut style = Style::new();
        if tab == Tab::NeedsYou && count > 0 {
            style = looks.colour(Color::Yellow).add_modifier(Modifier::BOLD);
        }
        if tab == board.tab {
            style = style.add_modifier(Modifier::REVERSED);
        }
        spans.push(Span::styled(format!(" {} {count} ", tab.title()), style));
        spans.push(Span::raw(" "));
    }
    if !board.filter.is_empty() {
        let filter = visible::clipped(&board.filter, 30);
        spans.push(Span::raw(format!("filter: {filter}")));
    }
    Line::from(spans)
}

fn sessions(board: &Board, now: Timestamp, looks: Looks, frame: &mut Frame<'_>, area: Rect) {
    let rows = board.rows();
    if rows.is_empty() {
        let words = match &board.link {
            Link::Opening => "waiting for the server…",
            _ if !board.filter.is_empty() => "no session has these words in it; esc shows all",
            _ if board.tab == Tab::All => {
                "no session yet: sessionctl new NAME, or invoke --new NAME"
            }
            _ => "no session here",
        };
        return frame.render_widget(Paragraph::new(words), area);
    }
    let selected = rows.iter().position(|row| Some(row.id) == board.selected);
    let lines = rows.iter().map(|session| row(session, now, looks));
    let widths = [
        Constraint::Length(11),
        Constraint::Fill(3),
        Constraint::Length(9),
        Constraint::Fill(2),
        Constraint::Fill(2),
        Constraint::Length(5),
        Constraint::Length(5),
    ];
    let header = ["STATE", "NAME", "AGENT", "BRANCH", "DIR", "QUEUE", "AGE"];
    let table = Table::new(lines, widths)
        .header(Row::new(header).style(Style::new().add_modifier(Modifier::DIM)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .highlight_symbol("> ");
    let mut state = TableState::new().with_selected(selected);
    frame.render_stateful_widget(table, area, &mut state);
}

fn row(session: &SessionSummary, now: Timestamp, looks: Looks) -> Row<'static> {
    let text = |text: Option<&str>| {
        let text = text.map_or_else(|| "-".to_owned(), |text| visible::line(text).into_owned());
        Cell::from(text)
    };
    let place = session.place.as_ref();
    let since = session.since.unwrap_or_else(|| session.last_active_at());
    Row::new([
        Cell::from(state(session, now)).style(state_style(session, looks)),
        text(Some(&named(session).to_string())),
        text(Some(session.agent.as_str())),
        text(branch(session).as_deref()),
        text(place.map(|it| it.directory.as_str())),
        Cell::from(session.queued.to_string()),
        Cell::from(brief(now.since(since))),
    ])
}

fn state_style(session: &SessionSummary, looks: Looks) -> Style {
    if session.stalled_since.is_some() {
        return looks.colour(Color::Red);
    }
    match session.phase {
        Phase::NeedsInput => looks.colour(Color::Yellow).add_modifier(Modifier::BOLD),
        Phase::Working | Phase::Compacting => looks.colour(Color::Green),
        Phase::Queued | Phase::Ready => Style::new(),
        Phase::Paused | Phase::Dormant => Style::new().add_modifier(Modifier::DIM),
    }
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

fn foot_line(board: &Board, looks: Looks, width: u16) -> Line<'static> {
    match &board.mode {
        Mode::Typing {
            purpose,
            prompt,
            text,
        } if board.notice.is_none() => {
            return typed_line(*purpose, prompt, text, width.into());
        }
        Mode::ConfirmAbort(session, _) => {
            let name = board
                .of(*session)
                .map_or_else(String::new, |it| named(it).to_string());
            return Line::raw(format!(
                "abort the run of {name}? y: yes, any other key: no"
            ));
        }
        _ => {}
    }
    match (&board.notice, &board.link) {
        (Some(Notice::Failed(words)), _) => {
            let line = format!("not done: {}", visible::line(words));
            Line::styled(line, looks.colour(Color::Red))
        }
        (Some(Notice::Unknown(words)), _) => {
            let line = format!("whether it was done is unknown: {}", visible::line(words));
            Line::styled(line, looks.colour(Color::Red))
        }
        (Some(Notice::Done(words)), _) => Line::raw(visible::line(words).into_owned()),
        (None, Link::Lost(why)) => {
            let line = format!("connection lost, trying again: {}", visible::line(why));
            Line::styled(line, looks.colour(Color::Red))
        }
        (None, Link::Opening | Link::Live) => {
            let keys =
                "enter attach  a answer  s steer  x abort  p pause  r rename  / filter  ? help";
            Line::styled(keys, Style::new().add_modifier(Modifier::DIM))
        }
    }
}

/// All of one session; its questions first, since those need people.
fn details(session: &SessionSummary, now: Timestamp) -> Vec<Line<'static>> {
    let asked = session.questions.iter();
    let asked = asked.flat_map(|asked| question_lines(asked, Desk::Shell));
    let known = SessionSummary {
        questions: Vec::new(),
        ..session.clone()
    };
    asked
        .chain(session_lines(&known, now))
        .map(Line::raw)
        .collect()
}

fn help(frame: &mut Frame<'_>, area: Rect) {
    let lines = HELP.map(|(keys, what)| Line::raw(format!(" {keys:<22} {what}")));
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
    let width = 64.min(area.width);
    let area = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y,
        width,
        height: height.min(area.height),
    };
    let block = Block::bordered().title(" keys; any key closes this ");
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines.to_vec()).block(block), area);
}
