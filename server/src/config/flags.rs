//! The flags of settings, made from the declaration.

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::declared::DECLARED;
use super::load::FlagValue;
use super::setting::Setting;

/// The flag that sets any setting.
const SET: &str = "set";

/// Flags that only a server needs, and who asks for one.
const WHERE_IT_LISTENS: [&str; 2] = ["listen", "health-listen"];

/// The command line with these flags. The verbs that work on the data directory alone take all of
/// them, so that what is typed before a verb may stay there, but do not offer those of a server.
#[must_use]
pub fn offered_by(command: Command, without_a_server: &[&str]) -> Command {
    let listens = |flag: &Arg| WHERE_IT_LISTENS.iter().any(|name| flag.get_id() == *name);
    let mute = |command: Command| {
        // A flag of its own is not taken from above.
        command.args(offered().filter(listens).map(|flag| flag.hide(true)))
    };
    let command = command.args(offered());
    let verbs = without_a_server.iter();
    verbs.fold(command, |command, verb| command.mut_subcommand(verb, mute))
}

/// The flags: those of the settings that have one, and one that sets any other.
fn offered() -> impl Iterator<Item = Arg> {
    let own = DECLARED.iter().filter_map(|setting| {
        let flag = setting.flag?;
        Some(
            Arg::new(flag)
                .long(flag)
                .global(true)
                .value_name("VALUE")
                .help(about(setting)),
        )
    });
    let any = Arg::new(SET)
        .long(SET)
        .global(true)
        .value_name("KEY=VALUE")
        .action(ArgAction::Append)
        .help(
            "Sets any setting, over file and environment; may be repeated. `sessiond config \
             explain` lists them",
        );
    own.chain([any])
}

/// What the command line gave.
#[must_use]
pub fn given(matches: &ArgMatches) -> Vec<FlagValue> {
    let own = DECLARED.iter().filter_map(|setting| {
        let flag = setting.flag?;
        let value = matches.get_one::<String>(flag)?;
        Some(FlagValue {
            flag: format!("--{flag}"),
            key: setting.key.to_owned(),
            value: value.clone(),
        })
    });
    let any = matches.get_many::<String>(SET);
    let any = any.into_iter().flatten().map(|text| {
        let (key, value) = key_and_value(text);
        FlagValue {
            flag: format!("--{SET}"),
            key: key.to_owned(),
            value: value.to_owned(),
        }
    });
    own.chain(any).collect()
}

fn about(setting: &Setting) -> String {
    let takes = setting.kind.takes();
    let default = (setting.get)(&super::Settings::default(), "");
    let default = default.map_or_else(String::new, |value| format!("; default {value}"));
    let variable = setting.variable().unwrap_or_default();
    format!("{} [{takes}{default}; env {variable}]", setting.about)
}

/// The parts of what was given; no key where it is not of this form. The parser of the command line
/// does not judge it, because it would quote it.
fn key_and_value(text: &str) -> (&str, &str) {
    let (key, value) = text.split_once('=').unwrap_or_default();
    (key.trim(), value.trim())
}
