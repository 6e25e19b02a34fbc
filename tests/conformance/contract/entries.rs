//! C29: the durable conversation in append order, page by page.

use std::collections::BTreeSet;

use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::error::Reason;

use super::desk::Desk;
use super::world::{Worlds, quick};

pub(crate) async fn c29_every_page_size_reads_the_same_conversation(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "pages");
    for number in 0..4 {
        desk.run(&*format!(
            "say \"{number}\"\nmessage\nsay \"more\"\ntool t\nsay \"end\""
        ))
        .await;
    }
    let whole = desk.entries().await;
    assert_eq!(whole.len(), 4 * 5);
    for (at, entry) in whole.iter().enumerate() {
        assert_eq!(entry.id.seq, at as u64 + 1, "append order");
        let parent = at.checked_sub(1).map(|before| whole[before].id);
        assert_eq!(entry.parent, parent);
    }
    for restarted in [false, true] {
        if restarted {
            world.restart().await;
        }
        for size in [1, 2, 3, 7, 19, 20, 21, 1000] {
            assert_eq!(desk.pages_of(size).await, whole, "by {size}");
        }
    }
    let kinds: BTreeSet<&str> = whole.iter().map(|entry| entry.body.kind()).collect();
    assert_eq!(kinds, BTreeSet::from(["assistant", "tool", "user"]));
}

pub(crate) async fn c29_an_unknown_cursor_is_a_full_backfill(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let (desk, other) = (Desk::new(&world, "mine"), Desk::new(&world, "other"));
    desk.run("say \"x\"\nmessage\nsay \"y\"").await;
    other.run("say \"x\"").await;
    let entries = desk.entries().await;
    let session = entries[0].id.session;
    let foreign = other.entries().await[0].id.to_string();
    let unknown = [
        "nonsense".to_owned(),
        foreign,
        format!("{session}-4"),
        format!("{session}-01"),
        format!("{session}-18446744073709551616"),
    ];
    for since in unknown {
        let page = desk.page(Some(since.clone()), 2).await.expect("a page");
        assert!(page.full_backfill, "{since}");
        assert_eq!(page.entries, entries[..2], "{since}");
        assert!(page.has_more);
        assert_eq!(page.next_since, Some(entries[1].id.to_string()), "{since}");
    }
    for since in [None, Some(String::new())] {
        let page = desk.page(since, 2).await.expect("a page");
        assert!(!page.full_backfill);
        assert_eq!(page.entries, entries[..2]);
    }
    let last = entries.last().map(|entry| entry.id.to_string());
    let page = desk.page(last.clone(), 2).await.expect("a page");
    assert_eq!(
        (page.entries.len(), page.has_more, page.full_backfill),
        (0, false, false)
    );
    assert_eq!(
        page.next_since, last,
        "a reader at the end keeps its cursor"
    );
}

pub(crate) async fn c29_pages_are_bounded_by_bytes_too(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "bytes");
    desk.run("big 600KiB\nmessage\nbig 600KiB\nmessage\nbig 100KiB\nmessage\nbig 200KiB\nmessage\nbig 1MiB").await;
    let page = desk.page(None, 1000).await.expect("a page");
    assert_eq!(page.entries.len(), 2, "prompt and the first");
    let since = page.entries.last().map(|entry| entry.id.to_string());
    let page = desk.page(since, 1000).await.expect("a page");
    assert_eq!(page.entries.len(), 3);
    let whole = desk.pages_of(1000).await;
    assert_eq!(whole.len(), 6, "an entry of more than a page goes alone");
    let texts = whole.iter().filter_map(|entry| match &entry.body {
        EntryBody::Assistant { text, .. } => Some((text.text.len(), text.omitted_bytes)),
        _ => None,
    });
    let kib = 1024;
    let sizes: Vec<_> = texts.collect();
    assert_eq!(
        sizes,
        [
            (600 * kib, 0),
            (600 * kib, 0),
            (100 * kib, 0),
            (200 * kib, 0),
            (1024 * kib, 0)
        ]
    );
}

pub(crate) async fn c29_a_page_size_over_the_limit_is_refused(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "too-many");
    desk.run("say \"x\"").await;
    let error = desk.page(None, 1001).await.expect_err("refused");
    assert_eq!(error.reason, Reason::InvalidArgument);
    assert!(desk.page(None, 1000).await.is_ok());
}

/// C29: while the conversation grows, the leaf of the last page is among what was read.
pub(crate) async fn c29_the_leaf_is_among_the_entries_while_they_grow(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "growing");
    desk.run("say \"x\"").await;
    let run = desk.invoke(&*"say \"x\"\nmessage\n".repeat(400)).await;
    let id = run.id;
    loop {
        // `pages_of` asserts that the leaf is known.
        let entries = desk.pages_of(50).await;
        let numbers: Vec<u64> = entries.iter().map(|entry| entry.id.seq).collect();
        assert_eq!(numbers, (1..=entries.len() as u64).collect::<Vec<_>>());
        if desk.state().await.view.active_run != Some(id) {
            break;
        }
    }
    assert_eq!(desk.entries().await.len(), 2 + 401);
    run.finish().await;
}
