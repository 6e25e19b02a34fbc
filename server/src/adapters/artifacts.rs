//! Where contents lie that are too large for an entry: in a folder, or in memory for tests.
//!
//! What must never enter: who may read them, and what they are of.

mod folder;
mod memory;

pub use folder::FolderArtifacts;
pub use memory::MemoryArtifacts;
