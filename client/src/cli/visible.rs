//! Making what others wrote safe to show on a terminal: control characters, escape sequences and
//! invisible characters become visible text, or the escapes of JSON.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr};

/// A text of several lines: line feeds and tabs stay, all else that steers is made visible.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n' || c == '\t')
}

/// A text that must stay on one line.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// At most `width` characters of one line; what is cut off is told by an ellipsis.
pub(crate) fn clipped(text: &str, width: usize) -> String {
    let line = line(text);
    if line.chars().count() <= width {
        return line.into_owned();
    }
    let kept = line.chars().take(width.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// One line in exactly `width` columns of a terminal: filled up with spaces, or cut off, which an
/// ellipsis tells.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    let mut out = clipped_to_columns(text, width);
    let filled = columns(&out);
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(filled)));
    out
}

/// At most `width` columns of one line.
pub(crate) fn clipped_to_columns(text: &str, width: usize) -> String {
    let line = line(text);
    if columns(&line) <= width {
        return line.into_owned();
    }
    let (mut out, mut used) = (String::new(), 0);
    for part in clusters(&line) {
        used += part.width();
        // One column is the ellipsis'.
        if used >= width {
            break;
        }
        out.push_str(part);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// The end of one line, in at most `width` columns.
pub(crate) fn end_in_columns(text: &str, width: usize) -> String {
    let line = line(text);
    let (mut out, mut used) = (Vec::new(), 0);
    for part in clusters(&line).into_iter().rev() {
        used += part.width();
        if used > width {
            break;
        }
        out.push(part);
    }
    out.reverse();
    out.concat()
}

/// One line in pieces, the first of at most `first` columns and each other of at most `width`, as a
/// terminal breaks what is longer than its own line.
pub(crate) fn broken(text: &str, first: usize, width: usize) -> Vec<String> {
    let line = line(text);
    let (mut pieces, mut piece) = (Vec::new(), String::new());
    let (mut used, mut room) = (0, first);
    for part in clusters(&line) {
        // What no line has room for stands alone.
        if used + part.width() > room && (used > 0 || room < width) {
            pieces.push(std::mem::take(&mut piece));
            (used, room) = (0, width);
        }
        piece.push_str(part);
        used += part.width();
    }
    pieces.push(piece);
    pieces
}

/// What a terminal draws together: a character with the marks that join it. One by one they may take
/// less room than together: a selector makes an emoji of a character, and that is wider.
fn clusters(line: &str) -> Vec<&str> {
    const JOINER: char = '\u{200d}';
    let (mut starts, mut joined) = (Vec::new(), false);
    for (at, c) in line.char_indices() {
        if at == 0 || !(joined || c.width().unwrap_or(0) == 0) {
            starts.push(at);
        }
        joined = c == JOINER;
    }
    let ends = starts.iter().skip(1).copied().chain([line.len()]);
    let parts = starts.iter().zip(ends);
    parts.map(|(from, to)| &line[*from..to]).collect()
}

/// How many columns of a terminal a line takes.
pub(crate) fn columns(text: &str) -> usize {
    let line = line(text);
    if line.is_ascii() {
        return line.len();
    }
    clusters(&line)
        .into_iter()
        .map(UnicodeWidthStr::width)
        .sum()
}

/// A JSON text, which escapes no more than ASCII's control characters, with all others escaped that
/// steer: it means the same.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if !is_unsafe(c) {
            out.push(c);
            continue;
        }
        // Outside of its strings JSON has no such character, and in them it may be escaped.
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    Cow::Owned(out)
}

fn escaped(text: &str, stays: fn(char) -> bool) -> Cow<'_, str> {
    let steers = |c: char| is_unsafe(c) && !stays(c);
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !steers(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\x1b' => out.push_str("\\e"),
            c => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    Cow::Owned(out)
}

/// Characters that steer a terminal, reorder a line, or are there without being seen. The joiners
/// U+200C and U+200D stay: scripts and emoji are made of them.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_sequence_is_shown_and_not_obeyed() {
        assert_eq!(lines("a\x1b[2Jb"), "a\\e[2Jb");
        assert_eq!(lines("\x1b]0;title\x07"), "\\e]0;title\\u{7}");
        assert_eq!(lines("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(lines("one\r\ntwo\tthree"), "one\\r\ntwo\tthree");
        assert_eq!(line("one\ntwo"), "one\\ntwo");
    }

    #[test]
    fn text_that_hides_or_reorders_itself_is_shown() {
        assert_eq!(lines("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(lines("a\u{200b}b"), "a\\u{200b}b");
        assert_eq!(lines("a\u{e0041}"), "a\\u{e0041}");
    }

    #[test]
    fn plain_text_of_any_script_stays_as_it_is() {
        for text in ["héllo", "日本語", "👩\u{200d}💻", "می\u{200c}خواهم"] {
            assert!(matches!(lines(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn a_cell_has_its_columns_whatever_the_script() {
        for (text, expected) in [
            ("abc", "abc  "),
            ("abcdef", "abcd…"),
            ("日本語", "日本…"),
            ("日本", "日本 "),
            ("", "     "),
        ] {
            let cell = fitted(text, 5);
            assert_eq!((cell.as_str(), columns(&cell)), (expected, 5), "{text}");
        }
        assert_eq!(clipped_to_columns("abc", 0), "");
    }

    #[test]
    fn what_a_mark_makes_wider_is_never_wider_than_its_cell() {
        for text in [
            "\u{26a0}\u{fe0f}".repeat(20),
            "e\u{301}".repeat(20),
            "\u{1f469}\u{200d}\u{1f4bb}".repeat(20),
            format!("{}\u{26a0}\u{fe0f} sure", "a".repeat(7)),
        ] {
            for width in 0..=20 {
                let cell = fitted(&text, width);
                assert_eq!(cell.width(), width, "{cell:?}");
                let end = end_in_columns(&text, width);
                assert!(end.width() <= width && text.ends_with(&end), "{end:?}");
            }
        }
        assert_eq!(end_in_columns("abcdef", 3), "def");
        assert_eq!(end_in_columns("e\u{301}", 1), "e\u{301}");
    }

    #[test]
    fn a_line_is_broken_where_a_terminal_ends() {
        assert_eq!(broken("abcdefgh", 2, 3), ["ab", "cde", "fgh"]);
        assert_eq!(broken("日本語", 5, 5), ["日本", "語"]);
        assert_eq!(broken("日本", 1, 3), ["", "日", "本"]);
        assert_eq!(broken("日", 1, 1), ["日"]);
        assert_eq!(broken("", 4, 4), [""]);
    }

    #[test]
    fn a_long_line_is_cut_and_says_so() {
        assert_eq!(clipped("abcdef", 4), "abc…");
        assert_eq!(clipped("abcd", 4), "abcd");
    }
}
