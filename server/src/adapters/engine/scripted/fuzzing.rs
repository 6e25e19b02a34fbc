//! A prompt.

/// It is a scenario, none, or one that is wrong in words that can be shown.
pub(crate) fn scenario(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Err(error) = super::parse::parse(text) {
        crate::fuzzing::short(&error.to_string());
    }
}
