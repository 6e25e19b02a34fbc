//! The board as a screen: tabs with counts, the table, the selected session beside or beneath it, and
//! one line of what is being typed, told, or can be done.

mod columns;
mod foot;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Table, TableState, Wrap};
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::time::Timestamp;

use super::board::{Board, Link, Mode, Purpose, Tab};
use crate::cli::render::{Desk, Places, named, question_lines, session_lines};
use crate::cli::visible;
use columns::{Columns, MARK};

/// From this width on the selected session stands beside the table; below, beneath it.
const WIDE: u16 = 120;
/// From this height on there is room for the selected session at all.
const HIGH: u16 = 16;

/// The least height of the selected session beneath the table.
const DETAILS: u16 = 9;

/// From this height on there is room for a question that is being answered.
const LOW: u16 = 5;

/// The keys, for those who ask.
const HELP: [(&str, &str); 18] = [
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
    ("J, K", "more of what is told of it"),
    ("page up, page down", "ten rows"),
    ("home, end, g, G", "first, last"),
    ("?, h", "this"),
    ("in a line: enter", "does it; esc leaves it"),
    ("in a line: Ctrl-U", "takes all of it away"),
    ("Ctrl-Z", "back to the shell; fg comes back"),
    ("q, Ctrl-C", "leave"),
];

/// Draws the board as it is at `now`; `colours` says whether there may be any.
pub(crate) fn draw(board: &Board, now: Timestamp, colours: bool, frame: &mut Frame<'_>) {
    let looks = Looks { colours };
    let area = frame.area();
    let below = foot::lines(board, looks, area);
    let [tabs, middle, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(u16::try_from(below.len()).unwrap_or(u16::MAX)),
    ])
    .areas(area);
    frame.render_widget(tab_line(board, looks), tabs);
    let about = about(board);
    let answers = about.is_some();
    let rows = board.rows();
    let (table, beside) = parts(middle, answers, rows.len());
    sessions(board, &rows, now, looks, frame, table);
    if let Some(beside) = beside {
        let session = about.or_else(|| board.session());
        let lines = session.map(|it| details(it, now)).unwrap_or_default();
        let above = usize::from(board.above).min(lines.len().saturating_sub(1));
        let borders = if beside.height < 4 {
            Borders::TOP
        } else {
            Borders::TOP | Borders::LEFT
        };
        let text = Paragraph::new(lines[above..].to_vec()).wrap(Wrap { trim: false });
        frame.render_widget(text.block(Block::new().borders(borders)), beside);
    }
    frame.render_widget(Paragraph::new(below), foot);
    if let Mode::Help(above) = board.mode {
        help(frame, middle, above);
    }
}

/// The session that is being answered: who writes an answer sees the question.
fn about(board: &Board) -> Option<&SessionSummary> {
    match board.mode {
        Mode::Typing {
            purpose: Purpose::Answer { session, .. },
            ..
        } => board.of(session),
        _ => None,
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

fn parts(middle: Rect, answers: bool, rows: usize) -> (Rect, Option<Rect>) {
    if middle.width >= WIDE {
        let halves = [Constraint::Percentage(62), Constraint::Percentage(38)];
        let [table, beside] = Layout::horizontal(halves).areas(middle);
        return (table, Some(beside));
    }
    if middle.height >= HIGH {
        // What the table has no rows for is the selected session's.
        let rows = u16::try_from(rows + 1).unwrap_or(u16::MAX);
        let most = middle.height - DETAILS;
        let halves = [
            Constraint::Length(rows.clamp(6, most)),
            Constraint::Min(DETAILS),
        ];
        let [table, beneath] = Layout::vertical(halves).areas(middle);
        return (table, Some(beneath));
    }
    if answers && middle.height >= LOW {
        let halves = [Constraint::Min(2), Constraint::Percentage(60)];
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
    if !board.wanted.is_empty() {
        let wanted = visible::clipped(&board.wanted, 40);
        spans.push(Span::raw(format!("only {wanted} ")));
    }
    if !board.filter.is_empty() {
        let filter = visible::clipped(&board.filter, 30);
        spans.push(Span::raw(format!("filter: {filter}")));
    }
    Line::from(spans)
}

fn sessions(
    board: &Board,
    rows: &[&SessionSummary],
    now: Timestamp,
    looks: Looks,
    frame: &mut Frame<'_>,
    area: Rect,
) {
    if rows.is_empty() {
        let words = Paragraph::new(none(board)).wrap(Wrap { trim: true });
        return frame.render_widget(words, area);
    }
    let at = rows.iter().position(|row| Some(row.id) == board.selected);
    // Only what is seen is made: a fleet may be large, and is drawn often.
    let high = usize::from(area.height.saturating_sub(1)).max(1);
    let first = at.map_or(0, |at| (at + 1).saturating_sub(high));
    let places = Places::of(board.all());
    let columns = Columns::of(rows, &places, board.queues, usize::from(area.width));
    let shown = rows.iter().skip(first).take(high);
    let lines = shown.map(|session| columns.row(session, &places, now, looks));
    let table = Table::new(lines, columns.widths())
        .header(
            columns
                .header()
                .style(Style::new().add_modifier(Modifier::DIM)),
        )
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .highlight_symbol(MARK);
    let mut state = TableState::new().with_selected(at.map(|at| at - first));
    frame.render_stateful_widget(table, area, &mut state);
}

/// What is said where no session is shown.
fn none(board: &Board) -> String {
    match &board.link {
        Link::Opening => "waiting for the server…".to_owned(),
        _ if !board.filter.is_empty() => {
            "no session has these words in it; esc shows all".to_owned()
        }
        _ if board.tab == Tab::All && !board.wanted.is_empty() => format!(
            "no session is what the filter of the command line wants: {}",
            visible::line(&board.wanted)
        ),
        _ if board.tab == Tab::All => {
            "no session yet: sessionctl new NAME, or invoke --new NAME".to_owned()
        }
        _ => "no session here".to_owned(),
    }
}

/// All of one session; its questions first, since those need people.
fn details(session: &SessionSummary, now: Timestamp) -> Vec<Line<'static>> {
    let asked = session.questions.iter();
    let asked = asked.flat_map(|asked| question_lines(asked, &Desk::Shell(named(session))));
    let known = SessionSummary {
        questions: Vec::new(),
        ..session.clone()
    };
    asked
        .chain(session_lines(&known, now))
        .map(Line::raw)
        .collect()
}

/// The keys, those from `above` on where there is no room for all.
fn help(frame: &mut Frame<'_>, area: Rect, above: u16) {
    let all = u16::try_from(HELP.len()).unwrap_or(u16::MAX);
    let height = (all + 2).min(area.height);
    let hidden = (all + 2) - height;
    let lines = HELP.map(|(keys, what)| Line::raw(format!(" {keys:<22} {what}")));
    let width = 64.min(area.width);
    let area = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y,
        width,
        height,
    };
    let title = if hidden == 0 {
        " keys; any key closes this "
    } else {
        " keys; down, up: more; any other closes this "
    };
    let text = Paragraph::new(lines.to_vec()).scroll((above.min(hidden), 0));
    frame.render_widget(Clear, area);
    frame.render_widget(text.block(Block::bordered().title(title)), area);
}
