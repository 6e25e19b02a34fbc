//! Puts what was found into words. Every claim names its place; nothing is concluded.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::files::{Listing, parents};
use super::focus::{Focus, quoted};
use super::page::shown;
use super::scan::Found;
use super::term::Term;
use super::tools::Sight;

/// How many places are shown with their lines around them.
pub(super) const SHOWN: usize = 3;
/// How many lines of an introduction are told.
const INTRODUCTION: usize = 8;

/// What a search has to tell.
pub(super) fn found(focus: &Focus, found: &Found, sights: &[Sight]) -> String {
    let mut text = String::new();
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
        let _ = writeln!(
            text,
            "No place holds all of it. The nearest is {}, without {}:\n",
            named(best),
            quoted(&missing)
        );
    }
    let _ = writeln!(text, "{}", best.excerpt);
    for sight in sights.iter().take(SHOWN).skip(1) {
        let _ = writeln!(text, "Then {}:\n\n{}", named(sight), sight.excerpt);
    }
    if sights.len() > SHOWN {
        text.push_str("Also worth a look:\n");
        for sight in &sights[SHOWN..] {
            let _ = writeln!(text, "- {}: {}", named(sight), sight.line.trim());
        }
        text.push('\n');
    }
    text.push_str(&closing(focus, found));
    text
}

/// What the folder is, as far as its own introduction and its files say.
pub(super) fn overview(listing: &Listing, introduction: Option<(&str, &str)>) -> String {
    let more = if listing.cut { "more than " } else { "" };
    let mut text = format!("This folder holds {more}{} files", listing.files.len());
    let kinds = kinds(listing);
    if !kinds.is_empty() {
        let _ = write!(text, ", mostly {}", kinds.join(", "));
    }
    text.push_str(".\n\n");
    if let Some((path, introduction)) = introduction {
        let _ = writeln!(text, "`{}:1` introduces it:\n", shown(path));
        let lines = introduction
            .lines()
            .skip_while(|line| line.trim().is_empty());
        for line in lines.take(INTRODUCTION) {
            let _ = writeln!(text, "    {}", shown(line));
        }
        text.push('\n');
    }
    let folders = folders(listing);
    if !folders.is_empty() {
        text.push_str("The largest folders:\n");
        for (folder, count) in folders {
            let _ = writeln!(text, "- `{folder}/`: {count} files");
        }
        text.push('\n');
    }
    text.push_str(
        "I am no language model: I search and read this folder, and cannot change it. Ask me where \
         something is, for example \"where is the configuration read?\", and steer me while I \
         look: \"look in src\", \"also errors\", \"not in tests\".\n",
    );
    text
}

/// What the beginning of a file that was named has to tell.
pub(super) fn head(path: &str, text: Option<&str>) -> String {
    let path = shown(path);
    let Some(text) = text else {
        return format!("I cannot read `{path}`: it is no text file of up to 512 KiB.\n");
    };
    let mut said = format!("`{path}:1`, {} lines, begins:\n\n", text.lines().count());
    for (number, line) in text.lines().take(20).enumerate() {
        let _ = writeln!(said, "    {:>2} | {}", number + 1, shown(line));
    }
    said.push('\n');
    said
}

fn named(sight: &Sight) -> String {
    let place = format!("`{}:{}`", shown(&sight.place.path), sight.place.line);
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
        let places: Vec<_> = focus.within.iter().map(|place| shown(place)).collect();
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
            cut: false,
        };
        assert!(overview(&listing, None).starts_with("This folder holds 1 files"));
        listing.cut = true;
        assert!(overview(&listing, None).starts_with("This folder holds more than 1 files"));
        let nothing = Found {
            cut: true,
            ..Found::default()
        };
        let answer = found(&Focus::default(), &nothing, &[]);
        assert!(answer.contains("I did not get to its end"), "{answer}");
    }
}
