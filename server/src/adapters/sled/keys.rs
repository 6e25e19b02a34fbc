//! Where each record lies: one tree, a tag byte, then ids as bytes in big-endian order, so that key
//! order is append order and a session's records lie together. No value is known here.

use std::fmt::Write as _;
use std::ops::Range;

use sessionplane_core::domain::binding::BindingKey;
use sessionplane_core::domain::ids::{
    EntryId, ExternalKey, InputId, InteractionId, RunId, SessionId, SessionName, TenantId,
};
use sessionplane_core::domain::time::Timestamp;
use sha2::{Digest as _, Sha256};

mod chain;
mod fleet;
mod named;

pub(super) use chain::{chain, chain_end, chain_ends, chain_link, chained, placed};
pub(super) use fleet::{
    deleted, deletions, found, found_session, indexes, metadata_audit, metadata_audits_of_session,
    term,
};
pub(super) use named::{KINDS, Named, kind, named, next_kind};

/// A key as bytes.
pub(super) type Key = Vec<u8>;

const META: u8 = b'm';
const ROUND: u8 = b'w';
const SESSION: u8 = b's';
const HEAD: u8 = b'h';
const NAME: u8 = b'n';
const EXTERNAL_KEY: u8 = b'k';
const ENTRY: u8 = b'e';
const RUN: u8 = b'r';
const RUN_OF_SESSION: u8 = b'x';
const INPUT: u8 = b'i';
const BINDING: u8 = b'b';
const BINDING_BY_TIME: u8 = b't';
const AUDIT: u8 = b'a';
const LEASE: u8 = b'l';
const PIECE: u8 = b'p';
const INTERACTION: u8 = b'q';
const METADATA_AUDIT: u8 = b'c';
const DELETED: u8 = b'd';
const INDEX: u8 = b'f';
const ANSWER: u8 = b'o';
const CHAIN: u8 = b'g';
const CHAIN_END: u8 = b'j';

fn join<const N: usize>(tag: u8, parts: [&[u8]; N]) -> Key {
    let mut key = vec![tag];
    for part in parts {
        key.extend_from_slice(part);
    }
    key
}

/// The store's own record.
pub(super) fn meta() -> Key {
    vec![META]
}

/// The number of the newest round.
pub(super) fn round() -> Key {
    vec![ROUND]
}

/// Who a session is.
pub(super) fn session(id: SessionId) -> Key {
    join(SESSION, [&id.to_bytes()])
}

/// The prefix of all sessions.
pub(super) fn sessions() -> Key {
    vec![SESSION]
}

/// Where a session stands.
pub(super) fn head(id: SessionId) -> Key {
    join(HEAD, [&id.to_bytes()])
}

/// The prefix of all heads.
pub(super) fn heads() -> Key {
    vec![HEAD]
}

/// The session of that name.
pub(super) fn name(tenant: &TenantId, name: &SessionName) -> Key {
    in_tenant(NAME, tenant, name.as_str())
}

/// The session of that external key.
pub(super) fn external_key(tenant: &TenantId, key: &ExternalKey) -> Key {
    in_tenant(EXTERNAL_KEY, tenant, key.as_str())
}

/// All keys that begin with a prefix.
pub(super) fn below(prefix: Key) -> Range<Key> {
    let mut end = prefix.clone();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    prefix..end
}

/// Where the keys after one begin.
pub(super) fn after(key: &[u8]) -> Key {
    [key, &[0]].concat()
}

/// The tenant's length goes first, so that no two pairs give the same bytes.
fn in_tenant(tag: u8, tenant: &TenantId, text: &str) -> Key {
    let length = u8::try_from(tenant.as_str().len()).unwrap_or(u8::MAX);
    join(
        tag,
        [&[length], tenant.as_str().as_bytes(), text.as_bytes()],
    )
}

/// An entry.
pub(super) fn entry(id: EntryId) -> Key {
    join(ENTRY, [&id.session.to_bytes(), &id.seq.to_be_bytes()])
}

/// The prefix of a session's entries.
pub(super) fn entries_of_session(session: SessionId) -> Key {
    join(ENTRY, [&session.to_bytes()])
}

/// A run.
pub(super) fn run(id: RunId) -> Key {
    join(RUN, [&id.to_bytes()])
}

/// Marks that a run is the session's. Marks sort by the run's first entry, which is the order of
/// admission whatever the clock did.
pub(super) fn run_of_session(first_entry: EntryId, run: RunId) -> Key {
    join(
        RUN_OF_SESSION,
        [
            &first_entry.session.to_bytes(),
            &first_entry.seq.to_be_bytes(),
            &run.to_bytes(),
        ],
    )
}

/// A session's run marks before the run with that first entry; all without one.
pub(super) fn runs_before(session: SessionId, first_entry: Option<EntryId>) -> Range<Key> {
    let end = first_entry.map_or(u64::MAX, |id| id.seq);
    runs_of_session(session)..join(RUN_OF_SESSION, [&session.to_bytes(), &end.to_be_bytes()])
}

/// The prefix of all run marks.
pub(super) fn run_marks() -> Key {
    vec![RUN_OF_SESSION]
}

/// Whether a run mark is of format 1, which has no first entry in it and sorts by the run's id.
pub(super) fn is_unordered(mark: &[u8]) -> bool {
    mark.len() == 1 + 16 + 16
}

/// The prefix of a session's run marks.
pub(super) fn runs_of_session(session: SessionId) -> Key {
    join(RUN_OF_SESSION, [&session.to_bytes()])
}

/// The run that a session's run mark names.
pub(super) fn marked_run(key: &[u8]) -> Option<RunId> {
    tail(key).map(RunId::from_bytes)
}

/// A dispatched input.
pub(super) fn input(id: InputId) -> Key {
    join(INPUT, [&id.run.to_bytes(), &id.ordinal.to_be_bytes()])
}

/// An interaction.
pub(super) fn interaction(id: InteractionId) -> Key {
    join(INTERACTION, [&id.run.to_bytes(), &id.ordinal.to_be_bytes()])
}

/// The prefix of a run's interactions.
pub(super) fn interactions_of_run(run: RunId) -> Key {
    join(INTERACTION, [&run.to_bytes()])
}

/// The prefix of a run's inputs.
pub(super) fn inputs_of_run(run: RunId) -> Key {
    join(INPUT, [&run.to_bytes()])
}

/// The prefix of all bindings.
pub(super) fn bindings() -> Key {
    vec![BINDING]
}

/// A binding, by the digest of its key: of bounded length whatever a caller sends. The record
/// holds the whole key, and a reader compares it.
pub(super) fn binding(key: &BindingKey) -> Key {
    let mut digest = Sha256::new();
    for part in [
        key.tenant.as_str(),
        key.principal.as_str(),
        key.method.as_str(),
        key.request_id.as_str(),
    ] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    join(BINDING, [digest.finalize().as_slice()])
}

/// What a change of a session decided; `binding` is the key of the call's binding.
pub(super) fn answer(session: SessionId, binding: &[u8]) -> Key {
    join(ANSWER, [&session.to_bytes(), &binding[1..]])
}

/// The prefix of what the changes of a session decided.
pub(super) fn answers_of_session(session: SessionId) -> Key {
    join(ANSWER, [&session.to_bytes()])
}

/// The key of the binding that an answer is of.
pub(super) fn answered_binding(answer: &[u8]) -> Option<Key> {
    tail::<32>(answer).map(|digest| join(BINDING, [&digest]))
}

/// Marks when a binding was made; `binding` is the binding's key.
pub(super) fn binding_by_time(at: Timestamp, binding: &[u8]) -> Key {
    join(
        BINDING_BY_TIME,
        [&at.as_millis().to_be_bytes(), &binding[1..]],
    )
}

/// The marks of all bindings made before `end`.
pub(super) fn bindings_before(end: Timestamp) -> Range<Key> {
    vec![BINDING_BY_TIME]..join(BINDING_BY_TIME, [&end.as_millis().to_be_bytes()])
}

/// The key of the binding that a time mark names.
pub(super) fn marked_binding(mark: &[u8]) -> Option<Key> {
    tail::<32>(mark).map(|digest| join(BINDING, [&digest]))
}

/// An audit record.
pub(super) fn audit(session: SessionId, ordinal: u64) -> Key {
    join(AUDIT, [&session.to_bytes(), &ordinal.to_be_bytes()])
}

/// The prefix of all audit records of sessions.
pub(super) fn audits() -> Key {
    vec![AUDIT]
}

/// The prefix of all audit records of metadata.
pub(super) fn metadata_audits() -> Key {
    vec![METADATA_AUDIT]
}

/// The prefix of a session's audit records.
pub(super) fn audits_of_session(session: SessionId) -> Key {
    join(AUDIT, [&session.to_bytes()])
}

/// The lease of a session; there only while it is held.
pub(super) fn lease(session: SessionId) -> Key {
    join(LEASE, [&session.to_bytes()])
}

/// The prefix of all held leases: the index of running sessions.
pub(super) fn leases() -> Key {
    vec![LEASE]
}

/// One piece of a long value.
pub(super) fn piece(set: u64, index: u32) -> Key {
    join(PIECE, [&set.to_be_bytes(), &index.to_be_bytes()])
}

fn tail<const N: usize>(key: &[u8]) -> Option<[u8; N]> {
    key.last_chunk().copied()
}

/// A key for people: its kind and its ids.
pub(super) fn describe(key: &[u8]) -> String {
    let Some((&tag, rest)) = key.split_first() else {
        return "without a key".to_owned();
    };
    let kind = match tag {
        META => return "of the store itself".to_owned(),
        ROUND => return "of the newest round".to_owned(),
        _ => kind(key).unwrap_or("unknown"),
    };
    let id = match (tag, rest.split_first_chunk::<16>()) {
        (
            SESSION | HEAD | ENTRY | RUN | INPUT | INTERACTION | AUDIT | METADATA_AUDIT | LEASE
            | DELETED,
            Some((id, number)),
        ) => {
            let number = number.iter().fold(0_u64, |n, b| (n << 8) | u64::from(*b));
            match tag {
                ENTRY | INPUT | INTERACTION | AUDIT | METADATA_AUDIT => {
                    format!("{}-{number}", SessionId::from_bytes(*id))
                }
                _ => SessionId::from_bytes(*id).to_string(),
            }
        }
        (INDEX, _) => fleet::describe(rest),
        (CHAIN | CHAIN_END, _) => match chain::chained(key) {
            Some((tenant, Some(seq))) => format!("{tenant}-{seq}"),
            Some((tenant, None)) => tenant.to_string(),
            None => "of nobody".to_owned(),
        },
        (NAME | EXTERNAL_KEY, _) => String::from_utf8_lossy(rest.get(1..).unwrap_or_default())
            .escape_debug()
            .to_string(),
        _ => rest.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        }),
    };
    format!("{kind} {id}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sessionplane_core::domain::binding::Method;

    use super::*;

    fn session_id(n: u128) -> SessionId {
        SessionId::from_bytes(n.to_be_bytes())
    }

    proptest! {
        #[test]
        fn entries_sort_as_they_were_appended(session: u128, a: u64, b: u64) {
            let key = |seq| entry(EntryId { session: session_id(session), seq });
            prop_assert_eq!(a.cmp(&b), key(a).cmp(&key(b)));
        }

        #[test]
        fn no_two_addresses_share_a_key(
            a in "[a-z]{1,4}", b in "\\PC{1,4}", c in "[a-z]{1,4}", d in "\\PC{1,4}",
        ) {
            let key = |tenant: &str, text: &str| {
                external_key(&TenantId::parse(tenant).unwrap(), &ExternalKey::parse(text).unwrap())
            };
            prop_assert_eq!((&a, &b) == (&c, &d), key(&a, &b) == key(&c, &d));
        }
    }

    #[test]
    fn every_part_of_a_request_key_counts() {
        let key = |tenant: &str, principal: &str, method, request: &str| {
            binding(&BindingKey {
                tenant: tenant.parse().unwrap(),
                principal: principal.parse().unwrap(),
                method,
                request_id: request.parse().unwrap(),
            })
        };
        let base = key("a", "bc", Method::Invoke, "d");
        for other in [
            key("ab", "c", Method::Invoke, "d"),
            key("a", "b", Method::Invoke, "cd"),
            key("a", "bc", Method::Dispatch, "d"),
            key("a", "bc", Method::Invoke, "e"),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn a_time_mark_names_its_binding() {
        let key = join(BINDING, [&[7; 32]]);
        let mark = binding_by_time(Timestamp::from_millis(5), &key);
        assert_eq!(marked_binding(&mark), Some(key));
        assert!(bindings_before(Timestamp::from_millis(6)).contains(&mark));
        assert!(!bindings_before(Timestamp::from_millis(5)).contains(&mark));
    }

    #[test]
    fn a_range_has_what_begins_with_its_prefix_and_nothing_else() {
        let has = |range: &Range<Key>, key: &[u8]| range.contains(&key.to_vec());
        let range = below(vec![7, 255]);
        assert!(has(&range, &[7, 255]) && has(&range, &[7, 255, 255, 255]));
        assert!(!has(&range, &[8]) && !has(&range, &[7, 254, 255]));
    }

    #[test]
    fn a_damaged_record_is_named_in_words() {
        let session = session_id(1);
        let id = EntryId { session, seq: 258 };
        assert_eq!(describe(&entry(id)), format!("entry {session}-258"));
        assert_eq!(describe(&head(session)), format!("head {session}"));
        assert_eq!(describe(&meta()), "of the store itself");
        assert_eq!(describe(&piece(1, 2)), "piece 000000000000000100000002");
    }
}
