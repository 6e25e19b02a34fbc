//! How much there is: files and lines, by language.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use super::about::PLAIN;
use super::files::{Folder, Listed, MOST_FILE_BYTES};
use super::focus::Focus;
use super::page::shown;
use super::tree::files_in;

/// How many languages are told one by one.
const TOLD: usize = 10;

/// Languages by what their files end with.
const LANGUAGES: [(&str, &[&str]); 30] = [
    ("Rust", &["rs"]),
    ("Python", &["py", "pyi"]),
    ("TypeScript", &["ts", "tsx", "mts"]),
    ("JavaScript", &["js", "jsx", "mjs", "cjs"]),
    ("Go", &["go"]),
    ("Java", &["java"]),
    ("Kotlin", &["kt", "kts"]),
    ("C", &["c", "h"]),
    ("C++", &["cc", "cpp", "cxx", "hpp", "hh", "hxx"]),
    ("C#", &["cs"]),
    ("Swift", &["swift"]),
    ("Ruby", &["rb"]),
    ("PHP", &["php"]),
    ("Scala", &["scala", "sbt"]),
    ("Elixir", &["ex", "exs"]),
    ("Erlang", &["erl", "hrl"]),
    ("Haskell", &["hs"]),
    ("Lua", &["lua"]),
    ("Zig", &["zig"]),
    ("Shell", &["sh", "bash", "zsh", "fish"]),
    ("SQL", &["sql"]),
    ("Protocol Buffers", &["proto"]),
    ("HTML", &["html", "htm"]),
    ("CSS", &["css", "scss", "sass", "less"]),
    ("Markdown", &["md", "markdown"]),
    ("JSON", &["json", "jsonl"]),
    ("YAML", &["yaml", "yml"]),
    ("TOML", &["toml"]),
    ("XML", &["xml"]),
    ("Text", &["txt", "rst", "adoc"]),
];

/// What some files amount to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Sum {
    files: usize,
    lines: usize,
    bytes: u64,
}

/// What was counted so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Counted {
    languages: BTreeMap<String, Sum>,
    /// Files of which no lines were counted: no text, or too large.
    uncounted: usize,
    /// Bytes that were read.
    pub(super) bytes: u64,
    /// There is more.
    pub(super) cut: bool,
}

impl Counted {
    /// Adds what another part of the counting found.
    pub(super) fn add(&mut self, other: Self) {
        for (language, sum) in other.languages {
            let known = self.languages.entry(language).or_default();
            known.files += sum.files;
            known.lines += sum.lines;
            known.bytes += sum.bytes;
        }
        self.uncounted += other.uncounted;
        self.bytes += other.bytes;
        self.cut |= other.cut;
    }

    fn total(&self) -> Sum {
        let sums = self.languages.values();
        sums.fold(Sum::default(), |total, sum| Sum {
            files: total.files + sum.files,
            lines: total.lines + sum.lines,
            bytes: total.bytes + sum.bytes,
        })
    }

    /// What was counted, in a line.
    pub(super) fn line(&self) -> String {
        let total = self.total();
        format!("{} files, {} lines\n", total.files, total.lines)
    }
}

/// Counts some files. Blocks; leaves between two files once `stop` is set.
pub(super) fn count(folder: &Folder, files: &[Listed], stop: &AtomicBool) -> Counted {
    let mut counted = Counted::default();
    for file in files {
        if stop.load(Ordering::Relaxed) {
            counted.cut = true;
            break;
        }
        let is_small = file.bytes <= MOST_FILE_BYTES;
        let text = is_small.then(|| folder.read(&file.path, stop)).flatten();
        let sum = counted.languages.entry(language(&file.path)).or_default();
        sum.files += 1;
        sum.bytes += file.bytes;
        match text {
            Some(text) => {
                sum.lines += text.lines().count();
                counted.bytes += text.len() as u64;
            }
            None => counted.uncounted += 1,
        }
    }
    counted
}

/// What a question about how much there is is answered with.
pub(super) fn answer(focus: &Focus, counted: &Counted) -> String {
    let total = counted.total();
    let place = match focus.within.as_slice() {
        [place] => format!("`{}`", shown(place)),
        _ => "This folder".to_owned(),
    };
    let at_least = if counted.cut { "at least " } else { "" };
    let mut text = format!(
        "{place} holds {at_least}{}, {} lines, {}:\n\n",
        files_in(total.files),
        grouped(total.lines),
        size(total.bytes),
    );
    let mut languages: Vec<_> = counted.languages.iter().collect();
    languages.sort_by_key(|(name, sum)| (std::cmp::Reverse((sum.lines, sum.bytes)), *name));
    let wide = languages
        .iter()
        .take(TOLD)
        .map(|(name, _)| name.len())
        .max();
    let wide = wide.unwrap_or(0).max(8);
    for (name, sum) in languages.iter().take(TOLD) {
        let lines = grouped(sum.lines);
        let _ = writeln!(
            text,
            "    {name:<wide$} {:>6} files {lines:>10} lines",
            sum.files
        );
    }
    let rest = languages.len().saturating_sub(TOLD);
    if rest > 0 {
        let _ = writeln!(text, "    and {rest} more kinds");
    }
    text.push('\n');
    if counted.uncounted > 0 {
        let _ = writeln!(
            text,
            "No lines are counted of {}: no text, or larger than 512 KiB.",
            files_in(counted.uncounted)
        );
    }
    text.push_str(PLAIN);
    text
}

/// What the files end with that a word names, in lower case: `python`, `.py`, `*.py` or `py`, if there
/// are such.
pub(super) fn endings(word: &str, files: &[Listed]) -> Vec<String> {
    let word = word.trim_start_matches(['*', '.']).to_ascii_lowercase();
    let is_called = |(name, _): &&(&str, &[&str])| name.eq_ignore_ascii_case(&word);
    let mut endings: Vec<String> = match LANGUAGES.iter().find(is_called) {
        Some((_, endings)) => endings.iter().map(|ending| (*ending).to_owned()).collect(),
        None => vec![word],
    };
    endings.retain(|ending| files.iter().any(|file| ends_with(&file.path, ending)));
    endings
}

/// Whether a file's name has this after its last dot.
pub(super) fn ends_with(path: &str, ending: &str) -> bool {
    let parted = path.rsplit_once('.');
    parted.is_some_and(|(stem, own)| !stem.is_empty() && own.eq_ignore_ascii_case(ending))
}

/// The language of a file, or what its name ends with.
fn language(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => {
            let lower = ending.to_ascii_lowercase();
            let is_of = |(_, endings): &&(&str, &[&str])| endings.contains(&lower.as_str());
            let known = LANGUAGES.iter().find(is_of);
            known.map_or_else(
                || shown(&format!(".{lower}")),
                |(name, _)| (*name).to_owned(),
            )
        }
        _ => "other".to_owned(),
    }
}

/// A number with a comma after each three digits.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes, as people say it.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut unit = 0;
    // In tenths, so that no fraction is needed.
    let mut tenths = bytes.saturating_mul(10) / 1024;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_as_people_say_them() {
        assert_eq!(
            ["0", "999", "1,000", "1,234,567"],
            [0, 999, 1000, 1_234_567].map(grouped)[..]
        );
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(10 << 30), "10.0 GiB");
        assert!(size(u64::MAX).ends_with("TiB"));
    }

    #[test]
    fn languages_are_told_by_their_endings() {
        for (path, expected) in [
            ("src/a.RS", "Rust"),
            ("a/b.tsx", "TypeScript"),
            ("Makefile", "other"),
            (".gitignore", "other"),
            ("x.odd", ".odd"),
        ] {
            assert_eq!(language(path), expected, "{path}");
        }
    }
}
