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

/// The newest edition of Landlock that is asked for. A test takes an older one for what the system has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Edition(i32);

impl Edition {
    /// All that is known.
    pub const NEWEST: Self = Self(ALL as i32);
    /// None: a system without Landlock.
    pub const NONE: Self = Self(0);

    /// This edition at most.
    #[must_use]
    pub fn at_most(number: u8) -> Self {
        Self(i32::from(number).min(ALL as i32))
    }

    fn abi(self) -> ABI {
        ABI::from(self.0)
    }
}

/// What there must be for a ruleset that holds files.
const LEAST: ABI = ABI::V3;

/// What every program may read, so that it can run at all. What is not there is passed over.
const READ: [&str; 22] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/gitconfig",
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
pub(super) fn reach(edition: Edition) -> Reach {
    let asked = edition.abi();
    if asked < LEAST || created(LEAST).is_err() {
        Reach::Nothing
    } else if asked < ALL || created(ALL).is_err() {
        Reach::Files
    } else {
        Reach::Whole
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
    /// The folder that it works in, and those beside; whether each may be written.
    pub(super) folders: Vec<(F, bool)>,
    /// A folder of its own.
    pub(super) temporary: &'a Path,
    /// What else it may read.
    pub(super) reads: &'a [PathBuf],
    /// The program.
    pub(super) program: &'a Path,
    /// What is asked for at most.
    pub(super) edition: Edition,
}

/// Puts this process, and all that it starts from here on, under the ruleset. It cannot be undone.
///
/// # Errors
/// When the folder or the program cannot be granted, or the system refuses what it said it can do.
pub(super) fn enter<F: AsFd>(grants: &Grants<'_, F>) -> io::Result<Reach> {
    let known = reach(grants.edition);
    if grants.edition == Edition::NONE {
        return Ok(known);
    }
    let reached = apply(grants).map_err(io::Error::other)?;
    Ok(match reached {
        RulesetStatus::NotEnforced => Reach::Nothing,
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => known,
    })
}

fn apply<F: AsFd>(grants: &Grants<'_, F>) -> Result<RulesetStatus, landlock::RulesetError> {
    let asked = grants.edition.abi();
    let read = AccessFs::from_read(asked);
    let writing = writing(asked);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(asked))?
        .scope_if_any(Scope::from_all(asked))?
        .create()?;
    for (folder, may_write) in &grants.folders {
        let access = if *may_write { writing } else { read };
        rules = rules.add_rule(PathBeneath::new(folder, access))?;
    }
    rules = granted(rules, grants.temporary, writing)?;
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
fn writing(asked: ABI) -> BitFlags<AccessFs> {
    AccessFs::from_all(asked) & !(AccessFs::MakeChar | AccessFs::MakeBlock)
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
