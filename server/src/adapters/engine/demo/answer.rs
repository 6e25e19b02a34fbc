//! Puts what was found into words. Every claim names its place; nothing is concluded.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::count::size;
use super::files::{Listing, Page, Unread, parents};
use super::focus::{Focus, quoted};
use super::page::{code, shown, shown_path};
use super::scan::Found;
use super::term::Term;
use super::tools::Sight;
use super::tree::files_in;
use super::wish::Wish;

/// How many places are shown with their lines around them.
pub(super) const SHOWN: usize = 3;
/// How many lines of an introduction are told.
const INTRODUCTION: usize = 8;
/// How wide they are at most, in bytes, unless a word is longer.
const FOLDED_BYTES: usize = 100;

/// What a search has to tell.
pub(super) fn found(focus: &Focus, found: &Found, sights: &[Sight]) -> String {
    let mut text = String::new();
    if let (Wish::Show, [Term { text: word, .. }]) = (focus.wish, focus.terms.as_slice()) {
        let word = shown(word);
        let _ = writeln!(
            text,
            "No file that I list is called `{word}`, so I searched for it.\n"
        );
    }
    let Some(best) = sights.first() else {
        let place = place_words(focus);
        let _ = writeln!(
            text,
            "I found no line with {} in {place}.\n",
            quoted(&focus.terms)
        );
        text.push_str("Try another word for it, a file name, or quote an exact phrase.\n\n");
        text.push_str(&closing(focus, found));
        return text;
    };
    let missing: Vec<Term> = lacking(focus, best.place.terms);
    if missing.is_empty() {
        let _ = writeln!(text, "The best place is {}:\n", named(best));
    } else {
        // What speaks of something may hold all of it, and what does it go before that.
        let holds_all = |sight: &Sight| lacking(focus, sight.place.terms).is_empty();
        let begins = if sights.iter().any(holds_all) {
            "The best place is"
        } else {
            "No place holds all of it. The nearest is"
        };
        let (named, missing) = (named(best), quoted(&missing));
        let _ = writeln!(text, "{begins} {named}, without {missing}:\n");
    }
    let _ = writeln!(text, "{}", best.excerpt);
    for sight in sights.iter().take(SHOWN).skip(1) {
        let _ = writeln!(text, "Then {}:\n\n{}", named(sight), sight.excerpt);
    }
    if sights.len() > SHOWN {
        text.push_str("Also worth a look:\n");
        for sight in &sights[SHOWN..] {
            let _ = writeln!(text, "- {}: {}", named(sight), code(&sight.line));
        }
        text.push('\n');
    }
    text.push_str(&closing(focus, found));
    text
}

/// What is said to who asks for work: that it is not done, and what could be asked instead.
pub(super) fn no_work(focus: &Focus) -> String {
    let mut text =
        "That is work, and I cannot do it: I am no language model, and only read. I change \
                    no file, run nothing, and write nothing of my own.\n\n"
            .to_owned();
    let words: Vec<String> = focus.terms.iter().map(|term| shown(&term.text)).collect();
    let files = focus
        .named
        .iter()
        .map(|path| format!("show {}", shown_path(path)));
    let finds = (!words.is_empty()).then(|| format!("/find {}", words.join(" ")));
    let instead: Vec<String> = files
        .chain(finds)
        .map(|ask| format!("    {ask}\n"))
        .collect();
    if !instead.is_empty() {
        let _ = writeln!(text, "What I can do is look:\n\n{}", instead.concat());
    }
    text.push_str(
        "`/about` tells what else I can be asked, and how an agent that works is plugged in.\n",
    );
    text
}

/// What a folder says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Introduction {
    /// The beginning of its README.
    pub(super) readme: Option<Page>,
    /// The beginning of what a tool builds it by.
    pub(super) manifest: Option<Page>,
    /// What is checked out, in a line.
    pub(super) tip: Option<String>,
}

/// What the folder is, as far as its own introduction and its files say.
pub(super) fn overview(listing: &Listing, introduction: &Introduction) -> String {
    let more = if listing.cut { "more than " } else { "" };
    let mut text = format!("This folder holds {more}{}", files_in(listing.files.len()));
    let kinds = kinds(listing);
    if !kinds.is_empty() {
        let _ = write!(text, ", mostly {}", kinds.join(", "));
    }
    text.push_str(".\n\n");
    let introducing = |page: &Page| (shown(&page.path), introducing(page));
    let introduced = introduction.readme.as_ref().map(introducing);
    if let Some((path, lines)) = introduced.filter(|(_, lines)| !lines.is_empty()) {
        let _ = writeln!(text, "`{path}:1` introduces it:\n");
        for line in lines {
            let _ = writeln!(text, "    {line}");
        }
        text.push('\n');
    }
    if let Some(page) = &introduction.manifest {
        let facts = facts(page);
        if !facts.is_empty() {
            let _ = writeln!(
                text,
                "`{}` says: {}.\n",
                shown(&page.path),
                facts.join(", ")
            );
        }
    }
    if let Some(tip) = &introduction.tip {
        let _ = writeln!(text, "{tip}");
    }
    let folders = folders(listing);
    if !folders.is_empty() {
        text.push_str("The largest folders:\n");
        for (folder, count) in folders {
            let _ = writeln!(text, "- `{folder}/`: {}", files_in(count));
        }
        text.push('\n');
    }
    text.push_str(
        "I am no language model: I search and read this folder, and cannot change it. Ask me where \
         something is, for example \"where is the configuration read?\", and steer me while I \
         look: \"look in src\", \"also errors\", \"not in tests\". `/about` tells the rest.\n",
    );
    text
}

/// What a README begins with, as prose: without badges, links' addresses, and a picture or listing
/// that would be cut in its middle. Long lines are folded.
fn introducing(page: &Page) -> Vec<String> {
    let is_decoration = |line: &&String| {
        let line = line.trim();
        let address = line.starts_with('[') && line.contains("]: ");
        let badge = line.starts_with("[![") || line.starts_with("![");
        address || badge || line.starts_with('<')
    };
    let lines = page
        .lines
        .iter()
        .take_while(|line| !line.starts_with("```"));
    let mut told: Vec<String> = Vec::new();
    for line in lines.filter(|line| !is_decoration(line)) {
        let is_gap = line.trim().is_empty();
        if is_gap && told.last().is_none_or(String::is_empty) {
            continue;
        }
        told.extend(folded(line));
        if told.len() >= INTRODUCTION {
            break;
        }
    }
    told.truncate(INTRODUCTION);
    while told.pop_if(|last| last.is_empty()).is_some() {}
    told
}

/// A line in parts that fit a screen, at least one.
fn folded(line: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for word in line.trim_end().split(' ') {
        let last = parts
            .last_mut()
            .filter(|last| last.is_empty() || last.len() + word.len() < FOLDED_BYTES);
        match last {
            Some(last) if last.is_empty() => last.push_str(word),
            Some(last) => {
                last.push(' ');
                last.push_str(word);
            }
            None => parts.push(word.to_owned()),
        }
    }
    parts.iter().map(|part| shown(part)).collect()
}

/// What a manifest says of itself, each with the number of its line.
fn facts(page: &Page) -> Vec<String> {
    let wanted = [
        "name",
        "description",
        "version",
        "module",
        "edition",
        "license",
    ];
    let mut facts: Vec<String> = Vec::new();
    for (at, line) in page.lines.iter().enumerate() {
        let line = line.trim().trim_end_matches(',');
        let parted = line
            .split_once('=')
            .or_else(|| line.split_once(':'))
            .or_else(|| line.split_once(' '));
        let Some((key, value)) = parted else {
            continue;
        };
        let key = key.trim().trim_matches('"');
        let value = value.trim().trim_matches('"');
        let told = facts
            .iter()
            .any(|fact| fact.starts_with(&format!("{key} ")));
        let plain = !value.is_empty() && !value.starts_with(['{', '[']);
        if wanted.contains(&key) && plain && !told {
            let number = page.from + at;
            facts.push(format!("{key} \"{}\" (line {number})", shown(value)));
        }
    }
    facts.truncate(4);
    facts
}

/// What the lines of a file that was named have to tell.
pub(super) fn lines(path: &str, page: &Result<Page, Unread>) -> String {
    let page = match page {
        Ok(page) => page,
        Err(error) => return format!("I cannot show `{}`: {error}.\n\n", shown_path(path)),
    };
    let path = shown_path(&page.path);
    let (from, count) = (page.from, page.lines.len());
    let whole = match page.total {
        Some(1) => "1 line".to_owned(),
        Some(total) => format!("{total} lines"),
        None => size(page.bytes),
    };
    if count == 0 {
        return format!("`{path}` has no line {from}: it has {whole}.\n\n");
    }
    let to = from + count - 1;
    let range = match count {
        1 => format!("line {from}"),
        _ => format!("lines {from} to {to}"),
    };
    let mut said = format!("`{path}:{from}`, {range} of {whole}:\n\n");
    let width = to.to_string().len();
    for (at, line) in page.lines.iter().enumerate() {
        let _ = writeln!(said, "    {:>width$} | {}", from + at, shown(line));
    }
    said.push('\n');
    if page.total.is_none_or(|total| total > to) {
        let last = to + count.max(20);
        let last = page.total.map_or(last, |total| last.min(total));
        let _ = writeln!(said, "It goes on: \"show {path}:{}-{last}\".\n", to + 1);
    }
    said
}

fn named(sight: &Sight) -> String {
    let place = format!("`{}:{}`", shown_path(&sight.place.path), sight.place.line);
    match &sight.inside {
        Some(inside) => format!("{place} (in {inside})"),
        None => place,
    }
}

/// What was asked just now and is not at a place.
fn lacking(focus: &Focus, held: u16) -> Vec<Term> {
    let terms = focus.terms.iter().enumerate();
    let lacking = terms.filter(|(at, term)| term.weight >= 1.0 && held & (1 << at) == 0);
    lacking.map(|(_, term)| term.clone()).collect()
}

fn place_words(focus: &Focus) -> String {
    if focus.within.is_empty() {
        "this folder".to_owned()
    } else {
        let places: Vec<_> = focus.within.iter().map(|place| shown_path(place)).collect();
        format!("`{}`", places.join("`, `"))
    }
}

fn closing(focus: &Focus, found: &Found) -> String {
    let mut text = format!(
        "I am no language model: I read {} files in {} and ranked the lines that hold {}",
        found.read,
        place_words(focus),
        quoted(&focus.terms),
    );
    text.push_str(if found.cut {
        "; the folder is large and I did not get to its end. "
    } else {
        ". "
    });
    let nowhere: Vec<Term> = focus
        .terms
        .iter()
        .zip(found.holding)
        .filter(|(_, holding)| *holding == 0)
        .map(|(term, _)| term.clone())
        .collect();
    if !nowhere.is_empty() && found.lines > 0 {
        // Others were too large, no text, or not reached.
        let _ = write!(text, "None of these files holds {}. ", quoted(&nowhere));
    }
    text.push_str("Ask on, or steer me with another word or \"look in FOLDER\".\n");
    text
}

/// The commonest kinds of file.
fn kinds(listing: &Listing) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for file in &listing.files {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        if let Some((stem, extension)) = name.rsplit_once('.')
            && !stem.is_empty()
        {
            *counts.entry(extension).or_default() += 1;
        }
    }
    most(counts, 3)
        .into_iter()
        .map(|(kind, count)| format!("{count} .{}", shown(kind)))
        .collect()
}

fn folders(listing: &Listing) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for file in &listing.files {
        for folder in parents(&file.path).take(2) {
            *counts.entry(folder).or_default() += 1;
        }
    }
    most(counts, 6)
        .into_iter()
        .map(|(folder, count)| (shown(folder), count))
        .collect()
}

fn most(counts: BTreeMap<&str, usize>, number: usize) -> Vec<(&str, usize)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    counts.truncate(number);
    counts
}

#[cfg(test)]
mod tests {
    use super::super::files::Listed;
    use super::*;

    #[test]
    fn what_was_cut_is_not_told_as_the_whole() {
        let file = Listed {
            path: "a.md".to_owned(),
            bytes: 1,
        };
        let mut listing = Listing {
            files: vec![file],
            ..Listing::default()
        };
        assert!(
            overview(&listing, &Introduction::default()).starts_with("This folder holds 1 file, ")
        );
        listing.cut = true;
        assert!(
            overview(&listing, &Introduction::default())
                .starts_with("This folder holds more than 1 file, ")
        );
        let nothing = Found {
            cut: true,
            ..Found::default()
        };
        let answer = found(&Focus::default(), &nothing, &[]);
        assert!(answer.contains("I did not get to its end"), "{answer}");
    }
}
