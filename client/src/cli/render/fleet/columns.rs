//! The columns of the fleet's table: how wide each is, and which give way first.

use sessionplane_core::domain::ids::is_ulid_shaped;

use crate::cli::screen::{Row, Tone};
use crate::cli::visible;

const COUNT: usize = 9;
const NAMES: [&str; COUNT] = [
    "STATE", "NAME", "AGENT", "BRANCH", "DIR", "MODEL", "QUEUE", "LAST RUN", "AGE",
];
const NAME: usize = 1;
const AGENT: usize = 2;
const BRANCH: usize = 3;
const DIR: usize = 4;
const MODEL: usize = 5;
const QUEUE: usize = 6;
const LAST: usize = 7;
/// The column that changes though nothing happens.
pub(super) const AGE: usize = 8;

/// Between two columns.
const GAP: usize = 2;

/// Which column gives way, and down to which width, until the row fits; directory and agent first.
const SHRINKING: [(usize, usize); 10] = [
    (DIR, 12),
    (AGENT, 6),
    (DIR, 8),
    (NAME, 20),
    (BRANCH, 10),
    (NAME, 16),
    (LAST, 9),
    (BRANCH, 6),
    (NAME, 8),
    (LAST, 4),
];

/// Which column a terminal does without that has no room for its least.
const DISPENSABLE: [usize; 6] = [LAST, BRANCH, QUEUE, AGENT, DIR, AGE];

/// What a session is named by, in exactly so many columns. Ids of one time begin alike: of one that is
/// cut the end is left.
pub(crate) fn name_in_columns(name: &str, wide: usize) -> String {
    if is_ulid_shaped(name) && name.len() > wide {
        let end = visible::end_in_columns(name, wide.saturating_sub(1));
        return visible::fitted(&format!("…{end}"), wide);
    }
    visible::fitted(name, wide)
}

/// Where a session works, in at most so many columns. Directories begin alike: of one that is cut the
/// end is left, and the mark before it.
pub(crate) fn path_in_columns(path: &str, wide: usize) -> String {
    if visible::columns(path) <= wide {
        return visible::line(path).into_owned();
    }
    let mark = if path.starts_with('*') { "*" } else { "" };
    let room = wide.saturating_sub(mark.len() + 1);
    let end = visible::end_in_columns(path, room);
    visible::clipped_to_columns(&format!("{mark}…{end}"), wide)
}

/// The cells of a row.
pub(super) struct Cells(pub(super) [String; COUNT]);

/// How wide each column is; none where it is left out.
pub(super) struct Layout([Option<usize>; COUNT]);

impl Layout {
    /// As wide as the widest cell of each, less where a row would be wider than `width`.
    pub(super) fn of(rows: &[Cells], width: usize) -> Self {
        let widest = |column: usize| {
            let cells = rows.iter().map(|row| visible::columns(&row.0[column]));
            Some(cells.chain([NAMES[column].len()]).max().unwrap_or_default())
        };
        let mut layout = Self(std::array::from_fn(widest));
        let said = |column: usize| rows.iter().any(|row| row.0[column] != "-");
        let room = |layout: &Self| layout.width() <= width;
        if !said(MODEL) {
            layout.0[MODEL] = None;
        }
        if !room(&layout) && rows.iter().all(|row| row.0[QUEUE] == "0") {
            layout.0[QUEUE] = None;
        }
        for (column, least) in SHRINKING {
            if column == NAME && !room(&layout) {
                // Rather than that sessions cannot be told apart.
                layout.0[MODEL] = None;
            }
            let over = layout.width().saturating_sub(width);
            if let Some(wide) = &mut layout.0[column] {
                *wide = wide.saturating_sub(over).max(least.min(*wide));
            }
        }
        for column in DISPENSABLE {
            if !room(&layout) {
                layout.0[column] = None;
            }
        }
        layout
    }

    /// The same, each column at least as wide as there.
    pub(super) fn widened_to(mut self, other: &Self) -> Self {
        for (wide, other) in self.0.iter_mut().zip(other.0) {
            *wide = (*wide).max(other);
        }
        self
    }

    /// Whether both have the same columns, however wide.
    pub(super) fn has_columns_of(&self, other: &Self) -> bool {
        let mut both = self.0.iter().zip(other.0);
        both.all(|(one, other)| one.is_some() == other.is_some())
    }

    /// How wide the first column is.
    pub(super) fn first(&self) -> usize {
        self.0[0].unwrap_or_default()
    }

    fn width(&self) -> usize {
        let wide = self.0.iter().flatten();
        let (sum, count) = wide.fold((0, 0), |(sum, count), wide| (sum + wide, count + 1));
        sum + GAP * usize::saturating_sub(count, 1)
    }

    pub(super) fn heading(&self) -> Row {
        let names = NAMES.map(str::to_owned);
        Row::of(Tone::Faint, self.words(&names).concat().trim_end())
    }

    /// A row whose state is told in a tone.
    pub(super) fn row(&self, cells: &Cells, tone: Tone) -> Row {
        let mut words = self.words(&cells.0);
        if let Some(last) = words.last_mut() {
            *last = last.trim_end().to_owned();
        }
        let mut words = words.into_iter();
        let state = words.next().unwrap_or_default();
        let rest: String = words.collect();
        let rest_tone = if tone == Tone::Faint {
            tone
        } else {
            Tone::Plain
        };
        Row(vec![(tone, state), (rest_tone, rest)])
    }

    fn words(&self, cells: &[String; COUNT]) -> Vec<String> {
        let shown = self.0.iter().enumerate().zip(cells);
        let mut words = Vec::new();
        for ((column, wide), cell) in shown {
            let Some(wide) = *wide else {
                continue;
            };
            let cell = if column == QUEUE {
                format!("{:>wide$}", visible::clipped_to_columns(cell, wide))
            } else if column == NAME {
                name_in_columns(cell, wide)
            } else if column == DIR {
                visible::fitted(&path_in_columns(cell, wide), wide)
            } else {
                visible::fitted(cell, wide)
            };
            let gap = if column == AGE { "" } else { "  " };
            words.push(cell + gap);
        }
        words
    }
}
