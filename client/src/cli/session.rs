//! How a session is named on a command line, and how it is written into a hint.

use sessionplane_core::domain::ids::{
    ExternalKey, IdError, SessionId, SessionName, SessionRef, is_ulid_shaped,
};

/// Reads a SESSION argument: `key:TEXT` is an external key, a text of a ULID's shape an id, any
/// other a name.
///
/// # Errors
/// When it is none of them.
pub(crate) fn parse(text: &str) -> Result<SessionRef, IdError> {
    if let Some(key) = text.strip_prefix("key:") {
        return ExternalKey::parse(key).map(SessionRef::ExternalKey);
    }
    if is_ulid_shaped(text) {
        return text.parse::<SessionId>().map(SessionRef::Id);
    }
    SessionName::parse(text).map(SessionRef::Name)
}

/// A word as a POSIX shell reads it back.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/=@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_word_is_an_id_if_shaped_like_one_and_else_a_name() {
        let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        assert!(matches!(parse(id), Ok(SessionRef::Id(_))));
        assert!(matches!(parse("docs"), Ok(SessionRef::Name(_))));
        assert!(matches!(
            parse("key:Any Text"),
            Ok(SessionRef::ExternalKey(_))
        ));
        for bad in ["", "key:", "Docs", "a b", "UUUUUUUUUUUUUUUUUUUUUUUUUU"] {
            assert!(parse(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_hint_can_be_pasted_into_a_shell() {
        assert_eq!(shell_word("docs"), "docs");
        assert_eq!(shell_word("key:a b"), "'key:a b'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
    }
}
