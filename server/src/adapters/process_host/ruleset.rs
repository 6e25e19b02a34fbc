//! What the system lets a program reach: its folder, what programs need to run at all, and nothing
//! else. Made of descriptors that are open already.
//!
//! The system is asked for all that Landlock knows, and gives what it has. Less than the third edition
//! (Linux 6.2) is as good as none: a file outside could be cut to nothing by whoever may not open it.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use serde::{Deserialize, Serialize};

/// What there is to ask for.
const ALL: ABI = ABI::V10;
/// What there must be for a ruleset that holds files.
const LEAST: ABI = ABI::V3;

/// What every program may read, so that it can run at all. What is not there is passed over.
const READ: [&str; 21] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];
/// What every program may also write.
const WRITTEN: [&str; 1] = ["/dev/null"];

/// How far the system holds a program in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Reach {
    /// Everything that was asked for: files, devices, signals and sockets.
    Whole,
    /// Files, but not all of the rest: this system is older than that.
    Files,
    /// Nothing that could be relied on.
    Nothing,
}

impl Reach {
    /// Whether the program is kept from files outside.
    #[must_use]
    pub fn holds_files(self) -> bool {
        self != Self::Nothing
    }
}

/// How far this system would hold a program in. Changes nothing.
#[must_use]
pub fn reach() -> Reach {
    match (created(ALL), created(LEAST)) {
        (Ok(_), _) => Reach::Whole,
        (Err(_), Ok(_)) => Reach::Files,
        (Err(_), Err(_)) => Reach::Nothing,
    }
}

/// Whether the system knows a whole edition.
fn created(abi: ABI) -> Result<RulesetCreated, landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?
        .scope_if_any(Scope::from_all(abi))?
        .create()
}

/// Scopes came later than files.
trait ScopeIfAny: Sized {
    fn scope_if_any(self, scopes: BitFlags<Scope>) -> Result<Self, landlock::RulesetError>;
}

impl ScopeIfAny for Ruleset {
    fn scope_if_any(self, scopes: BitFlags<Scope>) -> Result<Self, landlock::RulesetError> {
        if scopes.is_empty() {
            return Ok(self);
        }
        landlock::RulesetAttr::scope(self, scopes)
    }
}

/// What a program may reach.
pub(super) struct Grants<'a, F> {
    /// The folder that it works in.
    pub(super) folder: F,
    pub(super) may_write: bool,
    /// A folder of its own.
    pub(super) temporary: &'a Path,
    /// What else it may read.
    pub(super) reads: &'a [PathBuf],
    /// The program.
    pub(super) program: &'a Path,
}

/// Puts this process, and all that it starts from here on, under the ruleset. It cannot be undone.
///
/// # Errors
/// When the folder or the program cannot be granted, or the system refuses what it said it can do.
pub(super) fn enter<F: AsFd>(grants: &Grants<'_, F>) -> io::Result<Reach> {
    let reached = apply(grants).map_err(io::Error::other)?;
    let known = reach();
    Ok(match reached {
        RulesetStatus::NotEnforced => Reach::Nothing,
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => known,
    })
}

fn apply<F: AsFd>(grants: &Grants<'_, F>) -> Result<RulesetStatus, landlock::RulesetError> {
    let all = AccessFs::from_all(ALL);
    let read = AccessFs::from_read(ALL);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(ALL))?
        .create()?;
    let of_folder = if grants.may_write { writing() } else { read };
    rules = rules.add_rule(PathBeneath::new(&grants.folder, of_folder))?;
    rules = granted(rules, grants.temporary, writing())?;
    rules = granted(rules, grants.program, read)?;
    let common = READ.iter().map(Path::new);
    for path in common.chain(grants.reads.iter().map(PathBuf::as_path)) {
        rules = granted(rules, path, read)?;
    }
    for path in WRITTEN {
        rules = granted(rules, Path::new(path), read | AccessFs::WriteFile)?;
    }
    Ok(rules.restrict_self()?.ruleset)
}

/// All but making devices: nobody's work needs them.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_all(ALL) & !(AccessFs::MakeChar | AccessFs::MakeBlock)
}

fn granted(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let Ok(opened) = PathFd::new(path) else {
        return Ok(rules);
    };
    // A file has fewer rights than a folder; one that is asked for more is refused.
    let is_folder = std::fs::metadata(path).is_ok_and(|about| about.is_dir());
    let access = if is_folder {
        access
    } else {
        access & AccessFs::from_file(ALL)
    };
    rules.add_rule(PathBeneath::new(opened, access))
}

/// What every program may reach beside its folder, as far as it is there: it is judged whether
/// something that must be kept from it lies within.
pub(super) fn common<'a>() -> impl Iterator<Item = &'a Path> {
    READ.into_iter().chain(WRITTEN).map(Path::new)
}
