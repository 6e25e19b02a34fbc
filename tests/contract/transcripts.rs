//! C22, C24: what an agent is given to read, by pages and from its end; what it may say that it kept;
//! and what reading costs.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sessionplane_core::domain::compaction::CompactionOutcome;
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::ids::{AgentName, EntryId, EntrySeq, SessionId};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::engine::{
    Engine, EngineConnection, EngineDescription, EngineError, EngineEvent, EngineOutput,
    OpenSession, Transcript,
};
use sessionplane_server::adapters::engine::scripted::ScriptedEngine;
use sessionplane_server::adapters::memory::MemoryStore;
use sessionplane_server::app::App;
use sessionplane_server::app::agents::AgentCatalog;
use tokio_util::sync::CancellationToken;

use crate::house::{ports, principal};
use crate::slow::{Refusal, Slow};
use crate::suite::compaction::finished;
use crate::suite::desk::Desk;
use crate::suite::hands::{compact, navigate};
use crate::suite::run::code;
use crate::suite::world::{Pinned, World, quick};

/// The scripted agent, which shows the transcript that it was given and can be made to lie about
/// what it kept.
struct Witness {
    agent: ScriptedEngine,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    given: Mutex<Option<Arc<dyn Transcript>>>,
    lies: Mutex<Vec<EntryId>>,
    /// Breaks once the agent has compacted.
    breaks: Mutex<Option<Arc<Refusal>>>,
}

struct Liar {
    honest: Box<dyn EngineOutput>,
    shared: Arc<Shared>,
}

#[async_trait]
impl Engine for Witness {
    fn describe(&self) -> &EngineDescription {
        self.agent.describe()
    }

    async fn open(&self, open: OpenSession) -> Result<EngineConnection, EngineError> {
        *self.shared.given.lock().expect("no panic") = Some(open.transcript.clone());
        let mut connection = self.agent.open(open).await?;
        connection.output = Box::new(Liar {
            honest: connection.output,
            shared: self.shared.clone(),
        });
        Ok(connection)
    }
}

#[async_trait]
impl EngineOutput for Liar {
    async fn next(&mut self) -> Option<EngineEvent> {
        let mut event = self.honest.next().await?;
        if let EngineEvent::CompactionFinished(Ok(compacted)) = &mut event {
            let mut lies = self.shared.lies.lock().expect("no panic");
            compacted.first_kept = lies.pop().or(compacted.first_kept);
            let store = self.shared.breaks.lock().expect("no panic").take();
            store.inspect(|store| store.break_entries(true));
        }
        Some(event)
    }
}

/// A server with that agent, and its store.
struct Stage {
    world: Arc<dyn World>,
    shared: Arc<Shared>,
    store: Arc<Refusal>,
    life: CancellationToken,
}

impl Stage {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let refusal = Arc::new(Refusal::default());
        let slow = Slow(store.clone(), refusal.clone());
        let (ports, life) = ports(Arc::new(slow), store);
        let shared = Arc::<Shared>::default();
        let witness = Witness {
            agent: ScriptedEngine::new(ports.clock.clone(), ports.spawner.clone()),
            shared: shared.clone(),
        };
        let name = AgentName::parse("scripted").expect("an agent's name");
        let catalog = AgentCatalog::new(name.clone(), name, Arc::new(witness));
        let app = App::new(ports, catalog, quick());
        Self {
            world: Arc::new(Pinned(principal(&app, "acme", "owner"))),
            shared,
            store: refusal,
            life,
        }
    }

    fn desk(&self, name: &str) -> Desk {
        Desk::new(&self.world, name)
    }

    /// Has the agent say that it kept what begins there; for its next compactions, in this order.
    fn lie(&self, lies: &[EntryId]) {
        *self.shared.lies.lock().expect("no panic") = lies.iter().rev().copied().collect();
    }

    /// What the agent was given when it was opened last.
    fn given(&self) -> Arc<dyn Transcript> {
        let given = self.shared.given.lock().expect("no panic").clone();
        given.expect("it was opened")
    }

    /// What an agent is given now.
    async fn opened(&self, desk: &Desk) -> Arc<dyn Transcript> {
        desk.run("stop").await;
        self.given()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.life.cancel();
    }
}

/// All of it, page by page, and the same from its end.
async fn read(transcript: &dyn Transcript) -> Vec<Entry> {
    let mut pages = Vec::new();
    loop {
        let page = transcript.page(pages.len()).await.expect("a page");
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 256, "a page of {}", page.len());
        pages.extend(page);
    }
    for max in [0, 1, 2, 3, 5, pages.len(), usize::MAX] {
        let newest = transcript.newest(max).await.expect("the newest");
        let from = pages.len().saturating_sub(max);
        assert_eq!(newest, pages[from..], "the newest {max}");
    }
    pages
}

fn seqs(entries: &[Entry]) -> Vec<EntrySeq> {
    entries.iter().map(|entry| entry.id.seq).collect()
}

fn first_kept(entries: &[Entry]) -> Vec<Option<EntryId>> {
    let kept = entries.iter().filter_map(|entry| match entry.body {
        EntryBody::Compaction { first_kept, .. } => Some(first_kept),
        _ => None,
    });
    kept.collect()
}

async fn compacted(desk: &Desk, instructions: &str) -> CompactionOutcome {
    let mut watch = desk.watch().await;
    desk.dispatch(compact(instructions), None).await;
    let outcome = finished(&mut watch).await;
    desk.watch_idle().await;
    outcome
}

/// A conversation of entries 1 to 4.
async fn conversation(desk: &Desk) -> Vec<EntryId> {
    desk.run("say \"first\"").await;
    desk.run("say \"second\"").await;
    desk.entries().await.iter().map(|entry| entry.id).collect()
}

/// C22, C24: page by page as from its end, over a branch, compactions and a parent.
#[tokio::test(flavor = "multi_thread")]
async fn c22_c24_pages_and_the_newest_entries_say_the_same() {
    let stage = Stage::new();
    let desk = stage.desk("paged");
    let past = conversation(&desk).await;
    compacted(&desk, "compact \"one\" kept 2").await;
    desk.run("say \"third\"").await;
    compacted(&desk, "compact \"two\" kept 5").await;
    let given = stage.opened(&desk).await;
    assert_eq!(seqs(&read(&*given).await), [8, 5, 3, 4, 6, 7]);
    // The same conversation from before the second compaction on, and from before both.
    desk.dispatch(navigate(EntryId { seq: 7, ..past[0] }), None)
        .await;
    let given = stage.opened(&desk).await;
    assert_eq!(seqs(&read(&*given).await), [5, 3, 4, 6, 7]);
    desk.dispatch(navigate(past[1]), None).await;
    let given = stage.opened(&desk).await;
    assert_eq!(seqs(&read(&*given).await), [1, 2]);
    // 10 follows 2; more than a page of one branch follows.
    let leaf = desk.view().await.leaf.expect("a leaf").seq;
    desk.run(&*"say \"x\"\nmessage\n".repeat(600)).await;
    let given = stage.opened(&desk).await;
    let all = read(&*given).await;
    let wanted: Vec<EntrySeq> = [1, 2].into_iter().chain(leaf..=leaf + 601).collect();
    assert_eq!(seqs(&all), wanted);
}

/// C22: an entry of a branch that was left, one that was compacted away, and one that never was.
#[tokio::test(flavor = "multi_thread")]
async fn c22_what_the_agent_was_not_given_it_cannot_keep() {
    let stage = Stage::new();
    let desk = stage.desk("liar");
    let past = conversation(&desk).await;
    desk.dispatch(navigate(past[1]), None).await;
    let never = EntryId {
        session: SessionId::mint(Timestamp::default(), 7),
        seq: 1,
    };
    for lie in [
        past[3],
        never,
        EntryId { seq: 0, ..past[0] },
        EntryId {
            seq: 999,
            ..past[0]
        },
    ] {
        stage.lie(&[lie]);
        compacted(&desk, "say \"short\"").await;
        assert_eq!(
            first_kept(&desk.entries().await).last(),
            Some(&None),
            "{lie}"
        );
        let given = stage.opened(&desk).await;
        let read = read(&*given).await;
        assert!(matches!(
            &read[..],
            [Entry {
                body: EntryBody::Compaction { .. },
                ..
            }]
        ));
        desk.dispatch(navigate(past[1]), None).await;
    }
    // What it was given it can keep.
    stage.lie(&[past[1]]);
    compacted(&desk, "say \"short\"").await;
    assert_eq!(
        first_kept(&desk.entries().await).last(),
        Some(&Some(past[1]))
    );
    // Now the first entry is no longer among what it is given.
    desk.run("say \"more\"").await;
    stage.lie(&[past[0]]);
    compacted(&desk, "say \"shorter\"").await;
    assert_eq!(first_kept(&desk.entries().await).last(), Some(&None));
}

/// C22: within a run each compaction leaves less to keep.
#[tokio::test(flavor = "multi_thread")]
async fn c22_what_a_run_has_compacted_away_it_cannot_keep() {
    let stage = Stage::new();
    let desk = stage.desk("liar");
    let past = conversation(&desk).await;
    stage.lie(&[past[2], past[3], past[2]]);
    let run = "compact \"one\"\ncompact \"two\"\ncompact \"three\"\ncompact \"four\" kept 9";
    assert_eq!(code(&desk.run(run).await), "completed");
    let kept = first_kept(&desk.entries().await);
    assert_eq!(kept, [Some(past[2]), Some(past[3]), None, None]);
    let given = stage.opened(&desk).await;
    assert_eq!(seqs(&read(&*given).await), [9]);
}

/// C22: what cannot be looked up is not taken on trust, and nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn c22_a_compaction_whose_rest_cannot_be_looked_up_fails() {
    let stage = Stage::new();
    let desk = stage.desk("unreadable");
    conversation(&desk).await;
    let before = desk.entries().await;
    *stage.shared.breaks.lock().expect("no panic") = Some(stage.store.clone());
    let mut watch = desk.watch().await;
    stage.lie(&[before[2].id]);
    desk.dispatch(compact("say \"short\""), None).await;
    let CompactionOutcome::Failed(failure) = finished(&mut watch).await else {
        panic!("it did not fail");
    };
    assert!(failure.retryable, "{failure:?}");
    stage.store.break_entries(false);
    desk.watch_idle().await;
    assert_eq!(desk.entries().await, before);
}

/// C24: reading the end costs as much as it gives, however heavy the entries are, however long the
/// conversation is and however many other branches lie between.
#[tokio::test(flavor = "multi_thread")]
async fn c24_the_newest_entries_cost_as_much_as_they_are() {
    let stage = Stage::new();
    let desk = stage.desk("heavy");
    desk.run(&*"big 8KiB\nmessage\n".repeat(600)).await;
    let given = stage.opened(&desk).await;
    let cost = |max: usize| {
        let (given, store) = (given.clone(), stage.store.clone());
        async move {
            let before = store.entries_read();
            let newest = given.newest(max).await.expect("the newest");
            assert_eq!(newest.len(), max);
            store.entries_read() - before
        }
    };
    // A page is a megabyte, which 124 of them fill.
    for (max, most) in [
        (1, 1),
        (10, 10),
        (100, 100),
        (256, 256 + 140),
        (500, 500 + 140),
    ] {
        let read = cost(max).await;
        assert!(read <= most, "{max}: {read} were read");
    }
    let before = stage.store.entries_read();
    let mut paged = 0;
    loop {
        let page = given.page(paged).await.expect("a page");
        if page.is_empty() {
            break;
        }
        paged += page.len();
    }
    assert_eq!(paged, 601);
    let read = stage.store.entries_read() - before;
    assert!(read <= 2 * 601 + 140, "{read} were read for 601");
}

/// C24: so it does where the entries of a path are few among many.
#[tokio::test(flavor = "multi_thread")]
async fn c24_a_path_through_many_branches_costs_what_it_is() {
    let stage = Stage::new();
    let desk = stage.desk("branchy");
    desk.run("say \"first\"").await;
    let mut path = Vec::new();
    for _ in 0..8 {
        // A long branch, which is left for where it began.
        let leaf = desk.view().await.leaf.expect("a leaf");
        path.push(leaf.seq);
        desk.run(&*"say \"x\"\nmessage\n".repeat(200)).await;
        desk.dispatch(navigate(leaf), None).await;
        desk.run("stop").await;
    }
    let given = stage.opened(&desk).await;
    let before = stage.store.entries_read();
    let all = given.newest(usize::MAX).await.expect("all of it");
    let read = stage.store.entries_read() - before;
    assert_eq!(all.len(), 2 + 8);
    assert!(path.iter().all(|seq| seqs(&all).contains(seq)));
    assert!(read <= 256 + 4 * 10, "{read} were read for 10");
}
