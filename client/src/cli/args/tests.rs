use clap::CommandFactory as _;

use super::*;

#[test]
fn the_command_line_is_well_formed() {
    Arguments::command().debug_assert();
}

#[test]
fn what_is_said_is_a_text_or_data_or_both() {
    let parse =
        |words: &[&str]| Arguments::try_parse_from(["sessionctl"].iter().chain(words)).map(|_| ());
    assert!(parse(&["steer", "docs", "go on"]).is_ok());
    assert!(parse(&["steer", "docs", "-"]).is_ok());
    assert!(parse(&["steer", "docs", "--text-file", "f"]).is_ok());
    assert!(parse(&["steer", "docs"]).is_err());
    assert!(parse(&["steer", "docs", "go on", "--text-file", "f"]).is_ok());
    assert!(parse(&["compact", "docs", "--instructions", "x", "--text-file", "f"]).is_err());
    assert!(parse(&["invoke", "docs"]).is_err());
}

#[test]
fn a_count_that_makes_no_sense_says_what_would() {
    for words in [
        ["attach", "docs", "--last", "-3"],
        ["attach", "docs", "--last", "many"],
        ["entries", "docs", "--limit", "-1"],
        ["entries", "docs", "--limit", "0"],
        ["state", "docs", "--timeout", "-3s"],
    ] {
        let refused = Arguments::try_parse_from(["sessionctl"].iter().chain(&words));
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("invalid value"), "{words:?}: {refused}");
    }
}

#[test]
fn help_fits_eighty_columns() {
    let mut command = Arguments::command();
    command.build();
    let mut all = vec![command.render_long_help().to_string()];
    for verb in command.get_subcommands_mut() {
        all.push(verb.render_long_help().to_string());
    }
    for line in all.iter().flat_map(|help| help.lines()) {
        assert!(line.chars().count() <= 80, "too wide: {line}");
    }
}

#[test]
fn help_of_the_whole_and_of_each_verb() {
    let mut command = Arguments::command();
    command.build();
    insta::assert_snapshot!("help", command.render_long_help().to_string());
    for name in [
        "invoke",
        "attach",
        "entries",
        "events",
        "steer",
        "runs",
        "wait",
        "compact",
        "set-model",
        "set-thinking",
        "navigate",
        "capabilities",
        "commands",
        "completions",
        "man",
        "agents",
        "top",
        "new",
        "rename",
        "label",
        "priority",
        "cd",
        "rm",
        "questions",
        "answer",
        "watch",
    ] {
        let verb = command.find_subcommand_mut(name).unwrap();
        insta::assert_snapshot!(format!("help_{name}"), verb.render_long_help().to_string());
    }
}
