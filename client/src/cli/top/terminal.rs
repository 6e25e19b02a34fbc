//! The terminal as a whole screen: taken over for as long as this lives, and given back as it was,
//! also when the program panics.

use std::io::{self, Stdout, stdout};
use std::sync::Once;
use std::thread::{self, ThreadId};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// A terminal that is taken over.
pub(crate) struct FullScreen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl FullScreen {
    /// Takes it over.
    ///
    /// # Errors
    /// When it cannot be.
    pub(crate) fn enter() -> io::Result<Self> {
        tell_panics_outside();
        enable_raw_mode()?;
        let entered = execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match entered {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                // What was done of it is undone; the error that began it is the one to tell.
                let _ = leave();
                Err(error)
            }
        }
    }

    /// Draws.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(crate) fn draw(&mut self, paint: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(paint).map(|_| ())
    }
}

impl FullScreen {
    /// Gives it back for a while; a new screen takes it over again.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(crate) fn give_back(&mut self) -> io::Result<()> {
        let shown = self.terminal.show_cursor();
        leave().and(shown)
    }
}

/// What is said of a panic is said where it can be read: the other screen goes away with its words.
fn tell_panics_outside() {
    static ONCE: Once = Once::new();
    let here: ThreadId = thread::current().id();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // A task that panics elsewhere takes nothing from who sits here.
            if thread::current().id() == here {
                let _ = leave();
            }
            before(info);
        }));
    });
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        // Nobody is left to be told, and a terminal that is gone needs nothing.
        let _ = leave();
    }
}

fn leave() -> io::Result<()> {
    let shown = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen);
    disable_raw_mode().and(shown)
}
