//! Where the fleet's records lie: the indexes that sessions are found by, the audit of metadata, and
//! deleted sessions that are not erased yet.
//!
//! An index row's key says everything, and its payload is empty: tenant, term, session. Each text in
//! it follows its length, so that no term is the beginning of another.

use sessionplane_core::domain::fleet::filter::StoredTerm;
use sessionplane_core::domain::ids::{SessionId, TenantId};

use super::{DELETED, INDEX, Key, METADATA_AUDIT, NAME, in_tenant, join, tail};

const AGENT: u8 = b'a';
const EVERY: u8 = b'e';
const LABEL: u8 = b'l';
const PARENT: u8 = b'b';
const PAUSED: u8 = b'p';
const WORKSPACE: u8 = b'w';

/// The prefix of the rows of a term. Those of names have the whole name after it, the others the
/// session's id.
pub(in crate::adapters::sled) fn term(tenant: &TenantId, term: &StoredTerm) -> Key {
    let (kind, texts): (u8, Vec<&[u8]>) = match term {
        StoredTerm::NamePrefix(prefix) => return in_tenant(NAME, tenant, prefix),
        StoredTerm::Label(key, value) => {
            let texts = vec![key.as_str().as_bytes(), value.as_str().as_bytes()];
            (LABEL, texts)
        }
        StoredTerm::Parent(id) => {
            let mut key = in_tenant(INDEX, tenant, "");
            key.push(PARENT);
            key.extend_from_slice(&id.to_bytes());
            return key;
        }
        StoredTerm::Paused => (PAUSED, Vec::new()),
        StoredTerm::Workspace(name) => (WORKSPACE, vec![name.as_str().as_bytes()]),
        StoredTerm::Agent(name) => (AGENT, vec![name.as_str().as_bytes()]),
        StoredTerm::Every => (EVERY, Vec::new()),
    };
    let mut key = in_tenant(INDEX, tenant, "");
    key.push(kind);
    for text in texts {
        // None of them may be longer than 128 bytes.
        key.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        key.extend_from_slice(text);
    }
    key
}

/// The prefix of all rows but those of names.
pub(in crate::adapters::sled) fn indexes() -> Key {
    vec![INDEX]
}

/// Marks that a session is among those of a term.
pub(in crate::adapters::sled) fn found(
    tenant: &TenantId,
    of: &StoredTerm,
    session: SessionId,
) -> Key {
    let mut key = term(tenant, of);
    key.extend_from_slice(&session.to_bytes());
    key
}

/// The session that a row of an index names, of any but that of names.
pub(in crate::adapters::sled) fn found_session(key: &[u8]) -> Option<SessionId> {
    tail(key).map(SessionId::from_bytes)
}

/// What was done to a session's metadata, by the revision that came of it.
pub(in crate::adapters::sled) fn metadata_audit(session: SessionId, revision: u64) -> Key {
    join(
        METADATA_AUDIT,
        [&session.to_bytes(), &revision.to_be_bytes()],
    )
}

/// The prefix of what was done to a session's metadata.
pub(in crate::adapters::sled) fn metadata_audits_of_session(session: SessionId) -> Key {
    join(METADATA_AUDIT, [&session.to_bytes()])
}

/// A session that was deleted and is not erased yet.
pub(in crate::adapters::sled) fn deleted(session: SessionId) -> Key {
    join(DELETED, [&session.to_bytes()])
}

/// The prefix of all those.
pub(in crate::adapters::sled) fn deletions() -> Key {
    vec![DELETED]
}

/// The parts of an index row after its tag: tenant, kind, what is between, session.
fn parts(rest: &[u8]) -> Option<(&[u8], u8, &[u8], SessionId)> {
    let (length, rest) = rest.split_first()?;
    let (tenant, rest) = rest.split_at_checked(usize::from(*length))?;
    let (kind, rest) = rest.split_first()?;
    let (text, id) = rest.split_last_chunk::<16>()?;
    Some((tenant, *kind, text, SessionId::from_bytes(*id)))
}

/// The session of an index row, if its term is one that a server writes.
pub(super) fn indexed(rest: &[u8]) -> Option<SessionId> {
    let (tenant, kind, text, session) = parts(rest)?;
    let texts = |mut text: &[u8]| {
        let mut count = 0;
        while let Some((length, rest)) = text.split_first() {
            text = rest.get(usize::from(*length)..)?;
            count += 1;
        }
        Some(count)
    };
    let fits = match kind {
        EVERY | PAUSED => text.is_empty(),
        AGENT | WORKSPACE => texts(text) == Some(1),
        LABEL => texts(text) == Some(2),
        PARENT => text.len() == 16,
        _ => false,
    };
    (fits && !tenant.is_empty()).then_some(session)
}

/// An index row for people.
pub(super) fn describe(rest: &[u8]) -> String {
    let Some((tenant, kind, text, session)) = parts(rest) else {
        return "that names no session".to_owned();
    };
    let kind = match kind {
        AGENT => "agent",
        EVERY => "session",
        LABEL => "label",
        PARENT => "parent",
        PAUSED => "pause",
        WORKSPACE => "workspace",
        _ => "unknown",
    };
    let tenant = String::from_utf8_lossy(tenant);
    let of = if matches!(kind, "agent" | "label" | "workspace") {
        let text = String::from_utf8_lossy(text.get(1..).unwrap_or_default());
        format!(" {}", text.escape_debug())
    } else {
        String::new()
    };
    format!("of {tenant} by {kind}{of} of {session}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue};

    use super::super::{Named, below, named};
    use super::*;

    fn terms() -> impl Strategy<Value = StoredTerm> {
        let word = "[a-e]{1,3}";
        prop_oneof![
            (word, "[a-e\u{1}-\u{3}]{0,3}").prop_filter_map("a label", |(key, value)| {
                let value = LabelValue::parse(&value).ok()?;
                Some(StoredTerm::Label(LabelKey::parse(&key).ok()?, value))
            }),
            (0_u8..3).prop_map(|n| StoredTerm::Parent(SessionId::from_bytes([n; 16]))),
            Just(StoredTerm::Paused),
            Just(StoredTerm::Every),
            word.prop_map(|name| StoredTerm::Workspace(name.parse().unwrap())),
            word.prop_map(|name| StoredTerm::Agent(name.parse().unwrap())),
        ]
    }

    proptest! {
        /// A scan of a term meets the rows of no other term, tenant or kind of record.
        #[test]
        fn the_rows_of_a_term_are_those_below_its_prefix(
            a in terms(), b in terms(), x in "[a-b]{1,2}", y in "[a-b]{1,2}", id: u128,
        ) {
            let (x, y): (TenantId, TenantId) = (x.parse().unwrap(), y.parse().unwrap());
            let session = SessionId::from_bytes(id.to_be_bytes());
            let row = found(&x, &a, session);
            prop_assert_eq!(found_session(&row), Some(session));
            prop_assert_eq!(named(&row), Some(Named::Index(session)));
            let same = (&x, &a) == (&y, &b);
            prop_assert_eq!(below(term(&y, &b)).contains(&row), same);
        }
    }

    #[test]
    fn a_row_that_no_server_writes_is_none_of_the_index() {
        let tenant: TenantId = "t".parse().unwrap();
        let session = SessionId::from_bytes([1; 16]);
        let row = found(&tenant, &StoredTerm::Paused, session);
        for odd in [&row[..row.len() - 1], &row[..4], b"f", b"f\x00p"] {
            assert_eq!(named(odd), None, "{odd:?}");
        }
        let mut other = row.clone();
        other[3] = b'?';
        assert_eq!(named(&other), None);
        let agent = StoredTerm::Agent("coder".parse().unwrap());
        let told = super::super::describe(&found(&tenant, &agent, session));
        assert_eq!(told, format!("index of t by agent coder of {session}"));
    }
}
