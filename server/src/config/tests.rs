use super::*;

#[test]
fn an_unknown_key_is_an_error_that_names_it() {
    let error = toml::from_str::<ConfigFile>("lissten = \"x\"").unwrap_err();
    assert!(error.to_string().contains("lissten"), "{error}");
}

#[test]
fn an_agent_without_its_workspace_is_told_which_there_are() {
    let config: ConfigFile = toml::from_str(
        "[workspaces.main]\nroot = \".\"\n[agents.a]\nengine = \"demo\"\nworkspace = \"mian\"",
    )
    .unwrap();
    let error = config.agents(None, Path::new(".")).unwrap_err().to_string();
    assert!(error.contains("mian") && error.contains("main"), "{error}");
}

#[test]
fn the_workspace_of_the_command_line_goes_first_and_is_never_passed_over() {
    let root = |text: &str, flag: Option<&str>| {
        let config: ConfigFile = toml::from_str(text).unwrap();
        let agents = config.agents(flag.map(Path::new), Path::new("/here"));
        agents.map(|agents| agents[0].2.clone())
    };
    let workspaces = "[workspaces.main]\nroot = \"/file\"";
    let at = |root: &str| Some(PathBuf::from(root));
    assert_eq!(root(workspaces, Some("/flag")).unwrap(), at("/flag"));
    assert_eq!(root(workspaces, None).unwrap(), at("/file"));
    assert_eq!(root("", Some("/flag")).unwrap(), at("/flag"));
    assert_eq!(root("", None).unwrap(), at("/here"));
    let agents = "[agents.a]\nengine = \"scripted\"";
    assert_eq!(root(agents, None).unwrap(), None);
    let error = root(agents, Some("/flag")).unwrap_err().to_string();
    assert!(error.contains("--workspace"), "{error}");
}

#[test]
fn a_fresh_server_has_the_demo_agent_as_its_default() {
    let config = ConfigFile::default();
    let agents: Vec<AgentName> = config
        .agents(None, Path::new("/repo"))
        .unwrap()
        .into_iter()
        .map(|(name, ..)| name)
        .collect();
    assert_eq!(config.default_agent(&agents).unwrap().as_str(), "demo");
}

#[test]
fn a_value_out_of_its_range_is_refused_with_the_range() {
    let keys = [
        ("max_pending_inputs", 1, 1024),
        ("cancel_grace_seconds", 0, 86_400),
        ("rejoin_grace_seconds", 0, 86_400),
        ("abort_grace_seconds", 1, 3600),
        ("ring_events", 16, 1_048_576),
        ("heartbeat_seconds", 1, 20),
        ("binding_retention_hours", 24, 87_600),
        ("idle_seconds", 1, 86_400),
    ];
    let read = |key: &str, value: u64, more: &str| {
        let text = format!("[limits]\n{key} = {value}\n{more}");
        toml::from_str::<ConfigFile>(&text).unwrap().app_config()
    };
    for (key, least, most) in keys {
        for value in [least, most] {
            read(key, value, "").unwrap();
        }
        let low = least.checked_sub(1);
        for value in low.into_iter().chain([most + 1, u64::MAX >> 1]) {
            let error = read(key, value, "").unwrap_err().to_string();
            let range = format!("limits.{key}: is {value}; use {least} to {most}");
            assert_eq!(error, range);
        }
        read(key, most + 1, "beyond_ranges = true").unwrap();
        if let Some(low) = low {
            read(key, low, "beyond_ranges = true").unwrap_err();
        }
    }
    let cache = |cache_mib| StoreConfig { cache_mib }.cache_bytes();
    assert_eq!(cache(16).unwrap(), 16 * 1024 * 1024);
    for mib in [0, 15, 65_537, u64::MAX] {
        assert!(cache(mib).unwrap_err().to_string().contains("16 to 65536"));
    }
}

#[test]
fn every_value_reaches_what_it_is_for() {
    let text = "[limits]\nmax_pending_inputs = 2\ncancel_grace_seconds = 3\n\
                rejoin_grace_seconds = 4\nabort_grace_seconds = 5\nring_events = 16\n\
                heartbeat_seconds = 7\nbinding_retention_hours = 25\nidle_seconds = 8";
    let config: ConfigFile = toml::from_str(text).unwrap();
    let config = config.app_config().unwrap();
    let seconds = Duration::from_secs;
    assert_eq!(config.limits.max_pending_inputs, 2);
    assert_eq!(config.limits.cancel_grace, seconds(3));
    assert_eq!(config.limits.rejoin_grace, seconds(4));
    assert_eq!(config.limits.abort_grace, seconds(5));
    assert_eq!(config.ring_events, 16);
    assert_eq!(config.heartbeat, seconds(7));
    assert_eq!(config.binding_retention, seconds(25 * 3600));
    assert_eq!(config.idle_ttl, seconds(8));
}
