//! What format 5 added: links of chains, and audit records that know their number.

use sessionplane_core::domain::audit::{
    Link, Proof, Refusal, RefusalKind, Refused, Series, Transport, Via,
};

use super::super::{ChainEnd, ChainLink, Linked, Place, SealedAudit};
use super::*;

pub(super) fn all(seen: &mut String) {
    let hash = Digest([9; 32]);
    for (name, series) in [
        ("chain-session", Series::Session),
        ("chain-metadata", Series::Metadata),
    ] {
        let of = Linked::Write(Place {
            session: session(),
            series,
            ordinal: 3,
        });
        check(name, &ChainLink { hash, of }, seen);
    }
    let known = Refused::Known {
        principal: "ann".parse().unwrap(),
        credential: "laptop".into(),
    };
    let whos = [
        ("chain-refused", known),
        ("chain-stranger", Refused::Peer(Some("192.0.2.7".into()))),
        ("chain-somebody", Refused::Peer(None)),
        ("chain-nobody", Refused::Nobody),
    ];
    for ((name, who), kind) in whos.into_iter().zip(RefusalKind::ALL) {
        let of = Linked::Refused(Refusal {
            tenant: "acme".parse().unwrap(),
            first_at: at(6),
            last_at: at(7),
            kind,
            who,
            via: Some(via()),
            action: "Invoke".into(),
            reason: "PERMISSION_DENIED".into(),
            session: (kind == RefusalKind::Denied).then(session),
            policies: vec!["forbid".to_owned()].into(),
            count: 3,
        });
        check(name, &ChainLink { hash, of }, seen);
    }
    check("chain-end", &ChainEnd(Link { seq: 12, hash }), seen);
    let mut record = audit();
    if let Some(actor) = &mut record.actor {
        actor.via = Some(via());
    }
    let seq = Some(12);
    check("audit-sealed", &SealedAudit { record, seq }, seen);
}

fn via() -> Via {
    Via {
        transport: Transport::MutualTls,
        proof: Proof::Certificate,
    }
}

#[test]
fn every_audit_action_reads_back() {
    let own = [
        AuditAction::EngineOutput,
        AuditAction::Disconnect,
        AuditAction::Expire,
        AuditAction::Compacted,
        AuditAction::Checkout,
        AuditAction::Settle,
        AuditAction::Recover,
    ];
    let calls = Action::ALL.map(AuditAction::Call);
    let actions: Vec<_> = calls.into_iter().chain(own).collect();
    // Numbers that a store may hold: none may come to mean something else.
    let number = |action: &AuditAction| i32::from(super::super::audit::action_form(*action));
    let numbers: Vec<_> = actions.iter().map(number).collect();
    let frozen = [
        1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15, 16, 19, 20, 21, 22, 24, 25, 26, 27, 28, 29, 8, 11, 17,
        18, 23, 9, 10,
    ];
    assert_eq!(numbers, frozen);
    for action in actions {
        let stored = super::super::audit::action(super::super::audit::action_form(action));
        assert_eq!(stored.unwrap(), action);
    }
}
