//! The walk: what it tells, and what bounds it.

use std::ffi::OsStr;

use super::*;

#[test]
fn what_git_keeps_and_what_is_ignored_is_left_out() {
    let scene = Scene::new();
    for (path, text) in [
        (".gitignore", "*.log\n/build/\n!keep.log\n# no rule\n"),
        ("x.log", ""),
        ("keep.log", ""),
        ("build/made", ""),
        ("folder/build/written", ""),
        ("folder/.gitignore", "*.txt\n!b.txt\n"),
        ("folder/c.txt", ""),
        ("folder/d.log", ""),
        (".git/config", ""),
        (".git/info/exclude", "mine\n"),
        ("mine", ""),
        ("folder/.GIT", ""),
    ] {
        scene.write(path, text);
    }
    let expected = [
        ".gitignore",
        "a.txt",
        "folder/.gitignore",
        "folder/b.txt",
        "folder/build/written",
        "keep.log",
    ];
    assert_eq!(walked(&scene.boundary()), expected.map(PathBuf::from));
}

#[test]
fn rules_that_are_hostile_do_no_harm() {
    let scene = Scene::new();
    scene.write(
        ".gitignore",
        &"*a*a*a*a*a*a*a*b[\n{x,{y\n\\\n**/**/**/q\n".repeat(400),
    );
    scene.write("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "");
    scene.write("big/.gitignore", &"x\n".repeat(100_000));
    scene.write("big/x", "");
    assert!(walked(&scene.boundary()).contains(&PathBuf::from("a.txt")));
    assert!(walked(&scene.boundary()).contains(&PathBuf::from("big/x")));
    let outside = scene.outside.join("rules");
    fs::write(&outside, "*\n").expect("written");
    scene.link(&outside, "folder/.gitignore");
    assert!(walked(&scene.boundary()).contains(&PathBuf::from("folder/b.txt")));
}

/// What is cut is told as cut, and a folder that just fits is not.
#[test]
fn a_walk_says_when_there_is_more() {
    let scene = Scene::new();
    scene.write("folder/two/three/c.txt", "");
    let fits = Limits {
        files: 3,
        folders: 4,
        entries: 6,
        depth: 3,
    };
    for (limits, files, cut) in [
        (fits, 3..=3, false),
        (Limits { files: 2, ..fits }, 2..=2, true),
        (Limits { folders: 3, ..fits }, 2..=2, true),
        (Limits { entries: 5, ..fits }, 2..=2, true),
        (Limits { depth: 2, ..fits }, 2..=2, true),
    ] {
        let walked = scene.boundary().walk(limits, &Everything, &running());
        let walked = walked.expect("a walk");
        assert_eq!(walked.cut, cut, "{walked:?}");
        assert!(files.contains(&walked.files.len()), "{walked:?}");
        // What is near is told before what is far.
        assert!(
            walked
                .files
                .iter()
                .any(|file| file.path == Path::new("a.txt"))
        );
    }
}

#[test]
fn what_nobody_waits_for_is_not_walked() {
    let scene = Scene::new();
    let stopped = AtomicBool::new(true);
    let walked = scene.boundary().walk(WIDE, &Everything, &stopped);
    let walked = walked.expect("a walk");
    assert_eq!((walked.files.len(), walked.cut), (0, true));
    let listed = scene.boundary().list(Path::new(""), 9, &stopped);
    assert_eq!(listed, Err(Refusal::Stopped));
}

struct Only(&'static str);

impl Taste for Only {
    fn enters(&self, name: &OsStr) -> bool {
        name == "folder"
    }

    fn takes(&self, name: &OsStr) -> bool {
        name == self.0
    }
}

#[test]
fn a_walk_tells_what_is_wanted() {
    let scene = Scene::new();
    scene.write("other/b.txt", "");
    let walked = scene.boundary().walk(WIDE, &Only("b.txt"), &running());
    let files = walked.expect("a walk").files;
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].path, Path::new("folder/b.txt"));
    assert_eq!(files[0].bytes, 13);
}

#[test]
fn a_listing_is_bounded_and_says_so() {
    let scene = Scene::new();
    let all = scene.boundary().list(Path::new(""), 2, &running());
    let all = all.expect("listed");
    assert_eq!((all.entries.len(), all.cut), (2, false));
    assert_eq!(all.entries[0].kind, Kind::File);
    assert_eq!(all.entries[0].bytes, 6);
    assert_eq!(all.entries[1].kind, Kind::Folder);
    let some = scene.boundary().list(Path::new(""), 1, &running());
    assert!(some.expect("listed").cut);
    let refused = scene.boundary().list(Path::new("a.txt"), 1, &running());
    assert_eq!(refused, Err(Refusal::NotAFolder));
}
