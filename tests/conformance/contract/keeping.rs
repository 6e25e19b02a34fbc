//! C22, C24: what compactions keep is read as it was read before, however often one follows another,
//! and whichever session it is of.

use sessionplane_core::contract::InvokeRequest;
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::EntryId;

use super::desk::{Desk, with_id, within};
use super::hands::compact;
use super::lineage::branch;
use super::run::{Run, said};
use super::world::{Worlds, quick};

/// Compacts, and waits until that is over.
async fn compacted(desk: &Desk, instructions: &str) {
    desk.dispatch(compact(instructions), None).await;
    desk.watch_idle().await;
}

/// The texts that a recollection tells.
fn texts(told: &str) -> Vec<String> {
    let (_, list) = told.split_once("texts: ").expect("a recollection");
    serde_json::from_str(list).unwrap_or_else(|error| panic!("{list}: {error}"))
}

/// The texts that the agent is given, this question left out.
async fn recalled(desk: &Desk) -> Vec<String> {
    let mut texts = texts(&desk.recall().await);
    assert_eq!(texts.pop().as_deref(), Some("recall"));
    texts
}

/// What the newest compaction of a session kept.
async fn first_kept(desk: &Desk) -> Option<EntryId> {
    let entries = desk.entries().await;
    let kept = entries.iter().rev().find_map(|entry| match entry.body {
        EntryBody::Compaction { first_kept, .. } => Some(first_kept),
        _ => None,
    });
    kept.expect("a compaction")
}

/// A conversation of two runs, of two entries each.
async fn conversation(desk: &Desk) -> Vec<EntryId> {
    desk.run("say \"first\"").await;
    desk.run("say \"second\"").await;
    desk.entries().await.iter().map(|entry| entry.id).collect()
}

/// C22: an earlier summary is read where it was, or not at all; what it kept is never lost with it.
pub(crate) async fn c22_what_is_kept_again_is_read_as_it_was_read_before(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let (second, third) = ("say \"second\"", "say \"third\"");
    let again: [(usize, &[&str], usize, &[&str]); 6] = [
        // With the first summary, and then with both, with the first alone, or with neither.
        (
            5,
            &["two", "one", second, third],
            8,
            &["three", "two", "one", second, third, "recall"],
        ),
        (
            5,
            &["two", "one", second, third],
            7,
            &["three", "one", second, third, "recall"],
        ),
        (
            5,
            &["two", "one", second, third],
            6,
            &["three", second, third, "recall"],
        ),
        // Without it: it does not come back.
        (
            4,
            &["two", second, third],
            7,
            &["three", "two", second, third, "recall"],
        ),
        (
            4,
            &["two", second, third],
            6,
            &["three", second, third, "recall"],
        ),
        // With nothing that the first one kept.
        (2, &["two", third], 4, &["three", third, "recall"]),
    ];
    for (n, (kept, two, then, three)) in again.into_iter().enumerate() {
        let desk = Desk::new(&world, &format!("again-{n}"));
        conversation(&desk).await;
        compacted(&desk, "compact \"one\" kept 2").await;
        desk.run(third).await;
        compacted(&desk, &format!("compact \"two\" kept {kept}")).await;
        assert_eq!(recalled(&desk).await, two, "case {n}");
        compacted(&desk, &format!("compact \"three\" kept {then}")).await;
        if n == 0 {
            world.restart().await;
        }
        assert_eq!(recalled(&desk).await, three, "case {n}");
    }
}

/// C22: within a run, what the agent has after two compactions is what the next one is given.
pub(crate) async fn c22_two_compactions_of_a_run_keep_what_its_agent_kept(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    for (n, kept) in [9, 2, 1].into_iter().enumerate() {
        let desk = Desk::new(&world, &format!("run-{n}"));
        conversation(&desk).await;
        let run = format!("compact \"one\" kept 2\ncompact \"two\" kept {kept}\nrecall");
        let has = texts(&said(&desk.run(&*run).await, OutputChannel::Text));
        let second = (kept > 1).then_some("say \"second\"");
        let wanted: Vec<&str> = ["two"].into_iter().chain(second).chain([&*run]).collect();
        assert_eq!(has, wanted);
        assert_eq!(recalled(&desk).await, wanted);
    }
}

/// C22, C24: a branch keeps what it took over as well as what is its own.
pub(crate) async fn c22_c24_a_branch_keeps_what_it_took_over(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "parent");
    let past = conversation(&desk).await;
    let before = desk.all().await;
    let child = Desk::new(&world, "child");
    // Before it has an entry of its own to keep.
    let prompt = "compact \"one\" kept 2\nrecall";
    let request = InvokeRequest {
        prompt: prompt.to_owned(),
        given: Given::default(),
        ..branch(&child.session, &desk.session, None)
    };
    let stream = within("invoke", child.caller().invoke(request, with_id(None))).await;
    let run = Run::accepted(stream.expect("a run")).await;
    let has = texts(&said(&run.finish().await, OutputChannel::Text));
    let second = "say \"second\"";
    assert_eq!(has, ["one", second, prompt]);
    assert_eq!(first_kept(&child).await, Some(past[2]));
    assert_eq!(recalled(&child).await, ["one", second, prompt]);
    // [one, two of the parent, prompt, answer, recall, answer]: without the summary, and less.
    compacted(&child, "compact \"two\" kept 6").await;
    assert_eq!(first_kept(&child).await, Some(past[2]));
    world.restart().await;
    let two = ["two", second, prompt, "recall"];
    assert_eq!(recalled(&child).await, two);
    // And over two sessions: the grandchild keeps the last entry of the first.
    let third = Desk::new(&world, "grandchild");
    let request = branch(&third.session, &child.session, None);
    let stream = within("invoke", third.caller().invoke(request, with_id(None))).await;
    let run = Run::accepted(stream.expect("a run")).await;
    run.finish().await;
    compacted(&third, "compact \"three\" kept 9").await;
    assert_eq!(first_kept(&third).await, Some(past[3]));
    let wanted = ["three", prompt, "recall", "recall", "recall"];
    assert_eq!(recalled(&third).await, wanted);
    assert_eq!(desk.all().await, before, "the parent is as it was");
}

/// C24: the past of a branch is all of it, over however many sessions it goes back.
pub(crate) async fn c24_a_long_line_of_branches_has_its_whole_past(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let mut last = Desk::new(&world, "line-0");
    last.run("say \"first\"").await;
    for n in 1..=20 {
        let next = Desk::new(&world, &format!("line-{n}"));
        let request = InvokeRequest {
            prompt: "stop".to_owned(),
            given: Given::default(),
            ..branch(&next.session, &last.session, None)
        };
        let stream = within("invoke", next.caller().invoke(request, with_id(None))).await;
        Run::accepted(stream.expect("a run")).await.finish().await;
        last = next;
    }
    // The first entry of the first session is the first of what is read: all but it are kept no
    // further than there.
    compacted(&last, "compact \"all\" kept 256").await;
    let first = Desk::new(&world, "line-0").entries().await[0].id;
    assert_eq!(first_kept(&last).await, Some(first));
}
