//! A command line that makes no sense: what was probably meant. Words only.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The verbs that take a text, which is one argument.
const TAKE_TEXT: [&str; 4] = ["invoke", "steer", "follow-up", "answer"];
/// What other programs call a list of what there is.
const LISTS: [&str; 4] = ["list", "ls", "ps", "sessions"];
/// Verbs that have an option, of which a tip names so many.
const MOST: usize = 3;

/// The refusal of a line with tips to what was probably meant by `words`, the first of which is the
/// program.
pub(super) fn with_tips(
    mut error: clap::Error,
    words: &[String],
    command: &Command,
) -> clap::Error {
    let given = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    let verb = words
        .iter()
        .skip(1)
        .find_map(|word| command.find_subcommand(word));
    let tips = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = given(ContextKind::InvalidSubcommand).unwrap_or_default();
            let is_list = LISTS.contains(&word.as_str());
            let tip = || "'sessionctl agents' lists the sessions".to_owned();
            is_list.then(tip).into_iter().collect()
        }
        ErrorKind::UnknownArgument => {
            let word = given(ContextKind::InvalidArg).unwrap_or_default();
            of_argument(&word, verb, command)
        }
        _ => Vec::new(),
    };
    if !tips.is_empty() {
        let tips = tips.into_iter().map(Into::into).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// A word that a verb does not take.
fn of_argument(word: &str, verb: Option<&Command>, command: &Command) -> Vec<String> {
    let verb = verb.map(Command::get_name).unwrap_or_default();
    let takes_text = TAKE_TEXT.contains(&verb);
    if !word.starts_with('-') {
        // The text was typed without quotes.
        let tip = || "a text of several words is one argument in quotes: 'where is it?'".to_owned();
        return takes_text.then(tip).into_iter().collect();
    }
    let mut tips: Vec<_> = elsewhere(word, verb, command).into_iter().collect();
    if takes_text {
        let what = if verb == "answer" {
            "an answer"
        } else {
            "a text"
        };
        tips.push(format!(
            "{what} that begins with a hyphen comes after --: sessionctl {verb} NAME -- '{word} ...'"
        ));
    }
    tips
}

/// Which other verbs have an option; that which creates sessions first.
fn elsewhere(word: &str, verb: &str, command: &Command) -> Option<String> {
    let option = word.split('=').next()?.strip_prefix("--")?;
    let has = |other: &&Command| {
        let mut arguments = other.get_arguments();
        other.get_name() != verb
            && arguments.any(|it| it.get_long() == Some(option) && !it.is_hide_set())
    };
    let others = command.get_subcommands().filter(has);
    let mut names: Vec<_> = others.map(Command::get_name).collect();
    names.sort_by_key(|name| *name != "new");
    names.truncate(MOST);
    let verbs = match names.split_last()? {
        (only, []) => format!("'sessionctl {only}' has"),
        (last, others) => format!("'sessionctl {}' and '{last}' have", others.join("', '")),
    };
    Some(format!("{verbs} --{option}"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::args::Arguments;

    fn refused(line: &str) -> String {
        let command = Arguments::command();
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let error = command.clone().try_get_matches_from(&words).unwrap_err();
        with_tips(error, &words, &command).to_string()
    }

    #[test]
    fn an_option_that_another_verb_has_is_never_the_text() {
        for (line, tips) in [
            ("sessionctl invoke docs --dri", &["-- '--dri ...'"][..]),
            (
                "sessionctl invoke docs --worktree=zz",
                &["'sessionctl new' has --worktree", "NAME -- '"],
            ),
            (
                "sessionctl invoke docs --label team=net go",
                &["'sessionctl new', 'agents' and 'top' have --label"],
            ),
            (
                "sessionctl steer docs --dir",
                &["'sessionctl new' has --dir"],
            ),
            ("sessionctl follow-up docs -x", &["follow-up NAME -- '-x"]),
            (
                "sessionctl answer docs --zone=n",
                &["an answer that begins"],
            ),
            (
                "sessionctl state docs --wait",
                &["'sessionctl compact' has"],
            ),
        ] {
            let told = refused(line);
            assert!(told.contains("unexpected argument"), "{line}: {told}");
            for tip in tips {
                assert!(told.contains(tip), "{line}: {tip}: {told}");
            }
        }
        let parsed = |line: &str| Arguments::command().try_get_matches_from(line.split(' '));
        for line in ["invoke docs -- --dri", "steer docs -", "answer docs -- -5"] {
            assert!(parsed(&format!("sessionctl {line}")).is_ok(), "{line}");
        }
    }

    #[test]
    fn what_others_call_a_list_leads_to_agents_and_a_text_into_quotes() {
        for word in ["list", "ls", "ps"] {
            let told = refused(&format!("sessionctl {word}"));
            assert!(told.contains("'sessionctl agents' lists"), "{told}");
        }
        let told = refused("sessionctl invoke docs where is it");
        assert!(told.contains("one argument in quotes"), "{told}");
        let told = refused("sessionctl attend docs");
        assert!(!told.contains("lists the sessions"), "{told}");
    }
}
