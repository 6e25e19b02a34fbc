//! Says which finds are good: rare words before common ones, many together before one alone,
//! definitions before uses, code before notes, and paths that speak of the subject.

use super::scan::{FileHits, Found, Line, Terms};
use super::term::Term;

/// How far apart words may be and still count as together, in lines.
const NEAR: usize = 6;
/// How far apart two places of one file are, at least.
const APART: usize = 25;

/// A place worth a look.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Place {
    pub(super) path: String,
    /// The line, from 1.
    pub(super) line: usize,
    /// The terms at or near it, or in the path.
    pub(super) terms: Terms,
    score: f64,
}

/// The best places, best first, at most two of one file.
pub(super) fn rank(found: &Found, terms: &[Term], most: usize) -> Vec<Place> {
    let scale = Scale::new(found, terms);
    let mut places: Vec<Place> = found
        .files
        .iter()
        .flat_map(|file| scale.best(file))
        .collect();
    places.sort_by(|a, b| {
        let by_score = b.score.total_cmp(&a.score);
        by_score.then_with(|| (&a.path, a.line).cmp(&(&b.path, b.line)))
    });
    places.truncate(most);
    places
}

/// What each term counts.
struct Scale<'a> {
    terms: &'a [Term],
    /// The rarer a term, the more it counts.
    rarity: Vec<f64>,
}

impl<'a> Scale<'a> {
    fn new(found: &Found, terms: &'a [Term]) -> Self {
        let rarity = |(term, holding): (&Term, &usize)| {
            term.weight * (1.0 + ratio(found.read, *holding)).ln()
        };
        let rarity = terms.iter().zip(&found.holding).map(rarity).collect();
        Self { terms, rarity }
    }

    /// The best place of a file, and a second one if it is nearly as good and far away.
    fn best(&self, file: &FileHits) -> Vec<Place> {
        let mut places: Vec<Place> = (0..file.lines.len())
            .map(|at| self.place(file, at))
            .collect();
        if file.lines.is_empty() {
            places.push(self.first_line(file));
        }
        places.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.line.cmp(&b.line)));
        let Some(best) = places.first().cloned() else {
            return places;
        };
        let second = places.into_iter().find(|place| {
            place.line.abs_diff(best.line) >= APART && place.score >= 0.7 * best.score
        });
        std::iter::once(best).chain(second).collect()
    }

    fn place(&self, file: &FileHits, at: usize) -> Place {
        let center = file.lines[at];
        let near = |line: &&Line| line.number.abs_diff(center.number) <= NEAR;
        let from = file.lines[..at].iter().rev().take_while(near).count();
        let around: Vec<&Line> = file.lines[at - from..].iter().take_while(near).collect();
        let mut terms = file.in_path;
        // A name that holds more of what was asked is worth more.
        let defined = 0.8 * ratio(ones(center.defines), self.terms.len());
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
            let own_name = if center.defines & bit == 0 {
                0.0
            } else {
                defined
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
    fn first_line(&self, file: &FileHits) -> Place {
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

    fn finished(&self, file: &FileHits, line: usize, terms: Terms, sum: f64) -> Place {
        Place {
            path: file.path.clone(),
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
        let is_test = ["tests/", "test_", "_test", ".test.", ".spec."]
            .iter()
            .any(|mark| lower.contains(mark));
        let is_note = [".md", ".txt", ".rst", ".adoc"]
            .iter()
            .any(|end| lower.ends_with(end));
        if ["changelog", "license", "notice"]
            .iter()
            .any(|name| lower.contains(name))
        {
            0.4
        } else if is_test && !self.about_tests() {
            0.7
        } else if is_note {
            0.8
        } else {
            1.0
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
