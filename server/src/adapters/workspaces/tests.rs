//! Places as sessions have them: every kind of escape, what version control says of a place, and
//! worktrees, on repositories that git makes.

mod beside;
mod checkouts;
mod escapes;
mod worktrees;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use sessionplane_core::domain::ids::WorkspaceName;
use sessionplane_core::domain::place::Directory;
use tempfile::TempDir;

use super::*;
use crate::adapters::boundary::{Access, Boundary};

/// A workspace `main` beside what is none of its business, and an empty one beside both.
struct Scene {
    /// Holds them: `in`, `out` and `other`.
    _all: TempDir,
    inside: PathBuf,
    outside: PathBuf,
    other: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let all = tempfile::tempdir().expect("a folder");
        let at = all.path().canonicalize().expect("a path");
        let scene = Self {
            _all: all,
            inside: at.join("in"),
            outside: at.join("out"),
            other: at.join("other"),
        };
        for made in [&scene.inside, &scene.outside, &scene.other] {
            fs::create_dir(made).expect("made");
        }
        scene.write("crates/net/a.txt", "inside");
        fs::create_dir(scene.outside.join("secrets")).expect("made");
        scene
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.inside.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn link(&self, to: impl AsRef<Path>, name: &str) {
        symlink(to, self.inside.join(name)).expect("linked");
    }

    fn grounds(&self, access: Access) -> Grounds {
        let open = |(name, path): (&str, &PathBuf)| {
            let boundary = Boundary::open(path, access).expect("a folder");
            (WorkspaceName::parse(name).expect("a name"), boundary)
        };
        Grounds::new([("main", &self.inside), ("other", &self.other)].map(open))
    }

    fn workspaces(&self) -> HostWorkspaces {
        HostWorkspaces::new(self.grounds(Access::Writable))
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(&self.inside, arguments)
    }

    /// A repository in the workspace with one commit.
    fn repository() -> Self {
        let scene = Self::new();
        scene.git(&["init", "--quiet", "--initial-branch=trunk"]);
        scene.write("README.md", "# Harbour\n");
        scene.commit("One");
        scene
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
    }
}

fn place(directory: &str) -> Place {
    Place {
        workspace: WorkspaceName::parse("main").expect("a name"),
        directory: Directory::parse(directory).expect("a directory"),
    }
}

/// Looks a place up, within a time in which nothing here takes: nothing may wait.
async fn ground(workspaces: &HostWorkspaces, directory: &str) -> Result<String, String> {
    let found = within(workspaces.ground(&place(directory))).await;
    let found = found.map_err(|error| error.to_string())?;
    assert_eq!(found.workspace.as_str(), "main");
    Ok(found.directory.to_string())
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(Duration::from_secs(60), work).await;
    done.expect("it waits for something")
}

/// Runs git with nothing of this machine's configuration.
fn git(at: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .args([
            "-c",
            "user.name=Ada Love",
            "-c",
            "user.email=ada@example.org",
        ])
        .args(["-c", "protocol.file.allow=always"])
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
