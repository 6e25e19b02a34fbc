//! Workspaces and the fleet.

use std::path::Path;

use super::*;

#[test]
fn a_workspace_has_a_name_that_sessions_can_tell() {
    let (_, problems) = read("[workspaces.My_Space]\nroot = \"/w\"");
    let [problem] = &problems[..] else {
        panic!("not one: {problems:?}");
    };
    assert!(
        problem.starts_with("s.toml:2: workspaces.My_Space.root") && problem.contains("1-63"),
        "{problem}"
    );
    let settings = right("[workspaces.main]\nroot = \"/w\"\nwritable = true");
    assert!(settings.workspaces["main"].writable);
    assert!(!right("[workspaces.main]\nroot = \"/w\"").workspaces["main"].writable);
}

#[test]
fn c47_how_long_a_session_may_show_nothing_is_configured() {
    let minute = right("[fleet]\nstalled_after_seconds = 60")
        .app
        .stalled_after;
    assert_eq!(minute, Duration::from_secs(60));
    let (_, problems) = read("[fleet]\nstalled_after_seconds = 0");
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn c53_a_workspace_names_the_agents_that_may_work_in_it_too() {
    let text = "[workspaces.main]\nroot = \"/m\"\n[workspaces.docs]\nroot = \"/d\"\nagents = [\"a\", \"b\"]\n\
                [agents.a]\nengine = \"demo\"\nworkspace = \"main\"\n\
                [agents.b]\nengine = \"demo\"\nworkspace = \"docs\"\n";
    let served = right(text).agents(None, Path::new("/")).unwrap();
    let further = served
        .iter()
        .map(|it| it.further.iter().map(ToString::to_string).collect());
    let further: Vec<Vec<String>> = further.collect();
    assert_eq!(further, [vec!["docs".to_owned()], vec![]]);
    let (_, problems) = read(&text.replace("\"b\"]", "\"c\", \"-\"]"));
    let [unknown, malformed] = &problems[..] else {
        panic!("not two: {problems:?}");
    };
    assert!(
        unknown.contains("workspaces.docs.agents") && unknown.contains("there are: a, b"),
        "{unknown}"
    );
    assert!(malformed.contains("workspaces.docs.agents"), "{malformed}");
}

/// What is said of the built-in agents' workspace holds, also where its place comes from the command line.
#[test]
fn the_workspace_of_the_command_line_is_as_writable_as_it_is_said_to_be() {
    let space = |settings: &Settings, flag: Option<&str>| {
        let served = settings.agents(flag.map(Path::new), Path::new("/here"));
        let (name, space) = served.unwrap()[0].workspace.clone().unwrap();
        (name.to_string(), space.root, space.writable)
    };
    let demo = |root: &str, writable| ("demo".to_owned(), PathBuf::from(root), writable);
    let plain = right("");
    assert_eq!(space(&plain, Some("/flag")), demo("/flag", false));
    // As a flag says it: of a file a root is wanted.
    let mut said = right("");
    said.workspaces
        .entry("demo".to_owned())
        .or_default()
        .writable = true;
    assert_eq!(space(&said, Some("/flag")), demo("/flag", true));
    assert_eq!(space(&said, None), demo("/here", true));
    assert!(
        said.named_workspaces().unwrap().is_empty(),
        "it is nowhere of its own"
    );
    assert!(said.wrong_with_spaces(&[]).is_empty());
    let rooted = right("[workspaces.demo]\nroot = \"/file\"\nwritable = true");
    assert_eq!(space(&rooted, Some("/flag")), demo("/flag", true));
    assert_eq!(space(&rooted, None), demo("/file", true));
    // No other one is anywhere without a root.
    said.workspaces.entry("main".to_owned()).or_default();
    let wrong = said.wrong_with_spaces(&[]);
    let wrong: Vec<_> = wrong.iter().map(ToString::to_string).collect();
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(
        wrong[0].contains("workspaces.main.root: is missing"),
        "{wrong:?}"
    );
}
