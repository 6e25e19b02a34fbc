//! What is read and told without the secrets of this server's tokens. Who may ask the agent may be of
//! another tenant than the token that somebody left in the folder.

use std::borrow::Cow;

use crate::adapters::authn::{with_secrets_as, without_a_begun_token};

/// What stands in the place of a secret.
pub(super) const MARK: &str = "[secret withheld]";

/// A text with a mark in the place of each token's secret.
pub(super) fn told(text: &str) -> Cow<'_, str> {
    with_secrets_as(text, MARK)
}

/// The same of a text that is owned.
pub(super) fn told_of(text: String) -> String {
    match told(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(told) => told,
    }
}

/// The same of a line, of which perhaps only the beginning is there.
pub(super) fn told_of_line(line: &str, is_cut: bool) -> String {
    let told = told(line);
    if is_cut {
        return without_a_begun_token(&told).to_owned();
    }
    told.into_owned()
}
