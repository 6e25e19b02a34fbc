//! A line that was typed: what it says is done, or why not is told.

use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::InteractionId;

use super::typing::{HELP, NO_ANSWER, Typing, parse};
use super::{Attached, Typed, is_typed};
use crate::cli::echo::Silence;
use crate::cli::exit::{Exit, Stop};

impl Attached<'_> {
    pub(super) fn typed(&mut self, typed: Typed) -> Result<(), Stop> {
        // Whatever was typed, what comes next is shown again.
        let secret = self.secret.take().map(|(question, _)| question);
        let line = match typed {
            Some(Ok(Ok(line))) => line,
            Some(Ok(Err(bad))) => return self.not_done(&bad.to_string()),
            Some(Err(error)) => {
                self.closing = true;
                return self.not_done(&format!("standard input: {error}"));
            }
            None => {
                self.closing = true;
                return Ok(());
            }
        };
        if let Some(question) = secret {
            return self.secret_typed(question, &line);
        }
        let said = Given {
            typed: is_typed(),
            ..Given::default()
        };
        let typing = parse(&line, &said);
        if let Typing::Answer(text) = &typing {
            return self.answer_typed(&line, text.as_deref());
        }
        self.show_typed(&line)?;
        match typing {
            Typing::Nothing | Typing::Answer(_) => Ok(()),
            Typing::Help => Ok(self.screen.aside(HELP)?),
            Typing::Leave => {
                self.closing = true;
                Ok(())
            }
            Typing::Malformed(words) => self.not_done(words),
            Typing::Unknown => self.not_done(
                "no such command; /help lists them\n  \
                 a text that begins with / is typed with two: //...",
            ),
            Typing::Command(command) => self.give(command),
        }
    }

    fn show_typed(&mut self, line: &str) -> Result<(), Stop> {
        if is_typed() {
            self.screen.entered(line)?;
        }
        Ok(())
    }

    /// An answer; a secret is not shown once more, and asked for if it was not given.
    fn answer_typed(&mut self, line: &str, text: Option<&str>) -> Result<(), Stop> {
        let secret = self.questions.secret(text).filter(|_| is_typed());
        match secret.map(|(question, given)| (question.id, given)) {
            Some((question, false)) => {
                self.show_typed(line)?;
                return self.ask_for_secret(question);
            }
            Some((question, true)) => {
                let name = format!("q{}", question.ordinal);
                self.show_typed(&format!("/answer {name} (a secret)"))?;
                self.screen.notice(&format!(
                    "! what was typed may still be seen on this screen; /answer {name} alone asks \
                     for a secret and does not show it"
                ))?;
            }
            None => self.show_typed(line)?,
        }
        let Some(text) = text else {
            return self.not_done(NO_ANSWER);
        };
        match self.questions.answer(text) {
            Ok(command) => self.give(command),
            Err(problem) => self.not_done(&problem),
        }
    }

    /// The next line is a secret, which the terminal does not show.
    fn ask_for_secret(&mut self, question: InteractionId) -> Result<(), Stop> {
        let Some(silence) = Silence::begin() else {
            let words = "this terminal cannot be kept from showing what is typed";
            return self.not_done(words);
        };
        self.screen.notice(&format!(
            "type the secret for q{}; it is not shown, and an empty line gives none",
            question.ordinal
        ))?;
        self.secret = Some((question, silence));
        Ok(())
    }

    fn secret_typed(&mut self, question: InteractionId, secret: &str) -> Result<(), Stop> {
        if secret.is_empty() {
            return Ok(self.screen.aside("no answer was given")?);
        }
        match self.questions.answer_to(question, secret) {
            Ok(command) => self.give(command),
            Err(problem) => self.not_done(&problem),
        }
    }

    /// Something that was typed was not done: that is told, and the next line is read.
    pub(super) fn not_done(&mut self, words: &str) -> Result<(), Stop> {
        self.worst = self.worst.worse(Exit::Failed);
        Ok(self.screen.error(words)?)
    }

    fn give(&mut self, command: Command) -> Result<(), Stop> {
        if command == Command::Abort {
            match self.giving.take_back() {
                0 => {}
                1 => self.not_done("the line before it was not sent")?,
                more => self.not_done(&format!("{more} lines before it were not sent"))?,
            }
        }
        if self.giving.give(command) {
            return Ok(());
        }
        self.not_done("too many lines wait for their answers; that one was not sent")
    }
}
