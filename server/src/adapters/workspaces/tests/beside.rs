//! What of a repository is given to who works in a worktree of it, and whose word that goes by.

use super::worktrees::add;
use super::*;

/// The folders that git needs beside a worktree, by their paths, and whether each may be written.
fn beside(scene: &Scene, access: Access, at: &str) -> Vec<(String, bool)> {
    let workspace = Boundary::open(&scene.inside, access).expect("a folder");
    let folders = git::beside(&workspace, Path::new(at), &AtomicBool::new(false));
    let told = folders.iter().map(|folder| {
        let path = folder.path().strip_prefix(&scene.inside).expect("inside");
        let may_write = folder.access() == Access::Writable;
        (path.to_str().expect("text").to_owned(), may_write)
    });
    told.collect()
}

#[tokio::test]
async fn c45_c53_git_s_data_are_given_to_who_works_in_a_worktree_and_no_more_of_them() {
    let scene = Scene::repository();
    let one = add(&scene, ".", "one").await.expect("made");
    add(&scene, ".", "two").await.expect("made");
    let expected = |writable: bool| {
        [
            (".git", false),
            (".git/worktrees/one", writable),
            (".git/objects", writable),
            (".git/refs", writable),
            (".git/logs", writable),
        ]
        .map(|(path, written)| (path.to_owned(), written))
    };
    assert_eq!(beside(&scene, Access::Writable, &one), expected(true));
    assert_eq!(beside(&scene, Access::ReadOnly, &one), expected(false));
    // Of the whole repository nothing lies beside; a part of a tree is not the tree.
    scene.write(".worktrees/one/part/x", "");
    for at in [
        "",
        "crates/net",
        ".worktrees/one/part",
        ".worktrees",
        "nowhere",
    ] {
        assert_eq!(beside(&scene, Access::Writable, at), [], "{at:?}");
    }
}

/// What whoever works there can write is not believed: its `.git`, and its record in the repository.
#[tokio::test]
async fn c53_b48_no_word_of_a_worktree_leads_to_another_repository_s_data() {
    let scene = Scene::repository();
    for branch in ["one", "two"] {
        add(&scene, ".", branch).await.expect("made");
    }
    fs::create_dir(scene.inside.join("other")).expect("made");
    git(&scene.inside.join("other"), &["init", "--quiet"]);
    scene.write("forged/objects/x", "");
    scene.write("forged/refs/x", "");
    scene.write("forged/HEAD", "ref: refs/heads/x\n");
    let (pointer, record) = (".worktrees/one/.git", ".git/worktrees/one");
    let read = |path: &str| fs::read_to_string(scene.inside.join(path)).expect("read");
    let kept = (read(pointer), read(&format!("{record}/commondir")));
    let none = |why: &str| {
        assert_eq!(
            beside(&scene, Access::Writable, ".worktrees/one"),
            [],
            "{why}"
        );
    };
    for to in [
        "../../.git/worktrees/two",
        "../../.git",
        "../../other/.git",
        "../../forged",
        "../../../out",
        "/etc",
    ] {
        scene.write(pointer, &format!("gitdir: {to}\n"));
        none(to);
    }
    scene.write(pointer, &kept.0);
    for to in [
        "../../../other/.git",
        "../../../forged",
        "../../../../out",
        ".",
    ] {
        scene.write(&format!("{record}/commondir"), &format!("{to}\n"));
        none(to);
    }
    scene.write(&format!("{record}/commondir"), &kept.1);
    assert_eq!(beside(&scene, Access::Writable, ".worktrees/one").len(), 5);
    // A link in the place of what may be written.
    let refs = scene.inside.join(".git/refs");
    fs::rename(&refs, scene.inside.join(".git/away")).expect("moved");
    scene.link("../other", ".git/refs");
    none("a link");
}
