//! What a line means that somebody types while being there. Values only.

use sessionplane_core::domain::command::Command;

/// What a line means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typing {
    Nothing,
    Unknown,
    Command(Command),
}

/// Reads a line that was typed.
pub(super) fn parse(line: &str) -> Typing {
    let line = line.trim_end();
    if line.trim_start().is_empty() {
        return Typing::Nothing;
    }
    let Some(command) = line.strip_prefix('/') else {
        return Typing::Command(Command::Steer { text: line.into() });
    };
    if command.starts_with('/') {
        return Typing::Command(Command::Steer {
            text: command.into(),
        });
    }
    match command.split_once(' ').unwrap_or((command, "")) {
        ("abort", "") => Typing::Command(Command::Abort),
        ("follow", text) if !text.trim().is_empty() => Typing::Command(Command::FollowUp {
            text: text.trim().into(),
        }),
        _ => Typing::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steer(text: &str) -> Typing {
        Typing::Command(Command::Steer { text: text.into() })
    }

    #[test]
    fn a_line_steers_unless_it_is_a_command() {
        assert_eq!(parse("use tabs \r"), steer("use tabs"));
        assert_eq!(parse("//etc/hosts is wrong"), steer("/etc/hosts is wrong"));
        assert_eq!(parse("/abort"), Typing::Command(Command::Abort));
        let follow = Typing::Command(Command::FollowUp {
            text: "then docs".into(),
        });
        assert_eq!(parse("/follow then docs"), follow);
        assert_eq!(parse("  "), Typing::Nothing);
        for typo in ["/aborted", "/abort now", "/follow", "/follow  ", "/"] {
            assert_eq!(parse(typo), Typing::Unknown, "{typo:?}");
        }
    }
}
