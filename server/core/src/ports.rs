//! What the core needs from outside: few, small traits. Each is also a conformance suite that
//! every adapter must pass.

pub mod artifact_store;
pub mod audit_trail;
pub mod authenticator;
pub mod authorizer;
pub mod clock;
pub mod commit_rules;
pub mod engine;
pub mod fleet_rules;
pub mod lease_store;
pub mod repository;
pub mod workspaces;
