//! What a line means that somebody types while being there. Values only.

use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::given::Given;

/// What there is to type.
pub(super) const HELP: &str = "\
TEXT                    steer the active run: it reads TEXT at its next step
/follow TEXT            add TEXT for when the run would otherwise stop
/answer ANSWER          answer the open question
/answer qN ANSWER       answer the run's question N; do so if ANSWER itself
                        begins with the name of a question
/answer qN              the same for a secret: it is typed then, and not shown
/abort                  stop the run, or a compaction
/compact [TEXT]         have a summary take the place of what was said; TEXT
                        says what to keep (between runs)
/model NAME|--default   choose the model of the runs to come (between runs)
/thinking LEVEL|--default
                        choose their thinking level (between runs)
/help                   this
//TEXT                  a text that begins with a slash
/quit                   detach; the run goes on (so do /detach and Ctrl-D)";

/// What a line means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typing {
    Nothing,
    Unknown,
    /// A command that lacks something, or has too much: what is wrong and how it is written.
    Malformed(&'static str),
    Help,
    /// Somebody wants to be there no more.
    Leave,
    Command(Command),
    /// An answer, which may begin with the name of its question; none, if nothing follows.
    Answer(Option<String>),
}

/// What an answer looks like that has nothing to say.
pub(super) const NO_ANSWER: &str = "the answer is missing; write: /answer [qN] ANSWER";

/// Reads a line, and what is said of the texts in it: that they were typed, or piped.
pub(super) fn parse(line: &str, said: &Given) -> Typing {
    let line = line.trim_end();
    if line.trim_start().is_empty() {
        return Typing::Nothing;
    }
    let Some(command) = line.strip_prefix('/') else {
        return Typing::Command(Command::Steer {
            text: line.into(),
            given: said.clone(),
        });
    };
    if command.starts_with('/') {
        return Typing::Command(Command::Steer {
            text: command.into(),
            given: said.clone(),
        });
    }
    let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
    let rest = rest.trim();
    let given = (!rest.is_empty()).then_some(rest);
    let command = match (word, given) {
        ("help", None) => return Typing::Help,
        ("quit" | "detach", None) => return Typing::Leave,
        ("answer", text) => return Typing::Answer(text.map(str::to_owned)),
        ("abort", None) => Command::Abort,
        ("follow", Some(text)) => Command::FollowUp {
            text: text.into(),
            given: said.clone(),
        },
        ("compact", instructions) => Command::Compact {
            instructions: instructions.map(Into::into),
        },
        ("model", Some(model)) => Command::SetModel {
            model: chosen(model),
        },
        ("thinking", Some(level)) => Command::SetThinking {
            level: chosen(level),
        },
        (word, _) => return malformed(word),
    };
    Typing::Command(command)
}

/// A command that there is, but not so.
fn malformed(word: &str) -> Typing {
    Typing::Malformed(match word {
        "follow" => "the text is missing; write: /follow TEXT",
        "model" => "the model is missing; write: /model NAME, or /model --default",
        "thinking" => "the level is missing; write: /thinking LEVEL, or /thinking --default",
        "abort" => "nothing may follow; write: /abort",
        "help" => "nothing may follow; write: /help",
        "quit" | "detach" => "nothing may follow; write: /quit",
        _ => return Typing::Unknown,
    })
}

fn chosen(word: &str) -> Option<String> {
    (word != "--default").then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Typing {
        super::parse(line, &Given::typed())
    }

    fn steer(text: &str) -> Typing {
        Typing::Command(Command::Steer {
            text: text.into(),
            given: Given::typed(),
        })
    }

    #[test]
    fn a_line_steers_unless_it_is_a_command() {
        assert_eq!(parse("use tabs \r"), steer("use tabs"));
        assert_eq!(parse("//etc/hosts is wrong"), steer("/etc/hosts is wrong"));
        assert_eq!(parse("/abort"), Typing::Command(Command::Abort));
        let follow = Typing::Command(Command::FollowUp {
            text: "then docs".into(),
            given: Given::typed(),
        });
        assert_eq!(parse("/follow then docs"), follow);
        assert_eq!(parse("  "), Typing::Nothing);
        for typo in ["/aborted", "/", "/Abort", "/answers x"] {
            assert_eq!(parse(typo), Typing::Unknown, "{typo:?}");
        }
    }

    #[test]
    fn a_command_that_lacks_something_says_what_and_how_it_is_written() {
        for (typed, form) in [
            ("/follow", "/follow TEXT"),
            ("/follow  ", "/follow TEXT"),
            ("/model", "/model NAME"),
            ("/thinking ", "/thinking LEVEL"),
            ("/abort now", "/abort"),
            ("/help me", "/help"),
            ("/quit now", "/quit"),
        ] {
            let Typing::Malformed(words) = parse(typed) else {
                panic!("{typed:?} was taken");
            };
            assert!(words.contains(&format!("write: {form}")), "{words}");
        }
        assert_eq!(parse("/answer "), Typing::Answer(None));
    }

    #[test]
    fn what_is_chosen_between_runs_is_a_command_too() {
        let model = |model: Option<&str>| {
            let model = model.map(str::to_owned);
            Typing::Command(Command::SetModel { model })
        };
        assert_eq!(parse("/model deep"), model(Some("deep")));
        assert_eq!(parse("/model --default"), model(None));
        let instructions = |text: Option<&str>| {
            let instructions = text.map(Into::into);
            Typing::Command(Command::Compact { instructions })
        };
        assert_eq!(parse("/compact"), instructions(None));
        assert_eq!(parse("/compact keep this"), instructions(Some("keep this")));
        assert_eq!(parse("/help"), Typing::Help);
        assert_eq!(parse("/quit"), Typing::Leave);
        assert_eq!(parse("/detach "), Typing::Leave);
    }

    #[test]
    fn c25_an_answer_is_taken_as_it_is_typed() {
        let text = Some("q2 far north".to_owned());
        assert_eq!(parse("/answer  q2 far north "), Typing::Answer(text));
    }

    #[test]
    fn help_fits_eighty_columns() {
        assert!(HELP.lines().all(|line| line.chars().count() <= 80));
    }
}
