//! Descriptors that a process was started with beside its standard streams: somebody let them slip
//! through an exec, and nothing of what is started here is meant to have them.

use std::fs;
use std::io;

/// Closes all but the standard streams. To be done first of all, where no other thread runs and nothing
/// was opened yet.
///
/// # Errors
/// When the system does not tell which there are.
pub(super) fn close() -> io::Result<()> {
    let listed = fs::read_dir("/proc/self/fd")?;
    let open: Vec<i32> = listed
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    // The listing's own is closed by now; that it is closed again does nothing.
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        let _closed = nix::unistd::close(descriptor);
    }
    Ok(())
}
