//! What of the fleet happens in random histories: names and labels change, sessions end and are
//! erased, and searches find exactly those that are there.

use proptest::prelude::*;
use sessionplane_core::domain::audit::AuditRecord;
use sessionplane_core::domain::commit::{Commit, MetadataCommit};
use sessionplane_core::domain::fleet::filter::StoredTerm;
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue};
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::session::StoredSession;
use sessionplane_core::ports::repository::{
    DeletedSession, EntryRange, SessionPlace, SessionQuery,
};

use super::{Expected, Model, SESSIONS, Script, Store, Subject, kind};

/// What happens to a session beside its runs.
#[derive(Clone, Debug)]
pub(crate) enum Verb {
    /// It takes a name out of few, or none.
    Rename(u8),
    /// It takes a label out of few, in place of all.
    Relabel(u8),
    /// It is paused, or not.
    Pause(bool),
    /// Somebody who missed a change of metadata speaks up.
    Behind,
    /// It ends, and another one takes its place.
    Delete,
}

pub(super) fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        3 => (0_u8..4).prop_map(Verb::Rename),
        2 => (0_u8..3).prop_map(Verb::Relabel),
        2 => any::<bool>().prop_map(Verb::Pause),
        1 => Just(Verb::Behind),
        2 => Just(Verb::Delete),
    ]
}

/// A session that was deleted.
pub(super) struct Gone {
    script: Script,
    pub(super) commits: Vec<Commit>,
    changes: Vec<AuditRecord>,
    ended: AuditRecord,
    /// Entries that are left; none once it is erased.
    left: Option<u64>,
}

/// Does it to all subjects and the model.
pub(super) async fn happen(
    model: &mut Model,
    n: usize,
    verb: &Verb,
    subjects: &[Box<dyn Subject>],
    token: LeaseToken,
) {
    model.now += 10;
    model.scripts[n].now = model.now;
    if matches!(verb, Verb::Delete) {
        return delete(model, n, subjects, token).await;
    }
    let (change, expected) = decide(model, n, verb);
    for subject in subjects {
        let result = subject.store().commit_metadata(change.clone()).await;
        assert_eq!(kind(&result), expected, "{verb:?}");
    }
    if expected == Expected::Ok {
        model.scripts[n].record.metadata = change.metadata;
        model.changes[n].push(change.audit);
    }
}

fn decide(model: &Model, n: usize, verb: &Verb) -> (MetadataCommit, Expected) {
    let script = &model.scripts[n];
    let mut expected = Expected::Ok;
    let change = match verb {
        Verb::Rename(0) => script.rename(None),
        Verb::Rename(k) => {
            let name = format!("r{k}");
            let others = model.scripts.iter().filter(|it| it.id() != script.id());
            let mut named = others.filter_map(|it| it.record.metadata.name.as_ref());
            if named.any(|other| other.as_str() == name) {
                expected = Expected::AlreadyExists;
            }
            script.rename(Some(&name))
        }
        Verb::Relabel(k) => script.relabel(&[("team", &k.to_string())]),
        Verb::Pause(paused) => script.pause(*paused),
        Verb::Behind | Verb::Delete => {
            let mut behind = script.pause(true);
            behind.expected -= 1;
            behind.metadata.revision -= 1;
            behind.audit.ordinal -= 1;
            expected = Expected::MetadataConflict;
            behind
        }
    };
    if !script.created {
        expected = Expected::NoSuchSession;
    }
    (change, expected)
}

async fn delete(model: &mut Model, n: usize, subjects: &[Box<dyn Subject>], token: LeaseToken) {
    let script = &model.scripts[n];
    let deletion = script.delete(token);
    let expected = if !script.created {
        Expected::NoSuchSession
    } else if model.live[n] || script.run.is_some() || script.boundary {
        Expected::Fenced
    } else {
        Expected::Ok
    };
    for subject in subjects {
        let result = subject.store().delete(deletion.clone()).await;
        assert_eq!(kind(&result), expected);
    }
    if expected != Expected::Ok {
        return;
    }
    model.born += 1;
    let mut next = fresh(n as u64, model.born);
    next.now = model.now;
    let script = std::mem::replace(&mut model.scripts[n], next);
    model.gone.push(Gone {
        left: Some(script.head.entries),
        script,
        commits: std::mem::take(&mut model.accepted[n]),
        changes: std::mem::take(&mut model.changes[n]),
        ended: deletion.audit,
    });
}

/// A session that is called like those before it in its place.
pub(super) fn fresh(n: u64, born: u64) -> Script {
    Script::new(n + born * SESSIONS)
        .named(&format!("s{n}"))
        .keyed(&format!("k{n}"))
}

/// Erases of the first deleted session, down to so many entries or to the end.
pub(super) async fn erase(model: &mut Model, keep: u64, max: usize, subjects: &[Box<dyn Subject>]) {
    let Some(gone) = first(&mut model.gone) else {
        return;
    };
    let session = gone.script.id();
    let entries = gone.left.unwrap_or_default();
    for subject in subjects {
        let store = subject.store();
        if keep > 0 {
            assert_eq!(store.erase(session, keep, max).await, Ok(false));
            continue;
        }
        let mut steps = 0;
        while !store.erase(session, 0, max).await.unwrap() {
            steps += 1;
            assert!(steps < 1000, "it comes to no end");
        }
    }
    let least = entries.saturating_sub(max as u64);
    gone.left = (keep > 0).then_some(entries.min(keep.max(least)));
}

/// The one with the least id of those that are not erased.
fn first(gone: &mut [Gone]) -> Option<&mut Gone> {
    let left = gone.iter_mut().filter(|gone| gone.left.is_some());
    left.min_by_key(|gone| gone.script.id())
}

/// Nothing finds what is gone; its trail stays, and so much of it as was not erased.
pub(super) async fn gone_agree(model: &Model, store: &dyn Store) {
    let left = model.gone.iter().filter(|gone| gone.left.is_some());
    let first = left.min_by_key(|gone| gone.script.id());
    let deleted = first.map(|gone| DeletedSession {
        session: gone.script.id(),
        entries: gone.left.unwrap_or_default(),
    });
    assert_eq!(store.deleted(None).await, Ok(deleted));
    for gone in &model.gone {
        let script = &gone.script;
        assert_eq!(store.session(script.id()).await, Ok(None));
        let by_id = SessionRef::Id(script.id());
        let found = store.resolve(&script.record.tenant, &by_id).await;
        assert_eq!(found, Ok(None));
        let audits = gone.commits.iter().flat_map(|commit| commit.audits.clone());
        let audits: Vec<_> = audits.chain([gone.ended.clone()]).collect();
        assert_eq!(store.audits(script.id()).await.unwrap(), audits);
        let changes = store.metadata_audits(script.id()).await.unwrap();
        assert_eq!(changes, gone.changes);
        let range = EntryRange {
            after: 0,
            up_to: u64::MAX,
            max_entries: usize::MAX,
            max_bytes: usize::MAX,
        };
        let entries = store.entries(script.id(), range).await.unwrap();
        let all = gone.commits.iter().flat_map(|commit| &commit.entries);
        let left = usize::try_from(gone.left.unwrap_or_default()).unwrap();
        assert!(entries.iter().eq(all.take(left)));
    }
}

/// Each term finds exactly the sessions that have it, in both directions, in pages of two.
pub(super) async fn found_agree(model: &Model, store: &dyn Store) {
    let label = |value: &str| {
        let key = LabelKey::parse("team").unwrap();
        StoredTerm::Label(key, LabelValue::parse(value).unwrap())
    };
    for term in [
        StoredTerm::Every,
        StoredTerm::Paused,
        StoredTerm::Agent("coder".parse().unwrap()),
        StoredTerm::Workspace("w1".parse().unwrap()),
        StoredTerm::Workspace("w2".parse().unwrap()),
        StoredTerm::NamePrefix(String::new()),
        StoredTerm::NamePrefix("r".to_owned()),
        label("0"),
        label("1"),
    ] {
        let created = model.scripts.iter().filter(|script| script.created);
        let created = created.map(Script::stored);
        let mut expected: Vec<_> = created.filter(|stored| term.has(stored)).collect();
        expected.sort_by_key(|stored| place(&term, stored));
        for descending in [false, true] {
            let found = pages(store, &term, descending).await;
            assert_eq!(found, expected, "{term:?} descending: {descending}");
            expected.reverse();
        }
    }
}

fn place(term: &StoredTerm, session: &StoredSession) -> SessionPlace {
    match (term, &session.record.metadata.name) {
        (StoredTerm::NamePrefix(_), Some(name)) => SessionPlace::Name(name.clone()),
        _ => SessionPlace::Id(session.record.id),
    }
}

async fn pages(store: &dyn Store, term: &StoredTerm, descending: bool) -> Vec<StoredSession> {
    let mut query = SessionQuery {
        tenant: "acme".parse().unwrap(),
        term: term.clone(),
        after: None,
        descending,
        max: 2,
    };
    let mut all = Vec::new();
    loop {
        let page = store.find(query.clone()).await.unwrap();
        let full = page.len() == 2;
        for found in page {
            let id = found.session.record.id;
            let held = store.holder(id).await.unwrap().is_some();
            let cut = store.cut(id).await.unwrap().is_some();
            assert_eq!(found.leased, held || cut, "{id}");
            all.push((*found.session).clone());
        }
        if !full {
            return all;
        }
        query.after = all.last().map(|last| place(term, last));
    }
}
