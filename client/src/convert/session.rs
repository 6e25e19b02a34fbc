//! How a session is named in a request.

use sessionplane::v1::{self, session_ref::Ref};
use sessionplane_core::domain::ids::SessionRef;

/// A session's address.
pub(crate) fn reference(session: &SessionRef) -> v1::SessionRef {
    let named = match session {
        SessionRef::Id(id) => Ref::Id(id.to_string()),
        SessionRef::Name(name) => Ref::Name(name.to_string()),
        SessionRef::ExternalKey(key) => Ref::ExternalKey(key.to_string()),
    };
    v1::SessionRef { r#ref: Some(named) }
}
