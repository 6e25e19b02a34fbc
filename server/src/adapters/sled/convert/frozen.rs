//! The stored forms as they were first written: by format 1 (`frozen_v1.txt`) and by each after
//! it. A store may hold any of them for as long as it lives: a change that breaks this test needs a new format
//! version and a way to read the old ones.

mod chain;
mod data;
mod fleet;
mod questions;

use std::fmt::Write as _;

use prost::Message as _;
use sessionplane_core::domain::access::{Action, PrincipalKind};
use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::audit::{AuditAction, AuditActor, AuditRecord};
use sessionplane_core::domain::binding::{Binding, BindingKey, BoundAnswer, Method};
use sessionplane_core::domain::compaction::CompactionTrigger;
use sessionplane_core::domain::entry::{Entry, EntryBody, PathMarks};
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::ids::{ArtifactId, EntryId, InputId, RunId, SessionId};
use sessionplane_core::domain::input::{
    DiscardCause, InputFate, InputKind, InputRecord, UndeliveredInput,
};
use sessionplane_core::domain::lease::{Holder, LeaseToken};
use sessionplane_core::domain::provenance::{Channel, Digest, Origin, Trust};
use sessionplane_core::domain::run::{Failure, RunOutcome, RunRecord, RunSettings, Settlement};
use sessionplane_core::domain::session::{LastRun, Lineage, SessionHead, SessionRecord};
use sessionplane_core::domain::settings::SettingsOverride;
use sessionplane_core::domain::text::BoundedText;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::lease_store::HeldLease;

use crate::adapters::sled::chain::BEGINS;
use crate::adapters::sled::tally::Tally;

use super::{Address, ChainedEntry, HeadRow, Meta, Record, RoundRow, Stored as _};

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
            run: Some(run()),
            at: at(1_700_000_000_000),
            path: PathMarks::default(),
            body,
        },
        previous_checksum: 0xdead_beef,
        previous_digest: None,
    }
}

/// The lines of each format.
const FORMAT_1: &str = include_str!("frozen_v1.txt");
const FORMAT_2: &str = include_str!("frozen_v2.txt");
const FORMAT_3: &str = include_str!("frozen_v3.txt");
/// What format 4 added; all else is as in format 3.
const FORMAT_4: &str = include_str!("frozen_v4.txt");
/// What format 5 added; all else is as in the formats before it.
const FORMAT_5: &str = include_str!("frozen_v5.txt");

/// Takes note of how it is written now, and reads what each format wrote.
fn check<T: Record + PartialEq + std::fmt::Debug>(name: &str, value: &T, seen: &mut String) {
    let bytes = value.form().encode_to_vec();
    let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let _ = writeln!(seen, "{name} {hex}");
    for format in [
        FORMAT_1,
        FORMAT_2,
        FORMAT_3,
        FORMAT_4,
        data::ADDED,
        FORMAT_5,
    ] {
        let Some(frozen) = named(format, name) else {
            continue;
        };
        let frozen: Vec<u8> = (0..frozen.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&frozen[i..i + 2], 16).unwrap())
            .collect();
        let form = T::Form::decode(&frozen[..]).unwrap();
        assert_eq!(&T::read(form).unwrap(), value, "{name} reads differently");
    }
}

fn named<'a>(format: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = format.lines().filter_map(|line| line.split_once(' '));
    lines.find_map(|(known, bytes)| (known == name).then_some(bytes))
}

fn sessions(seen: &mut String) {
    let meta = Meta {
        format_version: 1,
        store_id: 5,
        boots: 2,
    };
    check("meta", &meta, seen);
    let round = RoundRow {
        number: 9,
        tally: None,
    };
    check("round", &round, seen);
    let counted = RoundRow {
        tally: Some(Tally { keys: 3, sum: 7 }),
        ..round
    };
    check("round-counted", &counted, seen);
    let record = SessionRecord {
        id: session(),
        tenant: "acme".parse().unwrap(),
        metadata: Metadata::first(Some("fix".parse().unwrap()), at(7)),
        external_key: Some("K\u{0}1".parse().unwrap()),
        agent: "coder".parse().unwrap(),
        created_at: at(7),
        lineage: None,
    };
    check("session", &record, seen);
    for (name, entry) in [
        ("session-branched", Some(entry_id(4))),
        ("session-of-empty", None),
    ] {
        let parent = SessionId::from_bytes([9; 16]);
        let branched = SessionRecord {
            lineage: Some(Lineage { parent, entry }),
            ..record.clone()
        };
        check(name, &branched, seen);
    }
    heads(seen);
    check("address", &Address(session()), seen);
    let lease = HeldLease {
        session: session(),
        holder: run().into(),
        token: LeaseToken(6),
    };
    check("lease", &lease, seen);
    let boundary = HeldLease {
        holder: Holder::Boundary,
        ..lease
    };
    check("lease-boundary", &boundary, seen);
}

fn heads(seen: &mut String) {
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
            path: PathMarks::default(),
            chosen: SettingsOverride::default(),
            place: None,
            checkout: None,
        },
        entries_checksum: 0x0102_0304,
        entries_digest: None,
    };
    check("head", &row, seen);
    let linked = HeadRow {
        entries_digest: Some([8; 32]),
        ..row.clone()
    };
    check("head-linked", &linked, seen);
    let mut moved = row;
    moved.head.path = marks();
    moved.head.chosen = chosen();
    check("head-marked", &moved, seen);
}

fn entries(seen: &mut String) {
    let user = EntryBody::User {
        text: "grüß dich".into(),
        omitted_bytes: 1,
        origin: origin(),
        input: Some(input_id()),
        data: None,
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
        artifact: None,
    };
    check("entry-tool", &entry(tool.clone()), seen);
    let mut whole = tool;
    if let EntryBody::Tool { artifact, .. } = &mut whole {
        *artifact = Some(ArtifactRef {
            id: ArtifactId::from_bytes([6; 16]),
            bytes: 70_000,
            sha256: None,
        });
    }
    check("entry-tool-artifact", &entry(whole.clone()), seen);
    if let EntryBody::Tool { artifact, .. } = &mut whole {
        let artifact = artifact.as_mut().unwrap();
        artifact.sha256 = Some(Digest([8; 32]));
    }
    check("entry-tool-artifact-digest", &entry(whole), seen);
    let notice = EntryBody::Notice {
        code: "interrupted".to_owned(),
        text: "cut".to_owned(),
    };
    check("entry-notice", &entry(notice.clone()), seen);
    for (name, link) in [("entry-linked", [7; 32]), ("entry-first-linked", BEGINS)] {
        let mut linked = entry(notice.clone());
        linked.previous_digest = Some(link);
        check(name, &linked, seen);
    }
    between_runs(seen);
}

fn marks() -> PathMarks {
    PathMarks {
        settings: Some(3),
        compaction: Some(1),
        said: Some(2),
        untrusted: None,
    }
}

fn chosen() -> SettingsOverride {
    SettingsOverride {
        model: Some("large".to_owned()),
        thinking_level: Some("high".to_owned()),
    }
}

/// What no run wrote.
fn between_runs(seen: &mut String) {
    let marked = |body| {
        let mut record = entry(body);
        record.entry.run = None;
        record.entry.path = marks();
        record
    };
    let settings = EntryBody::Settings { chosen: chosen() };
    check("entry-settings", &marked(settings), seen);
    let unset = EntryBody::Settings {
        chosen: SettingsOverride::default(),
    };
    check("entry-settings-unset", &marked(unset), seen);
    let compaction = EntryBody::Compaction {
        summary: bounded("in short"),
        first_kept: Some(entry_id(1)),
        tokens_before: Some(900),
        tokens_after: Some(0),
        trigger: CompactionTrigger::Manual,
    };
    check("entry-compaction", &marked(compaction), seen);
    let overflow = EntryBody::Compaction {
        summary: bounded("in short"),
        first_kept: None,
        tokens_before: None,
        tokens_after: None,
        trigger: CompactionTrigger::Overflow,
    };
    check("entry-compaction-overflow", &entry(overflow), seen);
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
            data: None,
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
                run: Some(run()),
                input: Some(input_id()),
            },
        ),
        (
            "binding-boundary",
            Method::Dispatch,
            BoundAnswer::Dispatched {
                run: None,
                input: None,
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
    check("audit", &audit(), seen);
}

fn audit() -> AuditRecord {
    AuditRecord {
        session: session(),
        ordinal: 3,
        tenant: "acme".parse().unwrap(),
        at: at(6),
        actor: Some(AuditActor {
            principal: "ann".parse().unwrap(),
            credential: "laptop".into(),
            policies: vec!["owner".to_owned()].into(),
            trace_id: Some("00-trace".into()),
            via: None,
        }),
        action: AuditAction::Call(Action::FollowUp),
        request_digest: Some(Digest([5; 32])),
        bytes: 12,
        request_id: Some("req-1".parse().unwrap()),
        run: Some(run()),
        entries: vec![entry_id(1), entry_id(2)],
        outcome: "accepted",
        sandbox: None,
    }
}

#[test]
fn stored_forms_are_what_they_were() {
    let mut seen = String::new();
    sessions(&mut seen);
    entries(&mut seen);
    runs(&mut seen);
    calls(&mut seen);
    questions::all(&mut seen);
    // What no server of an earlier format wrote is all that this one writes otherwise.
    assert_eq!(seen, FORMAT_3);
    let mut new = String::new();
    fleet::all(&mut new);
    assert_eq!(new, FORMAT_4);
    let mut sealed = String::new();
    chain::all(&mut sealed);
    assert_eq!(sealed, FORMAT_5);
    for line in FORMAT_1.lines().chain(FORMAT_2.lines()) {
        let (name, _) = line.split_once(' ').unwrap();
        assert!(named(&seen, name).is_some(), "{name} was not read");
    }
}

#[test]
fn every_channel_reads_back() {
    for channel in [
        Channel::Invoke,
        Channel::Steer,
        Channel::FollowUp,
        Channel::Respond,
        Channel::Control,
    ] {
        let origin = Origin {
            channel,
            ..origin()
        };
        assert_eq!(Origin::read(origin.form()).unwrap(), origin);
    }
}
