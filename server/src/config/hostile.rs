//! What somebody may write who means no good, or has slipped.

use clap::Command;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

fn sources(file: &Path) -> Sources {
    Sources {
        file: Some(file.to_owned()),
        ..Sources::default()
    }
}

fn problems(text: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("s.toml");
    std::fs::write(&file, text).unwrap();
    let (_, problems) = look(&sources(&file)).unwrap();
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_that_is_none_or_too_large_is_told_and_nothing_waits_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let (pipe, large) = (directory.path().join("p"), directory.path().join("l"));
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    std::fs::write(&large, "#".repeat(1024 * 1024 + 1)).unwrap();
    for (path, says) in [(&pipe, "no regular file"), (&large, "larger than 1048576")] {
        let error = look(&sources(path)).map(drop).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn c60_what_is_told_of_a_configuration_cannot_steer_a_terminal() {
    let hostile = "a\\u001b[2J\\u0007\\u202e";
    let written = "a\\u{1b}[2J\\u{7}\\u{202e}";
    for text in [
        format!("\"{hostile}\" = 1\n"),
        format!("[agents.\"{hostile}\"]\nengine = \"demo\"\n"),
        format!("listen = \"{hostile}\"\n"),
        format!("default_agent = \"{hostile}\"\n"),
    ] {
        let told = problems(&text).join("\n");
        let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!told.is_empty() && !told.contains(steers), "{told:?}");
    }
    let told = problems(&format!("\"{hostile}\" = 1\n")).join("\n");
    assert!(told.contains(written), "{told}");
    let path = Path::new("/none\u{1b}[2J");
    let error = look(&sources(path)).map(drop).unwrap_err().to_string();
    assert!(error.contains("/none\\u{1b}[2J"), "{error:?}");
    let mut settings = Settings::default();
    let source = Source::File {
        path: path.to_owned(),
        line: 1,
    };
    settings.sources.insert("listen".into(), source);
    assert!(!explain(&settings).contains('\u{1b}'));
}

#[test]
fn of_many_unknown_keys_only_the_first_are_compared_with_all_settings() {
    let keys: Vec<String> = (0..200).map(|key| format!("lissten{key} = 1")).collect();
    let told = problems(&keys.join("\n"));
    assert_eq!(told.len(), 200);
    assert!(told[0].contains("did you mean"), "{}", told[0]);
    assert!(told[199].ends_with("is no setting"), "{}", told[199]);
    assert!(told[199].starts_with(&told[0][..1]), "each with its place");
}

#[test]
fn a_time_beyond_its_range_still_has_an_end_that_the_clock_can_tell() {
    let text = |seconds: u64| {
        format!("[limits]\nbeyond_ranges = true\nkeepalive_interval_seconds = {seconds}\n")
    };
    assert_eq!(problems(&text(u64::from(u32::MAX))), [""; 0]);
    let told = problems(&text(9_223_372_036_854_775_807)).join("\n");
    assert!(told.contains("4294967295 at most"), "{told}");
}

#[test]
fn c61_what_is_no_key_and_value_on_the_command_line_is_not_quoted() {
    let command = offered_by(Command::new("sessiond"), &[]);
    let given = command.try_get_matches_from(["sessiond", "--set", "hunter2-pasted"]);
    let given = given.expect("it is judged with the rest");
    let sources = Sources {
        flags: given_flags(&given),
        ..Sources::default()
    };
    let (_, problems) = look(&sources).unwrap();
    let told = problems.iter().map(ToString::to_string);
    let told = told.collect::<Vec<_>>().join("\n");
    assert!(told.contains("--set: takes KEY=VALUE"), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
}
