//! What was written reads back, in order, in pages, whatever it says.

use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::compaction::CompactionTrigger;
use sessionplane_core::domain::data::{Content, Data, DataPart};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::ids::{ArtifactId, EntryId, InputId, SessionId};
use sessionplane_core::domain::input::{
    DiscardCause, InputFate, InputKind, InputRecord, UndeliveredInput,
};
use sessionplane_core::domain::limits::MAX_TEXT_BYTES;
use sessionplane_core::domain::provenance::{Channel, Digest};
use sessionplane_core::domain::run::{Failure, RunOutcome, RunSettings};
use sessionplane_core::domain::session::LastRun;
use sessionplane_core::domain::settings::SettingsOverride;
use sessionplane_core::domain::text::BoundedText;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::repository::{EntryRange, Repository};

use super::Subject;
use super::script::{Script, binding_key, said, session_id, user};

/// Reads all pages.
pub(crate) async fn read_all(
    store: &(impl Repository + ?Sized),
    script: &Script,
    max_entries: usize,
    max_bytes: usize,
) -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    loop {
        let range = EntryRange {
            after: all.last().map_or(0, |entry| entry.id.seq),
            up_to: script.head.entries,
            max_entries,
            max_bytes,
        };
        let page = store.entries(script.id(), range).await.unwrap();
        if page.is_empty() {
            return all;
        }
        assert!(page.len() <= max_entries);
        all.extend(page);
    }
}

async fn talk(subject: &dyn Subject, words: usize) -> (Script, Vec<Entry>) {
    let store = subject.store();
    let mut script = Script::new(1);
    let admit = script.admit(store.mint().await.unwrap(), "go");
    let mut entries = admit.entries.clone();
    script.write(&*store, admit).await.unwrap();
    for n in 0..words {
        let say = script.say(vec![said(&"w".repeat(n)); 1 + n % 3]);
        entries.extend(say.entries.clone());
        script.write(&*store, say).await.unwrap();
    }
    (script, entries)
}

/// Pages of any size make up the same whole, and neighbours of other sessions never slip in.
pub(crate) async fn entries_come_whole_at_every_page_size(subject: &mut dyn Subject) {
    let (script, entries) = talk(subject, 12).await;
    let store = subject.store();
    for n in [0, 2] {
        let mut neighbour = Script::new(n);
        let admit = neighbour.admit(store.mint().await.unwrap(), "not mine");
        neighbour.write(&*store, admit).await.unwrap();
    }
    for max_entries in 1..=entries.len() + 1 {
        let read = read_all(&*store, &script, max_entries, usize::MAX).await;
        assert_eq!(read, entries, "{max_entries} a page");
    }
    let total: u64 = script.head.entries;
    for after in 0..=total + 1 {
        for up_to in 0..=total + 1 {
            let range = EntryRange {
                after,
                up_to,
                max_entries: 100,
                max_bytes: usize::MAX,
            };
            let seqs: Vec<u64> = store
                .entries(script.id(), range)
                .await
                .unwrap()
                .iter()
                .map(|entry| entry.id.seq)
                .collect();
            let expected: Vec<u64> = (after + 1..=up_to.min(total)).collect();
            assert_eq!(seqs, expected, "after {after} up to {up_to}");
        }
    }
}

/// A page stops before the entry that would burst it, and a heavy entry comes alone.
pub(crate) async fn a_page_is_bounded_in_bytes_and_never_empty(subject: &mut dyn Subject) {
    let (script, entries) = talk(subject, 12).await;
    let store = subject.store();
    for max_bytes in [0, 1, 300, 600, 1000, 5000] {
        let mut after = 0;
        while after < script.head.entries {
            let range = EntryRange {
                after,
                up_to: u64::MAX,
                max_entries: 7,
                max_bytes,
            };
            let page = store.entries(script.id(), range).await.unwrap();
            let weight: usize = page.iter().map(Entry::weight).sum();
            assert!(page.len() == 1 || weight <= max_bytes);
            let last = page.last().expect("a page is never empty").id.seq;
            let next = entries.get(usize::try_from(last).unwrap());
            let full = next.is_none_or(|next| weight + next.weight() > max_bytes);
            assert!(full || page.len() == 7, "{max_bytes}: {} fit", page.len());
            after = last;
        }
    }
}

fn every_body(run: InputId) -> Vec<EntryBody> {
    let (text, origin) = user("follow up", Channel::FollowUp);
    let bounded = |text: &str, omitted_bytes| BoundedText {
        text: text.to_owned(),
        omitted_bytes,
    };
    vec![
        EntryBody::User {
            text,
            omitted_bytes: 17,
            origin,
            input: Some(run),
            data: data(),
        },
        EntryBody::Assistant {
            message: String::new(),
            model: None,
            text: bounded("", 0),
            thinking: bounded("hm", 5),
            partial: true,
            usage: Usage {
                input_tokens: Some(u64::MAX),
                output_tokens: Some(0),
                cached_tokens: None,
                cost_usd: Some(0.1),
            },
        },
        EntryBody::Tool {
            call_id: "c".to_owned(),
            name: "build".to_owned(),
            input_json: bounded("{}", 0),
            output: bounded("ok", 9),
            failed: true,
            artifact: Some(ArtifactRef {
                id: ArtifactId::mint(Timestamp::from_millis(1), 7),
                bytes: 70_000,
                sha256: Some(Digest([9; 32])),
            }),
        },
        EntryBody::Settings {
            chosen: SettingsOverride {
                model: None,
                thinking_level: Some("high".to_owned()),
            },
        },
        EntryBody::Compaction {
            summary: bounded("short", 3),
            first_kept: None,
            tokens_before: None,
            tokens_after: Some(0),
            trigger: CompactionTrigger::Overflow,
        },
        EntryBody::Notice {
            code: "crash".to_owned(),
            text: "it fell over".to_owned(),
        },
    ]
}

fn every_fate(session: SessionId) -> [InputFate; 6] {
    [
        InputFate::Pending,
        InputFate::Delivered(EntryId { session, seq: 1 }),
        InputFate::Discarded(DiscardCause::Aborted),
        InputFate::Discarded(DiscardCause::Failed),
        InputFate::Discarded(DiscardCause::Interrupted),
        InputFate::Discarded(DiscardCause::Lost),
    ]
}

/// Every kind and every optional field, both ways.
pub(crate) async fn every_kind_of_record_reads_back_as_it_was_written(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut script = Script::new(1).named("a-1").keyed("k");
    let mut admit = script.admit(store.mint().await.unwrap(), "go");
    script.bind(&mut admit, binding_key("acme", "r"));
    script.write(&*store, admit.clone()).await.unwrap();
    let input = InputId {
        run: script.run_id(),
        ordinal: 1,
    };
    let say = script.say(every_body(input));
    script.write(&*store, say.clone()).await.unwrap();
    let outcomes = [
        RunOutcome::Completed,
        RunOutcome::Aborted,
        RunOutcome::Failed(Failure {
            code: "engine_gone".to_owned(),
            details: "it left".to_owned(),
            retryable: true,
        }),
    ];
    let mut all = [admit.entries, say.entries].concat();
    for outcome in outcomes {
        for fate in every_fate(script.id()) {
            let mut steer = script.steer("left");
            steer.inputs[0].fate = fate;
            steer.inputs[0].kind = InputKind::FollowUp;
            script.write(&*store, steer.clone()).await.unwrap();
            let input = store.input(steer.inputs[0].id).await.unwrap();
            assert_eq!(input.as_ref(), steer.inputs.first());
        }
        let mut settle = script.settle();
        let run = &mut settle.runs[0];
        run.settled.as_mut().unwrap().outcome = outcome;
        run.settings = RunSettings {
            model: Some("large".to_owned()),
            thinking_level: Some(String::new()),
        };
        run.abort_requested = true;
        run.request_id = Some("r".parse().unwrap());
        run.undelivered.push(UndeliveredInput {
            id: input,
            kind: InputKind::Steer,
            cause: DiscardCause::Lost,
            text: None,
        });
        settle.head.last_run = LastRun::of(run);
        all.extend(settle.entries.clone());
        script.write(&*store, settle.clone()).await.unwrap();
        let run = store.run(settle.runs[0].id).await.unwrap();
        assert_eq!(run.as_ref(), settle.runs.first());
        let stored = store.session(script.id()).await.unwrap().unwrap();
        assert_eq!(stored.head, settle.head);
        let admit = script.admit(store.mint().await.unwrap(), "again");
        all.extend(admit.entries.clone());
        script.write(&*store, admit).await.unwrap();
    }
    assert_eq!(read_all(&*store, &script, 3, usize::MAX).await, all);
    assert_eq!(store.runs_of(script.id()).await.unwrap().len(), 4);
}

/// Texts as long as a caller may send, replaced by others of other lengths.
pub(crate) async fn long_texts_read_back_and_are_replaced(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut script = Script::new(1);
    let long = "ä".repeat(MAX_TEXT_BYTES / 2);
    let admit = script.admit(store.mint().await.unwrap(), &long);
    let mut all = admit.entries.clone();
    script.write(&*store, admit).await.unwrap();
    let first = script.inputs + 1;
    for text in [&long[..], "short", &long[..MAX_TEXT_BYTES / 4], &long[..]] {
        let mut steer = script.steer(text);
        steer.inputs[0].id.ordinal = first;
        script.write(&*store, steer.clone()).await.unwrap();
        let input = store.input(steer.inputs[0].id).await.unwrap();
        assert!(input.as_ref() == steer.inputs.first());
        assert!(store.inputs(script.run_id()).await.unwrap() == steer.inputs);
    }
    let say = script.say(vec![said(&long), said("short"), said(&long)]);
    all.extend(say.entries.clone());
    script.write(&*store, say).await.unwrap();
    for max_bytes in [usize::MAX, MAX_TEXT_BYTES] {
        let read = read_all(&*store, &script, 100, max_bytes).await;
        assert!(read == all, "entries changed");
    }
    subject.reopen().await;
    let read = read_all(&*subject.store(), &script, 100, usize::MAX).await;
    assert!(read == all, "entries changed");
}

/// Bytes that other programs trip over.
pub(crate) async fn b41_odd_texts_read_back(subject: &mut dyn Subject) {
    let store = subject.store();
    let odd = [
        "",
        "\0",
        "a\0b",
        "\u{feff}bom",
        "\u{202e}right to left",
        "e\u{301}",
        "👩‍👩‍👧‍👦",
        "\u{10ffff}",
        "\r\n\u{2028}",
        "\u{1b}[31mred",
    ];
    let mut script = Script::new(1);
    let admit = script.admit(store.mint().await.unwrap(), "\0");
    let mut all = admit.entries.clone();
    script.write(&*store, admit).await.unwrap();
    for text in odd {
        let steer = script.steer(text);
        script.write(&*store, steer.clone()).await.unwrap();
        let input = store.input(steer.inputs[0].id).await.unwrap();
        assert_eq!(input.as_ref(), steer.inputs.first());
        let say = script.say(vec![said(text)]);
        all.extend(say.entries.clone());
        script.write(&*store, say).await.unwrap();
    }
    assert_eq!(read_all(&*store, &script, 100, usize::MAX).await, all);
}

/// A run's inputs and nobody else's.
pub(crate) async fn inputs_come_in_order_of_acceptance(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut scripts = [Script::new(1), Script::new(2)];
    for script in &mut scripts {
        let admit = script.admit(store.mint().await.unwrap(), "go");
        script.write(&*store, admit).await.unwrap();
    }
    for n in 0..300 {
        for script in &mut scripts {
            let steer = script.steer(&n.to_string());
            script.write(&*store, steer).await.unwrap();
        }
    }
    for script in &mut scripts {
        let mut decide = script.say(vec![said("as you say")]);
        let shown = InputFate::Delivered(decide.entries[0].id);
        let inputs = store.inputs(script.run_id()).await.unwrap();
        let decided = inputs
            .into_iter()
            .filter(|input| input.id.ordinal % 100 != 7);
        decide.inputs = decided
            .map(|input| InputRecord {
                fate: shown,
                ..input
            })
            .collect();
        script.write(&*store, decide).await.unwrap();
        let pending = store.pending_inputs(script.run_id()).await.unwrap();
        let pending: Vec<u32> = pending.iter().map(|input| input.id.ordinal).collect();
        assert_eq!(pending, [7, 107, 207]);
    }
    for script in &scripts {
        let inputs = store.inputs(script.run_id()).await.unwrap();
        let ids: Vec<InputId> = inputs.iter().map(|input| input.id).collect();
        let run = script.run_id();
        let expected: Vec<InputId> = (1..=300).map(|ordinal| InputId { run, ordinal }).collect();
        assert_eq!(ids, expected);
    }
}

/// Absence is an answer.
pub(crate) async fn what_is_not_there_is_nothing_and_not_an_error(subject: &mut dyn Subject) {
    let store = subject.store();
    let script = Script::new(1);
    let admit = script.admit(store.mint().await.unwrap(), "go");
    let run = admit.runs[0].id;
    let range = EntryRange {
        after: 0,
        up_to: u64::MAX,
        max_entries: 10,
        max_bytes: 10,
    };
    assert_eq!(store.session(session_id(1)).await, Ok(None));
    assert_eq!(store.entries(session_id(1), range).await, Ok(Vec::new()));
    assert_eq!(store.run(run).await, Ok(None));
    assert_eq!(store.input(InputId { run, ordinal: 1 }).await, Ok(None));
    assert_eq!(store.inputs(run).await, Ok(Vec::new()));
    assert_eq!(store.pending_inputs(run).await, Ok(Vec::new()));
    assert_eq!(store.interactions(run).await, Ok(Vec::new()));
    assert_eq!(store.entry(admit.entries[0].id).await, Ok(None));
    for before in [None, Some(run)] {
        assert_eq!(store.runs(session_id(1), before, 9).await, Ok(Vec::new()));
    }
    assert_eq!(store.cut(session_id(1)).await, Ok(None));
    assert_eq!(store.binding(&binding_key("acme", "r")).await, Ok(None));
    assert_eq!(store.holder(session_id(1)).await, Ok(None));
    assert_eq!(store.revoke(session_id(1)).await, Ok(()));
    assert_eq!(store.orphaned().await, Ok(Vec::new()));
}

/// Data of both shapes, with what no text has.
fn data() -> Option<std::sync::Arc<Data>> {
    let part = |content| DataPart {
        name: "build.log".into(),
        media_type: "text/plain".into(),
        bytes: 20_000,
        sha256: Digest([3; 32]),
        content,
    };
    let whole = part(Content::Whole((*b"\0\xff|").into()));
    let cut = part(Content::Cut {
        head: (*b"head").into(),
        tail: (*b"tail").into(),
        artifact: ArtifactRef {
            id: ArtifactId::from_bytes([4; 16]),
            bytes: 20_000,
            sha256: Some(Digest([3; 32])),
        },
    });
    Data::new(vec![whole, cut], Some("read it".into()), 5).map(Into::into)
}
