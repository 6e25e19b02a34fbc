//! Makes a linked worktree, as `git worktree add` does, through a boundary.
//!
//! What is inside: where it is to be, whether the branch has one already, and the steps, each of which
//! can be taken back. What must never enter: a hook, a filter or anything else that a repository would
//! have run; a path that is looked up by its name. See decision 0041.

mod files;
mod known;
mod names;
mod staged;

use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use sessionplane_core::domain::place::Directory;

use super::GitError;
use super::layout::Layout;
use super::oid::Oid;
use super::repository::Git;
use crate::adapters::boundary::{Boundary, Held, Refusal, Workplace, directory};
use crate::failpoint;

pub use names::is_branch;

/// The folder that worktrees are made in, at the top of their repository.
const HOME: &str = ".worktrees";
/// What its `.gitignore` says: nothing in it is the repository's, this file included.
const IGNORED: &[u8] = b"*\n";
/// The file that keeps git from forgetting a worktree that is being made, and what is in it.
const LOCK: &str = "locked";
const REASON: &str = "sessionplane is making this worktree\n";
/// How many numbers are tried where a name is taken.
const NAMES: usize = 100;
/// What is made, where it could not be.
const WORKTREE: &str = "the worktree";

/// Why a worktree was not made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorktreeError {
    /// No branch can be called so.
    #[error("no branch can be called {0:?}: {1}")]
    Name(String, String),
    /// There is no repository, or it cannot be read.
    #[error("the repository cannot be read: {0}")]
    Git(#[from] GitError),
    /// There is no commit yet that a branch could begin at.
    #[error(
        "the repository has no commit yet that the branch {0:?} could begin at; make one first"
    )]
    NoCommit(String),
    /// The branch has a worktree that cannot be worked in: why.
    #[error("the branch {branch:?} is checked out already, in a worktree that {problem}")]
    Taken {
        /// The branch.
        branch: String,
        /// Why that one cannot be worked in, as the end of a sentence.
        problem: &'static str,
    },
    /// Another branch's name begins with this one's, or the other way.
    #[error("the branch {0:?} cannot be made: another branch stands where its name leads")]
    InTheWay(String),
    /// All names for its directory are taken.
    #[error("there are too many worktrees of that name already")]
    TooMany,
    /// The directory's path would be longer than what a session can keep.
    #[error("its directory's path would be longer than 1024 bytes")]
    TooLong,
    /// A path in the commit is none that a worktree may have.
    #[error("the commit has a path that no worktree may have: {0:?}")]
    BadPath(String),
    /// It would be larger than a worktree may be.
    #[error("the commit has more than {0} {1}, which is the most that a worktree may have")]
    TooLarge(u64, &'static str),
    /// Something could not be made: what, and why.
    #[error("{0} could not be made: {1}")]
    Failed(&'static str, Refusal),
}

impl WorktreeError {
    /// Why, for who says himself that no worktree was made.
    #[must_use]
    pub fn why(&self) -> String {
        match self {
            Self::Failed(WORKTREE, refusal) => refusal.to_string(),
            error => error.to_string(),
        }
    }
}

/// Says what could not be made.
fn failed(what: &'static str) -> impl Fn(Refusal) -> WorktreeError {
    move |refusal| WorktreeError::Failed(what, refusal)
}

/// Makes a worktree of the repository that a folder lies in, or finds the one that the branch has.
/// Returns its directory. What was begun is removed where it cannot be ended. Blocks; one at a time
/// for each repository.
///
/// # Errors
/// See [`WorktreeError`].
pub fn add_worktree(
    workspace: &Boundary,
    from: &Path,
    branch: &str,
    stop: &AtomicBool,
) -> Result<Directory, WorktreeError> {
    names::judge(branch)?;
    let layout = Layout::around(workspace, from, stop)?;
    let of = known::Known::of(&layout, stop)?;
    if let Some(found) = of.worktree(branch, stop)? {
        return Ok(found);
    }
    // Also that nothing can be made is said before it is begun.
    let common = workspace.work_in(&layout.common);
    let common = common.map_err(failed(WORKTREE))?;
    of.clear_away(&common, stop)?;
    let tip = layout.resolve(&names::full(branch), stop)?;
    let (commit, is_new) = match (tip, layout.head(stop)?.commit) {
        (Some(tip), _) => (tip, false),
        (None, Some(head)) => (head, true),
        (None, None) => return Err(WorktreeError::NoCommit(branch.to_owned())),
    };
    let git = Git::of(layout.clone(), stop)?;
    git.judge_size(commit, stop)?;
    let making = Making {
        git: &git,
        common: &common,
        branch,
        commit,
        is_new,
        stop,
    };
    making.run(&of.home())
}

/// A worktree that is being made.
struct Making<'a> {
    git: &'a Git,
    common: &'a Workplace<'a>,
    branch: &'a str,
    commit: Oid,
    /// The branch is to be made.
    is_new: bool,
    stop: &'a AtomicBool,
}

/// The two folders of a worktree.
struct Pair<'a> {
    name: String,
    /// Where git keeps what is the worktree's own.
    admins: &'a Workplace<'a>,
    admin: Workplace<'a>,
    /// The worktree.
    home: &'a Workplace<'a>,
    tree: Workplace<'a>,
}

impl Making<'_> {
    fn run(&self, home: &Path) -> Result<Directory, WorktreeError> {
        let boundary = &self.git.layout.boundary;
        let longest = names::directory(self.branch) + "-99";
        directory(&home.join(&longest)).ok_or(WorktreeError::TooLong)?;
        let around = home.parent().unwrap_or(Path::new(""));
        let around = boundary.work_in(around).map_err(failed("its folder"))?;
        let homes = around.enter_or_make(HOME.as_ref());
        let homes = homes.map_err(failed("its folder"))?;
        match homes.write(".gitignore".as_ref(), IGNORED, false) {
            Ok(_) | Err(Refusal::Exists) => {}
            Err(refusal) => return Err(WorktreeError::Failed("its folder", refusal)),
        }
        let admins = self.common.enter_or_make("worktrees".as_ref());
        let admins = admins.map_err(failed("its record"))?;
        // Held until it is whole or gone: who finds it later knows that nobody is at work any more.
        let (pair, _held) = self.pair(&homes, &admins)?;
        match self.fill(&pair, home) {
            Ok(()) => {
                failpoint::reach("worktree::made");
                directory(&home.join(&pair.name)).ok_or(WorktreeError::TooLong)
            }
            Err(error) => {
                pair.take_back();
                Err(error)
            }
        }
    }

    /// Makes both folders, under a name that neither has yet. The record is held at once: one that is
    /// empty is taken for abandoned.
    fn pair<'a>(
        &self,
        homes: &'a Workplace<'a>,
        admins: &'a Workplace<'a>,
    ) -> Result<(Pair<'a>, Held), WorktreeError> {
        let plain = names::directory(self.branch);
        for number in 1..NAMES {
            let name = match number {
                1 => plain.clone(),
                number => format!("{plain}-{number}"),
            };
            let admin = match admins.make(name.as_ref()) {
                Err(Refusal::Exists) => continue,
                made => made.map_err(failed("its record"))?,
            };
            failpoint::reach("worktree::named");
            let held = match admin.hold(LOCK.as_ref(), REASON.as_bytes()) {
                // Another server's next worktree took it for abandoned.
                Err(Refusal::Missing) => continue,
                held => held.map_err(failed("its record"))?,
            };
            let tree = match homes.make(name.as_ref()) {
                Ok(tree) => tree,
                Err(refusal) => {
                    let _left = admins.remove_all(name.as_ref());
                    match refusal {
                        Refusal::Exists => continue,
                        refusal => return Err(WorktreeError::Failed("its directory", refusal)),
                    }
                }
            };
            let pair = Pair {
                name,
                admins,
                admin,
                home: homes,
                tree,
            };
            return Ok((pair, held));
        }
        Err(WorktreeError::TooMany)
    }

    fn fill(&self, pair: &Pair, home: &Path) -> Result<(), WorktreeError> {
        let layout = &self.git.layout;
        let write = |name: &str, text: String| {
            let written = pair.admin.write(name.as_ref(), text.as_bytes(), false);
            written.map(|_| ()).map_err(failed("its record"))
        };
        let at = home.join(&pair.name);
        // Git before 2.48 wants whole paths in both; they are for git and for people.
        let whole = layout.boundary.path();
        let admin = whole
            .join(&layout.common)
            .join("worktrees")
            .join(&pair.name);
        write("gitdir", line("", &whole.join(&at).join(".git"))?)?;
        write("commondir", "../..\n".to_owned())?;
        write("HEAD", format!("ref: {}\n", names::full(self.branch)))?;
        let pointer = line("gitdir: ", &admin)?;
        let pointer = pair.tree.write(".git".as_ref(), pointer.as_bytes(), false);
        pointer.map_err(failed("its directory"))?;
        failpoint::reach("worktree::begun");
        let index = self.git.check_out(self.commit, &pair.tree, self.stop)?;
        failpoint::reach("worktree::checked-out");
        let failed = failed("its index");
        let aside = OsStr::new("index.lock");
        pair.admin.write(aside, &index, false).map_err(&failed)?;
        pair.admin
            .rename(aside, "index".as_ref())
            .map_err(&failed)?;
        // Only now is there anything that others see.
        let made = self.is_new
            && known::make_branch(layout, self.common, self.branch, self.commit, self.stop)?;
        failpoint::reach("worktree::branched");
        let done = pair
            .admin
            .sync()
            .and_then(|()| pair.admin.remove(LOCK.as_ref()));
        if done.is_err() && made {
            known::remove_branch(self.common, self.branch);
        }
        done.map_err(failed)
    }
}

impl Pair<'_> {
    /// Removes what was begun. What cannot be removed stays marked as being made, and is removed with
    /// the next one.
    fn take_back(&self) {
        let name = OsStr::new(&self.name);
        let gone = self.home.remove_all(name);
        if let Err(error) = gone.and_then(|()| self.admins.remove_all(name)) {
            tracing::warn!(%error, name = self.name, "a worktree that was begun is not removed yet");
        }
    }
}

/// A line with a path, which must be text in one line.
fn line(before: &str, path: &Path) -> Result<String, WorktreeError> {
    let text = path.to_str().filter(|text| !text.contains('\n'));
    let text = text.ok_or(WorktreeError::Failed("its record", Refusal::NoName))?;
    Ok(format!("{before}{text}\n"))
}
