//! A terminal that does not show what is typed, for a while.

use std::io::{self, Stdin};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// While it lives, the terminal of standard input shows nothing that is typed.
pub(crate) struct Silence {
    stdin: Stdin,
    before: Termios,
}

impl Silence {
    /// None where there is no terminal, or it cannot be silenced.
    pub(crate) fn begin() -> Option<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin).ok()?;
        let mut silent = before.clone();
        // Nor the line's end: whoever draws below it knows where the cursor is.
        let shown = LocalModes::ECHO | LocalModes::ECHONL;
        silent.local_modes.remove(shown);
        tcsetattr(&stdin, OptionalActions::Now, &silent).ok()?;
        Some(Self { stdin, before })
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing anyway.
        let _ = tcsetattr(&self.stdin, OptionalActions::Now, &self.before);
    }
}
