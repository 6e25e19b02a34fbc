//! Searches files for terms and counts what is found. Says nothing about which find is good.

use std::sync::atomic::{AtomicBool, Ordering};

use super::about::NO_MODEL;
use super::files::{Folder, Listed, MOST_FILE_BYTES};
use super::page::definition;
use super::term::{Quality, Term};
use super::withheld::told;

/// Most terms of one search: a bit each.
pub(super) const MOST_TERMS: usize = 16;
/// Most lines that are remembered of one file.
const MOST_LINES: usize = 400;
/// Once so many lines are remembered of all files together, only a few more are of each: the first
/// of those that hold most. A common word stands on millions of lines of a large folder.
const MANY_LINES: usize = 200_000;
const FEW_LINES: usize = 8;

/// A set of terms, by their places in the search.
pub(super) type Terms = u16;

/// What is searched for.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Wanted {
    pub(super) terms: Vec<Term>,
    /// The question in lower case. Where it stands word for word, it is somebody's example of a
    /// question and no answer.
    pub(super) asked: Option<String>,
    /// It is asked where the terms are defined.
    pub(super) defines: bool,
    /// It is asked how somebody is to do something.
    pub(super) instructs: bool,
    /// It is asked where something is done.
    pub(super) locates: bool,
}

/// A line that holds terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line {
    /// Its number, from 1.
    pub(super) number: usize,
    pub(super) exact: Terms,
    pub(super) loose: Terms,
    /// Those that are in the name which the line defines.
    pub(super) defines: Terms,
    /// Those that are that name itself.
    pub(super) names: Terms,
    /// It is in the tests that a file of code ends with, or only imports something.
    pub(super) aside: bool,
}

/// A file that holds terms, in its text or its path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FileHits {
    pub(super) path: String,
    pub(super) in_path: Terms,
    pub(super) lines: Vec<Line>,
}

impl FileHits {
    fn keep_the_best(&mut self) {
        let worth = |line: &Line| {
            let held = line.exact | line.loose;
            (line.defines.count_ones(), held.count_ones())
        };
        // What is equally good stays in order.
        self.lines
            .sort_by_key(|line| std::cmp::Reverse(worth(line)));
        self.lines.truncate(FEW_LINES);
        self.lines.shrink_to_fit();
        self.lines.sort_by_key(|line| line.number);
    }
}

/// What a search found so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Found {
    /// Files whose text was read.
    pub(super) read: usize,
    /// Bytes that were read.
    pub(super) bytes: u64,
    /// Lines that hold a term.
    pub(super) lines: usize,
    /// Lines that are remembered.
    pub(super) kept: usize,
    /// For each term, the number of files whose text holds it.
    pub(super) holding: [usize; MOST_TERMS],
    /// Files that hold terms.
    pub(super) files: Vec<FileHits>,
    /// The search ended before all files were read, or did not know all of them.
    pub(super) cut: bool,
}

impl Found {
    /// Adds what another part of the search found.
    pub(super) fn add(&mut self, other: Self) {
        self.read += other.read;
        self.bytes += other.bytes;
        self.lines += other.lines;
        for (sum, more) in self.holding.iter_mut().zip(other.holding) {
            *sum += more;
        }
        for mut file in other.files {
            if self.kept > MANY_LINES {
                file.keep_the_best();
            }
            self.kept += file.lines.len();
            self.files.push(file);
        }
        self.cut |= other.cut;
    }
}

/// Searches some files. Blocks; leaves between two files once `stop` is set.
pub(super) fn scan(folder: &Folder, files: &[Listed], wanted: &Wanted, stop: &AtomicBool) -> Found {
    let mut found = Found::default();
    for file in files {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let in_path = in_path(&file.path, &wanted.terms);
        let text = (file.bytes <= MOST_FILE_BYTES)
            .then(|| folder.read(&file.path, stop))
            .flatten();
        let Some(text) = text else {
            continue;
        };
        found.read += 1;
        found.bytes += text.len() as u64;
        let lines = lines(&text, wanted);
        found.lines += lines.len();
        let held = lines
            .iter()
            .fold(0, |held, line| held | line.exact | line.loose);
        for (at, holding) in found.holding.iter_mut().enumerate() {
            *holding += usize::from(held & (1 << at) != 0);
        }
        if !lines.is_empty() || in_path != 0 {
            let path = file.path.clone();
            found.files.push(FileHits {
                path,
                in_path,
                lines,
            });
        }
    }
    found
}

fn in_path(path: &str, terms: &[Term]) -> Terms {
    let path = &*told(path);
    let lower = path.to_ascii_lowercase();
    set_of(terms, |term| term.find(path, &lower).is_some())
}

fn set_of(terms: &[Term], mut holds: impl FnMut(&Term) -> bool) -> Terms {
    let terms = terms.iter().take(MOST_TERMS).enumerate();
    terms.fold(0, |set, (at, term)| set | (Terms::from(holds(term)) << at))
}

fn lines(text: &str, wanted: &Wanted) -> Vec<Line> {
    let terms = &wanted.terms;
    let lower = text.to_ascii_lowercase();
    let present: Vec<bool> = terms.iter().map(|term| term.may_be_in(&lower)).collect();
    if !present.contains(&true) {
        return Vec::new();
    }
    let mut in_tests = is_of_tests(text);
    let mut hits = Vec::new();
    for (at, (line, lower)) in text.lines().zip(lower.lines()).enumerate() {
        in_tests |= line.starts_with("#[cfg(test)]");
        let asked = wanted.asked.as_ref();
        let is_an_example = asked.is_some_and(|asked| lower.contains(asked));
        // Nor is what this agent once said, in somebody's notes, a find.
        if is_an_example || line.contains(NO_MODEL) {
            continue;
        }
        if let Some(mut hit) = hit(at + 1, line, lower, terms, &present) {
            hit.aside = in_tests || is_import(line);
            hits.push(hit);
        }
        if hits.len() >= MOST_LINES {
            break;
        }
    }
    hits
}

/// Whether a file has nothing but tests: they do not stand at its end, in a module of their own.
fn is_of_tests(text: &str) -> bool {
    let first = ["#[test]", "#[tokio::test"]
        .into_iter()
        .filter_map(|mark| text.find(mark))
        .min();
    let apart = text.find("#[cfg(test)]\n");
    first.is_some_and(|first| apart.is_none_or(|apart| first < apart))
}

fn is_import(line: &str) -> bool {
    let line = line.trim_start();
    ["use ", "pub use ", "import ", "from ", "#include"]
        .iter()
        .any(|word| line.starts_with(word))
}

fn hit(number: usize, text: &str, lower: &str, terms: &[Term], present: &[bool]) -> Option<Line> {
    let mut line = Line {
        number,
        exact: 0,
        loose: 0,
        defines: 0,
        names: 0,
        aside: false,
    };
    for (at, term) in terms.iter().take(MOST_TERMS).enumerate() {
        match present[at].then(|| term.find(text, lower)).flatten() {
            Some(Quality::Exact) => line.exact |= 1 << at,
            Some(Quality::Loose) => line.loose |= 1 << at,
            None => {}
        }
    }
    let held = line.exact | line.loose;
    if held == 0 {
        return None;
    }
    // A block of methods and a file named elsewhere say little of their own.
    let says = |by: &str| !["impl", "mod"].contains(&by);
    if let Some((_, name)) = definition(text).filter(|(by, _)| says(by)) {
        let lower = name.to_ascii_lowercase();
        line.defines = held & set_of(terms, |term| term.find(name, &lower).is_some());
        line.names = line.defines & set_of(terms, |term| term.text == lower);
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_word_that_is_everywhere_only_some_lines_are_kept_and_those_that_hold_most() {
        let line = |number| Line {
            number,
            exact: if number == 300 { 3 } else { 1 },
            loose: 0,
            defines: Terms::from(number == 200),
            names: 0,
            aside: false,
        };
        let part = || Found {
            lines: MOST_LINES,
            files: vec![FileHits {
                path: "a".to_owned(),
                in_path: 0,
                lines: (1..=MOST_LINES).map(line).collect(),
            }],
            ..Found::default()
        };
        let mut found = Found::default();
        let files = 2 * MANY_LINES / MOST_LINES;
        for _ in 0..files {
            found.add(part());
        }
        let kept: usize = found.files.iter().map(|file| file.lines.len()).sum();
        assert!(
            kept <= MANY_LINES + MOST_LINES + files * FEW_LINES,
            "{kept}"
        );
        assert_eq!(found.lines, files * MOST_LINES);
        let last = found.files.last().expect("a file");
        let numbers: Vec<_> = last.lines.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 200, 300]);
    }
}
