//! Paths and links that lead out.

use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;

use super::*;

#[test]
pub(super) fn c53_b48_no_path_leads_out_by_its_words() {
    let scene = Scene::new();
    let secret = scene.outside.join("secret.txt");
    for path in [
        "../out/secret.txt",
        "folder/../../out/secret.txt",
        "./.././out/secret.txt",
        "folder/../../in/../out/secret.txt",
        "/etc/passwd",
        "//etc/passwd",
        "..",
        "../in/a.txt",
        secret.to_str().expect("text"),
    ] {
        assert_eq!(scene.read(path), Err(Refusal::Outside), "{path}");
        assert_eq!(
            scene.boundary().typed(path),
            Err(Refusal::Outside),
            "{path}"
        );
        let listed = scene.boundary().list(Path::new(path), 9, &running());
        assert_eq!(listed, Err(Refusal::Outside), "{path}");
    }
    assert_eq!(scene.read("folder/../a.txt").as_deref(), Ok("inside"));
}

#[test]
pub(super) fn c53_b48_no_link_leads_out() {
    let scene = Scene::new();
    scene.link(&scene.outside, "absolute-folder");
    scene.link(scene.outside.join("secret.txt"), "absolute-file");
    scene.link("../out", "relative-folder");
    scene.link("../out/secret.txt", "relative-file");
    scene.link("relative-folder", "chain-folder");
    scene.link("chain-folder/secret.txt", "chain-file");
    scene.link("folder/../../out/secret.txt", "through-a-folder");
    scene.link(&scene.inside, "absolute-inside");
    for path in [
        "absolute-folder/secret.txt",
        "absolute-file",
        "relative-folder/secret.txt",
        "relative-file",
        "chain-folder/secret.txt",
        "chain-file",
        "through-a-folder",
        // Where an absolute link leads is not asked.
        "absolute-inside/a.txt",
    ] {
        assert_eq!(scene.read(path), Err(Refusal::Outside), "{path}");
    }
    for folder in ["absolute-folder", "relative-folder", "chain-folder"] {
        let listed = scene.boundary().list(Path::new(folder), 9, &running());
        assert_eq!(listed, Err(Refusal::Outside), "{folder}");
    }
    let expected = ["a.txt", "folder/b.txt"].map(PathBuf::from);
    assert_eq!(walked(&scene.boundary()), expected);
}

/// B48: what a link inside leads to is judged by where it leads.
#[test]
pub(super) fn c53_b48_a_link_that_stays_inside_is_its_target() {
    let scene = Scene::new();
    scene.link("folder", "linked");
    scene.link("../a.txt", "folder/up");
    scene.link("linked/up", "twice");
    assert_eq!(scene.read("linked/b.txt").as_deref(), Ok("deeper inside"));
    assert_eq!(scene.read("twice").as_deref(), Ok("inside"));
    let found = scene.boundary().typed("linked/up").expect("found");
    assert_eq!((found.path, found.kind), ("a.txt".into(), Kind::File));
    let file = scene.boundary().file(Path::new("twice")).expect("opened");
    assert_eq!(file.path(), Path::new("a.txt"));
}

#[test]
pub(super) fn c53_b48_links_to_nothing_and_in_a_circle_are_missing() {
    let scene = Scene::new();
    scene.link("nowhere", "dangling");
    scene.link("around", "circle");
    scene.link("circle", "around");
    scene.link("self", "self");
    for path in ["dangling", "circle", "around", "self", "self/x", "nowhere"] {
        assert_eq!(scene.read(path), Err(Refusal::Missing), "{path}");
    }
}

#[test]
pub(super) fn c53_b48_no_magic_link_of_procfs_leads_out() {
    let scene = Scene::new();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&scene.boundary().as_fd());
    scene.link("/proc/self/root", "root");
    scene.link("/proc/self/cwd", "cwd");
    scene.link(format!("/proc/self/fd/{fd}"), "fd");
    for path in ["root/etc/passwd", "cwd/Cargo.toml", "fd/a.txt"] {
        assert_eq!(scene.read(path), Err(Refusal::Outside), "{path}");
    }
    // A workspace that is procfs itself: the magic links lie inside it, and lead out.
    let proc = Boundary::open(Path::new("/proc/self"), Access::ReadOnly).expect("procfs");
    for path in ["root/etc/passwd", "cwd/Cargo.toml", "exe"] {
        assert!(proc.file(Path::new(path)).is_err(), "{path} was opened");
    }
}

/// What was mounted inside is no part of the folder, whoever mounted it.
#[test]
pub(super) fn c53_b48_nothing_that_is_mounted_inside_is_read() {
    // Mounts cannot be made by everybody; these are there: the root folder with procfs in it.
    let root = Boundary::open(Path::new("/"), Access::ReadOnly).expect("the root");
    assert_eq!(
        read(&root, "proc/self/status"),
        Err(Refusal::Mounted),
        "procfs was entered"
    );
    let listed = root.list(Path::new("proc"), 9, &running());
    assert_eq!(listed, Err(Refusal::Mounted));
}

/// The same where a folder from outside is bound into the workspace, in a namespace of its own: run
/// by hand there, so that no other process sees it. Where namespaces are not allowed, the test above
/// has shown the rule.
#[test]
fn c53_b48_a_bound_folder_is_not_read() {
    let scene = Scene::new();
    fs::create_dir(scene.inside.join("bound")).expect("made");
    let status = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg("mount --bind \"$2\" \"$1/bound\" && exec \"$0\" --exact --nocapture \"$3\"")
        .arg(std::env::current_exe().expect("this test"))
        .arg(&scene.inside)
        .arg(&scene.outside)
        .arg("adapters::boundary::tests::escapes::looks_into_what_is_bound")
        .env("SESSIONPLANE_TEST_BOUND", &scene.inside)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .output();
    match status {
        Ok(done) if done.status.success() => {
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(said.contains("1 passed"), "{said}");
        }
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr);
            let cannot = said.contains("unshare") || said.contains("mount");
            assert!(cannot, "{said}{}", String::from_utf8_lossy(&done.stdout));
        }
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
    }
}

/// Does its work only where the test above has bound something.
#[test]
fn looks_into_what_is_bound() {
    let Some(inside) = std::env::var_os("SESSIONPLANE_TEST_BOUND") else {
        return;
    };
    let seen = fs::read_to_string(Path::new(&inside).join("bound/secret.txt"));
    assert_eq!(seen.expect("it is bound"), SECRET);
    let boundary = Boundary::open(Path::new(&inside), Access::ReadOnly).expect("a folder");
    let refused = read(&boundary, "bound/secret.txt");
    assert_eq!(refused, Err(Refusal::Mounted));
    let listed = boundary.list(Path::new("bound"), 9, &running());
    assert_eq!(listed, Err(Refusal::Mounted));
    assert!(
        !walked(&boundary)
            .iter()
            .any(|path| path.starts_with("bound"))
    );
}

/// What is promised of a hard link, and what cannot be: it is the file itself.
#[test]
fn c53_b48_a_hard_link_is_the_file_and_hides_nothing_that_is_hidden() {
    let scene = Scene::new();
    fs::hard_link(scene.outside.join("secret.txt"), scene.inside.join("hard")).expect("linked");
    let names = fs::metadata(scene.inside.join("hard"))
        .expect("there")
        .nlink();
    assert_eq!(names, 2);
    assert_eq!(scene.read("hard").as_deref(), Ok(SECRET));
    // A folder has one name only, so that no hard link leads into one that is hidden.
    let made = fs::hard_link(&scene.outside, scene.inside.join("hard-folder"));
    assert!(made.is_err(), "a folder was given a second name");
}

/// B48, a case twin: judged by what it is, whatever it is called. Where case means something a twin
/// is another file; where it does not, it is the same one by another name, as a link is here.
#[test]
pub(super) fn c53_b48_what_is_hidden_is_hidden_under_every_name() {
    let scene = Scene::new();
    scene.write("Data/token", SECRET);
    scene.write("data/token", "another");
    scene.link("Data", "DATA");
    scene.link("Data/token", "link");
    let boundary = scene.boundary().hiding(&scene.inside.join("Data"));
    let boundary = boundary.expect("a folder");
    for path in [
        "Data/token",
        "./Data/token",
        "folder/../Data/token",
        "DATA/token",
        "link",
    ] {
        assert_eq!(read(&boundary, path), Err(Refusal::Hidden), "{path}");
    }
    assert_eq!(boundary.typed("DATA"), Err(Refusal::Hidden));
    let listed = boundary.list(Path::new("Data"), 9, &running());
    assert_eq!(listed, Err(Refusal::Hidden));
    let top = boundary.list(Path::new(""), 9, &running()).expect("listed");
    assert!(!top.entries.iter().any(|entry| entry.name == "Data"));
    let inside = ["a.txt", "data/token", "folder/b.txt"].map(PathBuf::from);
    assert_eq!(walked(&boundary), inside);
    assert_eq!(read(&boundary, "data/token").as_deref(), Ok("another"));
    // By what it is: a rename shows nothing.
    fs::rename(scene.inside.join("Data"), scene.inside.join("renamed")).expect("renamed");
    assert_eq!(read(&boundary, "renamed/token"), Err(Refusal::Hidden));
    assert!(scene.boundary().hiding(Path::new("/nowhere")).is_err());
}

#[test]
fn c53_what_a_person_types_is_found_and_no_way_out() {
    let scene = Scene::new();
    let boundary = scene.boundary();
    let absolute = scene.inside.join("folder/b.txt");
    for text in [
        "folder/b.txt",
        "./folder/b.txt",
        " folder//b.txt ",
        absolute.to_str().expect("text"),
    ] {
        let found = boundary.typed(text).expect("found");
        assert_eq!(found.path, Path::new("folder/b.txt"), "{text}");
        assert_eq!(found.kind, Kind::File);
    }
    for text in ["", ".", "./", "folder/.."] {
        let found = boundary.typed(text).expect("found");
        assert_eq!((found.path, found.kind), (PathBuf::new(), Kind::Folder));
    }
    assert_eq!(boundary.typed("A.TXT"), Err(Refusal::Missing));
    assert_eq!(boundary.typed("a.txt/x"), Err(Refusal::NotAFolder));
    let beside = format!("{}-beside/x", scene.inside.display());
    assert_eq!(boundary.typed(&beside), Err(Refusal::Outside));
}
