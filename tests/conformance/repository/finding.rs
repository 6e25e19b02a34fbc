//! Sessions are found by indexes: all of a term, in its order, from any place on.

use sessionplane_core::domain::fleet::filter::StoredTerm;
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue};
use sessionplane_core::domain::ids::{SessionId, SessionRef, TenantId};
use sessionplane_core::domain::session::StoredSession;
use sessionplane_core::ports::repository::{FoundSession, SessionPlace, SessionQuery};

use super::script::{Script, session_id};
use super::{Store, Subject};

fn label(key: &str, value: &str) -> StoredTerm {
    let key = LabelKey::parse(key).unwrap();
    StoredTerm::Label(key, LabelValue::parse(value).unwrap())
}

fn agent(name: &str) -> StoredTerm {
    StoredTerm::Agent(name.parse().unwrap())
}

fn workspace(name: &str) -> StoredTerm {
    StoredTerm::Workspace(name.parse().unwrap())
}

fn named(prefix: &str) -> StoredTerm {
    StoredTerm::NamePrefix(prefix.to_owned())
}

fn query(term: &StoredTerm, descending: bool, max: usize) -> SessionQuery {
    SessionQuery {
        tenant: "acme".parse().unwrap(),
        term: term.clone(),
        after: None,
        descending,
        max,
    }
}

/// Where a search goes on after a session.
fn place(term: &StoredTerm, session: &StoredSession) -> SessionPlace {
    match term {
        StoredTerm::NamePrefix(_) => {
            SessionPlace::Name(session.record.metadata.name.clone().unwrap())
        }
        _ => SessionPlace::Id(session.record.id),
    }
}

/// What one search finds. Nobody writes meanwhile, so that what is told of leases can be looked up.
async fn some(store: &dyn Store, query: &SessionQuery) -> Vec<StoredSession> {
    let mut sessions = Vec::new();
    for found in store.find(query.clone()).await.unwrap() {
        let id = found.session.record.id;
        let held = store.holder(id).await.unwrap().is_some();
        let cut = store.cut(id).await.unwrap().is_some();
        assert_eq!(found.leased, held || cut, "{id}");
        looked_up(store, &query.tenant, &found).await;
        sessions.push((*found.session).clone());
    }
    sessions
}

/// Whatever a session is called by, looking it up says what was found, and nothing in another tenant.
async fn looked_up(store: &dyn Store, tenant: &TenantId, found: &FoundSession) {
    let record = &found.session.record;
    let name = record.metadata.name.clone().map(SessionRef::Name);
    let key = record.external_key.clone().map(SessionRef::ExternalKey);
    let names = [Some(SessionRef::Id(record.id)), name, key];
    for reference in names.into_iter().flatten() {
        let there = store.look_up(tenant, &reference).await;
        assert_eq!(there.as_ref(), Ok(&Some(found.clone())), "{reference}");
        let elsewhere = "elsewhere".parse().unwrap();
        assert_eq!(store.look_up(&elsewhere, &reference).await, Ok(None));
    }
}

/// All sessions of a term, page by page; each page but the last is full.
async fn pages(
    store: &dyn Store,
    term: &StoredTerm,
    descending: bool,
    max: usize,
) -> Vec<StoredSession> {
    let mut query = query(term, descending, max);
    let mut all = Vec::new();
    loop {
        let page = some(store, &query).await;
        let full = page.len() == max;
        all.extend(page);
        if !full {
            return all;
        }
        query.after = all.last().map(|last| place(term, last));
    }
}

/// The sessions of a term, in both directions and in pages of several sizes.
async fn found(store: &dyn Store, term: &StoredTerm) -> Vec<StoredSession> {
    let all = pages(store, term, false, 50).await;
    for max in [1, 2, 3] {
        assert_eq!(pages(store, term, false, max).await, all, "{term:?}");
        let mut back = pages(store, term, true, max).await;
        back.reverse();
        assert_eq!(back, all, "{term:?} descending");
    }
    all
}

async fn ids(store: &dyn Store, term: &StoredTerm) -> Vec<SessionId> {
    let found = found(store, term).await;
    found.iter().map(|session| session.record.id).collect()
}

/// Six sessions that differ in all that a term can ask for.
async fn fleet(store: &dyn Store) -> Vec<Script> {
    let mut scripts = vec![
        Script::new(1).named("fix-b").labelled(&[("team", "net")]),
        Script::new(2).named("fix-a").placed("main"),
        Script::new(3).child_of(session_id(1)).of_agent("critic"),
        Script::new(4)
            .named("docs")
            .labelled(&[("team", "net"), ("gpu", "")])
            .placed("main-2"),
        Script::new(5)
            .labelled(&[("team", "netx")])
            .child_of(session_id(1)),
        Script::new(6).named("fix-ab").placed("main"),
    ];
    for script in &mut scripts {
        script.create(store).await;
    }
    for n in [1, 4] {
        let pause = scripts[n].pause(true);
        scripts[n].set(store, pause).await.unwrap();
    }
    scripts
}

pub(crate) async fn sessions_are_found_by_each_term_in_both_directions(subject: &mut dyn Subject) {
    let scripts = fleet(&*subject.store()).await;
    let table: [(StoredTerm, &[u64]); 14] = [
        (StoredTerm::Every, &[1, 2, 3, 4, 5, 6]),
        (agent("coder"), &[1, 2, 4, 5, 6]),
        (agent("critic"), &[3]),
        (agent("code"), &[]),
        (label("team", "net"), &[1, 4]),
        (label("team", "netx"), &[5]),
        (label("gpu", ""), &[4]),
        (label("team", ""), &[]),
        (StoredTerm::Paused, &[2, 5]),
        (StoredTerm::Parent(session_id(1)), &[3, 5]),
        (workspace("main"), &[2, 6]),
        (named("fix"), &[2, 6, 1]),
        (named(""), &[4, 2, 6, 1]),
        (named("g"), &[]),
    ];
    for _ in 0..2 {
        let store = subject.store();
        for (term, expected) in &table {
            let expected = expected
                .iter()
                .map(|n| scripts[usize::try_from(*n).unwrap() - 1].stored());
            let expected: Vec<_> = expected.collect();
            assert_eq!(found(&*store, term).await, expected, "{term:?}");
        }
        subject.reopen().await;
    }
}

/// A reader that holds a place misses nothing that comes after it, though what was there is gone.
pub(crate) async fn c47_a_search_goes_on_after_a_place_that_is_gone(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut scripts = fleet(&*store).await;
    let every = StoredTerm::Every;
    let mut by_id = query(&every, false, 2);
    let first = some(&*store, &by_id).await;
    by_id.after = Some(place(&every, &first[1]));
    let mut by_name = query(&named("fix"), true, 2);
    let last = some(&*store, &by_name).await;
    by_name.after = Some(place(&named("fix"), &last[1]));
    // Both places are the sessions' numbered 2 and 6.
    let token = store.mint().await.unwrap();
    store.delete(scripts[1].delete(token)).await.unwrap();
    let rename = scripts[5].rename(Some("other"));
    scripts[5].set(&*store, rename).await.unwrap();
    let next = some(&*store, &by_id).await;
    assert_eq!(next, [scripts[2].stored(), scripts[3].stored()]);
    by_id.descending = true;
    let back = some(&*store, &by_id).await;
    assert_eq!(back, [scripts[0].stored()]);
    assert_eq!(store.find(by_name.clone()).await, Ok(Vec::new()));
    by_name.descending = false;
    let forth = some(&*store, &by_name).await;
    assert_eq!(forth, [scripts[0].stored()]);
    // A place in another order is none in this one.
    by_id.descending = false;
    by_id.after = Some(SessionPlace::Name("zz".parse().unwrap()));
    assert_eq!(some(&*store, &by_id).await[0], scripts[0].stored());
}

/// Indexes follow labels, pause, names and places from step to step.
pub(crate) async fn a_session_is_found_by_what_it_is_now(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut script = Script::new(1)
        .labelled(&[("a", "1"), ("b", "2")])
        .placed("main");
    script.create(&*store).await;
    let id = [script.id()];
    let relabel = script.relabel(&[("b", "2"), ("a", "2")]);
    script.set(&*store, relabel).await.unwrap();
    let rename = script.rename(Some("fix"));
    script.set(&*store, rename).await.unwrap();
    let there = script.go_to(store.mint().await.unwrap(), Some("other"));
    script.write(&*store, there).await.unwrap();
    for _ in 0..2 {
        let store = subject.store();
        for kept in [
            label("a", "2"),
            label("b", "2"),
            named("f"),
            workspace("other"),
            StoredTerm::Every,
        ] {
            assert_eq!(ids(&*store, &kept).await, id, "{kept:?}");
        }
        for gone in [label("a", "1"), workspace("main"), StoredTerm::Paused] {
            assert_eq!(ids(&*store, &gone).await, [], "{gone:?}");
        }
        subject.reopen().await;
    }
    let store = subject.store();
    let back = script.go_to(store.mint().await.unwrap(), Some("main"));
    script.write(&*store, back).await.unwrap();
    assert_eq!(ids(&*store, &workspace("main")).await, id);
    let away = script.go_to(store.mint().await.unwrap(), None);
    script.write(&*store, away).await.unwrap();
    for gone in [workspace("main"), workspace("other")] {
        assert_eq!(ids(&*store, &gone).await, [], "{gone:?}");
    }
    drop(store);
    // A row that nobody finds it by is not left either.
    subject.is_whole().await;
}

/// Names and labels alike, tenants whose names begin with one another's: nobody sees the other.
pub(crate) async fn no_tenant_finds_the_sessions_of_another(subject: &mut dyn Subject) {
    let store = subject.store();
    for (n, tenant) in [(1, "acme"), (2, "acm"), (3, "acme-e"), (4, "acme")] {
        let mut script = Script::new(n)
            .tenant(tenant)
            .named(&format!("fix-{n}"))
            .labelled(&[("team", "net")])
            .placed("main");
        script.create(&*store).await;
        let pause = script.pause(true);
        script.set(&*store, pause).await.unwrap();
    }
    for term in [
        StoredTerm::Every,
        StoredTerm::Paused,
        agent("coder"),
        label("team", "net"),
        workspace("main"),
        named("fix"),
        named(""),
    ] {
        let expected = [session_id(1), session_id(4)];
        assert_eq!(ids(&*store, &term).await, expected, "{term:?}");
    }
}

/// More than a store reads at once, with many that are gone in between.
pub(crate) async fn more_sessions_than_a_page_are_found_one_by_one(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut left = Vec::new();
    for n in 0..300 {
        let mut script = Script::new(n);
        let choose = script.choose(store.mint().await.unwrap(), "large");
        let mut create = choose;
        create.create = Some(script.record.clone());
        script.write(&*store, create).await.unwrap();
        if n % 3 == 0 {
            left.push(script.id());
        } else {
            let token = store.mint().await.unwrap();
            store.delete(script.delete(token)).await.unwrap();
        }
    }
    for max in [7, 300] {
        for descending in [false, true] {
            let found = pages(&*store, &StoredTerm::Every, descending, max).await;
            let mut found: Vec<_> = found.iter().map(|it| it.record.id).collect();
            if descending {
                found.reverse();
            }
            assert_eq!(found, left);
        }
    }
}

/// Between the first and the last of a page any number of others may run: whether a session is held is its
/// own matter.
pub(crate) async fn c44_sessions_are_found_with_their_leases_among_many_that_run(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    let mut wanted = Vec::new();
    for n in 0..351 {
        let mut script = Script::new(n);
        if n % 50 == 0 {
            script = script.labelled(&[("team", "net")]);
            wanted.push(script.id());
        }
        let admit = script.admit(store.mint().await.unwrap(), "go");
        script.write(&*store, admit).await.unwrap();
        if n % 100 == 0 {
            let settle = script.settle();
            script.write(&*store, settle).await.unwrap();
        }
    }
    for max in [2, 300] {
        let found = pages(&*store, &label("team", "net"), false, max).await;
        let found: Vec<_> = found.iter().map(|it| it.record.id).collect();
        assert_eq!(found, wanted);
    }
}
