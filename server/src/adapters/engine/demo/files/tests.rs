//! What is listed and read, what is not, and what leads out of the folder.

use std::fs;

use super::*;

fn page(folder: &Folder, path: &str) -> Result<Vec<String>, Unread> {
    let page = folder.page(path, Lines::HEAD, &AtomicBool::new(false));
    page.map(|page| page.lines)
}

fn read(folder: &Folder, path: &str) -> Option<String> {
    folder.read(path, &AtomicBool::new(false))
}

fn paths(folder: &Folder) -> Vec<String> {
    let listing = folder.list(&AtomicBool::new(false)).expect("a listing");
    listing.files.into_iter().map(|file| file.path).collect()
}

#[test]
fn what_people_wrote_is_listed_and_nothing_else() {
    let at = tempfile::tempdir().expect("a folder");
    for path in [
        "src/a.rs",
        "b.md",
        "target/x.rs",
        ".git/config",
        "node_modules/m.js",
        "Cargo.lock",
        ".env",
        ".env.local",
        "id_ed25519",
        "src/id_allocator.rs",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        ".cargo/credentials.toml",
        ".cargo/config.toml",
        ".config/tool/token",
        ".github/ci.yml",
        "secret.PEM",
    ] {
        let path = at.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, "text").expect("written");
    }
    let folder = folder_at(at.path());
    assert_eq!(
        paths(&folder),
        [
            ".cargo/config.toml",
            ".github/ci.yml",
            "b.md",
            "src/a.rs",
            "src/id_allocator.rs",
        ]
    );
    assert_eq!(read(&folder, "b.md").as_deref(), Some("text"));
}

#[cfg(unix)]
#[test]
fn b48_nothing_leads_out_of_the_folder() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(outside.path().join("secret.txt"), "secret").expect("written");
    let at = tempfile::tempdir().expect("a folder");
    symlink(outside.path(), at.path().join("folder")).expect("linked");
    symlink(
        outside.path().join("secret.txt"),
        at.path().join("file.txt"),
    )
    .expect("linked");
    let folder = folder_at(at.path());
    assert_eq!(paths(&folder), [""; 0]);
    let absolute = outside.path().join("secret.txt");
    let upwards = format!(
        "../{}/secret.txt",
        outside
            .path()
            .file_name()
            .expect("a name")
            .to_str()
            .expect("text")
    );
    for path in [
        "file.txt",
        "folder/secret.txt",
        absolute.to_str().expect("text"),
        &upwards,
    ] {
        assert_eq!(read(&folder, path), None, "{path} was read");
    }
}

#[test]
fn what_is_no_text_or_too_large_is_not_read() {
    let at = tempfile::tempdir().expect("a folder");
    let large = usize::try_from(MOST_FILE_BYTES).expect("fits") + 1;
    for (name, bytes) in [
        ("nul", b"a\0b".to_vec()),
        ("binary", (128..=255).collect()),
        ("latin", b"caf\xe9".to_vec()),
        ("large", vec![b'a'; large]),
    ] {
        fs::write(at.path().join(name), bytes).expect("written");
    }
    let folder = folder_at(at.path());
    assert_eq!(paths(&folder), ["binary", "large", "latin", "nul"]);
    for name in ["nul", "binary", "large", "missing"] {
        assert_eq!(read(&folder, name), None, "{name} was read");
    }
    // An older encoding is text all the same.
    assert_eq!(read(&folder, "latin").as_deref(), Some("caf\u{fffd}"));
}

/// What is cut is told as cut, and a folder that just fits is not.
#[test]
fn a_listing_says_when_there_is_more() {
    let at = tempfile::tempdir().expect("a folder");
    for path in ["a.md", "b.md", "x.lock", "one/two/c.md"] {
        let path = at.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, "text").expect("written");
    }
    let folder = folder_at(at.path());
    let fits = Limits {
        files: 3,
        folders: 3,
        entries: 6,
        depth: 2,
    };
    for (most, files, cut) in [
        (fits, 3..=3, false),
        (Limits { files: 2, ..fits }, 2..=2, true),
        (Limits { folders: 2, ..fits }, 2..=2, true),
        (Limits { entries: 5, ..fits }, 0..=3, true),
        (Limits { depth: 1, ..fits }, 2..=2, true),
    ] {
        let listing = folder.list_at_most(most, &AtomicBool::new(false));
        let listing = listing.expect("a listing");
        assert_eq!(listing.cut, cut, "{listing:?}");
        assert!(files.contains(&listing.files.len()), "{listing:?}");
    }
}

#[test]
fn what_has_a_name_that_is_no_text_is_counted() {
    use std::os::unix::ffi::OsStrExt as _;
    let at = tempfile::tempdir().expect("a folder");
    for path in [&b"latin-\xe9"[..], b"fol\xe9/a.md", b"a.md"] {
        let path = at.path().join(OsStr::from_bytes(path));
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, "text").expect("written");
    }
    let folder = folder_at(at.path());
    let listing = folder.list(&AtomicBool::new(false)).expect("a listing");
    assert_eq!((listing.files.len(), listing.unnamed), (1, 2));
}

#[test]
fn what_nobody_waits_for_is_not_read() {
    let at = tempfile::tempdir().expect("a folder");
    fs::write(at.path().join("a.md"), "text").expect("written");
    let folder = folder_at(at.path());
    let stopped = AtomicBool::new(true);
    assert_eq!(folder.read("a.md", &stopped), None);
    assert_eq!(folder.list(&stopped).expect("a listing").files, []);
}

/// B48: what a file really is called decides, not what somebody calls it.
#[cfg(unix)]
#[test]
fn b48_no_other_name_shows_a_secret() {
    use std::os::unix::fs::symlink;
    let at = tempfile::tempdir().expect("a folder");
    for path in [
        ".env",
        "keys/id_ed25519",
        ".git/config",
        "Cargo.lock",
        "home/.ssh/config",
        "ci.token",
        "state/Owner.Token",
        "state/tokens.json",
        "state/tokens.used.json",
        "state/digest.key",
        "home/.Kube/config",
        "home/.docker/config.json",
        "home/.docker/Dockerfile",
        "deploy/prod.env",
    ] {
        let path = at.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, "text").expect("written");
    }
    for (to, name) in [(".env", "notes.txt"), ("keys", "docs"), (".git", "git")] {
        symlink(to, at.path().join(name)).expect("linked");
    }
    let folder = folder_at(at.path());
    for (path, expected) in [
        (".env", Unread::Secret),
        ("notes.txt", Unread::Secret),
        ("docs/id_ed25519", Unread::Secret),
        ("docs/../docs/id_ed25519", Unread::Secret),
        ("home/.ssh/config", Unread::Secret),
        ("ci.token", Unread::Secret),
        ("state/Owner.Token", Unread::Secret),
        ("state/tokens.json", Unread::Secret),
        ("state/tokens.used.json", Unread::Secret),
        ("state/digest.key", Unread::Secret),
        ("home/.Kube/config", Unread::Secret),
        ("home/.docker/config.json", Unread::Secret),
        ("deploy/prod.env", Unread::Secret),
        (".git/config", Unread::Git),
        ("git/config", Unread::Git),
        ("keys", Unread::Refused(Refusal::NotAFile("a folder"))),
        ("../x", Unread::Refused(Refusal::Outside)),
        ("/etc/passwd", Unread::Refused(Refusal::Outside)),
        ("nowhere", Unread::Refused(Refusal::Missing)),
    ] {
        assert_eq!(page(&folder, path), Err(expected), "{path}");
        assert_eq!(read(&folder, path), None, "{path}");
    }
    // What is not listed may be asked for by name.
    let made = page(&folder, "home/.docker/Dockerfile");
    assert_eq!(made, Ok(vec!["text".to_owned()]));
    assert_eq!(page(&folder, "Cargo.lock"), Ok(vec!["text".to_owned()]));
    let root = folder.boundary().path().join("Cargo.lock");
    let root = root.to_str().expect("text");
    assert_eq!(page(&folder, root), Ok(vec!["text".to_owned()]));
}

#[test]
fn a_place_is_found_by_the_end_of_its_path() {
    let file = |path: &str| Listed {
        path: path.to_owned(),
        bytes: 1,
    };
    let listing = Listing {
        files: ["server/core/src/a.rs", "server/src/a.rs", "x/b.rs"]
            .map(file)
            .to_vec(),
        ..Listing::default()
    };
    assert_eq!(listing.folder("core").as_deref(), Some("server/core"));
    assert_eq!(
        listing.folder("server/core/").as_deref(),
        Some("server/core")
    );
    assert_eq!(listing.folder("src").as_deref(), Some("server/src"));
    assert_eq!(listing.folder("ore"), None);
    assert_eq!(listing.named("a.rs").len(), 2);
    assert_eq!(listing.named("core/src/a.rs").len(), 1);
}

#[test]
fn a_file_is_called_by_its_name_or_what_is_before_the_dot() {
    let file = |path: &str| Listed {
        path: path.to_owned(),
        bytes: 1,
    };
    let paths = [
        "Makefile",
        "README.md",
        "a/Cart.jsx",
        "a/README.md",
        "a/mod.rs",
        "b/mod.rs",
        "tests/cart.test.js",
    ];
    let listing = Listing {
        files: paths.map(file).to_vec(),
        ..Listing::default()
    };
    let called = |word: &str| -> Vec<&str> {
        let files = listing.called(word).into_iter();
        files.map(|file| file.path.as_str()).collect()
    };
    assert_eq!(called("readme"), ["README.md"]);
    assert_eq!(called("makefile"), ["Makefile"]);
    assert_eq!(called("Cart"), ["a/Cart.jsx"]);
    assert_eq!(called("cart"), ["tests/cart.test.js"]);
    assert_eq!(called("CART").len(), 2);
    assert_eq!(called("mod"), ["a/mod.rs", "b/mod.rs"]);
    assert_eq!(called("read"), [""; 0]);
}

/// A token in the form that a server of this kind makes them.
const TOKEN: &str = "sp_7Kq2ZbX9_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg";
const TOLD: &str = "sp_7Kq2ZbX9_[secret withheld]";

#[test]
fn c57_b48_no_line_shows_the_secret_of_a_token_whatever_file_it_lies_in() {
    let at = tempfile::tempdir().expect("a folder");
    fs::write(at.path().join("notes.md"), format!("use {TOKEN}.\n{TOKEN}")).expect("written");
    let folder = folder_at(at.path());
    let lines = [format!("use {TOLD}."), TOLD.to_owned()];
    assert_eq!(page(&folder, "notes.md"), Ok(lines.to_vec()));
    assert_eq!(read(&folder, "notes.md"), Some(lines.join("\n")));
    // Nor where the line is cut within it, wherever that is.
    for before in 500..640 {
        let line = format!("{} {TOKEN} {TOKEN}", "x".repeat(before));
        fs::write(at.path().join("long"), line).expect("written");
        let shown = page(&folder, "long").expect("read").concat();
        let told = shown.trim_start_matches('x').replace(TOLD, "");
        assert!(!told.contains("sp_"), "{before}: {shown}");
    }
}

#[test]
fn c57_b48_what_a_store_was_written_out_to_is_not_read() {
    let at = tempfile::tempdir().expect("a folder");
    let line = r#"{"export":"sessionplane-store","version":1}"#;
    for name in ["a.jsonl", "b.partial"] {
        fs::write(at.path().join(name), line).expect("written");
    }
    let folder = folder_at(at.path());
    for name in ["a.jsonl", "b.partial"] {
        assert_eq!(page(&folder, name), Err(Unread::Store), "{name}");
        assert_eq!(read(&folder, name), None, "{name}");
    }
}

#[cfg(unix)]
#[test]
fn what_stands_at_a_path_is_told_from_what_does_not() {
    use std::os::unix::fs::symlink;
    let at = tempfile::tempdir().expect("a folder");
    let outside = tempfile::tempdir().expect("a folder");
    fs::create_dir(at.path().join("build")).expect("made");
    fs::write(at.path().join("build/made"), "text").expect("written");
    for (to, name) in [
        (outside.path(), "out"),
        (Path::new("nothing"), "dangling"),
        (Path::new("build/made"), "inner"),
        (Path::new("build"), "folder"),
    ] {
        symlink(to, at.path().join(name)).expect("linked");
    }
    let folder = folder_at(at.path());
    for (name, expected) in [
        ("out", true),
        ("dangling", true),
        ("inner", true),
        ("build/made", true),
        ("build", true),
        ("folder", true),
        ("nothing", false),
        ("build/../dangling", false),
        ("nothing/at/all", false),
    ] {
        assert_eq!(folder.has(name), expected, "{name}");
    }
    assert_eq!(page(&folder, "dangling"), Err(Unread::Dangling));
    let leads_out = Unread::Refused(Refusal::Outside);
    assert_eq!(page(&folder, "out"), Err(leads_out));
}
