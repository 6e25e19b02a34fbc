//! What a repository knows of its worktrees and branches: which branch has one, what was left of one
//! that was never ended, and a new branch.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use sessionplane_core::domain::place::Directory;

use super::{HOME, LOCK, REASON, WorktreeError, names};
use crate::adapters::boundary::{Kind, Refusal, Workplace, directory};
use crate::adapters::git::GitError;
use crate::adapters::git::layout::{Layout, small, typed};
use crate::adapters::git::oid::Oid;
use crate::failpoint;

/// The most worktrees of a repository that are looked at.
const WORKTREES: usize = 1000;

/// A repository's worktrees.
pub(super) struct Known<'a> {
    layout: &'a Layout,
    /// The top of the first worktree, where it can be told; a bare repository has none.
    main: Option<PathBuf>,
    /// The names under which git keeps the others.
    names: Vec<String>,
}

impl<'a> Known<'a> {
    pub(super) fn of(layout: &'a Layout, stop: &AtomicBool) -> Result<Self, WorktreeError> {
        let common = &layout.common;
        let main = match common.file_name() {
            _ if layout.is_bare => None,
            _ if layout.own == *common => Some(layout.top.clone()),
            Some(name) if name == ".git" => common.parent().map(Path::to_owned),
            _ => None,
        };
        let listed = layout
            .boundary
            .list(&common.join("worktrees"), WORKTREES, stop);
        let entries = match listed {
            Ok(listed) if listed.cut => {
                return Err(GitError::TooLarge("number of worktrees").into());
            }
            Ok(listed) => listed.entries,
            Err(Refusal::Missing) => Vec::new(),
            Err(refusal) => return Err(GitError::Refused(refusal).into()),
        };
        let folders = entries
            .into_iter()
            .filter(|entry| entry.kind == Kind::Folder);
        // What cannot be named in a text was not made here, nor by git for a branch that can.
        let names = folders.filter_map(|entry| entry.name.into_string().ok());
        Ok(Self {
            layout,
            main,
            names: names.collect(),
        })
    }

    /// The folder that new worktrees are made in: at the top of the repository, or beside it where it
    /// has none.
    pub(super) fn home(&self) -> PathBuf {
        let around = match &self.main {
            Some(main) => main.clone(),
            None if self.layout.is_bare => {
                let parent = self.layout.common.parent();
                parent.map(Path::to_owned).unwrap_or_default()
            }
            None => PathBuf::new(),
        };
        around.join(HOME)
    }

    /// The directory of the worktree that has a branch checked out.
    pub(super) fn worktree(
        &self,
        branch: &str,
        stop: &AtomicBool,
    ) -> Result<Option<Directory>, WorktreeError> {
        let taken = |problem| WorktreeError::Taken {
            branch: branch.to_owned(),
            problem,
        };
        let common = &self.layout.common;
        if !self.layout.is_bare && self.has_out(common, branch, stop)? {
            let main = self.main.as_deref();
            let main = main.ok_or_else(|| taken("cannot be told from its data"))?;
            return directory(main)
                .map(Some)
                .ok_or_else(|| taken("has a path that a session cannot keep"));
        }
        for name in &self.names {
            let admin = common.join("worktrees").join(name);
            if !self.has_out(&admin, branch, stop)? || self.is_unfinished(&admin, stop)? {
                continue;
            }
            let top = self.top(&admin, stop)?;
            let top = top.map_err(taken)?;
            return directory(&top)
                .map(Some)
                .ok_or_else(|| taken("has a path that a session cannot keep"));
        }
        Ok(None)
    }

    fn has_out(&self, own: &Path, branch: &str, stop: &AtomicBool) -> Result<bool, WorktreeError> {
        let head = small(&self.layout.boundary, &own.join("HEAD"), stop)?;
        let name = head
            .as_deref()
            .and_then(|head| head.trim().strip_prefix("ref: "));
        Ok(name == Some(&names::full(branch)))
    }

    /// Where the worktree is whose data are there, or why it is not.
    fn top(
        &self,
        admin: &Path,
        stop: &AtomicBool,
    ) -> Result<Result<PathBuf, &'static str>, WorktreeError> {
        let boundary = &self.layout.boundary;
        let Some(text) = small(boundary, &admin.join("gitdir"), stop)? else {
            return Ok(Err("is damaged"));
        };
        // It may be given from where it stands.
        let top = match typed(boundary, &admin.join(text.trim())) {
            Ok(found) => found.path.parent().map(Path::to_owned),
            Err(Refusal::Missing | Refusal::NotAFolder) => {
                return Ok(Err("is no longer there; `git worktree prune` forgets it"));
            }
            Err(Refusal::Outside | Refusal::Mounted) => {
                return Ok(Err("lies outside of this workspace"));
            }
            Err(refusal) => return Err(GitError::Refused(refusal).into()),
        };
        let top = top.unwrap_or_default();
        // Each names the other, or it is some folder.
        match Layout::at(boundary, &top, stop) {
            Ok(layout) if layout.own == admin => Ok(Ok(top)),
            _ => Ok(Err("belongs to another repository by now")),
        }
    }

    /// Whether a worktree was begun here and not ended, whoever is at it.
    fn is_unfinished(&self, admin: &Path, stop: &AtomicBool) -> Result<bool, WorktreeError> {
        let reason = small(&self.layout.boundary, &admin.join(LOCK), stop)?;
        Ok(reason.as_deref() == Some(REASON))
    }

    /// Removes what was begun by a process that ended before it was done.
    pub(super) fn clear_away(
        &self,
        common: &Workplace<'_>,
        stop: &AtomicBool,
    ) -> Result<(), WorktreeError> {
        for name in &self.names {
            let admin = self.layout.common.join("worktrees").join(name);
            if !self.is_unfinished(&admin, stop)? {
                // A record that is empty is nobody's: who makes one writes into it at once. Another is
                // not removed so.
                let admins = common.enter("worktrees".as_ref());
                let _full = admins.and_then(|admins| admins.remove_empty(name.as_ref()));
                continue;
            }
            let lock = self.layout.boundary.file(&admin.join(LOCK));
            if lock.and_then(|lock| lock.is_held()).unwrap_or(true) {
                continue;
            }
            let admins = common.enter("worktrees".as_ref());
            let removed = admins.and_then(|admins| {
                self.remove_tree(&admin, name, stop)?;
                self.release_branch(&admin, common, stop);
                admins.remove_all(name.as_ref())
            });
            removed.map_err(super::failed("room for it"))?;
            tracing::info!(name, "removed a worktree that was begun and never ended");
        }
        Ok(())
    }

    /// Removes the lock of the branch, if whoever made the worktree ended while it wrote that: git would
    /// wait for it in vain. Only then there is one although all else of the worktree is there, and no
    /// branch.
    fn release_branch(&self, admin: &Path, common: &Workplace<'_>, stop: &AtomicBool) {
        let text = |path: &Path| small(&self.layout.boundary, path, stop).ok().flatten();
        let head = text(&admin.join("HEAD"));
        let full = head
            .as_deref()
            .and_then(|it| it.trim().strip_prefix("ref: "));
        let Some(branch) = full.and_then(|full| full.strip_prefix("refs/heads/")) else {
            return;
        };
        let is_filled = self.layout.boundary.file(&admin.join("index")).is_ok();
        let is_new = matches!(self.layout.resolve(&names::full(branch), stop), Ok(None));
        let lock = format!("{branch}.lock");
        let at = self.layout.common.join(names::full(&lock));
        let is_written = text(&at).is_some_and(|text| Oid::parse(text.trim()).is_some());
        if is_filled && is_new && is_written {
            remove_branch(common, &lock);
        }
    }

    /// Removes the directory of what was begun, if it is that: it points back, or is empty.
    fn remove_tree(&self, admin: &Path, name: &str, stop: &AtomicBool) -> Result<(), Refusal> {
        let home = self.home();
        let homes = match self.layout.boundary.work_in(&home) {
            Err(Refusal::Missing) => return Ok(()),
            homes => homes?,
        };
        let at = home.join(name);
        let points = Layout::at(&self.layout.boundary, &at, stop);
        if points.is_ok_and(|layout| layout.own == admin) {
            return homes.remove_all(name.as_ref());
        }
        // Nothing was written to it yet, or it is somebody else's.
        let _left = homes.remove_empty(name.as_ref());
        Ok(())
    }
}

/// Makes a branch at a commit; `false`: somebody else has made it meanwhile, which is as good.
pub(super) fn make_branch(
    layout: &Layout,
    common: &Workplace<'_>,
    branch: &str,
    commit: Oid,
    stop: &AtomicBool,
) -> Result<bool, WorktreeError> {
    let in_the_way = || WorktreeError::InTheWay(branch.to_owned());
    let failed = |refusal| match refusal {
        Refusal::Exists | Refusal::NotAFolder => in_the_way(),
        refusal => WorktreeError::Failed("the branch", refusal),
    };
    let full = names::full(branch);
    if layout.packed_refs(stop)?.lines().any(|line| {
        let packed = line.split_once(' ').map_or("", |(_, name)| name);
        leads_to(packed, &full) || leads_to(&full, packed)
    }) {
        return Err(in_the_way());
    }
    let mut steps: Vec<&str> = full.split('/').collect();
    // There is always one: it begins with `refs`.
    let name = steps.pop().unwrap_or_default();
    let mut folder = common.enter(OsStr::new("refs")).map_err(failed)?;
    for step in &steps[1..] {
        folder = folder.enter_or_make(step.as_ref()).map_err(failed)?;
    }
    let lock = format!("{name}.lock");
    let text = format!("{commit}\n");
    // So does git keep others from writing the same ref.
    match folder.write(lock.as_ref(), text.as_bytes(), false) {
        Err(Refusal::Exists) => {
            return Err(WorktreeError::Failed(
                "the branch",
                Refusal::Unreadable("somebody else is writing it".to_owned()),
            ));
        }
        written => written.map_err(failed)?,
    };
    failpoint::reach("worktree::branching");
    // A folder that branches once began with, and that is empty by now.
    let _is_full = folder.remove_empty(name.as_ref());
    let made = match layout.resolve(&full, stop) {
        Ok(None) => match folder.rename(lock.as_ref(), name.as_ref()) {
            Ok(()) => return Ok(true),
            Err(refusal) => Err(failed(refusal)),
        },
        Ok(Some(_)) => Ok(false),
        Err(error) => Err(error.into()),
    };
    let _gone = folder.remove(lock.as_ref());
    made
}

/// Whether one name is the folder of another.
fn leads_to(folder: &str, name: &str) -> bool {
    name.strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// Takes a branch back that was just made, or the lock of one.
pub(super) fn remove_branch(common: &Workplace<'_>, branch: &str) {
    let full = names::full(branch);
    let (folders, name) = full.rsplit_once('/').unwrap_or(("", &full));
    let mut folder = None;
    for step in folders.split('/') {
        let at = folder.as_ref().unwrap_or(common);
        folder = match at.enter(step.as_ref()) {
            Ok(folder) => Some(folder),
            Err(_) => return,
        };
    }
    if let Some(folder) = folder {
        let _gone = folder.remove(name.as_ref());
    }
}
