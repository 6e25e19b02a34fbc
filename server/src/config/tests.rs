use std::fmt::Write as _;

use super::declared::DECLARED;
use super::fixed::OF_THE_CORE;
use super::load::declared;
use super::setting::{Kind, Value};
use super::*;

mod spaces;
mod untrusted;

/// The settings of a file's text, and what is wrong with it.
fn read(text: &str) -> (Settings, Vec<String>) {
    with(text, &[], &[])
}

fn with(text: &str, variables: &[(&str, &str)], flags: &[(&str, &str)]) -> (Settings, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("s.toml");
    std::fs::write(&file, text).unwrap();
    let own = |text: &&str| (*text).to_owned();
    let sources = Sources {
        file: Some(file.clone()),
        variables: variables.iter().map(|(a, b)| (own(a), b.into())).collect(),
        flags: flags
            .iter()
            .map(|(key, value)| FlagValue {
                flag: "--set".to_owned(),
                key: own(key),
                value: own(value),
            })
            .collect(),
    };
    let (settings, problems) = look(&sources).unwrap();
    let place = format!("{}/", directory.path().display());
    let told = problems
        .iter()
        .map(|told| told.to_string().replace(&place, ""));
    (settings, told.collect())
}

fn right(text: &str) -> Settings {
    let (settings, problems) = read(text);
    assert_eq!(problems, [""; 0], "{text}");
    settings
}

#[test]
fn c60_everything_wrong_is_told_at_once_with_its_line_its_limit_and_the_way_out() {
    let text = "lissten = \"x\"\nring_events = 4\nlisten = 7\n\n[limits]\nring_events = 3\n\
                max_conections = 5\nheartbeat_seconds = -1\nidle_seconds = \"long\"\n\
                [agents.a]\nworkspace = \"w\"\n[agents.b]\nengine = \"dmeo\"\n[stoer]\nx = 1\n\
                [drain.deadline_seconds]\n[log]\nfilter = \"\"\n";
    let (_, problems) = read(text);
    for line in [
        "s.toml:1: lissten is no setting; did you mean listen?",
        "s.toml:2: ring_events is no setting; did you mean limits.ring_events?",
        "s.toml:3: listen is a number; use IP:PORT, localhost:PORT or unix:/PATH",
        "s.toml:6: limits.ring_events is 3; use 16 to 1048576",
        "s.toml:7: limits.max_conections is no setting; did you mean limits.max_connections?",
        "s.toml:8: limits.heartbeat_seconds is -1; use 1 to 20",
        "s.toml:9: limits.idle_seconds is a text; use 1 to 86400",
        "s.toml:10: agents.a.engine is missing; use demo or scripted or scripted-process",
        "s.toml:11: agents.a.workspace \"w\" is not in [workspaces]; there are none",
        "s.toml:13: agents.b.engine is \"dmeo\"; use demo or scripted or scripted-process",
        "s.toml:14: stoer is no setting; did you mean store?",
        "s.toml:16: drain.deadline_seconds is a section; use 0 to 3600",
        "s.toml:18: log.filter is empty",
    ] {
        let told = problems.iter().filter(|told| told.starts_with(line));
        assert_eq!(told.count(), 1, "{line}\n{problems:#?}");
    }
    assert_eq!(problems.len(), 13, "{problems:#?}");
    // What cannot be read hides what else there is, and says so.
    let (_, problems) = read("lissten = 1\nx = [\n");
    assert!(problems[0].contains("is told after that"), "{problems:?}");
}

#[test]
fn c60_what_a_start_could_not_use_is_told_by_the_check() {
    let (_, problems) = read("health_listen = \"nowhere\"\n[log]\nfilter = \"a=loud\"\n");
    assert!(
        problems[0].starts_with("s.toml:1: health_listen `nowhere` is not an address: use IP:PORT"),
        "{problems:?}"
    );
    assert!(
        problems[1].starts_with("s.toml:3: log.filter \"a=loud\" is no filter: "),
        "{problems:?}"
    );
    assert_eq!(problems.len(), 2);
}

#[test]
fn a_variable_that_is_no_text_is_told_and_not_passed_over() {
    let value = std::os::unix::ffi::OsStringExt::from_vec(b"/d\xff".to_vec());
    let sources = Sources {
        variables: vec![("SESSIONPLANE_DATA_DIR".to_owned(), value)],
        ..Sources::default()
    };
    let (_, problems) = look(&sources).unwrap();
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let expected = "SESSIONPLANE_DATA_DIR: data_dir is no text in UTF-8; use a directory's path";
    assert_eq!(told, [expected]);
}

#[test]
fn c60_ranges_hold_for_every_limit_where_a_flag_says_so_over_the_file() {
    let text = "[limits]\nbeyond_ranges = true\nabort_grace_seconds = 4000\nrest_seconds = 4000\n";
    assert_eq!(read(text).1, [""; 0]);
    let told = with(text, &[], &[("limits.beyond_ranges", "false")]).1;
    assert_eq!(told.len(), 2, "{told:?}");
}

#[test]
fn an_explanation_tells_of_every_name_that_is_set() {
    let settings = right(
        "[workspaces.main]\nroot = \"/w\"\n[agents.a]\nengine = \"scripted\"\n\
         [identity.principals.ada]\nkind = \"human\"\ngroups = [\"admin\"]\n",
    );
    let told = explain(&settings);
    for line in [
        "workspaces.main.root = \"/w\"",
        "agents.a.engine = \"scripted\"",
        "identity.principals.ada.kind = \"human\"",
        "identity.principals.ada.groups = [\"admin\"]",
    ] {
        let found = told.lines().filter(|told| told.starts_with(line));
        assert_eq!(found.count(), 1, "{line} in\n{told}");
    }
}

/// What is set is told to anybody, so what is a secret is refused, and not quoted.
#[test]
fn c61_a_secret_in_the_place_of_a_setting_is_refused_and_not_told() {
    let token = format!("sp_Canary01_{}", "C".repeat(43));
    let pem = "-----BEGIN PRIVATE KEY-----\\nCCCC\\n-----END PRIVATE KEY-----";
    for (text, says) in [
        (
            format!("[tls]\nkey_file = \"{pem}\""),
            "tls.key_file has a line break",
        ),
        (
            format!("[tls]\nkey_file = \"{token}\""),
            "tls.key_file holds a token",
        ),
        (
            format!("default_agent = \"{token}\""),
            "default_agent holds a token",
        ),
        (
            format!("[edge]\nweb_origins = [\"{token}\"]"),
            "edge.web_origins holds a token",
        ),
        (format!("[log]\njson = \"{token}\""), "log.json is a text"),
        (
            format!("[tls]\nclient_auth = \"{token}\""),
            "client_auth is \"sp_Canary01_...\"",
        ),
        (format!("{token} = 1"), "sp_Canary01_... is no setting"),
        (format!("listen = \"{token}"), "s.toml:1"),
    ] {
        let (settings, problems) = read(&text);
        let told = problems.join("\n");
        assert!(told.contains(says), "{says} in\n{told}");
        assert!(!(told + &explain(&settings)).contains("CCCC"), "{text}");
    }
    let told = explain_one(&Settings::default(), &token).unwrap_err();
    assert!(!told.to_string().contains("CCCC"), "{told}");
}

#[test]
fn a_file_that_is_no_toml_is_told_with_its_line() {
    let (_, problems) = read("listen = \"a\"\n[limits\n");
    assert!(problems[0].starts_with("s.toml:2: "), "{problems:?}");
}

#[test]
fn a_flag_goes_before_the_environment_that_before_the_file_that_before_the_default() {
    let key = "limits.ring_events";
    let variable = [("SESSIONPLANE_LIMITS_RING_EVENTS", "200")];
    let file = "[limits]\nring_events = 100";
    for (settings, value, source) in [
        (with("", &[], &[]).0, 16_384, "default"),
        (with(file, &[], &[]).0, 100, "s.toml:2"),
        (
            with(file, &variable, &[]).0,
            200,
            "SESSIONPLANE_LIMITS_RING_EVENTS",
        ),
        (with(file, &variable, &[(key, "300")]).0, 300, "--set"),
    ] {
        assert_eq!(settings.app.ring_events, value);
        let told = explain_one(&settings, key).unwrap();
        assert!(told.starts_with(&format!("{key} = {value}\n")), "{told}");
        assert!(told.lines().nth(1).unwrap().ends_with(source), "{told}");
        let all = explain(&settings);
        let line = all.lines().find(|line| line.starts_with(key)).unwrap();
        assert!(line.ends_with(source), "{line}");
    }
    // A wrong value that another one goes before is nobody's problem; one that holds is.
    let wrong = "[limits]\nring_events = 1";
    assert_eq!(with(wrong, &variable, &[]).1, [""; 0]);
    let told = with("", &[("SESSIONPLANE_LIMITS_RING_EVENTS", "many")], &[]).1;
    let expected =
        "SESSIONPLANE_LIMITS_RING_EVENTS: limits.ring_events is \"many\"; use 16 to 1048576";
    assert_eq!(told, [expected]);
    let told = with("", &[], &[("limits.ring_evnts", "300")]).1;
    let expected = "--set: limits.ring_evnts is no setting; did you mean limits.ring_events?";
    assert_eq!(told, [expected]);
}

#[test]
fn a_misspelt_variable_of_a_section_is_told_and_a_clients_or_an_orchestrators_is_not() {
    let others = [
        ("SESSIONPLANE_ADDRESS", "x"),
        ("SESSIONPLANE_TOKEN", "x"),
        ("SESSIONPLANE_TLS_CA", "x"),
        ("SESSIONPLANE_TLS_CERT", "x"),
        ("SESSIONPLANE_TLS_KEY", "x"),
        ("SESSIONPLANE_CONFIG", "x"),
        ("SESSIONPLANE_SERVICE_HOST", "x"),
        ("SESSIONPLANE_PORT_50051_TCP", "x"),
    ];
    assert_eq!(with("", &others, &[]).1, [""; 0]);
    let told = with("", &[("SESSIONPLANE_LIMITS_RING_EVENT", "x")], &[]).1;
    assert!(
        told[0].contains("did you mean SESSIONPLANE_LIMITS_RING_EVENTS"),
        "{told:?}"
    );
}

/// A value of a setting that is not its default.
fn other(setting: &super::setting::Setting) -> String {
    let default = (setting.get)(&Settings::default(), "");
    match &setting.kind {
        Kind::Whole(range) if default == Some(Value::Whole(*range.start())) => {
            range.end().to_string()
        }
        Kind::Whole(range) => range.start().to_string(),
        Kind::Bool => "true".to_owned(),
        Kind::Text(_) if setting.key == "listen" => "unix:/s".to_owned(),
        Kind::Text(_) if setting.key == "health_listen" => "0.0.0.0:1".to_owned(),
        Kind::Text(_) if setting.key == "default_agent" => "scripted".to_owned(),
        Kind::Text(_) if setting.key == "log.filter" => "warn".to_owned(),
        Kind::Text(_) => "/other".to_owned(),
        Kind::OneOf(words) => words[1].to_owned(),
        Kind::List(_) if setting.key == "identity.forwarded.peers" => "dns:proxy".to_owned(),
        Kind::List(_) => "http://localhost:1".to_owned(),
    }
}

#[test]
fn every_setting_reaches_its_place_from_the_file_the_environment_and_a_flag_and_no_other() {
    let mut seen = 0;
    for setting in DECLARED.iter().filter(|setting| !setting.is_named()) {
        let text = other(setting);
        let value = setting.kind.read(&text).unwrap();
        let variable = setting.variable().unwrap();
        let (section, key) = setting.key.rsplit_once('.').unwrap_or(("", setting.key));
        let section = if section.is_empty() {
            String::new()
        } else {
            format!("[{section}]\n")
        };
        let file = format!("{section}{key} = {value}\n");
        for (settings, problems) in [
            with(&file, &[], &[]),
            with("", &[(&variable, &text)], &[]),
            with("", &[], &[(setting.key, &text)]),
        ] {
            // Parts of TLS need each other: what is said of the others is right.
            let together =
                |told: &&String| setting.key.starts_with("tls.") && told.contains("tls.");
            let problems: Vec<_> = problems.iter().filter(|told| !together(told)).collect();
            assert_eq!(problems, [""; 0], "{}", setting.key);
            for any in DECLARED.iter().filter(|any| !any.is_named()) {
                let found = (any.get)(&settings, "");
                let default = (any.get)(&Settings::default(), "");
                let expected = if any.key == setting.key {
                    Some(value.clone())
                } else {
                    default
                };
                assert_eq!(found, expected, "{} after {}", any.key, setting.key);
            }
            seen += 1;
        }
    }
    assert!(seen > 90, "{seen}");
}

#[test]
fn c60_a_value_out_of_its_range_is_refused_with_the_range_and_every_default_is_within_its_own() {
    for setting in DECLARED {
        let Kind::Whole(range) = &setting.kind else {
            continue;
        };
        let Some(Value::Whole(default)) = (setting.get)(&Settings::default(), "") else {
            panic!("{} has no default", setting.key);
        };
        assert!(
            range.contains(&default),
            "{} is {default} by default",
            setting.key
        );
        let whole = setting.key.replace('*', "x");
        let (section, key) = whole.rsplit_once('.').unwrap();
        let (least, most) = (*range.start(), *range.end());
        // What an issuer must have beside it.
        let beside = if setting.is_named() {
            "issuer = \"i\"\naudiences = [\"a\"]\njwks_file = \"/f\"\n"
        } else {
            ""
        };
        let problems = |value: u64| read(&format!("[{section}]\n{key} = {value}\n{beside}")).1;
        let (low, high) = (least.checked_sub(1), most + 1);
        for value in low.into_iter().chain([high, u64::MAX >> 1]) {
            let told = problems(value);
            let range = format!("{whole} is {value}; use {least} to {most}");
            assert!(told.len() == 1 && told[0].ends_with(&range), "{told:?}");
        }
        assert!(problems(least).is_empty() && problems(most).is_empty());
        let taken = setting.may_exceed();
        let text = format!("[limits]\nbeyond_ranges = true\n{key} = {high}\n");
        assert_eq!(
            section == "limits" && read(&text).1.is_empty(),
            taken,
            "{}",
            setting.key
        );
        if let Some(low) = low.filter(|_| taken) {
            let text = format!("[limits]\nbeyond_ranges = true\n{key} = {low}\n");
            assert_eq!(read(&text).1.len(), 1, "{}", setting.key);
        }
    }
}

#[test]
fn no_two_settings_have_a_key_or_a_variable_in_common_and_each_is_found_by_its_key() {
    let mut keys = BTreeMap::new();
    for setting in DECLARED {
        assert!(
            setting.about.ends_with('.') && !setting.about.contains('|'),
            "{}",
            setting.key
        );
        let key = setting.key_of("n");
        let (found, name) = declared(&key).unwrap();
        assert_eq!(
            (found.key, name.is_empty()),
            (setting.key, !setting.is_named())
        );
        let names = [Some(setting.key.to_owned()), setting.variable()];
        for name in names.into_iter().flatten() {
            assert_eq!(keys.insert(name, setting.key), None, "{}", setting.key);
        }
    }
}

/// C61: what `explain` shows is no secret, because no setting is one: a secret is in a file that a
/// setting names.
#[test]
fn c61_no_setting_is_a_secret() {
    for setting in DECLARED {
        for word in ["token", "secret", "password", "private", "credential"] {
            let names_a_file = setting.key.ends_with("_file") || setting.key.ends_with("_dir");
            assert!(
                !setting.key.contains(word) || names_a_file,
                "{}",
                setting.key
            );
        }
    }
}

#[test]
fn the_schema_knows_every_setting_with_its_range_and_nothing_else() {
    let schema = schema();
    for setting in DECLARED {
        let mut at = &schema;
        for part in setting.key.split('.') {
            assert!(
                part == "*"
                    || at["additionalProperties"] == false
                    || at["additionalProperties"].is_object()
            );
            at = if part == "*" {
                &at["additionalProperties"]
            } else {
                &at["properties"][part]
            };
        }
        assert_eq!(at["description"], setting.about, "{}", setting.key);
        if let Kind::Whole(range) = &setting.kind {
            assert_eq!(
                (at["minimum"].as_u64(), at["maximum"].as_u64()),
                (Some(*range.start()), Some(*range.end()))
            );
        }
    }
    assert_eq!(schema["additionalProperties"], false);
    let agent = &schema["properties"]["agents"]["additionalProperties"];
    assert_eq!(agent["required"], serde_json::json!(["engine"]));
}

#[test]
fn c60_the_page_is_what_is_declared() {
    let found = include_str!("../../../docs/configuration.md");
    assert!(
        found == page(),
        "docs/configuration.md is stale: cargo run --bin sessiond -- config page > docs/configuration.md"
    );
}

#[test]
fn c60_every_bound_of_the_core_is_in_the_table() {
    let source = include_str!("../../core/src/domain/limits.rs");
    let names = source.lines().filter_map(|line| {
        let name = line.strip_prefix("pub const ")?.split_once(':')?.0;
        name.starts_with("MAX_").then_some(name)
    });
    let (mut told, mut found) = (String::new(), String::new());
    for name in names {
        let _ = writeln!(found, "{name}");
    }
    for fixed in OF_THE_CORE {
        let _ = writeln!(told, "{}", fixed.name);
    }
    assert_eq!(told, found);
}

#[test]
fn an_agent_without_its_workspace_is_told_which_there_are() {
    let text =
        "[workspaces.main]\nroot = \".\"\n[agents.a]\nengine = \"demo\"\nworkspace = \"mian\"";
    let (_, problems) = read(text);
    let expected = "s.toml:5: agents.a.workspace \"mian\" is not in [workspaces]; there are: main";
    assert_eq!(problems, [expected]);
    // Also where its engine is wrong, or not there: all is told at once.
    for (engine, told) in [
        ("engine = \"dmeo\"", 2),
        ("", 2),
        ("engine = \"scripted\"", 1),
    ] {
        let text = format!("[agents.a]\n{engine}\nworkspace = \"mian\"");
        let (_, problems) = read(&text);
        assert_eq!(problems.len(), told, "{problems:?}");
        assert!(
            problems
                .iter()
                .any(|line| line.contains("\"mian\" is not in")),
            "{problems:?}"
        );
    }
}

#[test]
fn a_default_agent_that_is_none_is_told_which_there_are() {
    let (_, problems) = read("default_agent = \"dmeo\"");
    let expected = "s.toml:1: default_agent \"dmeo\" is not an agent; there are: demo, scripted";
    assert_eq!(problems, [expected]);
}

#[test]
fn the_workspace_of_the_command_line_goes_first_and_is_never_passed_over() {
    let root = |text: &str, flag: Option<&str>| {
        let agents = right(text).agents(flag.map(Path::new), Path::new("/here"));
        agents.map(|agents| {
            let workspace = agents[0].workspace.clone();
            workspace.map(|(name, space)| (name.to_string(), space.root))
        })
    };
    let workspaces = "[workspaces.main]\nroot = \"/file\"";
    let at = |name: &str, root: &str| Some((name.to_owned(), PathBuf::from(root)));
    assert_eq!(
        root(workspaces, Some("/flag")).unwrap(),
        at("demo", "/flag")
    );
    assert_eq!(root(workspaces, None).unwrap(), at("main", "/file"));
    assert_eq!(root("", Some("/flag")).unwrap(), at("demo", "/flag"));
    assert_eq!(root("", None).unwrap(), at("demo", "/here"));
    let agents = "[agents.a]\nengine = \"scripted\"";
    assert_eq!(root(agents, None).unwrap(), None);
    let error = root(agents, Some("/flag")).unwrap_err().to_string();
    assert!(error.contains("--workspace"), "{error}");
}

#[test]
fn a_fresh_server_has_the_demo_agent_as_its_default() {
    let settings = Settings::default();
    let agents: Vec<AgentName> = settings
        .agents(None, Path::new("/repo"))
        .unwrap()
        .into_iter()
        .map(|agent| agent.name)
        .collect();
    assert_eq!(settings.default_agent(&agents).unwrap().as_str(), "demo");
}

mod sections;
