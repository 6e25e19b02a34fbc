//! Says which finds are good: rare words before common ones, many together before one alone,
//! definitions before uses, code before notes, and paths that speak of the subject.

use std::sync::atomic::{AtomicBool, Ordering};

use super::page::is_note;
use super::scan::{FileHits, Found, Line, Terms, Wanted};
use super::term::Term;

/// How far apart words may be and still count as together, in lines.
const NEAR: usize = 6;
/// How far apart two places of one file are, at least.
const APART: usize = 25;

/// How much a name that a line defines counts beside the words on it, and where definitions are
/// asked for.
const NAME: f64 = 0.8;
const ASKED_NAME: f64 = 5.0;

/// A place worth a look.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Place {
    pub(super) path: String,
    /// The line, from 1.
    pub(super) line: usize,
    /// The terms at or near it, or in the path.
    pub(super) terms: Terms,
}

/// A line of a file and what it is worth.
#[derive(Clone, Copy)]
struct Spot<'a> {
    file: &'a FileHits,
    line: usize,
    terms: Terms,
    score: f64,
}

/// The best places of what was found so far, best first, at most two of one file.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranking {
    /// How many of the files were looked at.
    pub(super) files: usize,
    best: Vec<(f64, Place)>,
}

impl Ranking {
    /// Looks at every line of the next files, until there are no more or it has looked at so many
    /// lines. Returns whether there are more files. It leaves between two files once `stop` is set.
    pub(super) fn go_on(
        &mut self,
        found: &Found,
        wanted: &Wanted,
        most: usize,
        lines: usize,
        stop: &AtomicBool,
    ) -> bool {
        let scale = Scale::new(found, wanted);
        let (mut spots, mut seen) = (Vec::new(), 0);
        while let Some(file) = found.files.get(self.files).filter(|_| seen < lines) {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            spots.extend(scale.best(file));
            self.files += 1;
            seen += file.lines.len() + 1;
        }
        let place = |spot: Spot| Place {
            path: spot.file.path.clone(),
            line: spot.line,
            terms: spot.terms,
        };
        // Only what may be among the best is worth a name of its own.
        spots.sort_by(|a, b| {
            let by_score = b.score.total_cmp(&a.score);
            by_score.then_with(|| (&a.file.path, a.line).cmp(&(&b.file.path, b.line)))
        });
        let spots = spots.into_iter().take(most);
        self.best
            .extend(spots.map(|spot| (spot.score, place(spot))));
        self.best.sort_by(|(a, here), (b, there)| {
            let by_score = b.total_cmp(a);
            by_score.then_with(|| (&here.path, here.line).cmp(&(&there.path, there.line)))
        });
        self.best.truncate(most);
        self.files < found.files.len()
    }

    /// The best places.
    pub(super) fn places(self) -> Vec<Place> {
        self.best.into_iter().map(|(_, place)| place).collect()
    }
}

/// What each term counts.
struct Scale<'a> {
    terms: &'a [Term],
    /// The rarer a term, the more it counts.
    rarity: Vec<f64>,
    /// How much a name that a line defines counts.
    name: f64,
    /// How much more it counts where it is what was asked for, and not part of a longer one.
    whole: f64,
    /// How much notes count, and code. Notes say how something is to be done, and never where it is:
    /// code that holds half of what was asked goes before notes that hold all.
    note: f64,
    code: f64,
}

impl<'a> Scale<'a> {
    fn new(found: &Found, wanted: &'a Wanted) -> Self {
        let terms = &wanted.terms;
        let rarity = |(term, holding): (&Term, &usize)| {
            term.weight * (1.0 + ratio(found.read, *holding)).ln()
        };
        let rarity = terms.iter().zip(&found.holding).map(rarity).collect();
        let name = if wanted.defines { ASKED_NAME } else { NAME };
        Self {
            terms,
            rarity,
            name,
            whole: if wanted.defines { 2.0 } else { 1.0 },
            note: match (wanted.instructs, wanted.locates) {
                (true, _) => 1.0,
                (false, true) => 0.15,
                (false, false) => 0.8,
            },
            code: if wanted.instructs { 0.4 } else { 1.0 },
        }
    }

    /// The best place of a file, and a second one if it is nearly as good and far away.
    fn best<'f>(&self, file: &'f FileHits) -> impl Iterator<Item = Spot<'f>> + use<'f> {
        let mut spots: Vec<Spot> = (0..file.lines.len())
            .map(|at| self.spot(file, at))
            .collect();
        if file.lines.is_empty() {
            spots.push(self.first_line(file));
        }
        spots.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.line.cmp(&b.line)));
        let best = spots.first().copied();
        let second = best.and_then(|best| {
            spots.into_iter().find(|spot| {
                spot.line.abs_diff(best.line) >= APART && spot.score >= 0.7 * best.score
            })
        });
        best.into_iter().chain(second)
    }

    fn spot<'f>(&self, file: &'f FileHits, at: usize) -> Spot<'f> {
        let center = file.lines[at];
        let near = |line: &&Line| line.number.abs_diff(center.number) <= NEAR;
        let from = file.lines[..at].iter().rev().take_while(near).count();
        let around: Vec<&Line> = file.lines[at - from..].iter().take_while(near).collect();
        let mut terms = file.in_path;
        // A name that holds more of what was asked is worth more.
        let defined = self.name * ratio(ones(center.defines), self.terms.len());
        let mut sum = 0.0;
        for (index, rarity) in self.rarity.iter().enumerate() {
            let bit = 1 << index;
            let best = around
                .iter()
                .map(|line| closeness(line, &center, bit))
                .fold(0.0, f64::max);
            if best > 0.0 {
                terms |= bit;
            }
            let own_name = match (center.defines & bit, center.names & bit) {
                (0, _) => 0.0,
                (_, 0) => defined,
                _ => self.whole * defined,
            };
            let in_path = if file.in_path & bit == 0 { 0.0 } else { 0.35 };
            sum += rarity * (best + own_name + in_path);
        }
        let weight = if center.aside && !self.about_tests() {
            0.5
        } else {
            1.0
        };
        self.finished(file, center.number, terms, sum * weight)
    }

    /// A file that only its path speaks for.
    fn first_line<'f>(&self, file: &'f FileHits) -> Spot<'f> {
        let held = |(index, rarity): (usize, &f64)| {
            if file.in_path & (1 << index) == 0 {
                0.0
            } else {
                0.5 * rarity
            }
        };
        let sum = self.rarity.iter().enumerate().map(held).sum();
        self.finished(file, 1, file.in_path, sum)
    }

    fn finished<'f>(&self, file: &'f FileHits, line: usize, terms: Terms, sum: f64) -> Spot<'f> {
        Spot {
            file,
            line,
            terms,
            score: sum * self.coverage(terms) * self.kind(&file.path),
        }
    }

    /// Places that hold all of what was asked come before those that hold one word of it.
    fn coverage(&self, held: Terms) -> f64 {
        let weights = || self.terms.iter().map(|term| term.weight).enumerate();
        let all: f64 = weights().map(|(_, weight)| weight).sum();
        let some: f64 = weights()
            .filter(|(index, _)| held & (1 << index) != 0)
            .map(|(_, weight)| weight)
            .sum();
        let part = if all > 0.0 { some / all } else { 0.0 };
        (0.3 + 0.7 * part).powi(2)
    }

    fn about_tests(&self) -> bool {
        self.terms.iter().any(|term| term.text.starts_with("test"))
    }

    /// Code before notes, and tests where they are asked for.
    fn kind(&self, path: &str) -> f64 {
        let lower = path.to_ascii_lowercase();
        // Nor what measures the code, or shows how it is used.
        let marks = [
            "tests/",
            "test_",
            "_test",
            ".test.",
            ".spec.",
            "bench/",
            "benches/",
            "examples/",
        ];
        let is_test = marks.iter().any(|mark| lower.contains(mark));
        if ["changelog", "license", "notice"]
            .iter()
            .any(|name| lower.contains(name))
        {
            0.4
        } else if is_note(path) {
            self.note * if is_test { 0.9 } else { 1.0 }
        } else if is_test && !self.about_tests() {
            0.7 * self.code
        } else if lower.ends_with("makefile") || lower.ends_with("package.json") {
            1.0
        } else {
            self.code
        }
    }
}

/// How much a term on one line counts for another line.
fn closeness(line: &Line, center: &Line, bit: Terms) -> f64 {
    let quality = if line.exact & bit != 0 {
        1.0
    } else if line.loose & bit != 0 {
        0.4
    } else {
        return 0.0;
    };
    quality
        * match line.number.abs_diff(center.number) {
            0 => 1.0,
            1 | 2 => 0.7,
            _ => 0.45,
        }
}

fn ones(set: Terms) -> usize {
    usize::try_from(set.count_ones()).unwrap_or(usize::MAX)
}

fn ratio(all: usize, some: usize) -> f64 {
    let number = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    number(all) / number(some.max(1))
}

#[cfg(test)]
mod tests {
    use super::super::scan::MOST_TERMS;
    use super::*;

    /// A search for `gate` that found it on these lines.
    fn found(files: &[(&str, &[usize])]) -> Found {
        let line = |number: &usize| Line {
            number: *number,
            exact: 1,
            loose: 0,
            defines: 0,
            names: 0,
            aside: false,
        };
        let hits = |(path, lines): &(&str, &[usize])| FileHits {
            path: (*path).to_owned(),
            in_path: 0,
            lines: lines.iter().map(line).collect(),
        };
        let mut holding = [0; MOST_TERMS];
        holding[0] = files.len();
        Found {
            read: 10,
            holding,
            files: files.iter().map(hits).collect(),
            ..Found::default()
        }
    }

    fn gate() -> Wanted {
        Wanted {
            terms: vec![Term::word("gate")],
            asked: None,
            defines: false,
            instructs: false,
            locates: false,
        }
    }

    #[test]
    fn the_best_places_come_first_and_two_of_a_file_at_most() {
        let found = found(&[("notes.md", &[1]), ("a.rs", &[1, 2, 40, 80])]);
        // However it is parted.
        for lines in [1, 1000] {
            let places = ranked(&found, 8, lines);
            let named: Vec<_> = places
                .iter()
                .map(|place| (place.path.as_str(), place.line))
                .collect();
            assert_eq!(named, [("a.rs", 1), ("a.rs", 40), ("notes.md", 1)]);
            assert_eq!(ranked(&found, 1, lines).len(), 1);
        }
    }

    fn ranked(found: &Found, most: usize, lines: usize) -> Vec<Place> {
        let (mut ranking, running) = (Ranking::default(), AtomicBool::new(false));
        let mut parts = 1;
        while ranking.go_on(found, &gate(), most, lines, &running) {
            parts += 1;
        }
        assert_eq!(parts > 1, lines == 1);
        ranking.places()
    }

    #[test]
    fn what_nobody_waits_for_is_not_ranked() {
        let found = found(&[("a.rs", &[1])]);
        let (mut ranking, stopped) = (Ranking::default(), AtomicBool::new(true));
        ranking.go_on(&found, &gate(), 8, 1000, &stopped);
        assert_eq!(ranking.places(), []);
    }
}
