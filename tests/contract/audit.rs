//! C56: what the store holds of who did what, and what a caller reads of it.

use futures_util::StreamExt as _;
use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::audit::{AuditFilter, AuditLog as _, ListAudit};
use sessionplane_core::domain::access::{Action, Principal};
use sessionplane_core::domain::audit::{AuditAction, AuditRecord, Link, Sealed, Verifier};
use sessionplane_core::domain::capabilities::SandboxLevel;

use crate::house::{House, owner};
use crate::suite::desk::{Ask, Desk, steer};
use crate::suite::world::quick;
use sessionplane_server::app::face::{self, Faces as _};

fn of(audits: &[AuditRecord], action: AuditAction) -> &AuditRecord {
    let found = audits.iter().find(|record| record.action == action);
    found.unwrap_or_else(|| panic!("no record of {action:?} in {audits:#?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn c56_each_commit_writes_an_audit_record_with_its_effect() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "audited");
    let run = desk
        .invoke(Ask::new("say \"x\"\nwait-steer").id("ask-1"))
        .await;
    let (id, session) = (run.id, run.session);
    desk.dispatch(steer("say \"y\""), Some("steer-1")).await;
    run.finish().await;
    let entries: Vec<_> = desk
        .entries()
        .await
        .into_iter()
        .map(|entry| entry.id)
        .collect();
    let audits = house.store().audits(session).expect("the audits");

    let ordinals: Vec<u64> = audits.iter().map(|record| record.ordinal).collect();
    assert_eq!(
        ordinals,
        (1..=audits.len() as u64).collect::<Vec<_>>(),
        "without a hole"
    );
    assert!(
        audits.len() as u64 >= house.gate.kept(),
        "at least one for each commit"
    );
    assert!(audits.iter().all(|record| record.run == Some(id)));
    let caused: Vec<_> = audits
        .iter()
        .flat_map(|record| record.entries.clone())
        .collect();
    assert_eq!(
        caused, entries,
        "each entry is in the record of the commit that wrote it"
    );

    let asked = of(&audits, AuditAction::Call(Action::Invoke));
    let steered = of(&audits, AuditAction::Call(Action::Steer));
    // C53: what keeps the agent in is said where it is let work somewhere, and in the state.
    let held = desk.state().await.sandbox;
    assert_eq!((asked.sandbox, steered.sandbox), (Some(held), None));
    assert_eq!(held, SandboxLevel::Confined);
    for (record, request_id) in [(asked, "ask-1"), (steered, "steer-1")] {
        let actor = record.actor.as_ref().expect("somebody stands behind it");
        assert_eq!(actor.principal.as_str(), "owner");
        assert_eq!(&*actor.credential, "test");
        assert_eq!(*actor.policies, ["own-tenant".to_owned()]);
        assert_eq!(
            record
                .request_id
                .as_ref()
                .map(ToString::to_string)
                .as_deref(),
            Some(request_id)
        );
        assert!(record.request_digest.is_some() && record.bytes > 0);
        assert_eq!(record.outcome, "accepted");
    }
    let settled = of(&audits, AuditAction::Settle);
    assert_eq!(
        (settled.outcome, settled.actor.as_ref()),
        ("completed", None)
    );
}

/// What is told is what is kept: the chain of the caller's tenant, by pages and filters, and no other's.
#[tokio::test(flavor = "multi_thread")]
async fn c56_a_tenants_trail_is_read_by_pages_and_filters_and_verifies() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "audited");
    let run = desk.invoke(Ask::new("say \"x\"").id("ask-1")).await;
    let session = run.session;
    run.finish().await;
    let face = house.app().as_caller(owner());
    let mut request = ListAudit {
        page_size: 2,
        ..ListAudit::default()
    };
    let mut told = Vec::new();
    let (genesis, end, tenant) = loop {
        let page = face.list_audit(request.clone(), CallOptions::default());
        let page = page.await.expect("a page");
        told.extend(page.items);
        match page.next {
            Some(next) => request.after = next,
            None => break (page.genesis, page.end, page.tenant),
        }
    };
    let mut verifier = Verifier::after(
        &tenant,
        Link {
            seq: 0,
            hash: genesis,
        },
    );
    for item in &told {
        let sealed = Sealed {
            record: item.record.clone().expect("it is read"),
            previous: item.previous,
            hash: item.hash,
        };
        verifier.next(&sealed).expect("a link of the chain");
    }
    verifier.ends(end).expect("its end");
    let kept = house.store().audits(session).expect("the audits");
    assert_eq!(told.len(), kept.len());
}

/// What is asked for is told, and nothing of another tenant.
#[tokio::test(flavor = "multi_thread")]
async fn c56_a_filter_finds_what_it_asks_for_and_nothing_of_another_tenant() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "audited");
    let run = desk.invoke(Ask::new("say \"x\"").id("ask-1")).await;
    let session = run.session;
    run.finish().await;
    let face = house.app().as_caller(owner());
    let all = house.store().audits(session).expect("the audits").len();
    for (filter, expected) in [
        (
            AuditFilter {
                session: Some(session),
                ..AuditFilter::default()
            },
            all,
        ),
        (
            AuditFilter {
                action: Some("Invoke".to_owned()),
                principal: Some("owner".to_owned()),
                decision: Some("allow".to_owned()),
                ..AuditFilter::default()
            },
            1,
        ),
        (
            AuditFilter {
                principal: Some("nobody".to_owned()),
                ..AuditFilter::default()
            },
            0,
        ),
    ] {
        let request = ListAudit {
            filter: filter.clone(),
            ..ListAudit::default()
        };
        let page = face.list_audit(request, CallOptions::default()).await;
        assert_eq!(page.expect("a page").items.len(), expected, "{filter:?}");
    }
    let stranger = face::Caller {
        principal: Principal {
            tenant: "umbra".parse().expect("a tenant"),
            ..owner().principal
        },
        ..owner()
    };
    let request = ListAudit {
        filter: AuditFilter {
            session: Some(session),
            ..AuditFilter::default()
        },
        ..ListAudit::default()
    };
    let page = house.app().as_caller(stranger);
    let page = page.list_audit(request, CallOptions::default()).await;
    assert_eq!(page.expect("a page").items, []);
}

/// A watch goes on from any record, and tells what comes.
#[tokio::test(flavor = "multi_thread")]
async fn c56_a_watch_of_the_trail_tells_what_comes_from_any_record_on() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "audited");
    let run = desk.invoke(Ask::new("say \"x\"").id("ask-1")).await;
    run.finish().await;
    let face = house.app().as_caller(owner());
    let watch = face.watch_audit(1, CallOptions::default()).await;
    let mut watch = watch.expect("a watch");
    let second = watch.next().await.expect("a record").expect("a record");
    assert_eq!(second.seq, 2);
    let page = face.list_audit(ListAudit::default(), CallOptions::default());
    let end = page.await.expect("a page").end.seq;
    let run = desk.invoke(Ask::new("say \"y\"").id("ask-2")).await;
    let mut seq = 2;
    while seq <= end {
        let item = watch.next().await.expect("a record").expect("a record");
        seq += 1;
        assert_eq!(item.seq, seq);
    }
    run.finish().await;
}
