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
use crate::cli::render::{
    Desk, Places, ago, branch, name_in_columns, named, question_lines, session_lines, state,
};
use crate::cli::visible;

/// From this width on the selected session stands beside the table; below, beneath it.
const WIDE: u16 = 120;
/// From this height on there is room for the selected session at all.
const HIGH: u16 = 16;

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
    let [tabs, middle, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(tab_line(board, looks), tabs);
    let about = about(board);
    let answers = about.is_some();
    let (table, beside) = parts(middle, answers);
    sessions(board, now, looks, frame, table);
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
    frame.render_widget(foot_line(board, looks, foot.width), foot);
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

fn parts(middle: Rect, answers: bool) -> (Rect, Option<Rect>) {
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
    let at = rows.iter().position(|row| Some(row.id) == board.selected);
    // Only what is seen is made: a fleet may be large, and is drawn often.
    let high = usize::from(area.height.saturating_sub(1)).max(1);
    let first = at.map_or(0, |at| (at + 1).saturating_sub(high));
    let places = Places::of(board.all());
    let columns = columns(usize::from(area.width));
    let shown = rows.iter().skip(first).take(high);
    let lines = shown.map(|session| row(session, &places, &columns, now, looks));
    let header = Row::new(columns.iter().map(|(column, _)| column.title()));
    let widths = columns.iter().map(|(_, wide)| Constraint::Length(*wide));
    let table = Table::new(lines, widths)
        .header(header.style(Style::new().add_modifier(Modifier::DIM)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .highlight_symbol(MARK);
    let mut state = TableState::new().with_selected(at.map(|at| at - first));
    frame.render_stateful_widget(table, area, &mut state);
}

/// What stands before the selected row.
const MARK: &str = "> ";

/// A column of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    State,
    Name,
    Agent,
    Branch,
    Dir,
    Queue,
    Age,
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::State => "STATE",
            Self::Name => "NAME",
            Self::Agent => "AGENT",
            Self::Branch => "BRANCH",
            Self::Dir => "DIR",
            Self::Queue => "QUEUE",
            Self::Age => "AGE",
        }
    }

    /// Its least width, and its share of what is left.
    fn needs(self) -> (u16, u16) {
        match self {
            Self::State => (11, 0),
            Self::Name => (8, 3),
            Self::Agent => (9, 0),
            Self::Branch | Self::Dir => (8, 2),
            Self::Queue | Self::Age => (5, 0),
        }
    }
}

/// The columns that a width has room for, and how wide each is. What needs whom stays longest.
fn columns(width: usize) -> Vec<(Column, u16)> {
    const ALL: [Column; 7] = [
        Column::State,
        Column::Name,
        Column::Agent,
        Column::Branch,
        Column::Dir,
        Column::Queue,
        Column::Age,
    ];
    const DISPENSABLE: [Column; 6] = [
        Column::Queue,
        Column::Agent,
        Column::Branch,
        Column::Dir,
        Column::Age,
        Column::State,
    ];
    let room = u16::try_from(width.saturating_sub(MARK.len())).unwrap_or(u16::MAX);
    let mut columns = ALL.to_vec();
    let least = |columns: &[Column]| {
        let needs: u16 = columns.iter().map(|column| column.needs().0).sum();
        needs
            + u16::try_from(columns.len())
                .unwrap_or(u16::MAX)
                .saturating_sub(1)
    };
    for column in DISPENSABLE {
        if least(&columns) > room {
            columns.retain(|kept| *kept != column);
        }
    }
    let left = room.saturating_sub(least(&columns));
    let shares: u16 = columns.iter().map(|column| column.needs().1).sum();
    let wide = |column: Column| {
        let (least, share) = column.needs();
        let more = u32::from(left) * u32::from(share) / u32::from(shares.max(1));
        (column, least + u16::try_from(more).unwrap_or_default())
    };
    columns.into_iter().map(wide).collect()
}

fn row(
    session: &SessionSummary,
    places: &Places<'_>,
    columns: &[(Column, u16)],
    now: Timestamp,
    looks: Looks,
) -> Row<'static> {
    let since = session.since.unwrap_or_else(|| session.last_active_at());
    let cell = |(column, wide): &(Column, u16)| {
        let wide = usize::from(*wide);
        let text = match column {
            Column::State => {
                let state = visible::clipped_to_columns(&state(session, now), wide);
                return Cell::from(state).style(state_style(session, looks));
            }
            Column::Name => return Cell::from(name_in_columns(&named(session).to_string(), wide)),
            Column::Agent => session.agent.to_string(),
            Column::Branch => branch(session).unwrap_or_else(|| "-".to_owned()),
            Column::Dir => places.words(session),
            Column::Queue => session.queued.to_string(),
            Column::Age => ago(now.since(since)),
        };
        Cell::from(visible::clipped_to_columns(&text, wide))
    };
    Row::new(columns.iter().map(cell))
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
