//! Where the demo agent works: where its session is told to, and nowhere else.

use std::process::Command;

use sessionplane_core::domain::ids::WorkspaceName;
use sessionplane_core::domain::place::{Directory, Place};
use sessionplane_core::ports::engine::OpenSession;
use sessionplane_server::adapters::boundary::{Access, Boundary, Grounds};

use super::*;

fn place(directory: &str) -> Place {
    Place {
        workspace: WorkspaceName::parse("main").expect("a name"),
        directory: Directory::parse(directory).expect("a directory"),
    }
}

/// An agent whose own folder is the harbour, and that is told of a workspace.
fn beneath(workspace: &Path, at: &str) -> Bench {
    let boundary = Boundary::open(workspace, Access::ReadOnly).expect("a folder");
    let main = WorkspaceName::parse("main").expect("a name");
    let grounds = Grounds::new([(main, boundary)]);
    let own = folder();
    let mut subject = on(with_twins(), Pace::NONE);
    subject.factory = Box::new(move |clock, spawner| {
        let engine = DemoEngine::in_folder(own.path(), clock, spawner).expect("a folder");
        Arc::new(engine.at_pace(Pace::NONE).on(grounds.clone()))
    });
    let mut bench = Bench::new(subject);
    bench.place = Some(place(at));
    bench
}

async fn answer(bench: &Bench, text: &str) -> String {
    let mut opened = bench.open().await;
    said(&ask(&mut opened, text).await)
}

fn git(at: &Path, arguments: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(arguments)
        .current_dir(at)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", "/nonexistent")
        .output()
        .expect("git runs");
    assert!(done.status.success(), "{done:?}");
}

#[tokio::test(start_paused = true)]
async fn c45_c53_the_agent_works_where_its_session_is_told_to() {
    let workspace = tempfile::tempdir().expect("a folder");
    write(workspace.path(), "north/README.md", "# North\n");
    write(workspace.path(), "south/README.md", "# South\n");
    for (at, title) in [("north", "# North"), ("south", "# South")] {
        let bench = beneath(workspace.path(), at);
        let told = answer(&bench, "show README").await;
        assert!(told.contains(title), "{told}");
        // What lies beside its directory is as if it were not there.
        for beside in ["../south/README.md", "../north/README.md"] {
            let told = answer(&bench, &format!("show {beside}")).await;
            assert!(!told.contains("| # "), "{told}");
        }
    }
    let whole = answer(&beneath(workspace.path(), "."), "tree").await;
    assert!(
        whole.contains("north") && whole.contains("south"),
        "{whole}"
    );
    let mut own = beneath(workspace.path(), ".");
    own.place = None;
    let told = answer(&own, "show README").await;
    assert!(told.contains("# Harbour"), "{told}");
}

/// C45: a directory that is gone is named, and the agent's own does not take its place.
#[tokio::test(start_paused = true)]
async fn c45_b45_the_agent_is_not_opened_where_its_directory_is_gone() {
    let workspace = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink("/etc", workspace.path().join("out")).expect("linked");
    write(workspace.path(), "other/README.md", "# Other\n");
    std::os::unix::fs::symlink("other", workspace.path().join("moved")).expect("linked");
    for (at, why) in [
        ("gone", "is not there"),
        ("out", "leads out of the workspace"),
        ("moved", "is a link by now, to \"other\""),
    ] {
        let bench = beneath(workspace.path(), at);
        let open = OpenSession {
            session: session(1),
            leaf: None,
            settings: bench.engine.describe().models.default.clone(),
            place: bench.place.clone(),
            transcript: Arc::new(crate::suite::bench::Pages(Vec::new())),
        };
        let said = bench.engine.open(open).await.err().expect("it is opened");
        let expected = format!("the directory {at:?} of workspace main {why}");
        assert!(said.0.starts_with(&expected), "{said}");
    }
}

/// The repository of a directory may lie further up, or its data elsewhere in the workspace.
#[tokio::test(start_paused = true)]
async fn c45_c53_the_agent_tells_the_branch_of_a_part_and_of_a_worktree() {
    let workspace = tempfile::tempdir().expect("a folder");
    write(workspace.path(), "src/gate.rs", "pub struct Gate;\n");
    git(
        workspace.path(),
        &["init", "--quiet", "--initial-branch=quay"],
    );
    git(workspace.path(), &["add", "--all"]);
    git(
        workspace.path(),
        &["commit", "--quiet", "-m", "Paint the gate"],
    );
    git(
        workspace.path(),
        &["worktree", "add", "--quiet", "-b", "side", "trees/side"],
    );
    let part = beneath(workspace.path(), "src");
    let told = answer(&part, "which branch?").await;
    assert!(told.starts_with("On branch `quay`, at `"), "{told}");
    // A status would tell of what lies beside it.
    let told = answer(&part, "git status").await;
    assert!(told.contains("a part of its worktree"), "{told}");
    let tree = beneath(workspace.path(), "trees/side");
    write(
        workspace.path(),
        "trees/side/src/gate.rs",
        "pub struct Gate(u8);\n",
    );
    let told = answer(&tree, "git status").await;
    assert!(told.starts_with("On branch `side`, at `"), "{told}");
    assert!(
        told.contains("Changed (1):\n- src/gate.rs (changed)\n"),
        "{told}"
    );
}
