//! Where sessions work, tried from a terminal against a real server: every way out of a workspace, what
//! keeps the agent in on systems of other ages, and git in a worktree that an agent is kept in.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::daemon::{Home, Started};
use crate::seven::{git, house};
use crate::{House, phase};

/// B48 as the boundary's own tests have it, for a session that is moved: each way out is refused by its
/// name, and the session stays where it was.
#[tokio::test]
async fn c53_b48_no_change_of_directory_leads_out_whichever_way_it_is_named() {
    let house = house().await;
    let home = house.home.path();
    let tree = home.join("tree");
    fs::create_dir_all(home.join("out/deep")).unwrap();
    for (to, name) in [
        ("../out", "beside"),
        ("/etc", "absolute"),
        ("docs/../../out", "through"),
        ("beside/deep", "chain"),
        ("/proc/self/cwd", "magic"),
        ("around", "circle"),
        ("circle", "around"),
        ("docs", "linked"),
    ] {
        symlink(to, tree.join(name)).unwrap();
    }
    fs::write(tree.join("file"), "").unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tree.join("socket")).unwrap();
    house
        .does(&["new", "net", "--agent", "apart", "--dir", "crates/net"])
        .await;
    for out in [
        "..",
        "../out",
        "docs/../../out",
        "/etc",
        "beside",
        "beside/deep",
        "absolute",
        "through",
        "chain",
        "magic",
        "circle",
        "file",
        "socket",
        "nowhere",
        "DOCS",
        "a\nb",
    ] {
        let (code, told, err) = house.ran(&["cd", "net", "--", out]).await;
        assert!(code == 1 || code == 2, "{out}: {told}{err}");
        let place = &house.session("net").await["place"];
        assert_eq!(place["directory"], "crates/net", "{out}");
    }
    // What stays inside is told by its real name.
    house.does(&["cd", "net", "linked"]).await;
    assert_eq!(house.session("net").await["place"]["directory"], "docs");
}

/// An agent may have more than one workspace; to any other nobody is moved.
#[tokio::test]
async fn c53_a_session_is_moved_to_a_workspace_that_names_its_agent_and_to_no_other() {
    let agents = "[agents.apart]\nengine = \"scripted-process\"\nworkspace = \"tree\"\n\
                  [workspaces.more]\nroot = \"HOME/more\"\nagents = [\"apart\"]\n\
                  [workspaces.none]\nroot = \"HOME/none\"\n";
    let make = |root: &Path| {
        for directory in ["more/sub", "none"] {
            fs::create_dir_all(root.with_file_name(directory)).unwrap();
        }
        fs::write(root.join("file"), "of the tree").unwrap();
        fs::write(root.with_file_name("more").join("sub/file"), "of more").unwrap();
    };
    let house = House::over(make, "", agents).await;
    house.does(&["new", "it", "--agent", "apart"]).await;
    let (code, _, err) = house.ran(&["cd", "it", ".", "--workspace", "none"]).await;
    assert!(code == 1 && err.contains("it may in: tree, more"), "{err}");
    house
        .does(&["cd", "it", "sub", "--workspace", "more"])
        .await;
    let place = &house.session("it").await["place"];
    assert_eq!(
        (&place["workspace"], &place["directory"]),
        (&"more".into(), &"sub".into())
    );
    let left = house.home.path().join("tree/file");
    let script = format!("read-file \"file\"\nread-file {left:?}");
    let (_, _, told) = house.ran(&["invoke", "it", &script]).await;
    assert!(
        told.contains("of more") && !told.contains("of the tree"),
        "{told}"
    );
}

/// The directory of a session that another puts a link in the place of is not followed, by no engine.
#[tokio::test]
async fn c45_c53_b45_a_directory_that_became_a_link_is_followed_by_nobody_unasked() {
    let house = house().await;
    let tree = house.home.path().join("tree");
    for agent in ["apart", "demo", "scripted"] {
        house
            .does(&["new", agent, "--agent", agent, "--dir", "crates/net"])
            .await;
    }
    fs::rename(tree.join("crates/net"), tree.join("crates/away")).unwrap();
    symlink("../docs", tree.join("crates/net")).unwrap();
    for agent in ["apart", "demo", "scripted"] {
        let (code, told, err) = house.ran(&["invoke", agent, "sh \"cat notes.md\""]).await;
        assert!(code == 1 && !told.contains("the notes"), "{told}{err}");
        assert!(
            err.contains("crates/net") && err.contains("\"docs\""),
            "{err}"
        );
        assert_eq!(
            house.session(agent).await["place"]["directory"],
            "crates/net"
        );
    }
    house.does(&["cd", "apart", "crates/net"]).await;
    assert_eq!(house.session("apart").await["place"]["directory"], "docs");
    let told = house.ran(&["invoke", "apart", "sh \"cat notes.md\""]).await;
    assert!(told.0 == 0 && told.2.contains("the notes"), "{told:?}");
}

/// Whether these are lines of what was said, one after another.
fn says(said: &str, lines: &[&str]) -> bool {
    let said: Vec<&str> = said.lines().map(str::trim).collect();
    said.windows(lines.len()).any(|some| some == lines)
}

/// An agent that is kept in a linked worktree can use git there, and no more of the repository.
#[tokio::test]
async fn c45_c53_git_works_in_a_worktree_that_an_agent_is_kept_in() {
    let house = house().await;
    let tree = house.home.path().join("tree");
    for branch in ["one", "two"] {
        house
            .does(&["new", branch, "--agent", "apart", "--worktree", branch])
            .await;
    }
    let script = "set -e; exec 2>&1; git status --short; echo more >> docs/notes.md; \
        git -c user.name=a -c user.email=a@example.org commit -qam work; \
        git log --format=%s -2; git switch -qc side; git rev-parse --abbrev-ref HEAD";
    let (code, _, told) = house
        .ran(&["invoke", "one", &format!("sh {script:?}")])
        .await;
    assert!(
        code == 0 && says(&told, &["work", "begin", "side"]),
        "{told}"
    );
    house
        .until("one", |it| it["checkout"]["branch"] == "side")
        .await;
    git(&tree, &["fsck", "--strict"]);
    git(&tree, &["merge", "-q", "--ff-only", "one"]);
    // What others' programs go by, what they would run, and what is another session's.
    let main = tree.display();
    let script = format!(
        "exec 2>/dev/null; for path in .git/config .git/hooks/post-checkout .git/HEAD .git/index \
         .git/worktrees/two/HEAD .git/packed-refs .worktrees/two/docs/notes.md docs/notes.md; do \
         (echo x >> {main}/$path) && echo WROTE $path; done; \
         cat {main}/docs/notes.md && echo READ; cat {main}/.worktrees/two/docs/notes.md && echo READ; \
         cat {main}/.git/config > /dev/null && echo told"
    );
    let (code, _, said) = house
        .ran(&["invoke", "one", &format!("sh {script:?}")])
        .await;
    assert!(code == 0 && says(&said, &["told"]), "{said}");
    let done = ["WROTE", "READ"];
    let done = said
        .lines()
        .any(|line| done.iter().any(|it| line.trim().starts_with(it)));
    assert!(!done, "{said}");
    // What it says of itself is not believed: it leads to the other one's record, or anywhere.
    let lead = format!(
        "echo \"gitdir: {main}/.git/worktrees/two\" > .git; git symbolic-ref HEAD refs/heads/mine"
    );
    house.ran(&["invoke", "one", &format!("sh {lead:?}")]).await;
    let tried = format!("exec 2>/dev/null; cat {main}/.git/config && echo READ; echo end");
    let (_, _, said) = house
        .ran(&["invoke", "one", &format!("sh {tried:?}")])
        .await;
    assert!(says(&said, &["end"]) && !says(&said, &["READ"]), "{said}");
    let head = fs::read_to_string(tree.join(".git/worktrees/two/HEAD")).unwrap();
    assert_eq!(head, "ref: refs/heads/two\n");
}

fn agents(config: &Path, require: bool) {
    let text = fs::read_to_string(config).unwrap();
    let agent = format!(
        "[agents.apart]\nengine = \"scripted-process\"\nworkspace = \"work\"\n\
         require_sandbox = {require}\n[workspaces.work]\nroot = {:?}\n",
        config.with_file_name("work")
    );
    fs::write(config, text + &agent).unwrap();
}

/// C53: where nothing holds an agent in, start, capabilities, state and a move say so, and an agent that
/// must be held in is not served.
#[tokio::test]
async fn c53_c57_a_system_that_holds_nothing_says_so_everywhere_and_may_be_refused() {
    for (edition, level) in [("0", "none"), ("2", "none"), ("3", "enforced")] {
        let failpoint = format!("process_host::edition=return({edition})");
        for require in [true, false] {
            let home = Home::new();
            fs::create_dir_all(home.path().join("work/sub")).unwrap();
            agents(&home.path().join("config.toml"), require);
            let daemon = match home.try_start(Some(&failpoint)).await {
                Started::Ready(daemon) => daemon,
                Started::Ended(status) => {
                    assert!(!status.success() && require && level == "none", "{edition}");
                    let said = home.said();
                    assert!(said.contains("require_sandbox is set"), "{said}");
                    continue;
                }
            };
            assert!(!require || level == "enforced", "{edition}: it was served");
            assert_eq!(
                home.said().contains("NOTHING keeps them there"),
                level == "none"
            );
            let house = House { home, daemon };
            house.does(&["new", "it", "--agent", "apart"]).await;
            for told in [&["capabilities", "it"], &["state", "it"]] {
                let told = house.does(&[&["--json"], &told[..]].concat()).await;
                let told: serde_json::Value = serde_json::from_str(&told).unwrap();
                assert_eq!(told["sandbox"], level, "{told}");
            }
            let state = house.does(&["state", "it"]).await;
            assert_eq!(state.contains("sandbox   none"), level == "none", "{state}");
            let moved = house.does(&["cd", "it", "sub"]).await;
            assert_eq!(moved.contains("good will"), level == "none", "{moved}");
            house.does(&["invoke", "it", "sh \"pwd\""]).await;
            house.until("it", phase("ready")).await;
        }
    }
}
