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
