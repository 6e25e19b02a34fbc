//! What tests of several settings need: the settings of a file with some text.

use super::{Settings, Sources, load};

/// The settings of a file; else what is wrong with it, in words.
pub(super) fn settings(text: &str) -> Result<Settings, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, text).unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    load(&sources).map_err(|error| error.to_string())
}
