//! What is to be started.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sessionplane_core::domain::ids::SessionId;

use super::host::Where;
use super::ruleset::Edition;
use crate::adapters::boundary::{Access, Boundary};

/// The program itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Program {
    /// This server's own binary, as it was when the server started, whatever has become of its path.
    Own,
    /// Another one, by its absolute path.
    At(PathBuf),
}

/// What is to be started, for which session, and what it may reach.
#[derive(Clone, Debug)]
pub struct Order {
    /// The session. Programs of one session never run at the same time.
    pub session: SessionId,
    /// The program.
    pub program: Program,
    /// Its arguments, without its name.
    pub arguments: Vec<String>,
    /// Its environment beside what every program gets; nothing of the server's own.
    pub environment: Vec<(String, String)>,
    /// The folder that it works in.
    pub folder: Boundary,
    /// Other folders that it may reach, each as it is given: at most [`Self::MOST_BESIDE`].
    pub beside: Vec<Boundary>,
    /// What else it may read, by absolute path; what is not there is passed over.
    pub reads: Vec<PathBuf>,
    /// It is not started unless the system keeps it from everything else.
    pub require_ruleset: bool,
}

impl Order {
    /// How many folders there may be beside the one that it works in.
    pub const MOST_BESIDE: usize = 12;
}

/// What the process that sets itself up is told. The folder and the standard streams come beside it, as
/// descriptors.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) program: Program,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) reads: Vec<PathBuf>,
    pub(super) temporary: PathBuf,
    pub(super) may_write: bool,
    /// The same of each folder beside.
    pub(super) beside: Vec<bool>,
    pub(super) require_ruleset: bool,
    pub(super) edition: Edition,
    /// Calls are refused that reach into other processes.
    pub(super) filtered: bool,
}

impl Plan {
    pub(super) fn of(order: &Order, mark: &str, temporary: PathBuf, place: &Where) -> Self {
        let temp = temporary.to_string_lossy().into_owned();
        let every = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("LANG", "C.UTF-8"),
            ("HOME", &temp),
            ("TMPDIR", &temp),
        ];
        let every = every.map(|(name, value)| (name.to_owned(), value.to_owned()));
        // The mark comes last: nothing that is asked for takes its place.
        let environment = every
            .into_iter()
            .chain(order.environment.iter().cloned())
            .chain([(super::tree::MARK.to_owned(), mark.to_owned())])
            .collect();
        Self {
            program: order.program.clone(),
            arguments: order.arguments.clone(),
            environment,
            reads: order.reads.clone(),
            temporary,
            may_write: may_write(&order.folder),
            beside: order.beside.iter().map(may_write).collect(),
            require_ruleset: order.require_ruleset,
            edition: place.edition,
            filtered: place.filtered,
        }
    }
}

fn may_write(folder: &Boundary) -> bool {
    folder.access() == Access::Writable
}
