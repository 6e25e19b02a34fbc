//! What an operator does with a store that no server serves: verify, export, import, count; and the
//! export of one that is served.
//!
//! - `inspect`: opening a store without starting it. `verify`: everything, checked against
//!   everything. `dump`: everything, as lines. `chosen`: what belongs to some sessions. `whole`: what
//!   belongs to the sessions that are whole. `load`: a store from such lines. `lines`: what they look
//!   like. `stats`: counts.
//!
//! Nothing here is called while a server answers, but for `dump` on a snapshot.

mod chosen;
mod dump;
#[cfg(feature = "fuzzing")]
pub(super) mod fuzzing;
mod inspect;
mod lines;
mod load;
mod owner;
mod stats;
mod verify;
mod whole;

use std::panic::{AssertUnwindSafe, catch_unwind};

use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::provenance::Digest;
use sha2::{Digest as _, Sha256};

pub use dump::{DumpError, Dumped, dump_snapshot};
pub use inspect::{Inspection, Without};
pub use load::{LoadError, Loaded, copy, load};
pub use stats::{KindStats, SessionStats, Stats};
pub use verify::{Fault, Findings, Judged};
pub use whole::DumpedWhole;

/// Contents too large for an entry, wherever they are kept.
pub trait Contents {
    /// A whole content, checked; `None` if there is none of that id.
    ///
    /// # Errors
    /// What is wrong with it, for a person.
    fn content(&self, id: ArtifactId) -> Result<Option<Vec<u8>>, String>;

    /// Keeps a content.
    ///
    /// # Errors
    /// Why it cannot be kept, for a person.
    fn keep(&self, id: ArtifactId, content: Vec<u8>) -> Result<(), String>;
}

/// What is wrong with a content that an entry names so.
fn misnamed(artifact: &ArtifactRef, content: &[u8]) -> Option<String> {
    let (bytes, found) = (artifact.bytes, content.len() as u64);
    if found != bytes {
        return Some(format!("it has {found} bytes, not {bytes}"));
    }
    let digest = Digest(Sha256::digest(content).into());
    (!artifact.names(found, digest))
        .then(|| "it is not the one that the entry names by its SHA-256".to_owned())
}

/// What is told where sled panicked on what it read or wrote.
const GAVE_UP: &str = "the storage engine gave up on its files (its message is above)";

/// Does something with the storage engine; its panic is `None`.
fn unless_it_gives_up<T>(part: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(part)).ok()
}

/// Told how far something long has come.
pub trait Progress {
    /// So many keys were gone through, of about so many; 0 where the number is not known.
    fn at(&mut self, done: u64, of: u64);
}

impl<F: FnMut(u64, u64)> Progress for F {
    fn at(&mut self, done: u64, of: u64) {
        self(done, of);
    }
}
