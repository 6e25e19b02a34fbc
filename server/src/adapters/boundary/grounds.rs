//! The workspaces of this host by the names that the configuration gives them, each a boundary that
//! was opened once, and the places beneath them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sessionplane_core::domain::ids::WorkspaceName;
use sessionplane_core::domain::place::{Directory, Place};
use sessionplane_core::ports::workspaces::PlaceError;

use super::refusal::Refusal;
use super::root::Boundary;

/// The configured workspaces. Clones are the same ones, and cost nothing.
#[derive(Clone, Debug, Default)]
pub struct Grounds {
    named: Arc<BTreeMap<WorkspaceName, Boundary>>,
}

/// A place that was found.
#[derive(Clone, Debug)]
pub struct Spot {
    /// The boundary around its directory. It is the directory that was found, whatever takes its
    /// place under its name later.
    pub boundary: Boundary,
    /// The workspace that it lies beneath.
    pub workspace: Boundary,
    /// Its real path from there; empty for the workspace itself.
    pub path: PathBuf,
    /// The real place: links resolved, within the same workspace.
    pub place: Place,
}

impl Grounds {
    /// These workspaces.
    #[must_use]
    pub fn new(named: impl IntoIterator<Item = (WorkspaceName, Boundary)>) -> Self {
        let named = named.into_iter().collect();
        Self {
            named: Arc::new(named),
        }
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &WorkspaceName> {
        self.named.keys()
    }

    /// A workspace.
    ///
    /// # Errors
    /// When none of that name is configured.
    pub fn workspace(&self, name: &WorkspaceName) -> Result<&Boundary, PlaceError> {
        self.named.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.named.keys().map(WorkspaceName::as_str).collect();
            let known = match known.as_slice() {
                [] => "none".to_owned(),
                known => known.join(", "),
            };
            PlaceError::NoSuchWorkspace {
                workspace: name.clone(),
                known,
            }
        })
    }

    /// Looks a place up, and opens it: beneath its workspace, step by step. Blocks, but for no pipe
    /// or device.
    ///
    /// # Errors
    /// When there is no such workspace, or the directory cannot be worked in; it is named.
    pub fn beneath(&self, place: &Place) -> Result<Spot, PlaceError> {
        let workspace = self.workspace(&place.workspace)?;
        let unavailable = |problem: String| PlaceError::Unavailable {
            workspace: place.workspace.clone(),
            directory: place.directory.to_string(),
            problem,
        };
        let found = workspace.beneath(Path::new(place.directory.as_str()));
        let (boundary, real) = found.map_err(|refusal| unavailable(problem(&refusal)))?;
        let directory = directory(&real).ok_or_else(|| {
            unavailable(
                "is a link to one whose name cannot be kept: more than 1024 bytes, no UTF-8, or \
                 with control characters in it"
                    .to_owned(),
            )
        })?;
        Ok(Spot {
            boundary,
            workspace: workspace.clone(),
            path: real,
            place: Place {
                workspace: place.workspace.clone(),
                directory,
            },
        })
    }

    /// Looks up where a session works already: a real place, as it was found before. Blocks.
    ///
    /// # Errors
    /// As of [`Self::beneath`], and when it is another directory's name by now: a link took its place.
    pub fn saved(&self, place: &Place) -> Result<Spot, PlaceError> {
        let spot = self.beneath(place)?;
        if spot.place == *place {
            return Ok(spot);
        }
        Err(PlaceError::moved(place, &spot.place))
    }
}

/// A real path from a workspace as a directory of a place; nothing where it cannot be one.
#[must_use]
pub fn directory(real: &Path) -> Option<Directory> {
    let text = match real.to_str()? {
        "" => ".",
        text => text,
    };
    // What is kept must lead to what was found.
    let kept = Directory::parse(text).ok()?;
    (kept.as_str() == text).then_some(kept)
}

/// What is wrong with a directory, as the end of a sentence.
fn problem(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Missing => "is not there; make it, or choose another".to_owned(),
        Refusal::NotAFolder | Refusal::NotAFile(_) => "is no directory".to_owned(),
        Refusal::Outside => "leads out of the workspace".to_owned(),
        Refusal::Mounted => "lies on another file system, which is no part of the workspace; \
             what is mounted there can be a workspace of its own"
            .to_owned(),
        Refusal::Hidden => "is kept from agents".to_owned(),
        Refusal::Gone => "cannot be reached: the workspace was removed since the server started; \
             what took its place is seen after a restart"
            .to_owned(),
        Refusal::NoName => "cannot be the name of a directory: it is too long, too deep, or holds \
             what no name may"
            .to_owned(),
        Refusal::Unreadable(words) => format!("cannot be entered: {words}"),
        other => format!("cannot be entered: {other}"),
    }
}
