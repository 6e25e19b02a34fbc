//! What somebody wrote, for a terminal: nothing in it that moves the cursor, rings, or turns the
//! direction of what follows.

use std::borrow::Cow;

/// The text with such characters written out. Line breaks stay where `lines` are wanted.
pub(crate) fn shown(text: &str, lines: bool) -> Cow<'_, str> {
    let stays = |c: char| (lines && c == '\n') || !(c.is_control() || steers(c));
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if stays(c) {
            out.push(c);
        } else {
            out.extend(c.escape_default());
        }
    }
    Cow::Owned(out)
}

/// Marks that are not seen but change how what is beside them is: of direction, of lines, of nothing.
fn steers(c: char) -> bool {
    matches!(
        c,
        '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}
