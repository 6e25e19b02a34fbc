//! What version control says of a place: as git does, from anywhere beneath the workspace, and nothing
//! that hangs or leads out.

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

/// Branch and commit.
type Told = (Option<String>, Option<String>);

async fn told(scene: &Scene, directory: &str) -> Option<Told> {
    let workspaces = scene.workspaces();
    let checkout = within(workspaces.checkout(&place(directory))).await?;
    let text = |text: Option<Arc<str>>| text.map(|text| text.to_string());
    Some((text(checkout.branch), text(checkout.commit)))
}

#[allow(
    clippy::unnecessary_wraps,
    reason = "it is compared with what may be none"
)]
fn on(branch: &str, commit: &str) -> Option<Told> {
    Some((Some(branch.to_owned()), Some(commit.trim().to_owned())))
}

#[tokio::test]
async fn c45_a_session_below_the_top_tells_branch_and_commit() {
    let scene = Scene::repository();
    let commit = scene.git(&["rev-parse", "HEAD"]);
    for directory in [".", "crates", "crates/net"] {
        assert_eq!(
            told(&scene, directory).await,
            on("trunk", &commit),
            "{directory}"
        );
    }
    scene.git(&["checkout", "--quiet", "-b", "fix/the-gate"]);
    scene.git(&["pack-refs", "--all"]);
    assert_eq!(told(&scene, "crates").await, on("fix/the-gate", &commit));
    scene.git(&["checkout", "--quiet", "--detach"]);
    let detached = Some((None, Some(commit.trim().to_owned())));
    assert_eq!(told(&scene, "crates").await, detached);
    scene.git(&["checkout", "--quiet", "--orphan", "unborn"]);
    let unborn = Some((Some("unborn".to_owned()), None));
    assert_eq!(told(&scene, "crates").await, unborn);
    assert_eq!(told(&scene, "nowhere").await, None);
}

/// Its `.git` is a file that points out of its directory, but not out of the workspace.
#[tokio::test]
async fn c45_c53_a_worktree_and_a_submodule_are_told_as_long_as_their_data_lie_inside() {
    let scene = Scene::repository();
    let commit = scene.git(&["rev-parse", "HEAD"]);
    scene.git(&["worktree", "add", "--quiet", "-b", "side", "trees/side"]);
    scene.write("trees/side/deep/er/x", "");
    assert_eq!(
        told(&scene, "trees/side/deep/er").await,
        on("side", &commit)
    );
    let at = scene.inside.to_str().expect("text");
    scene.git(&["submodule", "--quiet", "add", at, "sub"]);
    git(
        &scene.inside.join("sub"),
        &["checkout", "--quiet", "-b", "inner"],
    );
    assert_eq!(told(&scene, "sub").await, on("inner", &commit));
    assert_eq!(told(&scene, "crates").await, on("trunk", &commit));
    // One whose data lie elsewhere is not told, and least of all as what lies around it.
    git(&scene.other, &["clone", "--quiet", at, "."]);
    let linked = scene.inside.join("trees/foreign");
    let linked = linked.to_str().expect("text");
    git(
        &scene.other,
        &["worktree", "add", "--quiet", "-b", "foreign", linked],
    );
    assert_eq!(told(&scene, "trees/foreign").await, None);
    scene.link("../../other/.git", "crates/.git");
    assert_eq!(told(&scene, "crates/net").await, None);
}

/// C53: the lookup ends at the workspace, whatever lies around it.
#[tokio::test]
async fn c53_b48_a_repository_around_the_workspace_is_not_told() {
    let scene = Scene::new();
    let around = scene.inside.parent().expect("a folder");
    git(around, &["init", "--quiet", "--initial-branch=secret"]);
    git(around, &["commit", "--quiet", "--allow-empty", "-m", "One"]);
    assert_eq!(told(&scene, "crates/net").await, None);
    assert_eq!(told(&scene, ".").await, None);
}

#[tokio::test]
async fn c45_a_bare_repository_is_told_like_others() {
    let scene = Scene::repository();
    let commit = scene.git(&["rev-parse", "HEAD"]);
    let at = scene.inside.to_str().expect("text");
    scene.git(&["clone", "--quiet", "--bare", at, "bare.git"]);
    scene.git(&["update-ref", "refs/heads/trunk", &commit.trim()[..40]]);
    assert_eq!(told(&scene, "bare.git").await, on("trunk", &commit));
    assert_eq!(told(&scene, "bare.git/refs").await, on("trunk", &commit));
}

#[tokio::test]
async fn c45_b48_a_repository_that_is_damaged_or_hostile_hangs_nobody_and_leads_nowhere() {
    let scene = Scene::repository();
    let head = scene.inside.join(".git/HEAD");
    fs::write(scene.outside.join("ref"), "0".repeat(40)).expect("written");
    let out = format!("ref: refs/../../{}/ref", scene.outside.display());
    for text in [
        "",
        "nonsense",
        "ref: ",
        "ref: /etc/passwd",
        "ref: refs/heads/../../../../out/ref",
        &out,
        "ref: refs/heads/\u{1b}[31mred",
        "ref: refs/heads/two\nlines",
        "ref: refs/heads/a..b",
    ] {
        fs::write(&head, text).expect("written");
        assert_eq!(told(&scene, "crates").await, None, "{text:?}");
    }
    // Larger than any: of a head, and of a ref.
    fs::write(&head, "ref: refs/heads/x".repeat(10_000)).expect("written");
    assert_eq!(told(&scene, "crates").await, None);
    fs::write(&head, "ref: refs/heads/trunk\n").expect("written");
    let branch = scene.inside.join(".git/refs/heads/trunk");
    fs::write(&branch, "0".repeat(1 << 20)).expect("written");
    assert_eq!(told(&scene, "crates").await, None);
    // A ref that names itself.
    fs::write(&branch, "ref: refs/heads/trunk").expect("written");
    assert_eq!(told(&scene, "crates").await, None);
    fs::remove_file(&branch).expect("removed");
    symlink(scene.outside.join("ref"), &branch).expect("linked");
    assert_eq!(told(&scene, "crates").await, None);
    // Pipes that nobody writes to.
    for path in [branch, head, scene.inside.join(".git/config")] {
        fs::remove_file(&path).expect("removed");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        assert_eq!(told(&scene, "crates").await, None, "{}", path.display());
    }
}

/// A folder or a file that is only called so: the first is passed over as git does, the second is
/// not.
#[tokio::test]
async fn c45_what_is_only_called_a_repository_is_none() {
    let scene = Scene::repository();
    let commit = scene.git(&["rev-parse", "HEAD"]);
    fs::create_dir(scene.inside.join("crates/net/.git")).expect("made");
    assert_eq!(told(&scene, "crates/net").await, on("trunk", &commit));
    for text in [
        "",
        "gitdir: ../nowhere",
        "gitdir: ../a.txt",
        "gitdir: /etc",
        "x",
    ] {
        scene.write("crates/.git", text);
        assert_eq!(told(&scene, "crates").await, None, "{text:?}");
    }
}

/// A name that is longer than what is kept ends in a mark that says so.
#[tokio::test]
async fn c45_a_long_name_is_cut_and_says_so() {
    let scene = Scene::repository();
    let commit = scene.git(&["rev-parse", "HEAD"]);
    let name = format!("{}/{}", "\u{e9}".repeat(100), "x".repeat(100));
    scene.git(&["checkout", "--quiet", "-b", &name]);
    let kept = told(&scene, ".").await.and_then(|(branch, _)| branch);
    let kept = kept.expect("a branch");
    assert!(
        kept.len() <= MAX_BRANCH_BYTES && kept.ends_with(CUT),
        "{kept}"
    );
    assert!(name.starts_with(kept.trim_end_matches(CUT)));
    let exactly = "y".repeat(200);
    scene.git(&["checkout", "--quiet", "-b", &exactly]);
    assert_eq!(told(&scene, ".").await, on(&exactly, &commit));
}
