//! A configuration file.

use std::path::Path;

/// It is read, or each problem tells a line of it.
pub(crate) fn file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (given, problems) = super::file::read(Path::new("sessiond.toml"), text);
    drop(given);
    for problem in problems {
        crate::fuzzing::short(&problem.to_string());
    }
}
