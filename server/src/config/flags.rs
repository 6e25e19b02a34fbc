//! The flags of settings, made from the declaration.

use clap::{Arg, ArgAction, ArgMatches};

use super::declared::DECLARED;
use super::load::FlagValue;
use super::setting::Setting;

/// The flag that sets any setting.
const SET: &str = "set";

/// The flags: those of the settings that have one, and one that sets any other.
pub fn offered() -> impl Iterator<Item = Arg> {
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
