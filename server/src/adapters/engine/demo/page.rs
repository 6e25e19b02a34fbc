//! A file's text as a reader sees it: what a line defines, what encloses it, an excerpt around it.

use std::fmt::Write as _;

use sessionplane_core::domain::text::head;

use super::withheld::told;

/// How many lines an excerpt shows before and after its own.
const AROUND: usize = 4;
/// How much of a line is shown, in bytes.
const LINE_BYTES: usize = 140;
/// How much of a path is shown, in bytes.
const PATH_BYTES: usize = 1024;
/// How far above a line its enclosing definition is looked for.
const FAR: usize = 400;

/// Words that may stand before a definition's own word.
const MODIFIERS: [&str; 14] = [
    "pub",
    "pub(crate)",
    "pub(super)",
    "async",
    "unsafe",
    "extern",
    "export",
    "default",
    "public",
    "private",
    "protected",
    "static",
    "abstract",
    "final",
];
/// Words that begin a definition.
const DEFINERS: [&str; 20] = [
    "fn",
    "struct",
    "enum",
    "trait",
    "type",
    "mod",
    "const",
    "impl",
    "union",
    "macro_rules!",
    "def",
    "class",
    "function",
    "interface",
    "func",
    "message",
    "service",
    "rpc",
    "namespace",
    "record",
];

/// What a line defines: the word that says so, and the name.
pub(super) fn definition(line: &str) -> Option<(&str, &str)> {
    let mut words = line
        .split_whitespace()
        .skip_while(|word| MODIFIERS.contains(word));
    let mut definer = words.next()?;
    let mut name = words.next()?;
    if definer == "const" && name == "fn" {
        definer = name;
        name = words.next()?;
    }
    // `impl<T> Trait for Type` and `fn name<T>(...)` glue what follows to the word.
    let (word, _) = definer.split_once('<').unwrap_or((definer, ""));
    let definer = DEFINERS.iter().find(|known| **known == word)?;
    let end = name.find(|c: char| !(c.is_alphanumeric() || "_-.".contains(c)));
    let name = &name[..end.unwrap_or(name.len())];
    (!name.is_empty()).then_some((definer, name))
}

/// The title of a heading. Only notes have such: elsewhere the same sign begins a comment.
fn heading(line: &str) -> Option<&str> {
    let title = line.trim().strip_prefix('#')?.trim_start_matches('#');
    title.starts_with(' ').then(|| title.trim())
}

/// Whether a file is a note, by its path: its lines are prose under headings.
pub(super) fn is_note(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let endings = [".md", ".markdown", ".txt", ".rst", ".adoc"];
    endings.iter().any(|ending| lower.ends_with(ending))
}

/// What encloses a line of a file, given by its index, as a sentence names it: a definition in
/// backticks, or the heading above it.
pub(super) fn enclosing(path: &str, lines: &[&str], at: usize) -> Option<String> {
    if is_note(path) {
        let mut above = lines.get(..=at)?.iter().rev().take(FAR);
        let title = above.find_map(|line| heading(line))?;
        return Some(format!("section \"{}\"", shown(title)));
    }
    let own = lines.get(at)?;
    if let Some(defined) = definition(own) {
        return Some(display(defined));
    }
    // A comment speaks of what follows it.
    let is_comment = |line: &str| {
        let line = line.trim_start();
        line.starts_with("//") || line.starts_with("#[") || line.starts_with('@')
    };
    if is_comment(own) {
        let follows = lines[at..].iter().take(60).find(|line| !is_comment(line));
        if let Some(defined) = follows.and_then(|line| definition(line)) {
            return Some(display(defined));
        }
    }
    let mut inner = indent(own);
    for line in lines[..at].iter().rev().take(FAR) {
        if line.trim().is_empty() {
            continue;
        }
        // What ends on its own line encloses nothing.
        let outer = indent(line) < inner && !line.trim_end().ends_with(';');
        match definition(line) {
            Some(defined) if outer => return Some(display(defined)),
            _ => {}
        }
        // The end of a parameter list is as far out as the definition that it belongs to.
        if !line.trim_start().starts_with(')') {
            inner = inner.min(indent(line).max(1));
        }
    }
    None
}

fn display((definer, name): (&str, &str)) -> String {
    format!("`{definer} {}`", shown(name))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The lines around one, numbered from 1, with a mark before it. As far from the margin as Markdown
/// wants code to be: nearer, a mark would begin a quote, and all after it would be prose.
pub(super) fn excerpt(lines: &[&str], at: usize) -> String {
    let from = at.saturating_sub(AROUND);
    let to = (at + AROUND + 1).min(lines.len());
    let width = to.to_string().len();
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate().take(to).skip(from) {
        let mark = if index == at { '>' } else { ' ' };
        let number = index + 1;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "    {mark} {number:>width$} | {}", shown(line));
    }
    text
}

/// A line as it may be shown: short, and without characters that move or recolour a terminal.
pub(super) fn shown(line: &str) -> String {
    visible_head(line.trim_end(), LINE_BYTES)
}

/// What may be shown of a file, as Markdown shows it unchanged within a sentence: between more
/// backticks than it holds in a row.
pub(super) fn code(shown: &str) -> String {
    let text = shown.trim();
    let marks = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(marks + 1);
    // A space keeps the fence and a backtick apart; of two, one on each side, Markdown shows none.
    let space = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{text}{space}{fence}")
}

/// A path as it may be shown: whole, for who wants to ask for it.
pub(super) fn shown_path(path: &str) -> String {
    visible_head(path, PATH_BYTES)
}

fn visible_head(text: &str, most: usize) -> String {
    let text = &*told(text);
    let cut = head(text, most);
    let mut shown: String = cut.chars().map(visible).collect();
    if cut.len() < text.len() {
        shown.push('\u{2026}');
    }
    shown
}

fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        '\u{061c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_of_many_languages_are_seen() {
        for (line, expected) in [
            ("    pub(crate) async fn append(&self) {", ("fn", "append")),
            ("pub const fn from_millis(m: u64)", ("fn", "from_millis")),
            ("const MAX: usize = 1;", ("const", "MAX")),
            ("impl Gate for Harbour {", ("impl", "Gate")),
            ("message HarbourGate {", ("message", "HarbourGate")),
            ("export default class App extends X {", ("class", "App")),
            ("def check(self):", ("def", "check")),
        ] {
            assert_eq!(definition(line), Some(expected), "{line}");
        }
        for line in [
            "## 6. Observation",
            "let x = 1;",
            "// fn x",
            "#[test]",
            "return",
            "type",
            "fn (x)",
        ] {
            assert_eq!(definition(line), None, "{line}");
        }
    }

    #[test]
    fn a_line_knows_what_it_is_part_of() {
        let text = "struct A {\n    x: u8,\n}\n\nimpl A {\n    /// Adds.\n    fn add(\n        &self,\n    ) {\n        let y = 1;\n    }\n}";
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(enclosing("a.rs", &lines, 1).as_deref(), Some("`struct A`"));
        assert_eq!(enclosing("a.rs", &lines, 5).as_deref(), Some("`fn add`"));
        assert_eq!(enclosing("a.rs", &lines, 9).as_deref(), Some("`fn add`"));
        assert_eq!(enclosing("a.rs", &lines, 3), None);
        let text = "const PORT = 1;\n\napp.post('/x', () => {\n    pay();\n});";
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(enclosing("a.js", &lines, 3), None);
        let text = "# Title\n\ntext\n\nmore";
        let lines: Vec<&str> = text.lines().collect();
        let title = Some("section \"Title\"".to_owned());
        assert_eq!(enclosing("docs/A.MD", &lines, 4), title);
        // There it is a comment.
        assert_eq!(enclosing("a.yaml", &lines, 4), None);
    }

    #[test]
    fn what_is_shown_cannot_speak_to_a_terminal() {
        assert_eq!(
            shown("\u{1b}[31mred\u{202e}\u{9b}\u{2028}\u{61c}\ttab"),
            "\u{fffd}[31mred\u{fffd}\u{fffd}\u{fffd}\u{fffd} tab"
        );
        let long = "\u{e9}".repeat(200);
        assert!(shown(&long).len() <= LINE_BYTES + 3);
        assert_eq!(shown_path(&long), long);
        assert_eq!(shown_path("a\u{1b}"), "a\u{fffd}");
        assert!(shown_path(&long.repeat(9)).len() <= PATH_BYTES + 3);
    }

    #[test]
    fn an_excerpt_marks_its_line() {
        let lines: Vec<String> = (1..=20).map(|n| format!("line {n}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let text = excerpt(&lines, 9);
        assert!(text.contains("    > 10 | line 10\n"));
        assert_eq!(text.lines().count(), 9);
        assert_eq!(excerpt(&lines, 0).lines().count(), 5);
    }

    #[test]
    fn what_a_file_holds_is_code_to_every_reader_of_markdown() {
        let lines = ["__name__", "# title", "> said", "- one"];
        for at in 0..lines.len() {
            let text = excerpt(&lines, at);
            assert!(text.lines().all(|line| line.starts_with("    ")), "{text}");
        }
        assert_eq!(code("  __name__ "), "`__name__`");
        assert_eq!(code("a `b` c"), "``a `b` c``");
        assert_eq!(code("```rust"), "```` ```rust ````");
    }
}
