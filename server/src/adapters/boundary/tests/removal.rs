//! Folders that somebody else filled are removed, whatever is in them.

use std::os::unix::fs::PermissionsExt as _;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::*;

/// Folders within each other, deeper than any path leads and any stack goes.
const DEEP: usize = 20_000;

fn nest(at: &Path, depth: usize) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = openat(CWD, at, flags, Mode::empty()).expect("opened");
    for _ in 0..depth {
        mkdirat(&folder, "d", Mode::RWXU).expect("made");
        folder = openat(&folder, "d", flags, Mode::empty()).expect("opened");
    }
}

fn removed(scene: &Scene, name: &str) -> Result<(), Refusal> {
    let folder = fs::File::open(&scene.inside).expect("opened");
    remove_all(&folder, name.as_ref())
}

#[test]
fn c42_c57_a_folder_of_any_depth_is_removed_and_takes_no_server_down() {
    let scene = Scene::new();
    let full = scene.inside.join("full");
    fs::create_dir(&full).expect("made");
    nest(&full, DEEP);
    // Names that are needed on the way are taken.
    for (number, name) in ["1", "2", "3/x"].iter().enumerate() {
        scene.write(&format!("full/{name}/{number}"), "taken");
    }
    scene.write("full/4", "a file");
    scene.write("full/d/also", "a file beside a folder");
    assert_eq!(removed(&scene, "full"), Ok(()));
    assert!(!full.exists());
    let boundary = Boundary::open(&scene.inside, Access::Writable).expect("a folder");
    fs::create_dir(&full).expect("made");
    nest(&full, DEEP);
    let inside = boundary.work_in(Path::new("")).expect("entered");
    assert_eq!(inside.remove_all("full".as_ref()), Ok(()));
    assert!(!full.exists());
}

/// Each time so many names at most, whatever they are: what is left is gone on with.
#[test]
fn c60_a_folder_is_removed_a_part_at_a_time() {
    let scene = Scene::new();
    for number in 0..20 {
        scene.write(&format!("full/a/b/{number}/c"), "x");
    }
    let folder = fs::File::open(&scene.inside).expect("opened");
    let mut parts = 1;
    while !remove_some(&folder, "full".as_ref(), 5).expect("removed") {
        assert!(scene.inside.join("full").exists());
        parts += 1;
    }
    assert!((5..100).contains(&parts), "{parts}");
    assert!(!scene.inside.join("full").exists());
}

#[test]
fn c53_b48_a_removal_follows_no_link() {
    let scene = Scene::new();
    scene.write("full/a/b/c", "inside");
    scene.link(&scene.outside, "full/out");
    scene.link(&scene.outside, "full/a/out");
    scene.link(scene.outside.join("secret.txt"), "full/a/b/out");
    scene.link(&scene.outside, "itself");
    assert!(removed(&scene, "itself").is_err());
    assert_eq!(removed(&scene, "full"), Ok(()));
    assert_eq!(removed(&scene, "full"), Err(Refusal::Missing));
    let kept = fs::read_to_string(scene.outside.join("secret.txt"));
    assert_eq!(kept.expect("kept"), SECRET);
    assert!(scene.inside.join("itself").is_symlink());
}

/// Package managers close what they fetched, and nobody opens it again.
#[test]
fn c42_folders_that_their_maker_closed_are_removed() {
    let scene = Scene::new();
    for name in ["full/read/only/x", "full/none/x", "full/a/deep/none/x"] {
        scene.write(name, "kept");
    }
    for (name, mode) in [
        ("read/only", 0o555),
        ("read", 0o500),
        ("none", 0),
        ("a/deep/none", 0),
        ("a/deep", 0o100),
        ("", 0o500),
    ] {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(scene.inside.join("full").join(name), mode).expect("closed");
    }
    // On a thread that the root user's rights are taken from.
    let asked = std::thread::spawn(move || {
        let mut sets = capabilities(None).expect("told");
        let all = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
        sets.effective.remove(all);
        set_capabilities(None, sets).expect("given up");
        (removed(&scene, "full"), scene.inside.join("full").exists())
    });
    assert_eq!(asked.join().expect("it ends"), (Ok(()), false));
}
