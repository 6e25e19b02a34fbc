//! The folders and files of a listing, as a tree that fits a screen.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::about::PLAIN;
use super::files::Listing;
use super::focus::Focus;
use super::page::shown;

/// Most lines of a tree.
const LINES: usize = 40;
/// How deep one is shown at most.
const DEPTH: usize = 6;

#[derive(Default)]
struct Node<'a> {
    folders: BTreeMap<&'a str, Node<'a>>,
    files: Vec<&'a str>,
    /// Files in it and below.
    count: usize,
}

/// What a question about what lies where is answered with.
pub(super) fn answer(focus: &Focus, listing: &Listing) -> String {
    let files = focus.files(listing);
    let place = match focus.within.as_slice() {
        [place] => format!("`{}`", shown(place)),
        [] => "This folder".to_owned(),
        _ => "These folders".to_owned(),
    };
    let more = if listing.cut { "more than " } else { "" };
    let mut text = format!("{place} holds {more}{}", files_in(files.len()));
    if !focus.endings.is_empty() {
        let _ = write!(text, " ending with .{}", shown(&focus.endings.join(", .")));
    }
    if files.is_empty() {
        return text + ".\n\n" + PLAIN;
    }
    text.push_str(":\n\n");
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    text.push_str(&drawn(&paths, LINES));
    text.push('\n');
    if listing.unnamed > 0 {
        let unnamed = files_in(listing.unnamed);
        let _ = writeln!(text, "I leave out {unnamed} with a name that is no text.\n");
    }
    text.push_str(PLAIN);
    text
}

/// A tree of paths, as deep as it fits so many lines.
pub(super) fn drawn(paths: &[&str], lines: usize) -> String {
    let mut top = Node::default();
    for path in paths {
        let mut node = &mut top;
        let mut rest = *path;
        while let Some((folder, inner)) = rest.split_once('/') {
            node.count += 1;
            node = node.folders.entry(folder).or_default();
            rest = inner;
        }
        node.count += 1;
        node.files.push(rest);
    }
    // A single folder with all in it is not worth a level.
    let depths = (1..=DEPTH).rev();
    let mut trees = depths.map(|depth| {
        let mut text = String::new();
        draw(&top, depth, 1, &mut text);
        text
    });
    let fits = trees.find(|text| text.lines().count() <= lines);
    fits.unwrap_or_else(|| {
        let mut text = String::new();
        draw(&top, 1, 1, &mut text);
        let count = text.lines().count();
        let mut cut: String = text.split_inclusive('\n').take(lines - 1).collect();
        let _ = writeln!(cut, "    and {} more", count + 1 - lines);
        cut
    })
}

fn draw(node: &Node, depth: usize, level: usize, text: &mut String) {
    let indent = "  ".repeat(level + 1);
    for (name, inner) in &node.folders {
        if depth > 1 {
            let _ = writeln!(text, "{indent}{}/", shown(name));
            draw(inner, depth - 1, level + 1, text);
        } else {
            let _ = writeln!(
                text,
                "{indent}{}/  ({})",
                shown(name),
                files_in(inner.count)
            );
        }
    }
    for name in &node.files {
        let _ = writeln!(text, "{indent}{}", shown(name));
    }
}

/// A number of files, in words.
pub(super) fn files_in(count: usize) -> String {
    match count {
        0 => "no files that people write".to_owned(),
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_whose_names_are_no_text_are_not_kept_silent() {
        let mut listing = Listing {
            files: vec![super::super::files::Listed {
                path: "a.md".to_owned(),
                bytes: 1,
            }],
            ..Listing::default()
        };
        assert!(!answer(&Focus::default(), &listing).contains("leave out"));
        listing.unnamed = 1;
        let told = answer(&Focus::default(), &listing);
        assert!(
            told.contains("I leave out 1 file with a name that is no text."),
            "{told}"
        );
    }

    #[test]
    fn a_tree_is_as_deep_as_it_fits() {
        let paths = ["a/b/c.rs", "a/d.rs", "e.md"];
        let whole = "    a/\n      b/\n        c.rs\n      d.rs\n    e.md\n";
        assert_eq!(drawn(&paths, 9), whole);
        assert_eq!(
            drawn(&paths, 4),
            "    a/\n      b/  (1 file)\n      d.rs\n    e.md\n"
        );
        assert_eq!(drawn(&paths, 3), "    a/  (2 files)\n    e.md\n");
        let many: Vec<String> = (0..90).map(|number| format!("{number:02}.md")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let cut = drawn(&many, 10);
        assert_eq!(cut.lines().count(), 10);
        assert!(cut.ends_with("    and 81 more\n"), "{cut}");
    }
}
