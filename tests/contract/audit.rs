//! C56: what the store holds of who did what. Read in the store itself: no caller can read it yet.

use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::audit::{AuditAction, AuditRecord};
use sessionplane_core::domain::capabilities::SandboxLevel;

use crate::house::House;
use crate::suite::desk::{Ask, Desk, steer};
use crate::suite::world::quick;

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
