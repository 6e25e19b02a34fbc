//! Rust SDK of Sessionplane.
