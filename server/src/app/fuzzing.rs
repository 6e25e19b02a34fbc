//! What a caller gives back that the application once gave.

pub(crate) use super::fleet::fuzzing::page_token;
