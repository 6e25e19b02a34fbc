//! C36, C44, B27: what a crash leaves, and what it must not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sessionplane_core::contract::{InvokeEvent, OnDisconnect};
use sessionplane_core::domain::command::DispatchAnswer;
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::{InputId, RunId};
use sessionplane_core::domain::input::InputFate;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::view::{SessionView, Status};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::desk::{Ask, Desk, follow_up, steer, within};
use super::run::code;
use super::watch::{appended, settled, started};
use super::world::{Pinned, World, Worlds, quick};

/// Another server on the same store is all that an invoke needs: nothing that the one before held in
/// memory, no connection and no caller of it.
pub(crate) async fn c15_any_server_serves_the_next_invoke(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "anywhere");
    desk.run("say \"first\"").await;
    for served in 1..=3 {
        let before = desk.entries().await;
        world.restart().await;
        let told = desk.recall().await;
        let opened = format!("opened at entry {};", before.len());
        assert!(told.starts_with(&opened), "server {served}: {told}");
        assert!(told.contains("first"), "server {served}: {told}");
        let after = desk.entries().await;
        assert_eq!(after[..before.len()], before);
        assert_eq!(
            after[before.len()].parent,
            before.last().map(|entry| entry.id),
            "it goes on where the other one ended"
        );
    }
}

pub(crate) async fn c36_a_cut_run_is_interrupted_wherever_it_is_told(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "cut");
    let ask = || Ask::new("say \"kept\"\nmessage\nsay \"lost\"\nhang").id("one");
    let run = desk.invoke(ask()).await;
    let id = run.id;
    let mut watch = desk.watch_from(Some(run.position), None).await;
    let mut events = std::mem::take(&mut watch.missed);
    if appended(&events).len() < 2 {
        events.extend(
            watch
                .until(
                    |body| matches!(body, EventBody::EntryAppended { entry } if entry.id.seq == 2),
                )
                .await,
        );
    }
    world.restart().await;
    let interrupted = |outcome: &RunOutcome| matches!(outcome, RunOutcome::Failed(failure) if failure.code == "interrupted" && failure.retryable);
    let record = desk.record(id).await;
    let settled = record.settled.clone().expect("settled by recovery");
    assert!(interrupted(&settled.outcome), "{settled:?}");
    let entries = desk.entries().await;
    let kinds: Vec<&str> = entries.iter().map(|entry| entry.body.kind()).collect();
    assert_eq!(kinds, ["user", "assistant", "notice"]);
    assert!(matches!(&entries[2].body, EntryBody::Notice { code, .. } if code == "interrupted"));
    assert_eq!(record.final_entry, Some(entries[2].id));
    let watch = desk.watch().await;
    assert_eq!(watch.backfill, entries, "later observers");
    let view = watch.snapshot.view;
    assert_eq!(
        (view.status(), view.leaf),
        (Status::Idle, Some(entries[2].id))
    );
    let last = view.last_run.expect("a last run");
    assert!(last.run == id && interrupted(&last.outcome));
    let terminal = desk.run(ask()).await;
    assert_eq!(code(&terminal), "interrupted");
    // A second start finds nothing more to do.
    world.restart().await;
    assert_eq!(desk.entries().await, entries);
    assert_eq!(desk.record(id).await, record);
}

/// C36: while the process lives, every start has its one settlement, whatever happens.
pub(crate) async fn c36_each_start_has_one_settlement(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "pairs");
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    let mut chance = StdRng::seed_from_u64(36);
    let mut runs = Vec::new();
    for _ in 0..60 {
        let prompts = [
            "stop",
            "fail broken \"x\"",
            "crash",
            "say \"x\"\nhang",
            "tool t progress 50 every 1ms",
        ];
        let prompt = prompts[chance.random_range(0..prompts.len())];
        let ask = Ask {
            on_disconnect: OnDisconnect::Cancel,
            ..Ask::new(prompt)
        };
        let run = desk.invoke(ask).await;
        runs.push(run.id);
        let id = run.id;
        if prompt.ends_with("hang") || chance.random_bool(0.3) {
            drop(run);
            desk.settled(id).await;
        } else {
            run.finish().await;
        }
    }
    let mut events = Vec::new();
    while settled(&events).len() < runs.len() {
        events.extend(watch.until_settled().await);
    }
    assert_eq!(started(&events), runs);
    assert_eq!(
        settled(&events)
            .iter()
            .map(|run| run.id)
            .collect::<Vec<_>>(),
        runs
    );
}

/// C44 B27: a session that was running when the server died takes the next run at once.
pub(crate) async fn c44_b27_no_session_is_stuck_busy_after_a_crash(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desks: Vec<Desk> = (0..20)
        .map(|n| Desk::new(&world, &format!("stuck-{n}")))
        .collect();
    for round in 0..3 {
        let mut runs = Vec::new();
        for desk in &desks {
            let ask = Ask::new("say \"x\"\nhang").id(format!("{round}-{}", desk.session));
            runs.push(desk.invoke(ask).await.id);
        }
        world.restart().await;
        for (desk, run) in desks.iter().zip(runs) {
            assert_eq!(desk.state().await.view.status(), Status::Idle);
            assert!(
                desk.record(run).await.settled.is_some(),
                "no run is left open"
            );
        }
    }
    for desk in &desks {
        assert_eq!(code(&desk.run("say \"next\"").await), "completed");
    }
}

/// What callers were told, and what must therefore be true for ever.
#[derive(Default)]
struct Ledger {
    entries: BTreeMap<sessionplane_core::domain::ids::EntryId, Entry>,
    /// Of each run: which session, with which request id, with which prompt.
    runs: BTreeMap<RunId, (usize, String, String)>,
    inputs: BTreeMap<InputId, (String, InputFate)>,
}

#[derive(Clone)]
struct Book {
    ledger: Arc<Mutex<Ledger>>,
    told: watch::Sender<u64>,
}

impl Book {
    fn write(&self, write: impl FnOnce(&mut Ledger)) {
        write(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner));
        self.told.send_modify(|count| *count += 1);
    }
}

/// Invokes and reads, for ever.
async fn invoking(desk: Desk, at: usize, life: usize, book: Book) {
    for number in 0.. {
        let (id, prompt) = (
            format!("{at}-{life}-{number}"),
            format!("say \"{at}-{life}-{number}\"\ntool t\nwait 2ms\nsay \"x\""),
        );
        let Ok(mut stream) = desk.open(Ask::new(&*prompt).id(&*id)).await else {
            continue;
        };
        while let Some(Ok(event)) = super::run::Run::next_of(&mut stream).await {
            if let InvokeEvent::Accepted { run, .. } = event {
                book.write(|ledger| {
                    ledger.runs.insert(run, (at, id.clone(), prompt.clone()));
                });
            }
        }
    }
}

/// Sends steers and follow-ups, for ever.
async fn sending(desk: Desk, at: usize, life: usize, book: Book) {
    for number in 0_u32.. {
        let id = format!("input-{at}-{life}-{number}");
        let text = format!("say \"{id}\"");
        let command = if is_steer(number) {
            steer(&text)
        } else {
            follow_up(&text)
        };
        let answer = desk.try_dispatch(command, Some(&id), None).await;
        if let Ok(DispatchAnswer::Accepted(accepted)) = answer
            && let Some(input) = accepted.input
        {
            book.write(|ledger| {
                ledger.inputs.insert(input.id, (id, input.fate));
            });
        }
        tokio::task::yield_now().await;
    }
}

fn is_steer(number: u32) -> bool {
    number.is_multiple_of(2)
}

/// Watches, for ever.
async fn watching(desk: Desk, book: Book) {
    loop {
        let Ok(_) = desk.try_state(None).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let mut watch = desk.watch().await;
        while let Some(Ok(event)) = watch.next().await {
            match event.event.body {
                EventBody::EntryAppended { entry } => book.write(|ledger| {
                    ledger.entries.insert(entry.id, *entry);
                }),
                EventBody::InputDelivered { input, entry } => book.write(|ledger| {
                    if let Some((_, fate)) = ledger.inputs.get_mut(&input) {
                        *fate = InputFate::Delivered(entry);
                    }
                }),
                _ => {}
            }
        }
    }
}

/// Everything that was told is there, nothing is doubled, and nothing is busy.
async fn audit(desks: &[Desk], ledger: &Ledger) {
    for (at, desk) in desks.iter().enumerate() {
        match desk.try_state(None).await {
            Ok(state) => conversation(desk, &state.view, ledger).await,
            // A session that was never created has nothing to lose.
            Err(error) => {
                assert_eq!(error, CallError::no_such_session());
                let told = ledger.runs.values().any(|(of, ..)| *of == at);
                assert!(!told, "a session whose run was accepted is gone");
            }
        }
    }
    answers(desks, ledger).await;
}

/// The entries of one session.
async fn conversation(desk: &Desk, view: &SessionView, ledger: &Ledger) {
    assert_eq!(view.status(), Status::Idle);
    let entries = desk.entries().await;
    let numbers: Vec<u64> = entries.iter().map(|entry| entry.id.seq).collect();
    assert_eq!(numbers, (1..=entries.len() as u64).collect::<Vec<_>>());
    let told = ledger
        .entries
        .iter()
        .filter(|(id, _)| id.session == view.session.id);
    for (id, entry) in told {
        let stored = entries.iter().find(|stored| stored.id == *id);
        assert_eq!(stored, Some(entry), "an acknowledged entry is missing");
    }
    let mut inputs: Vec<InputId> = entries
        .iter()
        .filter_map(|entry| match entry.body {
            EntryBody::User { input, .. } => input,
            _ => None,
        })
        .collect();
    let all = inputs.len();
    inputs.sort();
    inputs.dedup();
    assert_eq!(inputs.len(), all, "an input was doubled");
}

/// What calls were answered: their ids find the same run and the same input.
async fn answers(desks: &[Desk], ledger: &Ledger) {
    for (run, (at, id, prompt)) in &ledger.runs {
        let record = desks[*at].record(*run).await;
        assert!(record.settled.is_some(), "{record:?}");
        let again = desks[*at].invoke(Ask::new(&**prompt).id(&**id)).await;
        assert_eq!((again.id, again.joined), (*run, true), "a run was doubled");
    }
    for (input, (id, told)) in &ledger.inputs {
        let at: usize = id
            .split('-')
            .nth(1)
            .and_then(|at| at.parse().ok())
            .expect("a number");
        let number: u32 = id
            .rsplit('-')
            .next()
            .and_then(|n| n.parse().ok())
            .expect("a number");
        let text = format!("say \"{id}\"");
        let command = if is_steer(number) {
            steer(&text)
        } else {
            follow_up(&text)
        };
        let again = desks[at]
            .dispatch(command, Some(id))
            .await
            .input
            .expect("an input");
        assert_eq!(again.id, *input);
        assert_ne!(again.fate, InputFate::Pending, "it ended");
        if *told != InputFate::Pending {
            assert_eq!(again.fate, *told, "an acknowledged fate changed");
        }
    }
}

/// C44 B27: crashes at random moments under load.
pub(crate) async fn c44_b27_crashes_at_random_moments_lose_and_double_nothing(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desks: Vec<Desk> = (0..4)
        .map(|at| Desk::new(&world, &format!("load-{at}")))
        .collect();
    let book = Book {
        ledger: Arc::default(),
        told: watch::Sender::new(0),
    };
    let mut chance = StdRng::seed_from_u64(44);
    for life in 0..12 {
        let mut load = JoinSet::new();
        let before: Arc<dyn World> = Arc::new(Pinned(world.caller()));
        for (at, desk) in desks.iter().enumerate() {
            let desk = &Desk::at(&before, desk.session.clone());
            load.spawn(invoking(desk.clone(), at, life, book.clone()));
            load.spawn(sending(desk.clone(), at, life, book.clone()));
            load.spawn(watching(desk.clone(), book.clone()));
        }
        let enough = *book.told.borrow() + chance.random_range(1..120);
        let mut told = book.told.subscribe();
        within("load", told.wait_for(|count| *count >= enough))
            .await
            .expect("a book");
        world.restart().await;
        load.shutdown().await;
        let ledger =
            std::mem::take(&mut *book.ledger.lock().unwrap_or_else(PoisonError::into_inner));
        audit(&desks, &ledger).await;
    }
    for desk in &desks {
        assert_eq!(code(&desk.run("say \"next\"").await), "completed");
    }
}
