//! Reads a git repository inside a boundary: head, log and status, by its files alone; and makes
//! worktrees of it.
//!
//! What is inside: the formats of refs, loose objects, packs and the index, as far as these need
//! them. What must never enter: the `git` program, whose answers depend on configuration,
//! filters and hooks that a repository or its user brings along; any file outside of the boundary,
//! such as a user's own configuration; a write into what is there, such as the refreshed index that
//! `git status` leaves.
//!
//! A repository is whoever made it: every number in it is bounded before it is believed, and what
//! does not fit is [`GitError::Damaged`], never a panic. See decision 0033.

mod beside;
mod delta;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod index;
mod layout;
mod log;
mod objects;
mod oid;
mod pack;
mod places;
mod repository;
mod status;
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod trees;
mod worktree;

pub use beside::beside;
pub use layout::{Head, Layout};
pub use log::{Commit, Log};
pub use oid::Oid;
pub use repository::Git;
pub use status::{Change, Changes, Status};
pub use worktree::{WorktreeError, add_worktree, is_branch};

use super::boundary::Refusal;

/// Why a repository cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GitError {
    /// There is none at the top of the folder.
    #[error("there is no git repository at the top of this folder")]
    NoRepository,
    /// Its data lies outside, as a worktree's does.
    #[error(
        "its git data lies outside of this folder, as a linked worktree's or a submodule's does"
    )]
    Elsewhere,
    /// It uses something that is not read here: what.
    #[error("it uses {0}, which I cannot read")]
    Unsupported(&'static str),
    /// The folder is a part of its worktree, and only wholes are compared.
    #[error("this folder is a part of its worktree, and I compare only whole ones")]
    Above,
    /// It has no worktree.
    #[error("it is a bare repository, without files that could differ")]
    Bare,
    /// An object of it is not in the folder: what it is.
    #[error("its {0} is not in this folder: it was cloned in part, or borrows from elsewhere")]
    Absent(&'static str),
    /// It is not as it must be: what of it.
    #[error("its {0} is not as it must be")]
    Damaged(&'static str),
    /// There is more of it than is read.
    #[error("its {0} is too large for me")]
    TooLarge(&'static str),
    /// A file of it cannot be read.
    #[error("a file of it cannot be read: {0}")]
    Refused(#[from] Refusal),
}
