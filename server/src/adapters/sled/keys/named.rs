//! Keys read back: what lies under one.

use sessionplane_core::domain::ids::{EntryId, InputId, InteractionId, RunId, SessionId};

use super::{
    ANSWER, AUDIT, BINDING, BINDING_BY_TIME, CHAIN, CHAIN_END, DELETED, ENTRY, EXTERNAL_KEY, HEAD,
    INDEX, INPUT, INTERACTION, LEASE, META, METADATA_AUDIT, NAME, PIECE, ROUND, RUN,
    RUN_OF_SESSION, SESSION, chain, fleet,
};

/// What lies under a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::adapters::sled) enum Named {
    Meta,
    Round,
    Session(SessionId),
    Head(SessionId),
    Name,
    ExternalKey,
    Entry(EntryId),
    Run(RunId),
    /// A mark; of format 1 where it has no first entry.
    RunOfSession {
        session: SessionId,
        first_entry: Option<u64>,
        run: RunId,
    },
    Input(InputId),
    Interaction(InteractionId),
    Binding,
    /// What a change of a session decided.
    Answer(SessionId),
    /// A mark of when a binding was made, in milliseconds.
    BindingByTime(u64),
    Audit(SessionId, u64),
    /// What was done to a session's metadata, by their revision.
    MetadataAudit(SessionId, u64),
    /// A link of a chain of audit records, by its number.
    Chain(u64),
    /// The newest link of one.
    ChainEnd,
    /// A session that is among those of a term.
    Index(SessionId),
    /// A session that is not erased yet.
    Deleted(SessionId),
    Lease(SessionId),
    /// A piece of a long value: its set.
    Piece(u64),
}

/// The kinds, as people and files name them, in the order of their keys.
pub(in crate::adapters::sled) const KINDS: [(u8, &str); 22] = [
    (AUDIT, "audit"),
    (BINDING, "binding"),
    (METADATA_AUDIT, "metadata_audit"),
    (DELETED, "deleted"),
    (ENTRY, "entry"),
    (INDEX, "index"),
    (CHAIN, "chain"),
    (HEAD, "head"),
    (INPUT, "input"),
    (CHAIN_END, "chain_end"),
    (EXTERNAL_KEY, "external_key"),
    (LEASE, "lease"),
    (META, "meta"),
    (NAME, "name"),
    (ANSWER, "answer"),
    (PIECE, "piece"),
    (INTERACTION, "interaction"),
    (RUN, "run"),
    (SESSION, "session"),
    (BINDING_BY_TIME, "binding_by_time"),
    (ROUND, "round"),
    (RUN_OF_SESSION, "run_of_session"),
];

/// The kind of a key.
pub(in crate::adapters::sled) fn kind(key: &[u8]) -> Option<&'static str> {
    let tag = *key.first()?;
    let found = KINDS.iter().find(|(known, _)| *known == tag);
    found.map(|(_, name)| *name)
}

/// Where the kind after that of `key` begins; `None` after the last.
pub(in crate::adapters::sled) fn next_kind(key: &[u8]) -> Option<Vec<u8>> {
    let tag = *key.first()?;
    let next = KINDS.iter().find(|(known, _)| *known > tag);
    next.map(|(known, _)| vec![*known])
}

/// What lies under a key; `None` for a key that no server ever wrote.
pub(in crate::adapters::sled) fn named(key: &[u8]) -> Option<Named> {
    let (&tag, rest) = key.split_first()?;
    Some(match tag {
        META if rest.is_empty() => Named::Meta,
        ROUND if rest.is_empty() => Named::Round,
        SESSION => Named::Session(SessionId::from_bytes(whole(rest)?)),
        HEAD => Named::Head(SessionId::from_bytes(whole(rest)?)),
        LEASE => Named::Lease(SessionId::from_bytes(whole(rest)?)),
        DELETED => Named::Deleted(SessionId::from_bytes(whole(rest)?)),
        INDEX => Named::Index(fleet::indexed(rest)?),
        CHAIN | CHAIN_END => of_chain(key)?,
        RUN => Named::Run(RunId::from_bytes(whole(rest)?)),
        NAME if rest.len() > 1 => Named::Name,
        EXTERNAL_KEY if rest.len() > 1 => Named::ExternalKey,
        BINDING if rest.len() == 32 => Named::Binding,
        ANSWER => {
            let (session, _) = numbered::<32>(rest)?;
            Named::Answer(SessionId::from_bytes(session))
        }
        BINDING_BY_TIME if rest.len() == 40 => {
            Named::BindingByTime(u64::from_be_bytes(*rest.first_chunk()?))
        }
        ENTRY => {
            let (session, seq) = numbered(rest)?;
            Named::Entry(EntryId {
                session: SessionId::from_bytes(session),
                seq: u64::from_be_bytes(seq),
            })
        }
        AUDIT => {
            let (session, ordinal) = numbered(rest)?;
            Named::Audit(SessionId::from_bytes(session), u64::from_be_bytes(ordinal))
        }
        METADATA_AUDIT => {
            let (session, revision) = numbered(rest)?;
            Named::MetadataAudit(SessionId::from_bytes(session), u64::from_be_bytes(revision))
        }
        INPUT => {
            let (run, ordinal) = numbered(rest)?;
            Named::Input(InputId {
                run: RunId::from_bytes(run),
                ordinal: u32::from_be_bytes(ordinal),
            })
        }
        INTERACTION => {
            let (run, ordinal) = numbered(rest)?;
            Named::Interaction(InteractionId {
                run: RunId::from_bytes(run),
                ordinal: u32::from_be_bytes(ordinal),
            })
        }
        RUN_OF_SESSION => {
            let (session, rest) = rest.split_first_chunk()?;
            let (first_entry, run) = if rest.len() == 16 {
                (None, whole(rest)?)
            } else {
                let (seq, run) = rest.split_first_chunk()?;
                (Some(u64::from_be_bytes(*seq)), whole(run)?)
            };
            Named::RunOfSession {
                session: SessionId::from_bytes(*session),
                first_entry,
                run: RunId::from_bytes(run),
            }
        }
        PIECE if rest.len() == 12 => Named::Piece(u64::from_be_bytes(*rest.first_chunk()?)),
        _ => return None,
    })
}

fn of_chain(key: &[u8]) -> Option<Named> {
    let (_, seq) = chain::chained(key)?;
    Some(seq.map_or(Named::ChainEnd, Named::Chain))
}

fn whole(rest: &[u8]) -> Option<[u8; 16]> {
    rest.try_into().ok()
}

fn numbered<const N: usize>(rest: &[u8]) -> Option<([u8; 16], [u8; N])> {
    let (id, number) = rest.split_first_chunk()?;
    Some((*id, number.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::fleet::filter::StoredTerm;

    use super::super as keys;
    use super::*;

    #[test]
    fn every_key_is_read_back_as_what_it_was_made_of() {
        let session = SessionId::from_bytes([1; 16]);
        let run = RunId::from_bytes([2; 16]);
        let entry = EntryId { session, seq: 7 };
        let input = InputId { run, ordinal: 3 };
        let question = InteractionId { run, ordinal: 4 };
        let tenant = "t".parse().unwrap();
        let mark = |first_entry| Named::RunOfSession {
            session,
            first_entry,
            run,
        };
        let former = [keys::runs_of_session(session), run.to_bytes().to_vec()].concat();
        let at = sessionplane_core::domain::time::Timestamp::from_millis(5);
        let table = [
            (keys::meta(), Named::Meta),
            (keys::round(), Named::Round),
            (keys::session(session), Named::Session(session)),
            (keys::head(session), Named::Head(session)),
            (keys::name(&tenant, &"n".parse().unwrap()), Named::Name),
            (
                keys::external_key(&tenant, &"k".parse().unwrap()),
                Named::ExternalKey,
            ),
            (keys::entry(entry), Named::Entry(entry)),
            (keys::run(run), Named::Run(run)),
            (keys::run_of_session(entry, run), mark(Some(7))),
            (former, mark(None)),
            (keys::input(input), Named::Input(input)),
            (keys::interaction(question), Named::Interaction(question)),
            (vec![BINDING; 33], Named::Binding),
            (keys::binding_by_time(at, &[0; 33]), Named::BindingByTime(5)),
            (keys::answer(session, &[0; 33]), Named::Answer(session)),
            (keys::audit(session, 9), Named::Audit(session, 9)),
            (
                keys::metadata_audit(session, 9),
                Named::MetadataAudit(session, 9),
            ),
            (keys::chain_link(&tenant, 9), Named::Chain(9)),
            (keys::chain_end(&tenant), Named::ChainEnd),
            (keys::lease(session), Named::Lease(session)),
            (keys::deleted(session), Named::Deleted(session)),
            (
                keys::found(&tenant, &StoredTerm::Paused, session),
                Named::Index(session),
            ),
            (keys::piece(8, 1), Named::Piece(8)),
        ];
        for (key, expected) in &table {
            assert_eq!(named(key), Some(*expected));
            assert!(kind(key).is_some());
            let longer = [&key[..], b"x"].concat();
            let open = matches!(expected, Named::Name | Named::ExternalKey);
            assert!(open || named(&longer).is_none_or(|other| other != *expected));
        }
        assert_eq!(named(b""), None);
        assert_eq!(named(b"?"), None);
        assert!(KINDS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(next_kind(&[BINDING, 9]), Some(vec![METADATA_AUDIT]));
        assert_eq!(next_kind(&[RUN_OF_SESSION]), None);
    }
}
