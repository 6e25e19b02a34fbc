//! Audit records are links of their tenant's chain from the step in which they are kept.

use std::sync::Arc;

use sessionplane_core::domain::audit::{
    ChainRecord, Link, Refusal, RefusalKind, Refused, Sealed, Series, Verifier, genesis,
};
use sessionplane_core::domain::ids::TenantId;
use sessionplane_core::domain::time::Timestamp;

use super::script::{Script, said};
use super::{Store, Subject};

fn tenant(name: &str) -> TenantId {
    name.parse().unwrap()
}

/// Reads a tenant's chain by pages of any size, verified from its genesis to its noted end.
async fn verified(store: &dyn Store, of: &TenantId, page: usize) -> Vec<ChainRecord> {
    let hash = genesis(store.store_id(), of);
    let mut verifier = Verifier::after(of.as_str(), Link { seq: 0, hash });
    let mut records = Vec::new();
    loop {
        let links = store.links(of, verifier.at().seq, page).await.unwrap();
        if links.is_empty() {
            break;
        }
        for link in links {
            let sealed = Sealed {
                record: link.record.expect("it is read"),
                previous: link.previous,
                hash: link.hash,
            };
            verifier.next(&sealed).unwrap();
            records.push(sealed.record);
        }
    }
    let end = store.chain_end(of).await.unwrap();
    if let Some(end) = end {
        verifier.ends(end).unwrap();
    }
    assert_eq!(end.map_or(0, |end| end.seq), records.len() as u64);
    records
}

/// A session that ran once, and whose name was changed.
async fn worked(store: &dyn Store, n: u64) -> Script {
    let mut script = Script::new(n).named(&format!("fix-{n}"));
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(store, admit).await.unwrap();
    let say = script.say(vec![said("done")]);
    script.write(store, say).await.unwrap();
    let settle = script.settle();
    script.write(store, settle).await.unwrap();
    let pause = script.pause(true);
    script.set(store, pause).await.unwrap();
    script
}

/// What the chain has to say of a session, out of the records that are kept of it.
async fn of_session(store: &dyn Store, script: &Script) -> Vec<ChainRecord> {
    let mut records = Vec::new();
    for (series, audits) in [
        (Series::Session, store.audits(script.id()).await.unwrap()),
        (
            Series::Metadata,
            store.metadata_audits(script.id()).await.unwrap(),
        ),
    ] {
        records.extend(audits.iter().map(|it| ChainRecord::of_write(0, series, it)));
    }
    records
}

/// The records of a chain without their numbers, in some order.
fn told(records: &[ChainRecord]) -> Vec<String> {
    let mut told: Vec<_> = records
        .iter()
        .map(|it| {
            format!(
                "{:?}",
                ChainRecord {
                    seq: 0,
                    ..it.clone()
                }
            )
        })
        .collect();
    told.sort();
    told
}

/// One record, one link: none is missing, none is there twice, whoever reads it and whatever is opened
/// in between.
pub(crate) async fn c56_each_record_is_the_next_link_of_its_chain(subject: &mut dyn Subject) {
    let store = subject.store();
    let of = Script::new(1).record.tenant;
    assert_eq!(store.chain_end(&of).await, Ok(None));
    assert_eq!(store.links(&of, 0, 10).await, Ok(Vec::new()));
    let scripts = [worked(&*store, 1).await, worked(&*store, 2).await];
    subject.reopen().await;
    let store = subject.store();
    let third = worked(&*store, 3).await;
    let mut expected = Vec::new();
    for script in scripts.iter().chain([&third]) {
        expected.extend(of_session(&*store, script).await);
    }
    for page in [1, 2, 7, 1000] {
        let records = verified(&*store, &of, page).await;
        assert_eq!(told(&records), told(&expected));
    }
    for script in &scripts {
        let own = store.links_of_session(script.id(), 0, 100).await.unwrap();
        let all = verified(&*store, &of, 100).await;
        let mine = all.iter().filter(|it| it.session == Some(script.id()));
        assert_eq!(own, mine.map(|it| it.seq).collect::<Vec<_>>());
        for (read, seq) in own.iter().enumerate() {
            let after = store.links_of_session(script.id(), *seq, 100).await;
            assert_eq!(after.as_deref(), Ok(&own[read + 1..]));
            let first = store.links_of_session(script.id(), *seq - 1, 1).await;
            assert_eq!(first, Ok(vec![*seq]));
        }
    }
    subject.is_whole().await;
}

/// A refused commit leaves no link, and no gap.
pub(crate) async fn c56_what_is_not_kept_is_not_sealed(subject: &mut dyn Subject) {
    let store = subject.store();
    let script = worked(&*store, 1).await;
    let end = store.chain_end(&script.record.tenant).await.unwrap();
    let mut again = Script::new(2).named("fix-1");
    let admit = again.admit(store.mint().await.unwrap(), "go");
    assert!(
        again.write(&*store, admit).await.is_err(),
        "the name is taken"
    );
    assert_eq!(store.chain_end(&script.record.tenant).await, Ok(end));
    worked(&*store, 3).await;
    verified(&*store, &script.record.tenant, 100).await;
}

/// Many at a time are sealed one after the other.
pub(crate) async fn c56_commits_at_one_time_are_links_one_after_the_other(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    let tasks = (1..20).map(|n| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { worked(&*store, n).await })
    });
    let mut of = None;
    for task in tasks.collect::<Vec<_>>() {
        of = Some(task.await.unwrap().record.tenant);
    }
    let of = of.unwrap();
    let before = verified(&*store, &of, 50).await;
    assert_eq!(before.len(), 19 * 4);
    subject.reopen().await;
    let after = verified(&*subject.store(), &of, 50).await;
    assert_eq!(before, after);
    subject.is_whole().await;
}

fn refusal(of: &str, action: &str, who: Refused) -> Refusal {
    Refusal {
        tenant: tenant(of),
        first_at: Timestamp::from_millis(5),
        last_at: Timestamp::from_millis(9),
        kind: RefusalKind::Denied,
        who,
        via: None,
        action: action.into(),
        reason: "PERMISSION_DENIED".into(),
        session: None,
        policies: vec!["forbid-ci".to_owned()].into(),
        count: 3,
    }
}

/// Refusals are links of the chain of their tenant, which no other tenant's touches.
pub(crate) async fn c56_refusals_are_links_of_their_tenants_chain(subject: &mut dyn Subject) {
    let store = subject.store();
    let script = worked(&*store, 1).await;
    let known = Refused::Known {
        principal: "ci".parse().unwrap(),
        credential: "tok-1".into(),
    };
    let own = script.record.tenant.clone();
    let refusals = vec![
        refusal(own.as_str(), "Delete", known),
        refusal("umbra", "Invoke", Refused::Peer(Some("192.0.2.1".into()))),
        refusal("umbra", "Invoke", Refused::Peer(None)),
        refusal("umbra", "audit", Refused::Nobody),
    ];
    store.refused(refusals.clone()).await.unwrap();
    store.refused(Vec::new()).await.unwrap();
    subject.reopen().await;
    let store = subject.store();
    let ours = verified(&*store, &own, 100).await;
    let last = ours.last().unwrap();
    assert_eq!(*last, ChainRecord::of_refusal(last.seq, &refusals[0]));
    assert!(last.is_refusal() && !ours[0].is_refusal());
    let theirs = verified(&*store, &tenant("umbra"), 2).await;
    let expected: Vec<_> = (1..)
        .zip(&refusals[1..])
        .map(|(seq, it)| ChainRecord::of_refusal(seq, it))
        .collect();
    assert_eq!(theirs, expected);
    let mut chains = store.chains(None, 10).await.unwrap();
    let first = chains.remove(0);
    assert_eq!(store.chains(None, 1).await, Ok(vec![first.clone()]));
    assert_eq!(store.chains(Some(&first), 10).await.as_ref(), Ok(&chains));
    assert_eq!(chains.len(), 1);
    subject.is_whole().await;
}

/// C61: what a deleted session held is erased, and its chain verifies as before.
pub(crate) async fn c61_a_chain_outlives_the_sessions_that_it_tells_of(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut script = worked(&*store, 1).await;
    worked(&*store, 2).await;
    let of = script.record.tenant.clone();
    let before = verified(&*store, &of, 100).await;
    let token = store.mint().await.unwrap();
    let delete = script.delete(token);
    store.delete(delete).await.unwrap();
    script.head.entries = 0;
    while !store.erase(script.id(), 0, 2).await.unwrap() {}
    subject.reopen().await;
    let store = subject.store();
    let after = verified(&*store, &of, 100).await;
    assert_eq!(after[..before.len()], before);
    assert_eq!(after.len(), before.len() + 1);
    assert_eq!(after.last().unwrap().action, "Delete");
    let own = store.links_of_session(script.id(), 0, 100).await.unwrap();
    assert_eq!(own.last(), Some(&(after.len() as u64)));
    subject.is_whole().await;
}
