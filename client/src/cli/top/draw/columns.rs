//! The table's columns: which there are, and how wide each is. What tells sessions apart has the room.

use ratatui::layout::Constraint;
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::{Cell, Row};
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::time::Timestamp;

use super::Looks;
use crate::cli::render::{
    Places, ago, branch, last_words, name_in_columns, named, path_in_columns, since, state,
};
use crate::cli::visible;

/// What stands before the selected row.
pub(super) const MARK: &str = "> ";
/// The widths are those that the first so many rows need: a fleet may be large, and is drawn often.
const MEASURED: usize = 500;

/// A column of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    State,
    Name,
    Agent,
    Branch,
    Dir,
    Queue,
    Last,
    Age,
}

/// All of them, in their order.
const ALL: [Column; 8] = [
    Column::State,
    Column::Name,
    Column::Agent,
    Column::Branch,
    Column::Dir,
    Column::Queue,
    Column::Last,
    Column::Age,
];

/// Those that a narrow terminal does without. What needs whom stays longest.
const DISPENSABLE: [Column; 7] = [
    Column::Queue,
    Column::Agent,
    Column::Last,
    Column::Branch,
    Column::Dir,
    Column::Age,
    Column::State,
];

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::State => "STATE",
            Self::Name => "NAME",
            Self::Agent => "AGENT",
            Self::Branch => "BRANCH",
            Self::Dir => "DIR",
            Self::Queue => "QUEUE",
            Self::Last => "LAST RUN",
            Self::Age => "AGE",
        }
    }

    /// Its least width.
    fn least(self) -> usize {
        match self {
            Self::State => 11,
            Self::Name | Self::Branch | Self::Dir => 8,
            Self::Last => 9,
            Self::Agent | Self::Queue | Self::Age => 5,
        }
    }

    /// What it says of a session, but for what goes on with the time.
    fn words(self, session: &SessionSummary, places: &Places<'_>) -> String {
        match self {
            Self::Name => named(session).to_string(),
            Self::Agent => session.agent.to_string(),
            Self::Branch => branch(session).unwrap_or_else(|| "-".to_owned()),
            Self::Dir => places.words(session),
            Self::Queue => session.queued.to_string(),
            Self::Last => last_words(session),
            Self::State | Self::Age => String::new(),
        }
    }
}

/// The columns that a width has room for, and how wide each is.
pub(super) struct Columns(Vec<(Column, usize)>);

impl Columns {
    /// Those for rows. `queues` says whether any session has had messages that wait: a column that
    /// comes and goes would move all others.
    pub(super) fn of(
        rows: &[&SessionSummary],
        places: &Places<'_>,
        queues: bool,
        width: usize,
    ) -> Self {
        let room = width.saturating_sub(MARK.len());
        let shown = ALL.iter().filter(|it| queues || **it != Column::Queue);
        let mut columns: Vec<_> = shown.map(|it| (*it, it.least())).collect();
        for column in DISPENSABLE {
            if taken(&columns) > room {
                columns.retain(|(kept, _)| *kept != column);
            }
        }
        let rows = &rows[..rows.len().min(MEASURED)];
        let wanted = |column: Column| {
            let cells = rows.iter().map(|row| column.words(row, places));
            let widest = cells.map(|cell| visible::columns(&cell)).max();
            widest.unwrap_or_default().max(column.title().len())
        };
        let wanted: Vec<_> = columns.iter().map(|(column, _)| wanted(*column)).collect();
        let left = room.saturating_sub(taken(&columns));
        widen(&mut columns, &wanted, left);
        Self(columns)
    }

    pub(super) fn header(&self) -> Row<'static> {
        Row::new(self.0.iter().map(|(column, _)| column.title()))
    }

    pub(super) fn widths(&self) -> Vec<Constraint> {
        let wide = self.0.iter().map(|(_, wide)| *wide);
        let wide = wide.map(|wide| u16::try_from(wide).unwrap_or(u16::MAX));
        wide.map(Constraint::Length).collect()
    }

    pub(super) fn row(
        &self,
        session: &SessionSummary,
        places: &Places<'_>,
        now: Timestamp,
        looks: Looks,
    ) -> Row<'static> {
        let cell = |(column, wide): &(Column, usize)| {
            let (wide, words) = (*wide, column.words(session, places));
            match column {
                Column::State => {
                    let words = visible::clipped_to_columns(&state(session, now), wide);
                    Cell::from(words).style(state_style(session, looks))
                }
                Column::Name => Cell::from(name_in_columns(&words, wide)),
                Column::Dir => Cell::from(path_in_columns(&words, wide)),
                Column::Age => Cell::from(visible::clipped_to_columns(
                    &ago(now.since(since(session))),
                    wide,
                )),
                Column::Last => {
                    let words = visible::clipped_to_columns(&words, wide);
                    Cell::from(words).style(last_style(session, looks))
                }
                _ => Cell::from(visible::clipped_to_columns(&words, wide)),
            }
        };
        Row::new(self.0.iter().map(cell))
    }
}

/// How wide columns are together, with the gaps between them.
fn taken(columns: &[(Column, usize)]) -> usize {
    let wide: usize = columns.iter().map(|(_, wide)| wide).sum();
    wide + columns.len().saturating_sub(1)
}

/// Gives what is left of the room to those columns that want more than they have.
fn widen(columns: &mut [(Column, usize)], wanted: &[usize], mut left: usize) {
    // A session's name first, of half of what is left.
    let mut of_name = left / 2;
    for ((column, wide), wanted) in columns.iter_mut().zip(wanted) {
        while *column == Column::Name && *wide < *wanted && of_name > 0 {
            *wide += 1;
            of_name -= 1;
            left -= 1;
        }
    }
    // Then one by one, so that who needs little has it and the others share the rest.
    while left > 0 {
        let before = left;
        for ((_, wide), wanted) in columns.iter_mut().zip(wanted) {
            if left > 0 && *wide < *wanted {
                *wide += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
}

fn last_style(session: &SessionSummary, looks: Looks) -> Style {
    let outcome = session.last_run.as_ref().map(|last| &last.outcome);
    match outcome {
        Some(RunOutcome::Failed(_)) => looks.colour(Color::Red),
        _ => Style::new(),
    }
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
