//! Lines of prose that are broken between words, not where a terminal ends. Values only.

use unicode_width::UnicodeWidthStr as _;

/// Least room for words. Where a margin leaves less, a terminal breaks the line as it comes.
const LEAST: usize = 20;

/// A line's words, of which the first begins in the column `used`, broken at spaces so that each
/// line has at most `width` columns; the lines that follow begin with `margin`. A word that is
/// longer stays whole. The styles of a terminal in it take no room.
pub(crate) fn wrapped(words: &str, used: usize, width: usize, margin: &str) -> String {
    let indent = columns(margin);
    if width < used.max(indent).saturating_add(LEAST) {
        return words.to_owned();
    }
    let mut out = String::with_capacity(words.len() + 16);
    let (mut column, mut begun) = (used, false);
    for (at, word) in words.split(' ').enumerate() {
        let takes = columns(word);
        if begun && takes > 0 && column + 1 + takes > width {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(margin);
            column = indent;
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += takes;
        begun |= takes > 0;
    }
    out
}

/// How many columns a text takes, without its styles.
fn columns(text: &str) -> usize {
    let mut style = false;
    let seen = text.chars().filter(|c| {
        let hidden = style || *c == '\x1b';
        style = hidden && *c != 'm';
        !hidden
    });
    seen.collect::<String>().width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_between_words_and_goes_on_under_its_margin() {
        let words = "where the lease token is checked, line by line";
        assert_eq!(
            wrapped(words, 2, 26, "  "),
            "where the lease token is\n  checked, line by line"
        );
        assert_eq!(wrapped(words, 0, usize::MAX, ""), words);
    }

    #[test]
    fn a_style_takes_no_room_and_a_long_word_stays_whole() {
        let styled = "see \x1b[36mone\x1b[0m and two and three";
        assert_eq!(wrapped(styled, 0, 25, ""), styled);
        assert_eq!(
            wrapped("二十のコラム が 行 に あります", 0, 20, ""),
            "二十のコラム が 行\nに あります"
        );
        let long = "x".repeat(40);
        assert_eq!(
            wrapped(&format!("a {long} b"), 0, 24, ""),
            format!("a\n{long}\nb")
        );
        assert_eq!(
            wrapped("a b c d e f g h i", 8, 9, "        "),
            "a b c d e f g h i"
        );
    }
}
