//! `sessiond login`: a token for a person who sits at a terminal, whose texts can count as typed.
//!
//! What must never enter: a way to answer without a terminal.

use std::io::{self, BufRead, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::token::TokenError;
use super::token::{Lifetime, Wanted, lifetime, make};
use crate::config::Settings;

/// Longest answer that is read, in bytes.
const ANSWER_BYTES: u64 = 256;

/// Who logs in.
#[derive(Debug, Args)]
pub struct LoginArgs {
    /// The person: a NAME of [identity.principals.NAME] whose kind is human
    #[arg(long, value_name = "NAME")]
    principal: String,
    /// How long the token lives: 30d, 12h, 15m, 30s or never
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = lifetime)]
    expires: Lifetime,
    /// The new file for the token, which nobody but you can read
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Makes the token, once a person at a terminal has said that they are there.
///
/// # Errors
/// When there is no terminal, or nobody answers as asked; else as `token create`.
pub fn run(args: &LoginArgs, config: &Settings, file: Option<&Path>) -> Result<(), TokenError> {
    let (input, aside) = (io::stdin(), &mut io::stderr().lock());
    let terminal = input.is_terminal() && io::stderr().is_terminal();
    person(&args.principal, terminal, &mut input.lock(), aside)?;
    let wanted = Wanted {
        principal: args.principal.clone(),
        expires: args.expires,
        out: args.out.clone(),
    };
    make(wanted, config, file)
}

/// Whether a person is there.
fn person(
    name: &str,
    terminal: bool,
    input: &mut impl BufRead,
    aside: &mut impl Write,
) -> Result<(), TokenError> {
    let refused = |words: &str| Err(TokenError::Refused(words.to_owned()));
    if !terminal {
        return refused(
            "sessiond login is for a person at a terminal, and this is none; a program gets its \
             token from `sessiond token create`, and what it sends never counts as typed",
        );
    }
    write!(aside, "type the name of the principal to log in as: ")?;
    aside.flush()?;
    let mut answer = String::new();
    io::Read::take(input, ANSWER_BYTES).read_line(&mut answer)?;
    if answer.trim_end() == name {
        return Ok(());
    }
    refused("that is not the name that --principal says; no token was made")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(terminal: bool, answer: &str) -> Result<(), String> {
        let asked = person("ada", terminal, &mut answer.as_bytes(), &mut Vec::new());
        asked.map_err(|error| error.to_string())
    }

    #[test]
    fn c57_only_a_person_at_a_terminal_logs_in() {
        assert_eq!(asked(true, "ada\n"), Ok(()));
        for answer in ["", "\n", "Ada\n", "adam\n", "y\n"] {
            let refused = asked(true, answer).unwrap_err();
            assert!(refused.contains("no token was made"), "{refused}");
        }
        let refused = asked(false, "ada\n").unwrap_err();
        assert!(refused.contains("at a terminal"), "{refused}");
    }
}
