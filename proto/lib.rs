//! The wire types of Sessionplane, generated from `proto/`. Nothing here is written by hand.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "generated code; its documentation is the proto files' comments"
)]

/// Package `sessionplane.v1`: the public API.
pub mod v1 {
    tonic::include_proto!("sessionplane.v1");
}

/// Private stored records; never served.
#[cfg(feature = "store")]
pub mod store {
    /// Package `sessionplane.store.v1`.
    pub mod v1 {
        tonic::include_proto!("sessionplane.store.v1");
    }
}

/// The descriptors of the public package and its imports, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = tonic::include_file_descriptor_set!("sessionplane");
