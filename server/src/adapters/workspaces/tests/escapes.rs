//! Places that are not there, or lead out: B48 as the boundary's own tests have it, for what a session
//! is told to work in.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::*;
use crate::adapters::boundary::Refusal;

/// A place is refused in these words, and whoever opens it is told the same.
async fn refused(scene: &Scene, directory: &str, problem: &str) {
    let said = ground(&scene.workspaces(), directory).await;
    let said = said.expect_err(directory);
    let expected = format!("the directory {directory:?} of workspace main {problem}");
    assert!(said.starts_with(&expected), "{said}");
    let beneath = scene.grounds(Access::ReadOnly).beneath(&place(directory));
    let beneath = beneath.map(|_| ()).map_err(|error| error.to_string());
    assert_eq!(beneath, Err(said));
}

/// One workspace.
fn main_of(boundary: Boundary) -> Grounds {
    let main = WorkspaceName::parse("main").expect("a name");
    Grounds::new([(main, boundary)])
}

#[tokio::test]
async fn c45_c53_a_place_is_found_by_its_names() {
    let scene = Scene::new();
    let workspaces = scene.workspaces();
    for (asked, real) in [
        (".", "."),
        ("crates", "crates"),
        ("./crates//net/", "crates/net"),
    ] {
        assert_eq!(ground(&workspaces, asked).await.as_deref(), Ok(real));
    }
    let spot = scene
        .grounds(Access::ReadOnly)
        .beneath(&place("crates/net"));
    let spot = spot.expect("found");
    assert_eq!(spot.boundary.path(), scene.inside.join("crates/net"));
    assert_eq!(spot.boundary.access(), Access::ReadOnly);
    assert!(spot.boundary.file(Path::new("a.txt")).is_ok());
    // What lies beside it is no part of it any more.
    for out in ["../net/a.txt", "../../crates/net/a.txt", "/etc/passwd"] {
        let refused = spot.boundary.file(Path::new(out)).map(|_| ());
        assert_eq!(refused, Err(Refusal::Outside), "{out}");
    }
    let nowhere = Place {
        workspace: WorkspaceName::parse("mian").expect("a name"),
        ..place(".")
    };
    let said = workspaces
        .ground(&nowhere)
        .await
        .expect_err("there is none");
    assert_eq!(
        said.to_string(),
        "no workspace mian is configured; configured are: main, other"
    );
}

/// C45: a directory that is missing or was moved is refused by its name, and no other takes its place.
#[tokio::test]
async fn c45_b45_a_directory_that_is_gone_is_named_and_never_replaced() {
    let scene = Scene::new();
    scene.write("file", "no directory");
    refused(&scene, "nowhere", "is not there").await;
    refused(&scene, "crates/nowhere/deeper", "is not there").await;
    refused(&scene, "file", "is no directory").await;
    refused(&scene, "file/deeper", "is no directory").await;
    fs::rename(scene.inside.join("crates"), scene.inside.join("moved")).expect("moved");
    refused(&scene, "crates/net", "is not there").await;
}

/// What was opened stays what it was; what takes its name later is found by its name, and is another.
#[tokio::test]
async fn c53_b48_a_directory_that_is_made_anew_is_another() {
    let scene = Scene::new();
    let grounds = scene.grounds(Access::ReadOnly);
    let before = grounds.beneath(&place("crates/net")).expect("found");
    fs::remove_dir_all(scene.inside.join("crates")).expect("removed");
    scene.write("crates/net/a.txt", "another");
    assert_eq!(before.boundary.identity(), Err(Refusal::Gone));
    let after = grounds.beneath(&place("crates/net")).expect("found");
    assert!(after.boundary.file(Path::new("a.txt")).is_ok());
    // The workspace itself is the one that was opened at the start.
    let swapped = scene.workspaces();
    let away = scene.outside.join("away");
    fs::rename(&scene.inside, &away).expect("renamed");
    symlink(&scene.outside, &scene.inside).expect("linked");
    let kept = ground(&swapped, "secrets").await.expect_err("it led out");
    assert!(kept.contains("is not there"), "{kept}");
    assert!(ground(&swapped, "crates/net").await.is_ok());
    fs::remove_file(&scene.inside).expect("removed");
    fs::remove_dir_all(&away).expect("removed");
    scene.write("crates/net/a.txt", "another");
    for directory in [".", "crates/net"] {
        let gone = ground(&swapped, directory).await.expect_err("it is gone");
        let why = "the workspace was removed since the server started";
        assert!(gone.contains(why), "{gone}");
    }
}

#[tokio::test]
async fn c53_b48_a_place_behind_links_is_judged_by_where_they_lead() {
    let scene = Scene::new();
    scene.link("crates", "linked");
    scene.link("../linked/net", "crates/up");
    scene.link("/etc", "absolute");
    scene.link(&scene.inside, "itself");
    scene.link("../out", "beside");
    scene.link("crates/../../out/secrets", "through");
    scene.link("beside/secrets", "chain");
    scene.link("../other", "other");
    scene.link("around", "circle");
    scene.link("circle", "around");
    scene.link("/proc/self/cwd", "magic");
    let workspaces = scene.workspaces();
    for asked in ["linked/net", "crates/up", "linked/up"] {
        let found = ground(&workspaces, asked).await;
        assert_eq!(found.as_deref(), Ok("crates/net"), "{asked}");
    }
    for out in [
        "absolute",
        "itself/crates",
        "beside",
        "beside/secrets",
        "through",
        "chain",
        "other",
        "magic",
    ] {
        refused(&scene, out, "leads out of the workspace").await;
    }
    refused(&scene, "circle", "is not there").await;
}

/// Where case means nothing, a twin is the same directory and told by its one name; where it means
/// something, it is a directory of its own.
#[tokio::test]
async fn c53_b48_a_case_twin_is_judged_by_what_it_is() {
    let scene = Scene::new();
    if scene.inside.join("CRATES").exists() {
        let twin = ground(&scene.workspaces(), "CRATES/net").await;
        assert_eq!(twin.as_deref(), Ok("crates/net"));
    } else {
        refused(&scene, "CRATES/net", "is not there").await;
        scene.write("Crates/net/b.txt", "a directory of its own");
        let own = ground(&scene.workspaces(), "Crates/net").await;
        assert_eq!(own.as_deref(), Ok("Crates/net"));
    }
}

#[tokio::test]
async fn c53_b48_a_pipe_a_socket_a_device_and_a_hard_link_are_no_places() {
    let scene = Scene::new();
    let pipe = scene.inside.join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let _socket = UnixListener::bind(scene.inside.join("socket")).expect("a socket");
    fs::write(scene.outside.join("secret"), "").expect("written");
    let hard = scene.inside.join("hard");
    fs::hard_link(scene.outside.join("secret"), &hard).expect("linked");
    assert_eq!(fs::metadata(hard).expect("there").nlink(), 2);
    for none in ["pipe", "socket", "hard", "pipe/deeper"] {
        refused(&scene, none, "is no directory").await;
    }
    let devices = Boundary::open(Path::new("/dev"), Access::ReadOnly).expect("devices");
    let device = main_of(devices).beneath(&place("null")).map(|_| ());
    let device = device.expect_err("a device").to_string();
    assert!(device.ends_with("is no directory"), "{device}");
}

/// Mounts cannot be made by everybody; these are there: the root folder with procfs in it.
#[tokio::test]
async fn c53_b48_what_is_mounted_is_no_place() {
    let root = Boundary::open(Path::new("/"), Access::ReadOnly).expect("the root");
    let workspaces = HostWorkspaces::new(main_of(root));
    for mounted in ["proc", "proc/self", "proc/self/cwd"] {
        let said = ground(&workspaces, mounted).await.expect_err(mounted);
        assert!(said.contains("lies on another file system"), "{said}");
    }
}

/// The same with a folder from outside that is bound into the workspace, in a namespace of its own.
#[test]
fn c53_b48_a_bound_folder_is_no_place() {
    let scene = Scene::new();
    fs::create_dir(scene.inside.join("bound")).expect("made");
    let done = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg("mount --bind \"$2\" \"$1/bound\" && exec \"$0\" --exact --nocapture \"$3\"")
        .arg(std::env::current_exe().expect("this test"))
        .arg(&scene.inside)
        .arg(&scene.outside)
        .arg("adapters::workspaces::tests::escapes::looks_for_a_place_that_is_bound")
        .env("SESSIONPLANE_TEST_BOUND_PLACE", &scene.inside)
        .output();
    match done {
        Ok(done) if done.status.success() => {
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(said.contains("1 passed"), "{said}");
        }
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr);
            let cannot = said.contains("unshare:") || said.contains("mount:");
            assert!(cannot, "{said}{}", String::from_utf8_lossy(&done.stdout));
        }
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
    }
}

/// Does its work only where the test above has bound something.
#[test]
fn looks_for_a_place_that_is_bound() {
    let Some(inside) = std::env::var_os("SESSIONPLANE_TEST_BOUND_PLACE") else {
        return;
    };
    let inside = Path::new(&inside);
    assert!(inside.join("bound/secrets").is_dir(), "it is bound");
    let boundary = Boundary::open(inside, Access::ReadOnly).expect("a folder");
    let grounds = main_of(boundary);
    for bound in ["bound", "bound/secrets"] {
        let said = grounds.beneath(&place(bound)).expect_err(bound).to_string();
        assert!(said.contains("lies on another file system"), "{said}");
    }
}

#[tokio::test]
async fn c53_b48_what_is_hidden_is_no_place_under_any_name() {
    let scene = Scene::new();
    scene.write("data/store/log", "the server's own");
    scene.link("data/store", "elsewhere");
    let boundary = Boundary::open(&scene.inside, Access::ReadOnly).expect("a folder");
    let boundary = boundary.hiding(&scene.inside.join("data")).expect("hidden");
    let grounds = main_of(boundary);
    for hidden in ["data", "data/store", "data/nowhere", "elsewhere"] {
        let said = grounds
            .beneath(&place(hidden))
            .expect_err(hidden)
            .to_string();
        assert!(said.ends_with("is kept from agents"), "{said}");
    }
    // And stays so for who works beneath: it is hidden by what it is.
    let spot = grounds.beneath(&place("crates")).expect("found");
    let moved = scene.inside.join("crates/data");
    fs::rename(scene.inside.join("data"), moved).expect("moved");
    let read = spot.boundary.file(Path::new("data/store/log")).map(|_| ());
    assert_eq!(read, Err(Refusal::Hidden));
}

/// A directory that only others may enter. Who may enter everything gives that up first, here.
#[test]
fn c53_b48_a_directory_that_cannot_be_entered_is_refused() {
    let scene = Scene::new();
    for (name, mode) in [("closed", 0o000), ("unlit", 0o444)] {
        let path = scene.inside.join(name);
        fs::create_dir(&path).expect("made");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("closed");
    }
    let grounds = scene.grounds(Access::ReadOnly);
    let asked = std::thread::spawn(move || {
        let mut sets = capabilities(None).expect("told");
        let all = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
        sets.effective.remove(all);
        set_capabilities(None, sets).expect("given up");
        ["closed", "unlit"].map(|name| {
            let found = grounds.beneath(&place(name)).map(|_| ());
            found.map_err(|error| error.to_string())
        })
    });
    for said in asked.join().expect("it ends") {
        let said = said.expect_err("it was entered");
        let why = "cannot be entered: Permission denied";
        assert!(said.contains(why), "{said}");
    }
}

#[tokio::test]
async fn c53_b48_a_name_that_cannot_be_kept_is_refused() {
    let scene = Scene::new();
    scene.write("two\nlines/x", "");
    scene.link("two\nlines", "plain");
    refused(
        &scene,
        "plain",
        "is a link to one whose name cannot be kept",
    )
    .await;
    let none = "cannot be the name of a directory";
    refused(&scene, &"x".repeat(300), none).await;
    refused(&scene, &vec!["x"; 400].join("/"), none).await;
    scene.write("b\u{fc}cher/\u{1f600}/x", "");
    let found = ground(&scene.workspaces(), "b\u{fc}cher/\u{1f600}").await;
    assert_eq!(found.as_deref(), Ok("b\u{fc}cher/\u{1f600}"));
}

/// What is swapped between the check and the use: whatever was opened lies inside.
#[test]
fn c53_b48_a_directory_that_is_swapped_for_a_link_never_leads_out() {
    let scene = Scene::new();
    scene.write("turn/secrets/harmless", "");
    scene.link(&scene.outside, "link");
    let (turn, link) = (scene.inside.join("turn"), scene.inside.join("link"));
    let grounds = scene.grounds(Access::ReadOnly);
    let over = Arc::new(AtomicBool::new(false));
    let heard = over.clone();
    let swapper = std::thread::spawn(move || {
        while !heard.load(Ordering::Relaxed) {
            renameat_with(CWD, &turn, CWD, &link, RenameFlags::EXCHANGE).expect("swapped");
        }
    });
    let (mut found, mut refused) = (0, 0);
    for _ in 0..20_000 {
        match grounds.beneath(&place("turn/secrets")) {
            Ok(spot) => {
                let listed = spot
                    .boundary
                    .list(Path::new(""), 9, &AtomicBool::new(false));
                let held = listed.expect("listed").entries;
                let is_inside = held.iter().any(|entry| entry.name == "harmless");
                assert!(is_inside, "it led out");
                // What it was called while it was looked at.
                let called = ["turn/secrets", "link/secrets"];
                assert!(called.contains(&spot.place.directory.as_str()));
                found += 1;
            }
            Err(_) => refused += 1,
        }
        if found > 300 && refused > 300 {
            break;
        }
    }
    over.store(true, Ordering::Relaxed);
    swapper.join().expect("it ends");
    assert!(found > 0 && refused > 0, "{found} found, {refused} refused");
}

/// As with a mount that does not answer: who looks stays where it is, and all others wait behind.
#[tokio::test(start_paused = true)]
async fn c53_who_looks_at_a_place_that_does_not_answer_is_told_so_in_time() {
    let scene = Scene::new();
    let workspaces = scene.workspaces();
    let all = u32::try_from(HostWorkspaces::LOOKING).expect("few");
    let main = &workspaces.turns[&place(".").workspace];
    let stalled = main.looking.clone().acquire_many_owned(all).await;
    let said = ground(&workspaces, "crates").await.expect_err("it waits");
    let expected = "the directory \"crates\" of workspace main was not looked up within 10 s";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(workspaces.checkout(&place("crates")).await, None);
    // Another workspace has nothing to do with that.
    let other = Place {
        workspace: WorkspaceName::parse("other").expect("a name"),
        ..place(".")
    };
    assert_eq!(workspaces.ground(&other).await, Ok(other));
    drop(stalled);
}
