//! Compared with git itself, on repositories that it makes; and what it never does.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;

use super::*;
use crate::adapters::boundary::{Access, Boundary};

/// A repository that git makes, with nothing of this machine's configuration.
struct Repository(TempDir);

impl Repository {
    fn new() -> Self {
        let this = Self(tempfile::tempdir().expect("a folder"));
        this.git(&["init", "--quiet", "--initial-branch=trunk"]);
        this
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(self.path(), arguments)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
    }

    fn boundary(&self) -> Boundary {
        Boundary::open(self.path(), Access::ReadOnly).expect("a folder")
    }

    fn open(&self) -> Result<Git, GitError> {
        Git::open(&self.boundary(), &running())
    }

    fn status(&self) -> Status {
        let git = self.open().expect("a repository");
        git.status(&running()).expect("a status")
    }

    fn subjects(&self, most: usize) -> Vec<String> {
        let log = self.open().expect("a repository").log(most, &running());
        let commits = log.expect("a log").commits.into_iter();
        commits.map(|commit| commit.subject).collect()
    }
}

fn git(at: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .args([
            "-c",
            "user.name=Ada Love",
            "-c",
            "user.email=ada@example.org",
        ])
        .args([
            "-c",
            "protocol.file.allow=always",
            "-c",
            "core.autocrlf=false",
        ])
        .args(arguments)
        .current_dir(at)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        done.status.success(),
        "git {arguments:?}: {said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    said
}

fn running() -> AtomicBool {
    AtomicBool::new(false)
}

fn told(changes: &Changes) -> Vec<(&str, Change)> {
    let told = changes.told.iter();
    told.map(|(path, change)| (path.as_str(), *change))
        .collect()
}

#[test]
fn head_and_log_are_those_of_git_loose_and_packed() {
    let repository = Repository::new();
    for number in 0..40 {
        repository.write("a.txt", &format!("{}\n{number}\n", "line\n".repeat(100)));
        repository.commit(&format!("Change {number}\n\nWhy."));
    }
    repository.git(&["checkout", "--quiet", "-b", "side/way", "HEAD~3"]);
    repository.commit("Beside");
    repository.git(&["checkout", "--quiet", "trunk"]);
    repository.git(&["merge", "--quiet", "--no-ff", "-m", "Merge it", "side/way"]);
    for packed in [false, true] {
        if packed {
            repository.git(&["gc", "--quiet", "--aggressive"]);
            repository.git(&["pack-refs", "--all"]);
        }
        let opened = repository.open().expect("a repository");
        let head = opened.head(&running()).expect("a head");
        assert_eq!(head.branch.as_deref(), Some("trunk"));
        let name = repository.git(&["rev-parse", "HEAD"]);
        assert_eq!(
            head.commit.map(|oid| oid.to_string()).as_deref(),
            Some(name.trim())
        );
        let all = repository.git(&["log", "--format=%s"]);
        let mut all: Vec<&str> = all.lines().collect();
        let mut ours = repository.subjects(100);
        assert_eq!(ours[0], "Merge it");
        // Those of one second have no order.
        all.sort_unstable();
        ours.sort_unstable();
        assert_eq!(ours, all, "packed: {packed}");
        let log = opened.log(5, &running()).expect("a log");
        assert!(log.more && !log.broken && log.commits.len() == 5);
        assert_eq!(log.commits[0].author, "Ada Love");
        let status = repository.status();
        assert_eq!((status.staged.count, status.unstaged.count), (0, 0));
    }
    repository.git(&["checkout", "--quiet", "HEAD~1"]);
    let head = repository
        .open()
        .expect("opened")
        .head(&running())
        .expect("a head");
    assert_eq!(head.branch, None);
    assert!(head.commit.is_some());
}

#[test]
fn a_status_is_that_of_git() {
    let repository = Repository::new();
    for path in [
        "same",
        "deep/er/same",
        "deep/changed",
        "gone",
        "staged",
        "run",
        "was-link",
    ] {
        repository.write(path, &format!("{path}, as it was\n"));
    }
    repository.write(".gitignore", "*.log\n");
    std::os::unix::fs::symlink("same", repository.path().join("link")).expect("linked");
    repository.commit("All");
    repository.write("deep/changed", "deep/changed, as it IS\n");
    fs::remove_file(repository.path().join("gone")).expect("removed");
    repository.write("staged", "staged, anew\n");
    repository.write("added", "new\n");
    repository.git(&["add", "staged", "added"]);
    repository.git(&["rm", "--quiet", "--cached", "was-link"]);
    repository.write("new/one", "");
    repository.write("new/two", "");
    repository.write("deep/unknown", "");
    repository.write("x.log", "");
    let expected = "D  was-link\nM  staged\nA  added\n D gone\n M deep/changed\n?? deep/unknown\n?? new/\n?? was-link\n";
    let mut theirs: Vec<String> = repository
        .git(&["status", "--porcelain"])
        .lines()
        .map(str::to_owned)
        .collect();
    let mut expected: Vec<String> = expected.lines().map(str::to_owned).collect();
    theirs.sort();
    expected.sort();
    assert_eq!(theirs, expected, "git sees something else");
    for version in ["2", "4"] {
        repository.git(&["update-index", "--index-version", version]);
        let status = repository.status();
        assert_eq!(
            told(&status.staged),
            [
                ("added", Change::Added),
                ("staged", Change::Modified),
                ("was-link", Change::Deleted)
            ]
        );
        assert_eq!(
            told(&status.unstaged),
            [
                ("deep/changed", Change::Modified),
                ("gone", Change::Deleted)
            ]
        );
        let unknown: Vec<_> = status.unknown.iter().map(String::as_str).collect();
        assert_eq!(unknown, ["deep/unknown", "new/", "was-link"]);
        assert_eq!((status.unsure, status.cut), (0, false));
    }
    // Touched, but as it was.
    repository.write("same", "same, as it was\n");
    assert_eq!(repository.status().unstaged.count, 2);
}

/// Of the same length, within the same second as the index: only its bytes tell.
#[test]
fn a_change_that_no_time_tells_is_seen() {
    let repository = Repository::new();
    repository.write("a", "one\n");
    repository.commit("One");
    repository.write("a", "two\n");
    assert_eq!(
        told(&repository.status().unstaged),
        [("a", Change::Modified)]
    );
}

#[test]
fn a_conflict_and_a_repository_without_commits_are_told() {
    let repository = Repository::new();
    let empty = repository.status();
    assert_eq!(
        (empty.head.commit, empty.head.branch.as_deref()),
        (None, Some("trunk"))
    );
    assert_eq!(repository.subjects(9), [""; 0]);
    repository.write("a", "base\n");
    repository.git(&["add", "a"]);
    assert_eq!(told(&repository.status().staged), [("a", Change::Added)]);
    repository.commit("Base");
    repository.git(&["checkout", "--quiet", "-b", "other"]);
    repository.write("a", "theirs\n");
    repository.commit("Theirs");
    repository.git(&["checkout", "--quiet", "trunk"]);
    repository.write("a", "ours\n");
    repository.commit("Ours");
    let merged = Command::new("git")
        .args(["merge", "--quiet", "other"])
        .current_dir(repository.path())
        .output()
        .expect("git runs");
    assert!(!merged.status.success(), "there is no conflict");
    let status = repository.status();
    assert_eq!(status.conflicted.iter().collect::<Vec<_>>(), ["a"]);
    assert_eq!((status.staged.count, status.unstaged.count), (0, 0));
}

/// C53: nothing outside of the boundary has a say, and nothing is run or written.
#[test]
fn c53_git_is_read_inside_only_and_nothing_of_it_is_run_or_written() {
    let repository = Repository::new();
    repository.write("a", "a\n");
    repository.commit("One");
    let outside = tempfile::tempdir().expect("a folder");
    let ran = outside.path().join("ran");
    let run = format!("touch {}", ran.display());
    for (key, value) in [
        ("core.fsmonitor", run.as_str()),
        ("filter.x.clean", &run),
        ("core.hooksPath", outside.path().to_str().expect("text")),
    ] {
        repository.git(&["config", key, value]);
    }
    repository.write(".gitattributes", "* filter=x\n");
    repository.write("a", "b\n");
    let index = repository.path().join(".git/index");
    let before = fs::read(&index).expect("an index");
    assert_eq!(
        told(&repository.status().unstaged),
        [("a", Change::Modified)]
    );
    assert_eq!(repository.subjects(9), ["One"]);
    assert!(!ran.exists(), "something was run");
    assert_eq!(fs::read(&index).expect("an index"), before);

    // A worktree's and a submodule's data lie elsewhere.
    let worktree = outside.path().join("tree");
    repository.git(&[
        "worktree",
        "add",
        "--quiet",
        worktree.to_str().expect("text"),
    ]);
    let boundary = Boundary::open(&worktree, Access::ReadOnly).expect("a folder");
    let elsewhere = Git::open(&boundary, &running()).map(|_| ());
    assert_eq!(elsewhere, Err(GitError::Elsewhere));
    let linked = tempfile::tempdir().expect("a folder");
    let to = repository.path().join(".git");
    std::os::unix::fs::symlink(to, linked.path().join(".git")).expect("linked");
    let boundary = Boundary::open(linked.path(), Access::ReadOnly).expect("a folder");
    let elsewhere = Git::open(&boundary, &running()).map(|_| ());
    assert_eq!(elsewhere, Err(GitError::Elsewhere));
    // A branch that names a file elsewhere is no branch.
    fs::write(outside.path().join("ref"), "0".repeat(40)).expect("written");
    let escape = format!("ref: refs/../../{}/ref", outside.path().display());
    repository.write(".git/HEAD", &escape);
    let head = repository.open().expect("opened").head(&running());
    assert_eq!(head, Err(GitError::Damaged("ref")));
}

#[test]
fn objects_that_are_elsewhere_end_the_history() {
    let origin = Repository::new();
    for number in 0..3 {
        origin.commit(&format!("Change {number}"));
    }
    let clone = tempfile::tempdir().expect("a folder");
    let from = format!("file://{}", origin.path().display());
    git(clone.path(), &["clone", "--quiet", "--depth=1", &from, "."]);
    let boundary = Boundary::open(clone.path(), Access::ReadOnly).expect("a folder");
    let opened = Git::open(&boundary, &running()).expect("a repository");
    let log = opened.log(9, &running()).expect("a log");
    assert_eq!((log.commits.len(), log.broken, log.more), (1, true, false));
    // Objects that are borrowed from outside are not there.
    let borrowed = tempfile::tempdir().expect("a folder");
    git(
        borrowed.path(),
        &["clone", "--quiet", "--shared", &from[7..], "."],
    );
    let boundary = Boundary::open(borrowed.path(), Access::ReadOnly).expect("a folder");
    let opened = Git::open(&boundary, &running()).expect("a repository");
    let absent = GitError::Absent("last commit");
    assert_eq!(opened.log(9, &running()), Err(absent.clone()));
    assert_eq!(opened.status(&running()), Err(absent));
    // Nor are trees that were not fetched with their commits.
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let part = tempfile::tempdir().expect("a folder");
    let clone = ["clone", "--quiet", "--filter=tree:0", "--no-checkout"];
    git(part.path(), &[&clone[..], &[&from, "."]].concat());
    let boundary = Boundary::open(part.path(), Access::ReadOnly).expect("a folder");
    let opened = Git::open(&boundary, &running()).expect("a repository");
    assert_eq!(opened.log(9, &running()).expect("a log").commits.len(), 3);
    assert_eq!(opened.status(&running()), Err(GitError::Absent("tree")));
}

/// Names are bytes: what is no text is compared like others, and stands in git's order.
#[test]
fn names_that_are_no_text_are_compared_like_others() {
    use std::os::unix::ffi::OsStrExt as _;
    let repository = Repository::new();
    let latin = std::ffi::OsStr::from_bytes(b"fol\xe9/latin-\xe9");
    let latin = repository.path().join(latin);
    fs::create_dir_all(latin.parent().expect("a parent")).expect("made");
    fs::write(&latin, "one\n").expect("written");
    // Between its bytes and those that stand for it.
    repository.write("fol\u{ac00}/x", "x\n");
    repository.commit("All");
    let clean = repository.status();
    assert_eq!((clean.staged.count, clean.unstaged.count), (0, 0));
    assert_eq!(clean.unknown_count, 0, "{:?}", clean.unknown);
    fs::write(&latin, "another\n").expect("written");
    repository.git(&["update-index", "--index-version", "4"]);
    let changed = repository.status();
    assert_eq!(
        told(&changed.unstaged),
        [("fol\u{fffd}/latin-\u{fffd}", Change::Modified)]
    );
    repository.git(&["add", "--all"]);
    let staged = repository.status();
    assert_eq!((staged.staged.count, staged.unstaged.count), (1, 0));
}

#[test]
fn a_bare_repository_has_a_head_and_a_log_and_no_status() {
    let origin = Repository::new();
    origin.commit("One");
    let bare = tempfile::tempdir().expect("a folder");
    let from = origin.path().to_str().expect("text");
    git(bare.path(), &["clone", "--quiet", "--bare", from, "."]);
    let boundary = Boundary::open(bare.path(), Access::ReadOnly).expect("a folder");
    let opened = Git::open(&boundary, &running()).expect("a repository");
    let head = opened.head(&running()).expect("a head");
    assert_eq!(head.branch.as_deref(), Some("trunk"));
    assert_eq!(opened.log(9, &running()).expect("a log").commits.len(), 1);
    assert_eq!(opened.status(&running()), Err(GitError::Bare));
}

#[test]
fn what_is_no_repository_or_of_another_kind_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let boundary = Boundary::open(folder.path(), Access::ReadOnly).expect("a folder");
    let none = Git::open(&boundary, &running()).map(|_| ());
    assert_eq!(none, Err(GitError::NoRepository));
    git(
        folder.path(),
        &["init", "--quiet", "--object-format=sha256"],
    );
    let other = Git::open(&boundary, &running()).map(|_| ());
    assert!(matches!(other, Err(GitError::Unsupported(_))), "{other:?}");
}

/// Every byte of every file of a small repository, flipped: an answer or an error, never a panic.
#[test]
fn a_repository_that_is_damaged_is_told_and_harms_nobody() {
    let repository = Repository::new();
    for number in 0..4 {
        repository.write("a/b", &format!("{}{number}", "text\n".repeat(50)));
        repository.commit(&format!("Change {number}"));
    }
    repository.git(&["gc", "--quiet"]);
    let mut files = vec![".git/index".to_owned(), ".git/packed-refs".to_owned()];
    let packs = fs::read_dir(repository.path().join(".git/objects/pack")).expect("packs");
    for pack in packs {
        let name = pack
            .expect("a pack")
            .file_name()
            .into_string()
            .expect("text");
        files.push(format!(".git/objects/pack/{name}"));
    }
    let mut told = 0;
    for file in files {
        let path = repository.path().join(&file);
        let whole = fs::read(&path).expect("read");
        fs::remove_file(&path).expect("removed");
        let step = (whole.len() / 150).max(1);
        for at in (0..whole.len()).step_by(step) {
            let mut odd = whole.clone();
            odd[at] ^= 0x55;
            fs::write(&path, &odd).expect("written");
            let opened = repository.open();
            let log = opened.as_ref().map(|git| git.log(9, &running()));
            let status = opened.as_ref().map(|git| git.status(&running()));
            told += usize::from(!matches!((log, status), (Ok(Ok(_)), Ok(Ok(_)))));
        }
        fs::write(&path, &whole).expect("written");
    }
    assert!(told > 100, "only {told} were told");
    assert_eq!(repository.subjects(9).len(), 4);
}
