//! Names and external keys: one session each, in their tenant only.

use std::collections::HashSet;

use sessionplane_core::domain::ids::{ExternalKey, SessionId, SessionName, SessionRef};
use sessionplane_core::ports::repository::CommitError;

use super::script::{Script, session_id};
use super::{Store, Subject};

async fn create(store: &dyn Store, script: &Script) -> Result<(), CommitError> {
    let token = store.mint().await.unwrap();
    store.commit(script.admit(token, "go")).await
}

async fn resolve(store: &dyn Store, tenant: &str, session: &SessionRef) -> Option<SessionId> {
    let tenant = tenant.parse().unwrap();
    store.resolve(&tenant, session).await.unwrap()
}

fn name(text: &str) -> SessionRef {
    SessionRef::Name(SessionName::parse(text).unwrap())
}

fn key(text: &str) -> SessionRef {
    SessionRef::ExternalKey(ExternalKey::parse(text).unwrap())
}

/// Creates 32 sessions at once; returns the one that was created.
async fn race(subject: &mut dyn Subject, contested: impl Fn(u64) -> Script) -> SessionId {
    let racers: Vec<_> = (0..32)
        .map(|n| {
            let (store, script) = (subject.store(), contested(n));
            tokio::spawn(async move { (script.id(), create(&*store, &script).await) })
        })
        .collect();
    let mut created = Vec::new();
    for racer in racers {
        match racer.await.unwrap() {
            (id, Ok(())) => created.push(id),
            (id, Err(CommitError::AlreadyExists)) => {
                assert_eq!(subject.store().session(id).await, Ok(None));
            }
            (_, Err(other)) => panic!("{other}"),
        }
    }
    assert_eq!(created.len(), 1);
    created[0]
}

/// A race for a name has one winner, and the name is that session's.
pub(crate) async fn one_of_many_gets_a_name(subject: &mut dyn Subject) {
    let winner = race(subject, |n| {
        Script::new(n).named("fix").keyed(&n.to_string())
    })
    .await;
    let store = subject.store();
    assert_eq!(resolve(&*store, "acme", &name("fix")).await, Some(winner));
    for n in 0..32 {
        let expected = (session_id(n) == winner).then_some(winner);
        assert_eq!(
            resolve(&*store, "acme", &key(&n.to_string())).await,
            expected
        );
    }
}

/// A race for an external key has one winner.
pub(crate) async fn one_of_many_gets_an_external_key(subject: &mut dyn Subject) {
    let winner = race(subject, |n| Script::new(n).keyed("ticket/1")).await;
    let store = subject.store();
    let found = resolve(&*store, "acme", &key("ticket/1")).await;
    assert_eq!(found, Some(winner));
    let again = create(&*store, &Script::new(99).keyed("ticket/1")).await;
    assert_eq!(again, Err(CommitError::AlreadyExists));
}

/// The same name in two tenants is two sessions, and an id resolves in its own tenant only.
pub(crate) async fn addresses_resolve_in_their_tenant_only(subject: &mut dyn Subject) {
    let store = subject.store();
    for (n, tenant) in [(1, "acme"), (2, "globex")] {
        let script = Script::new(n).tenant(tenant).named("fix").keyed("K");
        create(&*store, &script).await.unwrap();
    }
    for (tenant, own, other) in [("acme", 1, 2), ("globex", 2, 1)] {
        let by_id = SessionRef::Id(session_id(own));
        let own = Some(session_id(own));
        assert_eq!(resolve(&*store, tenant, &name("fix")).await, own);
        assert_eq!(resolve(&*store, tenant, &key("K")).await, own);
        assert_eq!(resolve(&*store, tenant, &by_id).await, own);
        let other = SessionRef::Id(session_id(other));
        assert_eq!(resolve(&*store, tenant, &other).await, None);
    }
    assert_eq!(resolve(&*store, "initech", &name("fix")).await, None);
    assert_eq!(resolve(&*store, "acme", &key("fix")).await, None);
    assert_eq!(resolve(&*store, "acme", &name("k")).await, None);
}

/// Keys are compared as they are: no normalization, no separator that could be forged.
pub(crate) async fn odd_keys_are_told_apart(subject: &mut dyn Subject) {
    let store = subject.store();
    let long = "x".repeat(256);
    let odd = [
        "\0",
        "\0\0",
        "a\0b",
        "a",
        "A",
        "é",
        "e\u{301}",
        "\u{202e}a",
        "a/",
        "\u{10ffff}",
        &long,
        "\n",
        " ",
        "a ",
    ];
    for (n, text) in (0..).zip(odd) {
        create(&*store, &Script::new(n).keyed(text)).await.unwrap();
    }
    let mut found = HashSet::new();
    for (n, text) in (0..).zip(odd) {
        let id = resolve(&*store, "acme", &key(text)).await;
        assert_eq!(id, Some(session_id(n)), "{text:?}");
        found.insert(id);
    }
    assert_eq!(found.len(), odd.len());
}
