//! Page tokens, which callers give back.

use super::token;
use crate::app::digest::of_text;

/// A token of one question names a place in no other one.
pub(crate) fn page_token(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let question = of_text("labels.team = blue");
    if let Ok(place) = token::place("page_token", &question, text) {
        assert_eq!(token::make(&question, place), text);
        assert!(token::place("page_token", &of_text("agent = coder"), text).is_err());
    }
}
