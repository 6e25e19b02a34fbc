//! Making what hides or steers visible, so that the original can be had back.
//!
//! A character that is not shown, or that changes how others are, is written `\u{HEX}` by its number; a
//! byte that is no text is `\x{HH}`. Where a text says `\u{` or `\x{` itself, its backslash is written
//! so.

use std::fmt::Write as _;

/// The content with everything visible but line feeds and tabs.
#[must_use]
pub fn visible(content: &[u8]) -> String {
    let mut out = String::with_capacity(content.len());
    push(&mut out, content);
    out
}

/// Adds a content with everything visible but line feeds and tabs.
pub(super) fn push(out: &mut String, content: &[u8]) {
    for chunk in content.utf8_chunks() {
        text(out, chunk.valid(), |c| c == '\n' || c == '\t');
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\x{{{byte:02x}}}");
        }
    }
}

/// Adds a word between quotes, which neither ends them nor leaves its line.
pub(super) fn quoted(out: &mut String, word: &str) {
    out.push('"');
    text(out, word, |_| false);
    out.push('"');
    // Nothing that is visible as itself but the quotation mark could end it.
}

fn text(out: &mut String, text: &str, stays: fn(char) -> bool) {
    // In a word the line's own structure is at stake, too.
    let is_word = !stays('\n');
    let bytes = text.as_bytes();
    for (at, c) in text.char_indices() {
        let escape = matches!(bytes.get(at..at + 3), Some([b'\\', b'u' | b'x', b'{']));
        if escape || (is_word && c == '"') || (hides(c) && !stays(c)) {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
}

/// What [`visible`] was given.
#[must_use]
pub fn original(shown: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(shown.len());
    let mut rest = shown;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at..];
        let escaped = escaped(&mut out, rest);
        let taken = escaped.unwrap_or(1);
        if escaped.is_none() {
            out.push(b'\\');
        }
        rest = &rest[taken..];
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

/// Adds what an escape at the start of `shown` stands for; gives its length.
fn escaped(out: &mut Vec<u8>, shown: &str) -> Option<usize> {
    let (digits, is_char) = match (shown.strip_prefix("\\u{"), shown.strip_prefix("\\x{")) {
        (Some(digits), _) => (digits, true),
        (None, Some(digits)) => (digits, false),
        (None, None) => return None,
    };
    let digits = &digits[..digits.find('}')?];
    let number = u32::from_str_radix(digits, 16).ok()?;
    if is_char {
        let c = char::from_u32(number)?;
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        out.push(u8::try_from(number).ok()?);
    }
    Some(digits.len() + 4)
}

/// Whether a character is not seen as itself: controls, what reorders, breaks lines, joins or is
/// nothing, and what has no meaning that a reader could know.
fn hides(c: char) -> bool {
    matches!(c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' // controls, C1's and its line end
        | '\u{ad}' // soft hyphen
        | '\u{34f}' // grapheme joiner
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' // order
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}' // letters that are blank
        | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' // variations
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}' // no width
        | '\u{2028}' | '\u{2029}' // line and paragraph ends
        | '\u{fff0}'..='\u{fffb}' // annotations
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{fdd0}'..='\u{fdef}' // no characters
        | '\u{e000}'..='\u{f8ff}' // private
        | '\u{e0000}'..='\u{10ffff}' // tags, more variations, private
    ) || u32::from(c) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn c58_what_hides_or_steers_is_seen() {
        let shown = |text: &str| visible(text.as_bytes());
        assert_eq!(shown("a\x1b[31mred\x07"), "a\\u{1b}[31mred\\u{7}");
        assert_eq!(shown("\u{202e}txt.exe"), "\\u{202e}txt.exe");
        assert_eq!(shown("a\u{200b}b\u{e0041}"), "a\\u{200b}b\\u{e0041}");
        assert_eq!(shown("one\r\ntwo\tend"), "one\\u{d}\ntwo\tend");
        assert_eq!(shown("C:\\users \\n"), "C:\\users \\n");
        assert_eq!(shown("\\u{41} \\x{41}"), "\\u{5c}u{41} \\u{5c}x{41}");
        assert_eq!(visible(b"\xff\xc3("), "\\x{ff}\\x{c3}(");
        assert_eq!(shown("zwei Zeilen, 二行"), "zwei Zeilen, 二行");
    }

    #[test]
    fn a_word_stays_between_its_quotes() {
        let mut out = String::new();
        quoted(&mut out, "a\"] \n[\\u{22}");
        assert_eq!(out, "\"a\\u{22}] \\u{a}[\\u{5c}u{22}\"");
    }

    proptest! {
        #[test]
        fn c58_the_original_can_be_had_back(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(original(&visible(&bytes)), bytes);
        }

        #[test]
        fn c58_so_of_texts_that_speak_of_escapes(text in "[\\\\ux{}0-9a-f\u{200b}\u{202e}\u{1b}]{0,40}") {
            let shown = visible(text.as_bytes());
            prop_assert_eq!(original(&shown), text.as_bytes());
            prop_assert!(!shown.chars().any(hides));
        }

        #[test]
        fn c58_nothing_that_is_shown_hides(text in any::<String>()) {
            let shown = visible(text.as_bytes());
            prop_assert!(!shown.chars().any(|c| hides(c) && c != '\n' && c != '\t'));
        }
    }
}
