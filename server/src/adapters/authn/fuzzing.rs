//! The file of the tokens' digests, and texts in which a token may be.

use super::jwt::{compact, jwks};
use super::{bearer, book, xfcc};

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

/// What a caller presents as a JWT, before its signature is looked at.
pub(crate) fn jwt(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _token_or_none = compact::read(text);
    }
}

/// What an issuer says that its keys are.
pub(crate) fn keys(bytes: &[u8]) {
    let _keys_or_none = jwks::read(bytes);
}

/// What a proxy says of a certificate.
pub(crate) fn forwarded(bytes: &[u8]) {
    let _names_or_none = xfcc::last(bytes);
}
