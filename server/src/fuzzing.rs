//! One function for each parser of bytes from outside, for the fuzzer (`tests/fuzz`): it parses what it is
//! given, and panics where the parser breaks a promise. Built with the feature `fuzzing` only.
//!
//! What must never enter: a promise that is not made elsewhere, and anything that a server needs.

use std::fmt::{Debug, Display};
use std::str::{self, FromStr};

use sessionplane_core::domain::fleet::filter::Filter;
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue};
use sessionplane_core::domain::ids::{
    AgentName, EntryId, ExternalKey, IdError, InputId, InteractionId, PrincipalId, RequestId,
    RunId, SessionId, SessionName, TenantId,
};
use sessionplane_core::domain::place::Directory;
use sessionplane_core::domain::rendering;

use crate::{adapters, app, config, grpc};

/// What is given bytes.
pub type Parser = fn(&[u8]);

/// Every parser, by the name that its corpus has.
pub const PARSERS: [(&str, Parser); 22] = [
    ("requests", grpc::fuzzing::request),
    ("authorization", grpc::fuzzing::authorization),
    ("names", names),
    ("filters", filter),
    ("page_tokens", app::fuzzing::page_token),
    ("agent_reports", adapters::engine::fuzzing::report),
    ("scenarios", adapters::engine::fuzzing::scenario),
    ("git_index", adapters::git::fuzzing::index),
    ("git_commit", adapters::git::fuzzing::commit),
    ("git_tree", adapters::git::fuzzing::tree),
    ("git_delta", adapters::git::fuzzing::delta),
    ("store_values", adapters::sled::fuzzing::value),
    ("store_records", adapters::sled::fuzzing::record),
    ("export_lines", adapters::sled::fuzzing::line),
    ("token_books", adapters::authn::fuzzing::book),
    ("configurations", config::fuzzing::file),
    ("jwts", adapters::authn::fuzzing::jwt),
    ("key_sets", adapters::authn::fuzzing::keys),
    (
        "forwarded_certificates",
        adapters::authn::fuzzing::forwarded,
    ),
    ("certificates", grpc::fuzzing::certificate),
    ("renderings", rendered),
    ("visible_data", visible_data),
];

/// Longest refusal, in bytes: it tells a caller their own words, but not all of a megabyte.
const REFUSAL_BYTES: usize = 4096;

/// Everything that names something is what it was read from.
fn names(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    read::<SessionId>(text);
    read::<RunId>(text);
    read::<InputId>(text);
    read::<InteractionId>(text);
    read::<EntryId>(text);
    read::<SessionName>(text);
    read::<ExternalKey>(text);
    read::<AgentName>(text);
    read::<TenantId>(text);
    read::<PrincipalId>(text);
    read::<RequestId>(text);
    if let Ok(directory) = Directory::parse(text) {
        assert_eq!(Directory::parse(&directory.to_string()), Ok(directory));
    }
    if let Ok(key) = LabelKey::parse(text) {
        assert_eq!(LabelKey::parse(key.as_str()), Ok(key));
    }
    if let Ok(value) = LabelValue::parse(text) {
        assert_eq!(LabelValue::parse(value.as_str()), Ok(value));
    }
}

fn read<T: FromStr<Err = IdError> + Display + PartialEq + Debug>(text: &str) {
    match text.parse::<T>() {
        Ok(name) => assert_eq!(name.to_string().parse::<T>().ok(), Some(name)),
        Err(error) => short(&error.to_string()),
    }
}

/// What a filter looks for in the store is never more than it wants.
fn filter(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    match Filter::parse(text) {
        Ok(filter) => drop(filter.index_term()),
        Err(error) => short(&error.to_string()),
    }
}

/// What an engine reads back of a rendering is a part of it.
fn rendered(bytes: &[u8]) {
    if let Ok(text) = str::from_utf8(bytes) {
        let _what_it_says = rendering::read(text);
    }
}

/// Data that is made visible is one line of text a line, and comes back byte for byte.
fn visible_data(bytes: &[u8]) {
    let shown = rendering::visible(bytes);
    assert!(
        !shown.contains(|c: char| c.is_control() && c != '\n' && c != '\t'),
        "{shown:?}"
    );
    assert_eq!(rendering::original(&shown), bytes);
}

/// A refusal that can be shown.
pub(crate) fn short(refusal: &str) {
    assert!(
        refusal.len() <= REFUSAL_BYTES,
        "{} bytes: {refusal}",
        refusal.len()
    );
}
