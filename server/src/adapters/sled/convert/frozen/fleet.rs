//! What format 4 added: metadata, places, deletions, and requests that change sessions.

use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::audit::{AuditAction, AuditRecord};
use sessionplane_core::domain::binding::{
    Binding, BindingKey, BoundAnswer, Method, Placed, SessionAnswer,
};
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue, Labels, Priority};
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::place::{Checkout, Directory, Place};
use sessionplane_core::domain::provenance::Digest;
use sessionplane_core::domain::session::{SessionHead, SessionRecord};
use sessionplane_core::ports::repository::DeletedSession;

use super::{HeadRow, at, check, session};

pub(super) fn all(seen: &mut String) {
    let label = |key: &str, value: &str| {
        let key = LabelKey::parse(key).unwrap();
        (key, LabelValue::parse(value).unwrap())
    };
    let labels = Labels::of([label("team", "net"), label("gpu", ""), label("b", "1")]);
    let record = SessionRecord {
        id: session(),
        tenant: "acme".parse().unwrap(),
        external_key: None,
        agent: "coder".parse().unwrap(),
        created_at: at(7),
        lineage: None,
        metadata: Metadata {
            name: None,
            labels: labels.unwrap(),
            priority: Priority::parse(-3).unwrap(),
            paused: true,
            updated_at: at(9),
            revision: 4,
        },
    };
    check("session-changed", &record, seen);
    let created = SessionRecord {
        metadata: Metadata {
            updated_at: at(7),
            revision: 1,
            ..record.metadata.clone()
        },
        ..record
    };
    check("session-labelled", &created, seen);
    let head = SessionHead {
        place: Some(Place {
            workspace: "main".parse().unwrap(),
            directory: Directory::parse("crates/net").unwrap(),
        }),
        checkout: Some(Checkout {
            branch: Some("fix".into()),
            commit: Some("0a1b".into()),
        }),
        ..SessionHead::empty()
    };
    let place = (head.place.clone(), head.checkout.clone());
    let row = HeadRow {
        head,
        entries_checksum: 0,
        entries_digest: None,
    };
    check("head-placed", &row, seen);
    let deleted = DeletedSession {
        session: session(),
        entries: 3,
    };
    check("deleted", &deleted, seen);
    requests(seen);
    sandboxes(seen);
    answers(seen, &created.metadata, place);
}

fn sandboxes(seen: &mut String) {
    for (name, level) in [
        ("audit-none", SandboxLevel::None),
        ("audit-confined", SandboxLevel::Confined),
        ("audit-enforced", SandboxLevel::Enforced),
    ] {
        let audit = AuditRecord {
            session: session(),
            ordinal: 4,
            tenant: "acme".parse().unwrap(),
            at: at(6),
            actor: None,
            action: AuditAction::Call(Action::ChangeDirectory),
            request_digest: None,
            bytes: 0,
            request_id: None,
            run: None,
            entries: Vec::new(),
            outcome: "accepted",
            sandbox: Some(level),
        };
        check(name, &audit, seen);
    }
}

fn answers(
    seen: &mut String,
    metadata: &Metadata,
    (place, checkout): (Option<Place>, Option<Checkout>),
) {
    let changed = SessionAnswer {
        metadata: Some(Metadata {
            name: "net".parse().ok(),
            ..metadata.clone()
        }),
        placed: None,
    };
    check("answer-changed", &changed, seen);
    let moved = SessionAnswer {
        metadata: None,
        placed: Some(Placed {
            place,
            checkout,
            sandbox: SandboxLevel::Enforced,
        }),
    };
    check("answer-moved", &moved, seen);
    let nowhere = SessionAnswer {
        metadata: None,
        placed: Some(Placed {
            place: None,
            checkout: None,
            sandbox: SandboxLevel::None,
        }),
    };
    check("answer-nowhere", &nowhere, seen);
}

fn requests(seen: &mut String) {
    for (name, method) in [
        ("binding-create", Method::CreateSession),
        ("binding-update", Method::UpdateSession),
        ("binding-delete", Method::DeleteSession),
        ("binding-directory", Method::ChangeDirectory),
        ("binding-pause", Method::PauseSession),
        ("binding-resume", Method::ResumeSession),
    ] {
        let binding = Binding {
            key: BindingKey {
                tenant: "acme".parse().unwrap(),
                principal: "ann".parse().unwrap(),
                method,
                request_id: "req-1".parse().unwrap(),
            },
            session: session(),
            digest: Digest([4; 32]),
            answer: BoundAnswer::Session(None),
            at: at(5),
        };
        check(name, &binding, seen);
    }
}
