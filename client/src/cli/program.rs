//! How this program is called in a hint, so that the hint can be pasted: as it was called itself,
//! and the flags that say which server is meant. Flags that came from the environment are there the next time too.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::OnceLock;

use clap::ArgMatches;
use clap::parser::ValueSource;

use super::session::shell_word;

/// What a hint begins with without flags, unless the program was called by a path.
const NAME: &str = "sessionctl";

/// The flags that say which server is meant and who asks it, and the argument of each; all others
/// say how one call is made.
const WHERE: [(&str, &str); 6] = [
    ("address", "--address"),
    ("token_file", "--token-file"),
    ("data_dir", "--data-dir"),
    ("tls_ca", "--tls-ca"),
    ("tls_cert", "--tls-cert"),
    ("tls_key", "--tls-key"),
];

/// A fact of the whole process, as its name is: it is told once, and every hint needs it.
static CALLED: OnceLock<Called> = OnceLock::new();

/// How the program was called.
struct Called {
    /// Its name and flags, as words of a shell.
    hint: String,
    /// The flags as they were given.
    flags: Vec<OsString>,
}

/// The program in a hint; written as a word of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program;

/// How the program is called in a hint.
pub(crate) const PROGRAM: Program = Program;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CALLED.get().map_or(NAME, |called| called.hint.as_str()))
    }
}

/// The flags of this command line that say which server is meant and who asks it, for another process
/// of this program.
pub(crate) fn flags() -> &'static [OsString] {
    CALLED.get().map_or(&[], |called| called.flags.as_slice())
}

/// From here on hints begin as this process was called (its first word, if it has one), and hold
/// the flags of this command line.
pub(crate) fn was_called(first: Option<&OsStr>, matches: &ArgMatches) {
    // Told once, at the beginning: a second time changes nothing.
    let _ = CALLED.set(called(first, matches));
}

/// A path leads to where no shell would look for the name.
fn named(first: Option<&OsStr>) -> String {
    let path = first.map(OsStr::to_string_lossy);
    let path = path.filter(|word| word.contains('/'));
    path.map_or_else(|| NAME.to_owned(), |path| shell_word(&path))
}

fn called(first: Option<&OsStr>, matches: &ArgMatches) -> Called {
    let mut flags: Vec<OsString> = Vec::new();
    let given = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
    for (id, flag) in WHERE.into_iter().filter(|(id, _)| given(id)) {
        let value = matches.get_raw(id).and_then(Iterator::last);
        if let Some(value) = value {
            flags.push(flag.into());
            flags.push(value.to_owned());
        }
    }
    if matches.get_flag("insecure_send_token") {
        flags.push("--insecure-send-token".into());
    }
    let words = flags.iter().map(|word| shell_word(&word.to_string_lossy()));
    let words: Vec<String> = std::iter::once(named(first)).chain(words).collect();
    Called {
        hint: words.join(" "),
        flags,
    }
}

/// The flags of a command line, which may be unfinished, that say which server is meant.
pub(crate) fn that_say_where(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut kept, mut words) = (Vec::new(), words);
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let with_value = |(_, flag): &(&str, &str)| {
            let rest = text.strip_prefix(flag);
            rest.is_some_and(|rest| rest.starts_with('='))
        };
        if text == "--insecure-send-token" || WHERE.iter().any(with_value) {
            kept.push(word);
        } else if WHERE.iter().any(|(_, flag)| text == *flag)
            && let Some(value) = words.next()
        {
            kept.extend([word, value]);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::args::Arguments;

    fn of(words: &[&str]) -> String {
        let words = ["sessionctl"].iter().chain(words);
        let matches = Arguments::command().try_get_matches_from(words).unwrap();
        called(None, &matches).hint
    }

    #[test]
    fn a_hint_begins_as_the_program_was_called() {
        let begins = |first: &str| named(Some(OsStr::new(first)));
        assert_eq!(begins("target/debug/sessionctl"), "target/debug/sessionctl");
        assert_eq!(begins("/my tools/sessionctl"), "'/my tools/sessionctl'");
        assert_eq!(begins("sessionctl"), NAME);
        assert_eq!(named(None), NAME);
    }

    #[test]
    fn a_hint_holds_the_flags_that_say_where_and_no_others() {
        assert_eq!(of(&["--json", "--timeout", "3s", "state", "docs"]), NAME);
        assert_eq!(
            of(&[
                "--address",
                "127.0.0.1:1",
                "state",
                "docs",
                "--data-dir",
                "/a b"
            ]),
            "sessionctl --address 127.0.0.1:1 --data-dir '/a b'"
        );
        assert_eq!(
            of(&["state", "docs", "--insecure-send-token", "--token-file=t"]),
            "sessionctl --token-file t --insecure-send-token"
        );
        let tls = "--tls-ca=ca.pem state docs --tls-cert c.pem --tls-key k.pem";
        let tls: Vec<_> = tls.split(' ').collect();
        assert_eq!(
            of(&tls),
            "sessionctl --tls-ca ca.pem --tls-cert c.pem --tls-key k.pem"
        );
    }

    /// A new flag is either made known to hints, or listed here as one that says how a call is made.
    #[test]
    fn every_flag_of_all_commands_is_in_hints_or_is_of_one_call() {
        let of_one_call = [
            "json",
            "request_id",
            "timeout",
            "no_color",
            "plain",
            "quiet",
        ];
        let command = Arguments::command();
        for flag in command.get_arguments().filter(|arg| arg.is_global_set()) {
            let id = flag.get_id().as_str();
            let where_it_is = WHERE.iter().any(|(known, _)| *known == id);
            let known = where_it_is || id == "insecure_send_token" || of_one_call.contains(&id);
            assert!(known, "{id}");
        }
    }
}
