//! Texts of others on a terminal.

use super::{markdown, visible};

/// Nothing that is shown steers a terminal or is invisible, however narrow it is.
pub(crate) fn shown(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let width = bytes.first().map_or(0, |width| usize::from(*width));
    harmless(&visible::lines(&text), "\n\t");
    harmless(&visible::line(&text), "");
    let fitted = visible::fitted(&text, width);
    harmless(&fitted, "");
    assert_eq!(visible::columns(&fitted), width, "{fitted:?}");
    let end = visible::end_in_columns(&text, width);
    harmless(&end, "");
    assert!(visible::columns(&end) <= width, "{end:?}");
    let json = serde_json::Value::String(text.into_owned()).to_string();
    harmless(&visible::json(&json), "");
}

/// Neither does what is laid out.
pub(crate) fn laid_out(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    harmless(&markdown::laid_out(&text, false, 80), "\n\t");
}

fn harmless(shown: &str, but: &str) {
    let steers = |c: char| {
        let invisible = matches!(c,
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
        (c.is_control() || invisible) && !but.contains(c)
    };
    assert!(!shown.contains(steers), "{shown:?}");
}
