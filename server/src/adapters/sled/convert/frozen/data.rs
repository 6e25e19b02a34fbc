//! What was added to format 4 for data: fields that what an earlier server wrote does not have.

use std::sync::Arc;

use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::data::{Content, Data, DataPart};
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::input::{InputFate, InputKind, InputRecord};
use sessionplane_core::domain::provenance::Digest;

use super::{at, check, entry, input_id, marks, origin};

/// The lines of these forms.
pub(super) const ADDED: &str = include_str!("../frozen_data.txt");

/// Data of both shapes, without an instruction.
fn given() -> Option<Arc<Data>> {
    let part = |content| DataPart {
        name: "build.log".into(),
        media_type: "text/plain".into(),
        bytes: 3,
        sha256: Digest([5; 32]),
        content,
    };
    let whole = part(Content::Whole((*b"a\0\xff").into()));
    let cut = part(Content::Cut {
        head: (*b"he").into(),
        tail: (*b"ta").into(),
        artifact: ArtifactRef {
            id: ArtifactId::from_bytes([6; 16]),
            bytes: 3,
            sha256: Some(Digest([5; 32])),
        },
    });
    Data::new(vec![whole, cut], Some("read it".into()), 7).map(Arc::new)
}

#[test]
fn c58_stored_data_is_what_it_was() {
    let mut seen = String::new();
    let body = EntryBody::User {
        text: "".into(),
        omitted_bytes: 1,
        origin: origin(),
        input: Some(input_id()),
        data: given(),
    };
    let mut marked = entry(body.clone());
    check("entry-user-data", &marked, &mut seen);
    marked.entry.path = marks();
    marked.entry.path.untrusted = Some(4);
    check("entry-untrusted", &marked, &mut seen);
    let input = InputRecord {
        id: input_id(),
        kind: InputKind::Steer,
        text: "left".into(),
        data: given(),
        origin: origin(),
        accepted_at: at(4),
        fate: InputFate::Pending,
    };
    check("input-data", &input, &mut seen);
    assert_eq!(seen, ADDED);
}
