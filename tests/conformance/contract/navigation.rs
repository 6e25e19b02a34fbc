//! C24: the leaf moves to any published entry; the next run goes on from there.

use sessionplane_core::domain::command::RejectionCode;
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::EntryId;

use super::desk::Desk;
use super::hands::{compact, fold, navigate, set_model, set_thinking};
use super::watch::types;
use super::world::{Worlds, quick};

const THINKING: &str = "scripted-thinking";

/// Two runs: a prompt and an answer each.
async fn two_runs(desk: &Desk) -> Vec<Entry> {
    desk.run("say \"first\"").await;
    desk.run("say \"second\"").await;
    desk.entries().await
}

fn parents(entries: &[Entry]) -> Vec<Option<u64>> {
    let parent = |entry: &Entry| entry.parent.map(|parent| parent.seq);
    entries.iter().map(parent).collect()
}

pub(crate) async fn c24_a_run_goes_on_from_where_the_leaf_was_moved(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "branches");
    let entries = two_runs(&desk).await;
    desk.dispatch(navigate(entries[1].id), None).await;
    let told = desk.recall().await;
    assert!(told.contains("first") && !told.contains("second"), "{told}");
    assert!(told.starts_with("opened at entry 2;"), "{told}");
    // The branch goes on along its own path, not along what was appended before it.
    let told = desk.recall().await;
    assert!(told.starts_with("opened at entry 6;"), "{told}");
    assert!(told.contains("first") && !told.contains("second"), "{told}");
    // From the root's prompt, and back to the branch that was left.
    desk.dispatch(navigate(entries[0].id), None).await;
    desk.run("say \"third\"").await;
    desk.dispatch(navigate(entries[3].id), None).await;
    let told = desk.recall().await;
    assert!(told.contains("first") && told.contains("second"), "{told}");
    assert!(!told.contains("third"), "{told}");
    // Entries of all branches are listed as they were appended, and each knows its place.
    let all = desk.entries().await;
    let tree = [0, 1, 2, 3, 2, 5, 6, 7, 1, 9, 4, 11];
    let tree = tree.map(|parent| (parent > 0).then_some(parent));
    assert_eq!(parents(&all), tree);
    assert_eq!(all[..4], entries[..], "nothing of before is changed");
    assert_eq!(desk.pages_of(3).await, all);
    assert_eq!(desk.view().await.leaf, Some(all[11].id));
    // An observer that comes later is given the same tree and the same leaf.
    let watch = desk.watch().await;
    assert_eq!(watch.backfill, all);
    assert_eq!(watch.snapshot.view.leaf, Some(all[11].id));
}

pub(crate) async fn c24_a_moved_leaf_survives_a_restart(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "lasting");
    let entries = two_runs(&desk).await;
    desk.dispatch(navigate(entries[1].id), None).await;
    let before = desk.all().await;
    world.restart().await;
    assert_eq!(desk.all().await, before);
    assert_eq!(desk.view().await.leaf, Some(entries[1].id));
    let told = desk.recall().await;
    assert!(told.contains("first") && !told.contains("second"), "{told}");
}

pub(crate) async fn c24_settings_follow_the_active_path(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "settings");
    desk.run("say \"first\"").await;
    let plain = desk.view().await;
    desk.dispatch(set_model(Some(THINKING)), None).await;
    desk.run("say \"second\"").await;
    desk.dispatch(set_thinking(Some("low")), None).await;
    let low = desk.view().await;
    let at = |view: &sessionplane_core::domain::view::SessionView| view.leaf.expect("a leaf");
    let entries = desk.entries().await;
    let second: EntryId = entries[entries.len() - 2].id;
    for (leaf, model, level) in [
        (at(&plain), "scripted", None),
        (at(&low), THINKING, Some("low")),
        (second, THINKING, Some("medium")),
        (at(&plain), "scripted", None),
    ] {
        desk.dispatch(navigate(leaf), None).await;
        for restarts in [false, true] {
            if restarts {
                world.restart().await;
            }
            let view = desk.view().await;
            assert_eq!(view.leaf, Some(leaf));
            assert_eq!(view.resolved.settings.model.as_deref(), Some(model));
            assert_eq!(view.resolved.settings.thinking_level.as_deref(), level);
        }
        let said = desk.run("settings").await;
        let said = super::run::said(&said, sessionplane_core::domain::event::OutputChannel::Text);
        let wanted = format!("model={model} level={}", level.unwrap_or("none"));
        assert_eq!(said, wanted, "the run uses what the state shows");
    }
    // What is chosen on one branch is not chosen on the other.
    desk.dispatch(set_model(Some("scripted")), None).await;
    desk.dispatch(navigate(at(&low)), None).await;
    assert_eq!(desk.view().await.chosen, low.chosen);
}

pub(crate) async fn c24_to_where_it_is_it_writes_and_tells_nothing(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "there");
    let entries = two_runs(&desk).await;
    let (before, position) = (desk.all().await, desk.state().await.position);
    for _ in 0..2 {
        desk.dispatch(navigate(entries[3].id), None).await;
    }
    assert_eq!(desk.all().await, before);
    assert_eq!(desk.state().await.position, position, "nobody is told");
    // A move is told once, as a change of state; it is no entry.
    let mut watch = desk.watch().await;
    for _ in 0..2 {
        desk.dispatch(navigate(entries[1].id), Some("move")).await;
    }
    let state = desk.state().await;
    let mut events = Vec::new();
    while watch.position < state.position {
        events.push(watch.event().await);
    }
    assert_eq!(types(&events), ["state_changed"]);
    assert!(
        matches!(&events[0].event.body, EventBody::StateChanged { leaf, .. } if *leaf == Some(entries[1].id))
    );
    assert_eq!(fold(watch.snapshot.view.clone(), &events), state.view);
    assert_eq!(desk.entries().await, entries);
    // The repeat of a move that was left again moves nothing.
    desk.dispatch(navigate(entries[2].id), None).await;
    desk.dispatch(navigate(entries[1].id), Some("move")).await;
    assert_eq!(desk.view().await.leaf, Some(entries[2].id));
}

pub(crate) async fn c24_an_entry_that_is_not_the_session_s_is_invalid(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let (desk, other) = (Desk::new(&world, "mine"), Desk::new(&world, "other"));
    let entries = two_runs(&desk).await;
    let foreign = two_runs(&other).await;
    let (before, position) = (desk.all().await, desk.state().await.position);
    let session = entries[0].id.session;
    for entry in [
        foreign[0].id,
        EntryId { session, seq: 5 },
        EntryId {
            session,
            seq: u64::MAX,
        },
    ] {
        let rejection = desk.rejection(navigate(entry)).await;
        assert_eq!(rejection.code, RejectionCode::InvalidCommand);
        assert!(!rejection.retryable);
    }
    assert_eq!(desk.all().await, before);
    assert_eq!(desk.state().await.position, position);
}

/// C24 C22: before a compaction the whole past is there; behind it the summary stands for it.
pub(crate) async fn c24_a_path_without_its_compaction_has_the_whole_past(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "compacted");
    let entries = two_runs(&desk).await;
    desk.dispatch(compact("say \"in short\""), None).await;
    let leaf = desk.watch_idle().await.leaf.expect("a leaf");
    let told = desk.recall().await;
    assert!(
        told.contains("in short") && !told.contains("second"),
        "{told}"
    );
    desk.dispatch(navigate(entries[3].id), None).await;
    let told = desk.recall().await;
    assert!(
        told.contains("second") && !told.contains("in short"),
        "{told}"
    );
    desk.dispatch(navigate(leaf), None).await;
    // Nothing was said on this path since: there is nothing to compact.
    let code = desk.rejected(compact("")).await;
    assert_eq!(code, RejectionCode::NothingToCompact);
    let told = desk.recall().await;
    assert!(
        told.contains("in short") && !told.contains("second"),
        "{told}"
    );
}
