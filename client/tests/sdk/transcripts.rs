//! `sessionctl` over a conversation that branches, is cut by its events, or starts over.

use std::process::Stdio;

use sessionplane::v1;

use super::cli::{ran, reads, reads_from, sends, sessionctl};
use super::fake::{Fake, Stage, Step};
use super::wire;

/// An entry that follows another one than that before it.
fn after(parent: u64, entry: v1::Entry) -> v1::Entry {
    v1::Entry {
        parent_id: wire::entry_id(parent),
        ..entry
    }
}

/// A session that was at entry 2 again, and has gone on from there since.
fn branched() -> Vec<v1::Entry> {
    vec![
        wire::user_entry(3, "the first try"),
        after(2, wire::user_entry(4, "the second try")),
        wire::assistant_entry(5, "m-5", "Better."),
    ]
}

fn state(leaf: u64, entries: u64) -> v1::SessionState {
    v1::SessionState {
        entry_count: entries,
        leaf_entry_id: wire::entry_id(leaf),
        ..wire::state(false)
    }
}

async fn observed(state: v1::SessionState, steps: Vec<Step<v1::EventsResponse>>) -> Fake {
    let get = || {
        Ok(v1::GetStateResponse {
            state: Some(state.clone()),
        })
    };
    Fake::start(Stage {
        states: [get(), get()].into(),
        events: [Ok([steps, vec![Step::Hang]].concat())].into(),
        ..Stage::default()
    })
    .await
}

#[tokio::test]
async fn c24_text_views_say_where_a_conversation_branches() {
    let live = after(1, wire::user_entry(6, "the third try"));
    for words in [
        &["attach", "--last", "3", "docs"][..],
        &["events", "--since", &wire::entry_id(2), "docs"],
        &["entries", "--follow", "--since", &wire::entry_id(2), "docs"],
    ] {
        let steps = sends([
            wire::subscribed(false, false),
            wire::entries(branched()),
            wire::snapshot_of(state(1, 5)),
            wire::appended(7, live.clone()),
        ]);
        let fake = observed(state(1, 5), steps).await;
        let mut command = sessionctl(&fake, words);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let out = reads(&mut child, "the third try\n").await;
        child.kill().await.unwrap();
        let at = |text: &str| out.find(text).unwrap_or_else(|| panic!("no {text}: {out}"));
        let places = [
            at("the first try"),
            at("-- after entry 2 --\n"),
            at("the second try"),
            at("Better."),
            at("-- after entry 1 --\n"),
            at("the third try"),
        ];
        assert!(places.is_sorted(), "{out}");
        assert_eq!(out.matches("-- after").count(), 2, "{out}");
        if words[0] == "attach" {
            assert!(out.contains("m1, at entry 1 --"), "{out}");
        }
    }
}

#[tokio::test]
async fn c24_a_list_of_entries_says_where_a_conversation_branches() {
    let page = v1::ListEntriesResponse {
        entries: branched(),
        ..v1::ListEntriesResponse::default()
    };
    let fake = Fake::start(Stage {
        pages: [Ok(page)].into(),
        ..Stage::default()
    })
    .await;
    let (code, out, _) = ran(&fake, &["entries", "docs"]).await;
    assert_eq!(code, 0);
    assert_eq!(out.matches("-- after").count(), 1, "{out}");
    let line = format!("-- after entry 2 --\n{}  user", wire::entry_id(4));
    assert!(out.contains(&line), "{out}");
}

#[tokio::test]
async fn c35_an_entry_that_its_event_cuts_is_printed_whole() {
    let text = "x".repeat(25 * 1024);
    let mut cut = wire::user_entry(3, &text[1024..]);
    if let Some(v1::entry::Body::User(user)) = &mut cut.body {
        user.omitted_bytes = 1024;
    }
    for json in [true, false] {
        let steps = sends([
            wire::subscribed(false, false),
            wire::snapshot_of(state(2, 2)),
            wire::appended(7, cut.clone()),
            wire::appended(8, wire::user_entry(4, "short")),
        ]);
        let fake = observed(state(2, 2), steps).await;
        fake.stage.lock().unwrap().pages = [Ok(v1::ListEntriesResponse {
            entries: vec![wire::user_entry(3, &text)],
            has_more: true,
            ..v1::ListEntriesResponse::default()
        })]
        .into();
        let words = &["--json", "entries", "--follow", "docs"][usize::from(!json)..];
        let mut child = sessionctl(&fake, words).spawn().unwrap();
        let out = reads(&mut child, "short").await;
        child.kill().await.unwrap();
        assert!(out.contains(&text), "{} bytes", out.len());
        fake.look(|stage| {
            assert_eq!(stage.listed.len(), 1, "what is whole is not asked for");
            assert_eq!(stage.listed[0].since, wire::entry_id(2));
            assert_eq!(stage.listed[0].page_size, 1);
        });
    }
}

#[tokio::test]
async fn c29_neither_quiet_nor_json_hides_that_all_entries_start_over() {
    let words = "listing from the first";
    for (arguments, told) in [
        (&["-q", "entries", "docs"][..], words),
        (&["-q", "entries", "--follow", "docs"], words),
        (&["-q", "attach", "docs"], "all entries from the first"),
        (&["--json", "entries", "docs"], "{\"full_backfill\":true}\n"),
        (
            &["--json", "entries", "--follow", "docs"],
            "{\"full_backfill\":true}\n",
        ),
    ] {
        let entries = vec![wire::user_entry(1, "hello")];
        let steps = sends([
            wire::subscribed(false, false),
            wire::entries_anew(entries.clone()),
            wire::snapshot_of(state(1, 1)),
        ]);
        let fake = observed(state(1, 1), steps).await;
        fake.stage.lock().unwrap().pages = [Ok(v1::ListEntriesResponse {
            entries,
            full_backfill: true,
            ..v1::ListEntriesResponse::default()
        })]
        .into();
        let mut command = sessionctl(&fake, arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let on_out = arguments[0] == "--json" || arguments[1] == "attach";
        if on_out {
            reads(&mut child, told).await;
        } else {
            reads_from(child.stderr.as_mut().unwrap(), told).await;
        }
        child.kill().await.unwrap();
    }
}
