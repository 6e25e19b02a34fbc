//! Who may do what: policies in the Cedar language, those that ship with the server and those that are
//! configured.
//!
//! What is inside: the words that policies are written in, a set of policies as it was loaded, and the
//! authorizer that decides by it. What must never enter: how a caller was authenticated, and anything
//! that a policy could say to reach beyond its caller's tenant.

mod authorizer;
mod entities;
pub mod expectations;
mod files;
mod mentions;
mod role;
mod set;
mod slices;
mod source;
mod words;

pub use authorizer::CedarAuthorizer;
pub use files::PolicyFiles;
pub use role::Role;
pub use set::PolicyProblem;
pub use source::{PolicyError, PolicyPaths, PolicySource};

/// The schema that policies are checked against.
pub const SCHEMA: &str = include_str!("../../policy/sessionplane.cedarschema");
/// The policies that hold unless they are turned off.
pub const DEFAULT_SET: &str = include_str!("../../policy/default.cedar");
/// What the default set is called where one of its policies is told of.
pub(crate) const DEFAULT_NAME: &str = "the default set";
