//! The stored forms as they were first written. A store may hold them for as long as it lives: a
//! change that breaks this test needs a new format version and a way to read the old one.

use std::fmt::Write as _;

use prost::Message as _;
use sessionplane_core::domain::access::{Action, PrincipalKind};
use sessionplane_core::domain::audit::{AuditAction, AuditActor, AuditRecord};
use sessionplane_core::domain::binding::{Binding, BindingKey, BoundAnswer, Method};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::ids::{EntryId, InputId, RunId, SessionId};
use sessionplane_core::domain::input::{
    DiscardCause, InputFate, InputKind, InputRecord, UndeliveredInput,
};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::provenance::{Channel, Digest, Origin, Trust};
use sessionplane_core::domain::run::{Failure, RunOutcome, RunRecord, RunSettings, Settlement};
use sessionplane_core::domain::session::{LastRun, SessionHead, SessionRecord};
use sessionplane_core::domain::text::BoundedText;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::lease_store::HeldLease;

use super::{Address, ChainedEntry, HeadRow, Meta, Record, RoundNumber};

fn session() -> SessionId {
    SessionId::from_bytes([1; 16])
}

fn run() -> RunId {
    RunId::from_bytes([2; 16])
}

fn entry_id(seq: u64) -> EntryId {
    EntryId {
        session: session(),
        seq,
    }
}

fn input_id() -> InputId {
    InputId {
        run: run(),
        ordinal: 1,
    }
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn origin() -> Origin {
    Origin {
        principal: "ann".parse().unwrap(),
        kind: PrincipalKind::Human,
        channel: Channel::Steer,
        trust: Trust::Relayed,
        digest: Digest([3; 32]),
        request_id: Some("req-1".parse().unwrap()),
    }
}

fn usage() -> Usage {
    Usage {
        input_tokens: Some(1),
        output_tokens: Some(2),
        cached_tokens: Some(0),
        cost_usd: Some(0.5),
    }
}

fn failed() -> RunOutcome {
    RunOutcome::Failed(Failure {
        code: "engine_gone".to_owned(),
        details: "it left".to_owned(),
        retryable: true,
    })
}

fn bounded(text: &str) -> BoundedText {
    BoundedText {
        text: text.to_owned(),
        omitted_bytes: 4,
    }
}

fn entry(body: EntryBody) -> ChainedEntry {
    ChainedEntry {
        entry: Entry {
            id: entry_id(2),
            parent: Some(entry_id(1)),
            run: run(),
            at: at(1_700_000_000_000),
            body,
        },
        previous_checksum: 0xdead_beef,
    }
}

/// Compares with the frozen line, and reads it back.
fn check<T: Record + PartialEq + std::fmt::Debug>(name: &str, value: &T, seen: &mut String) {
    let bytes = value.form().encode_to_vec();
    let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let _ = writeln!(seen, "{name} {hex}");
    let frozen = include_str!("frozen.txt")
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name} ")));
    let Some(frozen) = frozen else {
        return;
    };
    let frozen: Vec<u8> = (0..frozen.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&frozen[i..i + 2], 16).unwrap())
        .collect();
    let form = T::Form::decode(&frozen[..]).unwrap();
    assert_eq!(&T::read(form).unwrap(), value, "{name} reads differently");
}

fn sessions(seen: &mut String) {
    let meta = Meta {
        format_version: 1,
        store_id: 5,
        boots: 2,
    };
    check("meta", &meta, seen);
    check("round", &RoundNumber(9), seen);
    let record = SessionRecord {
        id: session(),
        tenant: "acme".parse().unwrap(),
        name: Some("fix".parse().unwrap()),
        external_key: Some("K\u{0}1".parse().unwrap()),
        agent: "coder".parse().unwrap(),
        created_at: at(7),
    };
    check("session", &record, seen);
    let row = HeadRow {
        head: SessionHead {
            token: LeaseToken(0x1_0000_0001),
            entries: 2,
            leaf: Some(entry_id(2)),
            audits: 3,
            last_run: Some(LastRun {
                run: run(),
                outcome: failed(),
                settled_at: at(8),
            }),
            usage: usage(),
        },
        entries_checksum: 0x0102_0304,
    };
    check("head", &row, seen);
    check("address", &Address(session()), seen);
    let lease = HeldLease {
        session: session(),
        run: run(),
        token: LeaseToken(6),
    };
    check("lease", &lease, seen);
}

fn entries(seen: &mut String) {
    let user = EntryBody::User {
        text: "grüß dich".into(),
        omitted_bytes: 1,
        origin: origin(),
        input: Some(input_id()),
    };
    check("entry-user", &entry(user), seen);
    let assistant = EntryBody::Assistant {
        message: "m".to_owned(),
        model: Some("large".to_owned()),
        text: bounded("hi"),
        thinking: bounded("hm"),
        partial: true,
        usage: usage(),
    };
    check("entry-assistant", &entry(assistant), seen);
    let tool = EntryBody::Tool {
        call_id: "c".to_owned(),
        name: "build".to_owned(),
        input_json: bounded("{}"),
        output: bounded("ok"),
        failed: true,
    };
    check("entry-tool", &entry(tool), seen);
    let notice = EntryBody::Notice {
        code: "interrupted".to_owned(),
        text: "cut".to_owned(),
    };
    check("entry-notice", &entry(notice), seen);
}

fn runs(seen: &mut String) {
    let record = RunRecord {
        id: run(),
        session: session(),
        agent: "coder".parse().unwrap(),
        request_id: Some("req-1".parse().unwrap()),
        origin: origin(),
        started_at: at(1),
        first_entry: entry_id(1),
        final_entry: Some(entry_id(2)),
        usage: usage(),
        undelivered: vec![UndeliveredInput {
            id: input_id(),
            kind: InputKind::FollowUp,
            cause: DiscardCause::Lost,
            text: None,
        }],
        settings: RunSettings {
            model: Some("large".to_owned()),
            thinking_level: Some("high".to_owned()),
        },
        abort_requested: true,
        settled: Some(Settlement {
            at: at(9),
            outcome: RunOutcome::Aborted,
        }),
    };
    check("run", &record, seen);
    let fates = [
        ("input-pending", InputFate::Pending),
        ("input-delivered", InputFate::Delivered(entry_id(2))),
        (
            "input-discarded",
            InputFate::Discarded(DiscardCause::Interrupted),
        ),
    ];
    for (name, fate) in fates {
        let input = InputRecord {
            id: input_id(),
            kind: InputKind::Steer,
            text: "left".into(),
            origin: origin(),
            accepted_at: at(4),
            fate,
        };
        check(name, &input, seen);
    }
}

fn calls(seen: &mut String) {
    let answers = [
        ("binding-invoke", Method::Invoke, BoundAnswer::Run(run())),
        (
            "binding-dispatch",
            Method::Dispatch,
            BoundAnswer::Dispatched {
                run: run(),
                input: Some(input_id()),
            },
        ),
    ];
    for (name, method, answer) in answers {
        let binding = Binding {
            key: BindingKey {
                tenant: "acme".parse().unwrap(),
                principal: "ann".parse().unwrap(),
                method,
                request_id: "req-1".parse().unwrap(),
            },
            session: session(),
            digest: Digest([4; 32]),
            answer,
            at: at(5),
        };
        check(name, &binding, seen);
    }
    let audit = AuditRecord {
        session: session(),
        ordinal: 3,
        tenant: "acme".parse().unwrap(),
        at: at(6),
        actor: Some(AuditActor {
            principal: "ann".parse().unwrap(),
            credential: "laptop".into(),
            policies: vec!["owner".to_owned()].into(),
            trace_id: Some("00-trace".into()),
        }),
        action: AuditAction::Call(Action::FollowUp),
        request_digest: Some(Digest([5; 32])),
        bytes: 12,
        request_id: Some("req-1".parse().unwrap()),
        run: Some(run()),
        entries: vec![entry_id(1), entry_id(2)],
        outcome: "accepted",
    };
    check("audit", &audit, seen);
}

#[test]
fn stored_forms_are_what_they_were() {
    let mut seen = String::new();
    sessions(&mut seen);
    entries(&mut seen);
    runs(&mut seen);
    calls(&mut seen);
    assert_eq!(seen, include_str!("frozen.txt"));
}

#[test]
fn every_audit_action_reads_back() {
    let actions = [
        AuditAction::Call(Action::Observe),
        AuditAction::Call(Action::ReadMetadata),
        AuditAction::Call(Action::Create),
        AuditAction::Call(Action::Invoke),
        AuditAction::Call(Action::Steer),
        AuditAction::Call(Action::FollowUp),
        AuditAction::Call(Action::Abort),
        AuditAction::EngineOutput,
        AuditAction::Disconnect,
        AuditAction::Settle,
        AuditAction::Recover,
    ];
    for action in actions {
        let stored = super::audit::action(super::audit::action_form(action));
        assert_eq!(stored.unwrap(), action);
    }
}
