//! The file of the tokens' digests, and texts in which a token may be.

use super::{bearer, book};

/// A file that is read is written as what is read again.
pub(crate) fn book(bytes: &[u8]) {
    if let Ok(records) = book::decode(bytes) {
        let written = book::encode(&records);
        let again = book::decode(written.as_bytes());
        assert_eq!(again.map(|records| book::encode(&records)), Ok(written));
    }
    secrets(bytes);
}

/// No token is left in a text without secrets.
fn secrets(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let shown = bearer::without_secrets(&text);
    let is_one = |at: usize| {
        let text = shown.get(at..at + bearer::CHARACTERS);
        text.is_some_and(bearer::is_token)
    };
    assert!(!(0..shown.len()).any(is_one), "{shown}");
}
