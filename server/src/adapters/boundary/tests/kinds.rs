//! What is no regular file, odd names, and the folder itself.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

/// Fails where opening it would wait: nothing here takes long.
fn at_once<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = sync_channel(1);
    std::thread::spawn(move || done.send(work()));
    let result = result.recv_timeout(Duration::from_secs(20));
    result.expect("it waits for something")
}

#[test]
fn c53_b48_a_pipe_a_socket_and_a_folder_are_no_files_and_keep_nobody_waiting() {
    let scene = Scene::new();
    let pipe = scene.inside.join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let _socket = UnixListener::bind(scene.inside.join("socket")).expect("a socket");
    scene.link("pipe", "to-a-pipe");
    for (path, kind) in [
        ("pipe", "a pipe"),
        ("to-a-pipe", "a pipe"),
        ("socket", "a socket"),
        ("folder", "a folder"),
        ("", "a folder"),
    ] {
        let boundary = scene.boundary();
        let refused = at_once(move || read(&boundary, path));
        assert_eq!(refused, Err(Refusal::NotAFile(kind)), "{path}");
    }
    // Also where the pipe came between the look and the opening.
    let boundary = scene.boundary();
    let raw = at_once(move || step::opened_at_once(&boundary, OsStr::new("pipe")));
    assert!(raw.is_ok(), "{raw:?}");
    let expected = ["a.txt", "folder/b.txt"].map(PathBuf::from);
    assert_eq!(walked(&scene.boundary()), expected);
}

/// Devices cannot be made by everybody; these are there.
#[test]
fn c53_b48_a_device_is_no_file() {
    let devices = Boundary::open(Path::new("/dev"), Access::ReadOnly).expect("devices");
    for name in ["null", "zero", "tty", "random"] {
        if devices.typed(name).is_ok() {
            let refused = read(&devices, name);
            assert_eq!(refused, Err(Refusal::NotAFile("a device")), "{name}");
        }
    }
    assert!(!walked(&devices).contains(&PathBuf::from("zero")));
}

#[test]
fn c53_names_that_are_no_text_are_files_like_others() {
    let scene = Scene::new();
    let names: [&[u8]; 5] = [
        b"latin-\xe9",
        b"two\nlines",
        b"\x1b[31mred\x07",
        b"-rf",
        "\u{202e}txt.exe".as_bytes(),
    ];
    for name in names {
        fs::write(scene.inside.join(OsStr::from_bytes(name)), "odd").expect("written");
    }
    for name in names {
        let path = Path::new(OsStr::from_bytes(name));
        assert_eq!(scene.read(path).as_deref(), Ok("odd"), "{path:?}");
        assert!(walked(&scene.boundary()).contains(&path.to_owned()));
    }
    let listed = scene.boundary().list(Path::new(""), 99, &running());
    let listed: Vec<OsString> = listed
        .expect("listed")
        .entries
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(listed.len(), 7);
    assert!(listed.is_sorted());
}

#[test]
fn c53_names_that_no_file_can_have_are_refused() {
    let scene = Scene::new();
    for path in [
        "x".repeat(300),
        "x/".repeat(5_000),
        "a.txt\0.png".to_owned(),
        "./".repeat(3_000) + "a.txt",
        "x/".repeat(300),
    ] {
        let refused = scene.read(&path);
        assert_eq!(refused, Err(Refusal::NoName), "{} bytes", path.len());
    }
    // The longest that there can be is a file like others.
    let long = "x".repeat(255);
    scene.write(&long, "long");
    assert_eq!(scene.read(&long).as_deref(), Ok("long"));
}

#[test]
fn c53_a_file_is_read_within_bounds() {
    let scene = Scene::new();
    let boundary = scene.boundary();
    let file = |path: &str| boundary.file(Path::new(path)).expect("opened");
    scene.write("ten", "0123456789");
    assert_eq!(file("ten").bytes(), 10);
    assert_eq!(
        file("ten").whole(10, &running()).map(|all| all.len()),
        Ok(10)
    );
    let refused = file("ten").whole(9, &running());
    assert_eq!(refused, Err(Refusal::TooLarge { most: 9 }));
    assert_eq!(file("ten").head(4, &running()).as_deref(), Ok(&b"0123"[..]));
    let mut buffer = [0; 4];
    assert_eq!(file("ten").read_at(&mut buffer, 8), Ok(2));
    assert_eq!(&buffer[..2], b"89");
    // It grew since it was opened.
    let growing = file("ten");
    scene.write("ten", "0123456789 and more");
    let refused = growing.whole(10, &running());
    assert_eq!(refused, Err(Refusal::TooLarge { most: 10 }));
    // Ten gibibytes that nobody wrote cost their beginning only.
    let sparse = fs::File::create(scene.inside.join("sparse")).expect("made");
    sparse.set_len(10 << 30).expect("sparse");
    let refused = file("sparse").whole(1 << 20, &running());
    assert_eq!(refused, Err(Refusal::TooLarge { most: 1 << 20 }));
    let head = file("sparse").head(4096, &running()).expect("read");
    assert_eq!(head.len(), 4096);
    let stopped = AtomicBool::new(true);
    assert_eq!(file("ten").head(4, &stopped), Err(Refusal::Stopped));
}

#[test]
fn c53_the_folder_is_the_one_that_was_opened() {
    let scene = Scene::new();
    let boundary = scene.boundary();
    let before = boundary.identity();
    let away = scene.inside.with_file_name("away");
    fs::rename(&scene.inside, &away).expect("renamed");
    symlink(&scene.outside, &scene.inside).expect("linked");
    assert_eq!(read(&boundary, "a.txt").as_deref(), Ok("inside"));
    assert_eq!(read(&boundary, "secret.txt"), Err(Refusal::Missing));
    assert_eq!(boundary.identity(), before);
    fs::remove_dir_all(&away).expect("removed");
    assert_eq!(boundary.identity(), Err(Refusal::Gone));
    assert_eq!(read(&boundary, "a.txt"), Err(Refusal::Gone));
    let listed = boundary.list(Path::new(""), 9, &running());
    assert_eq!(listed, Err(Refusal::Gone));
    let walked = boundary.walk(WIDE, &Everything, &running());
    assert_eq!(walked, Err(Refusal::Gone));
}

#[test]
fn c53_a_folder_that_is_none_cannot_be_opened() {
    let scene = Scene::new();
    for path in ["a.txt", "nowhere", "pipe"] {
        let opened = Boundary::open(&scene.inside.join(path), Access::Writable);
        assert!(opened.is_err(), "{path}");
    }
    let writable = Boundary::open(&scene.inside, Access::Writable).expect("a folder");
    assert_eq!(writable.access(), Access::Writable);
}

/// C57: a file of the server's own has no other name, whenever that was made; what only has several
/// names is a file like others.
#[test]
fn c57_b48_a_hard_link_to_what_is_hidden_is_hidden_and_any_other_is_a_file() {
    let scene = Scene::new();
    fs::create_dir_all(scene.outside.join("store/deep")).expect("made");
    fs::write(scene.outside.join("owner.token"), SECRET).expect("written");
    let boundary = scene.boundary().hiding(&scene.outside);
    let boundary = boundary.expect("there");
    // After the start, also in a folder that was not there before.
    fs::create_dir_all(scene.outside.join("store/new")).expect("made");
    for path in ["store/deep/log", "store/new/log"] {
        fs::write(scene.outside.join(path), SECRET).expect("written");
    }
    let link = |from: PathBuf, name: &str| {
        fs::hard_link(from, scene.inside.join(name)).expect("linked");
    };
    link(scene.outside.join("owner.token"), "notes");
    link(scene.outside.join("store/deep/log"), "folder/log");
    link(scene.outside.join("store/new/log"), "new.txt");
    link(scene.inside.join("a.txt"), "twin.txt");
    scene.link("notes", "to-notes");
    for hidden in ["notes", "folder/log", "new.txt", "to-notes"] {
        assert_eq!(read(&boundary, hidden), Err(Refusal::Hidden), "{hidden}");
        assert_eq!(boundary.typed(hidden), Err(Refusal::Hidden), "{hidden}");
    }
    let top = boundary.exactly(Path::new("")).expect("a folder");
    assert_eq!(top.about(OsStr::new("notes")), Err(Refusal::Hidden));
    let expected = ["a.txt", "folder/b.txt", "twin.txt"].map(PathBuf::from);
    assert_eq!(walked(&boundary), expected);
    assert_eq!(read(&boundary, "twin.txt").as_deref(), Ok("inside"));
    // Where nothing is hidden, a hard link is the file.
    assert_eq!(read(&scene.boundary(), "notes").as_deref(), Ok(SECRET));
}

/// Where case means nothing, `FOLDER` opens what is listed as `folder`: that is its one name.
#[test]
fn c53_b48_a_folder_is_called_as_it_is_listed() {
    use crate::adapters::boundary::beneath::spelling;
    use std::os::fd::AsFd as _;
    let scene = Scene::new();
    scene.write("b\u{fc}cher/x", "");
    let parent = scene.boundary().as_fd().try_clone_to_owned().expect("open");
    for (asked, listed) in [
        ("FOLDER", "folder"),
        ("folder", "folder"),
        ("bu\u{308}cher", "b\u{fc}cher"),
    ] {
        let about = step::look(&parent, listed.as_ref()).expect("there");
        let told = spelling(&parent, asked.as_ref(), Identity::of(&about)).expect("told");
        assert_eq!(told, listed, "{asked}");
    }
}
