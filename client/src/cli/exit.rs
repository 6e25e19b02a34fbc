//! How a command ends: the exit codes and the failures that carry them. Words come from the
//! renderer.

use std::io;
use std::process::ExitCode;

use sessionplane_core::domain::error::{CallError, Outcome, Reason};

/// What the process's exit code tells. The numbers never change their meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// The outcome that was waited for.
    Done = 0,
    /// Failed, rejected or refused.
    Failed = 1,
    /// The command line or its input makes no sense; nothing was sent.
    Usage = 2,
    /// No answer that tells: no connection was made, the outcome is unknown, the time is up, or the
    /// stream is lost or was cut.
    Unknown = 3,
    /// No such session, run or agent, or more than one that may be meant.
    NotFound = 4,
    /// Ended by Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Exit {
    /// The code of a call that got no answer of its own.
    pub(crate) fn of(error: &CallError) -> Self {
        match (error.outcome, error.reason) {
            // A refused call of the transport's: no connection was made, no server refused it. Who
            // repeats what is unknown while the server is away must not take that for its no.
            (Outcome::Unknown | Outcome::StreamEnded, _)
            | (Outcome::Refused, Reason::Transport) => Self::Unknown,
            (
                Outcome::Refused,
                Reason::NoSuchSession
                | Reason::SessionDeleted
                | Reason::NoSuchRun
                | Reason::NoSuchAgent,
            ) => Self::NotFound,
            (Outcome::Refused, _) => Self::Failed,
        }
    }
}

impl Exit {
    /// The one that a script must hear of, where several things were done and one code tells of
    /// all: what may have been done outweighs what was not.
    pub(crate) fn worse(self, other: Self) -> Self {
        let weight = |exit| match exit {
            Self::Done => 0,
            Self::Failed => 1,
            Self::NotFound => 2,
            Self::Usage => 3,
            Self::Unknown => 4,
            Self::Interrupted => 5,
        };
        if weight(other) > weight(self) {
            other
        } else {
            self
        }
    }
}

/// Why a command ends before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Nobody reads what it prints any more.
    Unread,
    /// It failed, in words for a person: the first line says what, the rest what to do next.
    Failed {
        /// The exit code.
        exit: Exit,
        /// The words, without `error: `.
        words: String,
        /// The refusal behind it, for `--json`.
        error: Option<Box<CallError>>,
    },
}

impl Stop {
    /// A failure without a refusal of the server behind it.
    pub(crate) fn failed(exit: Exit, words: impl Into<String>) -> Self {
        Self::Failed {
            exit,
            words: words.into(),
            error: None,
        }
    }

    /// A call without an answer of its own, in other words than the usual.
    pub(crate) fn of(error: CallError, words: String) -> Self {
        Self::Failed {
            exit: Exit::of(&error),
            words,
            error: Some(Box::new(error)),
        }
    }

    /// The command line or its input makes no sense.
    pub(crate) fn usage(words: impl Into<String>) -> Self {
        Self::failed(Exit::Usage, words)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Unread;
        }
        Self::failed(Exit::Failed, format!("cannot write the output: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c02_each_outcome_has_its_exit_code() {
        let refused = |reason| Exit::of(&CallError::refused(reason, ""));
        assert_eq!(refused(Reason::NoSuchSession), Exit::NotFound);
        assert_eq!(refused(Reason::NoSuchRun), Exit::NotFound);
        assert_eq!(refused(Reason::PermissionDenied), Exit::Failed);
        assert_eq!(refused(Reason::Transport), Exit::Unknown);
        let unknown = CallError::unknown(Reason::NoSuchSession, "");
        assert_eq!(Exit::of(&unknown), Exit::Unknown);
        // A token that is revoked is refused, and cuts streams whose work goes on.
        assert_eq!(refused(Reason::Unauthenticated), Exit::Failed);
        for reason in [Reason::Transport, Reason::Unauthenticated] {
            let ended = CallError::stream_ended(reason, "");
            assert_eq!(Exit::of(&ended), Exit::Unknown);
        }
    }

    #[test]
    fn the_worst_of_many_is_what_may_have_been_done() {
        let all = [Exit::Failed, Exit::Unknown, Exit::Failed, Exit::Done];
        assert_eq!(all.into_iter().fold(Exit::Done, Exit::worse), Exit::Unknown);
        assert_eq!(Exit::Done.worse(Exit::Done), Exit::Done);
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let gone = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(matches!(Stop::from(gone), Stop::Unread));
    }
}
