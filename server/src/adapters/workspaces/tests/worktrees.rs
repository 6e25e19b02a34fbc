//! Worktrees that are made: as git would have them, without a hook or a filter, and with no way out.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::PermissionsExt as _;

use super::*;

pub(super) async fn add(scene: &Scene, directory: &str, branch: &str) -> Result<String, String> {
    let workspaces = scene.workspaces();
    let made = within(workspaces.add_worktree(&place(directory), branch)).await;
    let made = made.map_err(|error| error.to_string())?;
    assert_eq!(made.workspace.as_str(), "main");
    Ok(made.directory.to_string())
}

/// Everything that there is below a folder, by path, and what stands for its content.
fn everything(at: &Path) -> Vec<(PathBuf, u64)> {
    let (mut found, mut waiting) = (Vec::new(), vec![at.to_owned()]);
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).expect("listed") {
            let path = entry.expect("an entry").path();
            let about = fs::symlink_metadata(&path).expect("there");
            if about.is_dir() {
                waiting.push(path.clone());
            }
            let mut content = DefaultHasher::new();
            if about.is_file() {
                fs::read(&path).expect("read").hash(&mut content);
            }
            found.push((path, content.finish()));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn c45_a_worktree_is_as_git_makes_it() {
    let scene = Scene::repository();
    scene.write("run.sh", "#!/bin/sh\n");
    let runs = fs::Permissions::from_mode(0o755);
    fs::set_permissions(scene.inside.join("run.sh"), runs).expect("set");
    scene.link("crates/net", "net");
    scene.write("a.b", "before the folder in a tree's order");
    scene.write("a/x", "x");
    scene.write("a0", "after it");
    scene.write(
        &format!("deep/{}/file", "d".repeat(200)),
        &"long\n".repeat(1000),
    );
    scene.write("empty", "");
    scene.commit("All kinds");
    for packed in [false, true] {
        if packed {
            scene.git(&["gc", "--quiet"]);
        }
        let branch = if packed { "fix/packed" } else { "fix/loose" };
        let made = add(&scene, "crates/net", branch).await.expect("made");
        assert_eq!(made, format!(".worktrees/{}", branch.replace('/', "-")));
        let at = scene.inside.join(&made);
        assert_eq!(git(&at, &["status", "--porcelain"]), "");
        assert_eq!(git(&at, &["diff", "--stat", "trunk"]), "");
        assert_eq!(
            git(&at, &["symbolic-ref", "--short", "HEAD"]).trim(),
            branch
        );
        git(&at, &["fsck", "--strict"]);
        assert_eq!(
            scene.git(&["status", "--porcelain"]),
            "",
            "it is seen from outside"
        );
        let listed = scene.git(&["worktree", "list", "--porcelain"]);
        assert!(
            listed.contains(&format!("branch refs/heads/{branch}")),
            "{listed}"
        );
        assert!(
            !listed.contains("locked") && !listed.contains("prunable"),
            "{listed}"
        );
        // It is worked in, and told like any other.
        fs::write(at.join("new"), "").expect("written");
        git(&at, &["add", "new"]);
        git(&at, &["commit", "--quiet", "-m", "Work"]);
        let tip = git(&at, &["rev-parse", "HEAD"]);
        let told = scene
            .workspaces()
            .checkout(&place(&made))
            .await
            .expect("told");
        assert_eq!(told.branch.as_deref(), Some(branch));
        assert_eq!(told.commit.as_deref(), Some(tip.trim()));
    }
    scene.git(&["worktree", "remove", ".worktrees/fix-loose"]);
}

#[tokio::test]
async fn c45_a_branch_that_is_checked_out_is_returned_where_it_is() {
    let scene = Scene::repository();
    assert_eq!(add(&scene, "crates", "trunk").await.as_deref(), Ok("."));
    scene.git(&["worktree", "add", "--quiet", "-b", "side", "trees/side"]);
    assert_eq!(add(&scene, ".", "side").await.as_deref(), Ok("trees/side"));
    // Also from within another worktree, whose top is not the repository's.
    assert_eq!(add(&scene, "trees/side", "trunk").await.as_deref(), Ok("."));
    let made = add(&scene, "trees/side", "third").await;
    assert_eq!(made.as_deref(), Ok(".worktrees/third"));
    assert_eq!(add(&scene, ".", "third").await, made);
    assert_eq!(add(&scene, ".worktrees/third", "third").await, made);
    // One that was removed by hand is neither made anew nor replaced.
    fs::remove_dir_all(scene.inside.join("trees/side")).expect("removed");
    let gone = add(&scene, ".", "side")
        .await
        .expect_err("it is registered");
    assert!(
        gone.contains("no longer there; `git worktree prune`"),
        "{gone}"
    );
    scene.git(&["worktree", "prune"]);
    let anew = add(&scene, ".", "side").await;
    assert_eq!(anew.as_deref(), Ok(".worktrees/side"));
    let out = scene.outside.join("tree");
    let out = out.to_str().expect("text");
    scene.git(&["worktree", "add", "--quiet", "-b", "away", out]);
    let away = add(&scene, ".", "away").await.expect_err("it is outside");
    assert!(away.contains("lies outside of this workspace"), "{away}");
}

#[tokio::test]
async fn c45_a_branch_is_taken_where_it_is_and_made_where_it_is_not() {
    let scene = Scene::repository();
    scene.git(&["branch", "old"]);
    scene.commit("Two");
    scene.git(&["pack-refs", "--all"]);
    let tip = |branch: &str| scene.git(&["rev-parse", &format!("refs/heads/{branch}")]);
    let before = tip("old");
    let old = add(&scene, ".", "old").await.expect("made");
    assert_eq!(git(&scene.inside.join(old), &["rev-parse", "HEAD"]), before);
    assert_eq!(tip("old"), before);
    add(&scene, ".", "new").await.expect("made");
    assert_eq!(tip("new"), tip("trunk"));
    // From where the session is, not from where the repository's first worktree is.
    add(&scene, ".worktrees/old", "newer").await.expect("made");
    assert_eq!(tip("newer"), before);
    // Names that are one directory's are told apart by a number.
    add(&scene, ".", "a/b").await.expect("made");
    let other = add(&scene, ".", "a-b").await;
    assert_eq!(other.as_deref(), Ok(".worktrees/a-b-2"));
}

#[tokio::test]
async fn c45_what_cannot_be_made_is_said_and_nothing_is_left() {
    let scene = Scene::repository();
    scene.git(&["branch", "taken"]);
    scene.git(&["branch", "folder/x"]);
    scene.git(&["branch", "packed"]);
    scene.git(&["pack-refs", "--all"]);
    scene.git(&["branch", "loose"]);
    add(&scene, ".", "first").await.expect("made");
    let before = everything(&scene.inside);
    for (branch, why) in [
        ("", "it is empty"),
        ("-b", "it begins with `-`"),
        ("a..b", "no branch can be called"),
        ("../../x", "no branch can be called"),
        ("HEAD", "no branch can be called"),
        ("packed/x", "another branch stands where its name leads"),
        ("loose/x", "another branch stands where its name leads"),
        ("folder", "another branch stands where its name leads"),
    ] {
        let said = add(&scene, ".", branch).await.expect_err(branch);
        assert!(said.contains(why), "{branch}: {said}");
        assert_eq!(everything(&scene.inside), before, "{branch}");
    }
    let read_only = HostWorkspaces::new(scene.grounds(Access::ReadOnly));
    let said = read_only.add_worktree(&place("."), "new").await;
    let said = said.expect_err("it is read-only").to_string();
    assert_eq!(
        said,
        "the worktree could not be made: the workspace is given for reading only; let it be written \
         where the server is started: `--set workspaces.NAME.writable=true`, or `writable = true` in its \
         part of the configuration"
    );
    assert_eq!(everything(&scene.inside), before);
    // A commit whose files cannot be read is found out on the way, and all is taken back.
    let blob = scene.git(&["rev-parse", "HEAD:crates/net/a.txt"]);
    let blob = scene
        .inside
        .join(".git/objects")
        .join(&blob[..2])
        .join(blob[2..].trim());
    fs::remove_file(blob).expect("removed");
    let before = everything(&scene.inside);
    let said = add(&scene, ".", "new").await.expect_err("it is damaged");
    assert!(said.contains("its file is not in this folder"), "{said}");
    assert_eq!(everything(&scene.inside), before);
    let empty = Scene::new();
    empty.git(&["init", "--quiet", "--initial-branch=trunk"]);
    let said = add(&empty, ".", "new")
        .await
        .expect_err("there is no commit");
    assert!(said.contains("has no commit yet"), "{said}");
    let none = Scene::new();
    let said = add(&none, ".", "new").await.expect_err("there is none");
    assert!(said.contains("no git repository"), "{said}");
}

/// Makes a tree of one entry, many times, and of that again: a few small objects.
fn bomb(scene: &Scene, depth: u32) -> String {
    let mut inner = scene.git(&["rev-parse", "HEAD:README.md"]);
    let mut kind = "100644 blob";
    let listing = scene.inside.join(".git/listing");
    for _ in 0..depth {
        let one = inner.trim();
        let lines = (0..10).map(|number| format!("{kind} {one}\tn{number}\n"));
        fs::write(&listing, lines.collect::<String>()).expect("written");
        let made = format!("git mktree < {}", listing.display());
        let mut shell = Command::new("sh");
        shell.args(["-c", &made]).current_dir(&scene.inside);
        let made = shell.output().expect("made");
        inner = String::from_utf8(made.stdout).expect("a text");
        kind = "040000 tree";
    }
    scene.git(&["commit-tree", "-m", "Bomb", inner.trim()])
}

#[tokio::test]
async fn c60_a_commit_of_too_many_files_is_refused_before_one_is_written() {
    let scene = Scene::repository();
    let commit = bomb(&scene, 11);
    scene.git(&["branch", "bomb", commit.trim()]);
    let before = everything(&scene.inside);
    let said = add(&scene, ".", "bomb").await.expect_err("it is too large");
    assert!(said.contains("more than 500000 files"), "{said}");
    assert_eq!(everything(&scene.inside), before);
    let commit = bomb(&scene, 2);
    scene.git(&["branch", "fits", commit.trim()]);
    add(&scene, ".", "fits").await.expect("made");
}

/// What one repository takes its time for holds up no other, and its own next one.
#[tokio::test]
async fn c60_worktrees_are_made_one_at_a_time_in_a_repository_and_not_in_all() {
    let scene = Scene::repository();
    let inner = scene.inside.join("crates/net");
    git(&inner, &["init", "--quiet", "--initial-branch=trunk"]);
    git(&inner, &["commit", "--quiet", "--allow-empty", "-m", "One"]);
    let workspaces = scene.workspaces();
    let spot = workspaces.grounds.beneath(&place(".")).expect("there");
    let layout = Layout::around(&spot.workspace, &spot.path, &AtomicBool::new(false));
    let outer = layout.expect("a repository").identity().expect("told");
    let busy = workspaces.alone(outer).await.expect("held");
    let (from, other) = (place("crates"), place("crates/net"));
    let mut same = Box::pin(workspaces.add_worktree(&from, "same"));
    let made = tokio::select! {
        made = &mut same => panic!("beside another one: {made:?}"),
        made = within(workspaces.add_worktree(&other, "other")) => made.expect("made"),
    };
    assert_eq!(made.directory.as_str(), "crates/net/.worktrees/other");
    drop(busy);
    let made = within(same).await.expect("made");
    assert_eq!(made.directory.as_str(), ".worktrees/same");
}

/// C53: nothing that a repository brings along is run, and nothing of the user's is asked.
#[tokio::test]
async fn c53_no_hook_and_no_filter_runs() {
    let scene = Scene::repository();
    scene.write(".gitattributes", "* filter=x diff=x\n");
    scene.commit("A filter");
    let ran = scene.outside.join("ran");
    let touch = format!("touch {}; cat", ran.display());
    let hook = format!("#!/bin/sh\n{touch} < /dev/null\n");
    // Also hooks of a folder that a configuration names which another includes.
    scene.write("included", "[core]\n\thooksPath = more-hooks\n");
    for (folder, include) in [(".git/hooks", false), ("more-hooks", true)] {
        for name in [
            "post-checkout",
            "pre-commit",
            "reference-transaction",
            "post-index-change",
        ] {
            scene.write(&format!("{folder}/{name}"), &hook);
            let runs = fs::Permissions::from_mode(0o755);
            let at = scene.inside.join(folder).join(name);
            fs::set_permissions(at, runs).expect("set");
        }
        if include {
            scene.git(&["config", "include.path", "../included"]);
        }
        for key in [
            "core.fsmonitor",
            "filter.x.smudge",
            "filter.x.clean",
            "core.sshCommand",
            "diff.x.textconv",
            "credential.helper",
            "core.pager",
            "core.editor",
        ] {
            scene.git(&["config", key, &touch]);
        }
        let _gone = fs::remove_file(&ran);
        let branch = format!("new-{include}");
        let made = add(&scene, ".", &branch).await.expect("made");
        let told = within(scene.workspaces().checkout(&place(&made))).await;
        assert_eq!(told.expect("told").branch.as_deref(), Some(&*branch));
        assert!(!ran.exists(), "something was run");
        // Git itself runs it, so that there was something to be run.
        scene.git(&["worktree", "add", "-b", &format!("git-{include}"), "by-git"]);
        assert!(ran.exists(), "nothing would be run");
        scene.git(&["worktree", "remove", "--force", "by-git"]);
    }
}

/// Links that a repository brings along, wherever git would write: nothing is written outside.
#[tokio::test]
async fn c53_b48_no_link_in_a_repository_leads_a_worktree_out() {
    for link in [
        ".git/worktrees",
        ".git/refs/heads",
        ".git/refs",
        ".git/refs/heads/fix",
        ".worktrees",
        ".worktrees/fix-gate",
        ".git/worktrees/fix-gate",
        ".git/refs/heads/fix/gate.lock",
    ] {
        let scene = Scene::repository();
        scene.git(&["pack-refs", "--all"]);
        let at = scene.inside.join(link);
        if fs::symlink_metadata(&at).is_ok() {
            fs::remove_dir_all(&at).expect("removed");
        }
        fs::create_dir_all(at.parent().expect("a parent")).expect("made");
        fs::create_dir_all(scene.outside.join("heads")).expect("made");
        symlink(&scene.outside, &at).expect("linked");
        let before = everything(&scene.outside);
        let made = add(&scene, ".", "fix/gate").await;
        assert_eq!(everything(&scene.outside), before, "{link} led out");
        let names = [".worktrees/fix-gate", ".git/worktrees/fix-gate"];
        match (names.contains(&link), made) {
            // There is another name.
            (true, made) => assert_eq!(made.as_deref(), Ok(".worktrees/fix-gate-2")),
            (false, made) => assert!(made.is_err(), "{link}: {made:?}"),
        }
    }
}

/// What a commit holds leads nowhere either: no name of git's own, no path through a link.
#[tokio::test]
async fn c53_b48_no_path_in_a_commit_leads_out() {
    let scene = Scene::repository();
    let blob = scene.git(&["hash-object", "-w", "README.md"]);
    let link = scene.outside.join("link");
    fs::write(&link, "../../../out").expect("written");
    let link = scene.git(&["hash-object", "-w", link.to_str().expect("text")]);
    let (blob, link) = (blob.trim(), link.trim());
    let tree = |lines: &[String]| {
        let text = scene.outside.join("tree");
        fs::write(&text, lines.concat()).expect("written");
        let made = Command::new("git")
            .args(["mktree"])
            .stdin(fs::File::open(text).expect("opened"))
            .current_dir(&scene.inside)
            .output();
        String::from_utf8(made.expect("git runs").stdout)
            .expect("text")
            .trim()
            .to_owned()
    };
    let inner = tree(&[format!("100644 blob {blob}\tx\n")]);
    for (number, lines) in [
        vec![format!("040000 tree {inner}\t.git\n")],
        vec![format!("040000 tree {inner}\t.GIT\n")],
        vec![format!("040000 tree {inner}\tgit~1\n")],
        vec![format!("040000 tree {inner}\t..\n")],
        vec![format!("100644 blob {blob}\t.\n")],
        vec![format!("040000 tree {inner}\t.g\u{200c}it\n")],
        // A link, and then a folder of the same name.
        vec![
            format!("120000 blob {link}\ta\n"),
            format!("040000 tree {inner}\ta\n"),
        ],
        vec![format!("120000 blob {link}\t.gitmodules\n")],
    ]
    .into_iter()
    .enumerate()
    {
        let made = tree(&lines);
        if made.is_empty() {
            // This git does not make it.
            continue;
        }
        let commit = scene.git(&["commit-tree", "-m", "Odd", &made]);
        let branch = format!("odd-{number}");
        scene.git(&["update-ref", &format!("refs/heads/{branch}"), commit.trim()]);
        let before = (everything(&scene.inside), everything(&scene.outside));
        let said = add(&scene, ".", &branch).await.expect_err("it is odd");
        assert!(
            said.contains("a path that no worktree may have"),
            "{lines:?}: {said}"
        );
        let others = |found: &(PathBuf, u64)| {
            let path = found.0.strip_prefix(&scene.inside).expect("inside");
            let first = [".worktrees", ".worktrees/.gitignore", ".git/worktrees"];
            !first.iter().any(|name| path == Path::new(name))
        };
        let mut after = (everything(&scene.inside), everything(&scene.outside));
        after.0.retain(others);
        let mut before = before;
        before.0.retain(others);
        assert_eq!(after, before, "{lines:?}");
    }
    // A link that leads out is a link, as with git; who follows it does so within the boundary.
    let made = tree(&[format!("120000 blob {link}\ta\n")]);
    let commit = scene.git(&["commit-tree", "-m", "Link", &made]);
    scene.git(&["update-ref", "refs/heads/link", commit.trim()]);
    let made = add(&scene, ".", "link").await.expect("made");
    let linked = ground(&scene.workspaces(), &format!("{made}/a")).await;
    assert!(linked.is_err_and(|said| said.contains("leads out of the workspace")));
}

/// A process that ended on the way leaves something half made: the next one removes it, and nothing
/// that somebody is still at.
#[tokio::test]
async fn c45_what_a_killed_process_left_is_removed_by_the_next() {
    let scene = Scene::repository();
    add(&scene, ".", "left").await.expect("made");
    let admin = scene.inside.join(".git/worktrees/left");
    fs::write(
        admin.join("locked"),
        "sessionplane is making this worktree\n",
    )
    .expect("written");
    fs::write(scene.inside.join(".worktrees/left/half"), "").expect("written");
    // Somebody is at it.
    let held = fs::File::open(admin.join("locked")).expect("opened");
    held.lock().expect("held");
    add(&scene, ".", "second").await.expect("made");
    assert!(admin.exists());
    // Not only closed: a process that another test just starts may have it, too.
    held.unlock().expect("given up");
    let made = add(&scene, ".", "left").await;
    assert_eq!(made.as_deref(), Ok(".worktrees/left"));
    assert!(!scene.inside.join(".worktrees/left/half").exists());
    assert!(!admin.join("locked").exists());
    // A lock that is not ours is not touched.
    fs::write(admin.join("locked"), "on a disk that is elsewhere").expect("written");
    add(&scene, ".", "third").await.expect("made");
    assert_eq!(add(&scene, ".", "left").await, made);
    assert!(admin.join("locked").exists());
}

/// A directory that is swapped for a link while it is filled: nothing is written outside.
#[tokio::test]
async fn c53_b48_nothing_that_is_swapped_meanwhile_leads_a_worktree_out() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let scene = Scene::repository();
    scene.commit("Two");
    scene.link(&scene.outside, "link");
    fs::create_dir(scene.inside.join(".worktrees")).expect("made");
    let before = everything(&scene.outside);
    let over = Arc::new(AtomicBool::new(false));
    let heard = over.clone();
    let (home, link) = (scene.inside.join(".worktrees"), scene.inside.join("link"));
    let swapper = std::thread::spawn(move || {
        while !heard.load(Ordering::Relaxed) {
            renameat_with(CWD, &home, CWD, &link, RenameFlags::EXCHANGE).expect("swapped");
        }
    });
    let (mut made, mut refused) = (0, 0);
    for number in 0..60 {
        match add(&scene, ".", &format!("turn-{number}")).await {
            Ok(_) => made += 1,
            Err(_) => refused += 1,
        }
    }
    over.store(true, Ordering::Relaxed);
    swapper.join().expect("it ends");
    assert_eq!(everything(&scene.outside), before, "it led out");
    assert!(made > 0 && refused > 0, "{made} made, {refused} refused");
}

#[tokio::test]
async fn c45_many_that_ask_for_one_branch_get_one_worktree() {
    let scene = Scene::repository();
    let workspaces = Arc::new(scene.workspaces());
    let asked: Vec<_> = (0..8)
        .map(|_| {
            let workspaces = workspaces.clone();
            tokio::spawn(async move { workspaces.add_worktree(&place("."), "one").await })
        })
        .collect();
    for made in asked {
        let made = within(made).await.expect("it ends").expect("made");
        assert_eq!(made, place(".worktrees/one"));
    }
    assert_eq!(scene.git(&["worktree", "list"]).lines().count(), 2);
}
