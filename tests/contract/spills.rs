//! C30, C39: a tool's output that is more than an event carries is kept whole before anybody is
//! told where; entries name it too.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::event::{EventBody, EventEnvelope};
use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::limits::{MAX_ENTRY_TEXT_BYTES, MAX_EVENT_TEXT_BYTES};
use sessionplane_core::domain::provenance::Digest;
use sessionplane_core::domain::text::BoundedText;
use sessionplane_core::ports::artifact_store::{ArtifactError, ArtifactStore};
use sessionplane_server::adapters::artifacts::{FolderArtifacts, MemoryArtifacts};
use tokio::sync::watch;

use crate::house::House;
use crate::suite::desk::{Desk, within};
use crate::suite::run::code;
use crate::suite::watch::types;
use crate::suite::world::{World as _, quick};

/// What the tool gives back: so many bytes, no two places alike, and characters of more than one.
fn output(bytes: usize) -> String {
    let mut text = String::new();
    let mut line = 0;
    while text.len() < bytes {
        line += 1;
        write!(text, "{line} näht 縫う\t").expect("a text grows");
    }
    let cut = text.floor_char_boundary(bytes);
    text.truncate(cut);
    text.extend(std::iter::repeat_n('.', bytes - cut));
    text
}

fn says(output: &str) -> String {
    let text = serde_json::to_string(output).expect("JSON");
    format!("say \"before\"\ntool t output {text}\nsay \"after\"")
}

/// What an event says that a tool gave back.
fn finished(events: &[EventEnvelope]) -> (BoundedText, Option<ArtifactRef>) {
    let told = events.iter().find_map(|event| match &event.event.body {
        EventBody::ToolFinished {
            output, artifact, ..
        } => Some((output.clone(), artifact.clone())),
        _ => None,
    });
    told.expect("a tool finished")
}

/// What entries keep of what a tool gave back.
fn kept(entries: &[Entry]) -> (BoundedText, Option<ArtifactRef>) {
    let kept = entries.iter().rev().find_map(|entry| match &entry.body {
        EntryBody::Tool {
            output, artifact, ..
        } => Some((output.clone(), artifact.clone())),
        _ => None,
    });
    kept.expect("a tool's entry")
}

fn entries_told(events: &[EventEnvelope]) -> Vec<Entry> {
    crate::suite::watch::appended(events)
}

async fn whole(artifacts: &dyn ArtifactStore, id: ArtifactId) -> Option<Vec<u8>> {
    artifacts
        .read(id, 0, usize::MAX)
        .await
        .expect("it is readable")
}

/// C30: tail, what was left out, and the whole of it under an id; the same in event, entry and
/// entry event, and after a restart.
async fn an_output_is_kept_whole(artifacts: Arc<dyn ArtifactStore>, reopened: &dyn ArtifactStore) {
    let house = House::keeping(quick(), artifacts);
    let desk = Desk::new(&house.world(), "whole");
    desk.run("say \"x\"").await;
    for bytes in [
        MAX_EVENT_TEXT_BYTES - 1,
        MAX_EVENT_TEXT_BYTES,
        MAX_EVENT_TEXT_BYTES + 1,
        200_000,
    ] {
        let output = output(bytes);
        let (prompt, mut watch) = (says(&output), desk.watch().await);
        let (_, events) = tokio::join!(desk.run(&*prompt), watch.until_settled());
        let (told, artifact) = finished(&events);
        assert!(output.ends_with(&told.text), "its tail");
        assert_eq!(told.text.len() as u64 + told.omitted_bytes, bytes as u64);
        assert_eq!(artifact.is_some(), bytes > MAX_EVENT_TEXT_BYTES, "{bytes}");
        assert_eq!(told.omitted_bytes > 0, artifact.is_some());
        let (entry, in_entry) = kept(&desk.entries().await);
        assert_eq!((&entry.text, entry.omitted_bytes), (&output, 0));
        assert_eq!(in_entry, artifact, "the entry names it too");
        assert_eq!(kept(&entries_told(&events)).1, artifact);
        let Some(artifact) = artifact else { continue };
        assert_eq!(artifact.bytes, bytes as u64);
        let content = whole(reopened, artifact.id).await.expect("it is there");
        assert_eq!(content, output.as_bytes(), "byte for byte");
    }
    let before = desk.entries().await;
    house.restart().await;
    assert_eq!(desk.entries().await, before, "also after a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn c30_an_output_of_more_than_an_event_is_kept_whole_in_memory() {
    let artifacts = MemoryArtifacts::default();
    an_output_is_kept_whole(Arc::new(artifacts.clone()), &artifacts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c30_an_output_of_more_than_an_event_is_kept_whole_in_a_folder() {
    let dir = tempfile::tempdir().expect("a directory");
    let open = || FolderArtifacts::open(dir.path().join("artifacts")).expect("a folder");
    // What a second opening reads is not only in the memory of the first.
    let (artifacts, reopened) = (open(), open());
    an_output_is_kept_whole(Arc::new(artifacts), &reopened).await;
}

/// C30: an output that not even an entry keeps whole.
#[tokio::test(flavor = "multi_thread")]
async fn c30_of_an_output_of_more_than_an_entry_the_artifact_has_it_all() {
    let artifacts = MemoryArtifacts::default();
    let house = House::keeping(quick(), Arc::new(artifacts.clone()));
    let desk = Desk::new(&house.world(), "huge");
    desk.run("tool-big 3MiB\nsay \"x\"").await;
    let (entry, artifact) = kept(&desk.entries().await);
    assert!(entry.text.len() <= MAX_ENTRY_TEXT_BYTES && entry.omitted_bytes > 0);
    let artifact = artifact.expect("it is named");
    let content = whole(&artifacts, artifact.id).await.expect("it is there");
    assert_eq!((content.len(), artifact.bytes), (3 << 20, 3 << 20));
    assert!(content.ends_with(entry.text.as_bytes()));
}

/// An artifact store with a door before and behind the one it stands for.
struct Gated {
    inner: MemoryArtifacts,
    /// Puts that have come so far: to the door before, then to the one behind.
    steps: watch::Sender<u32>,
    /// How many steps may pass.
    open: watch::Receiver<u32>,
    fails: bool,
}

impl Gated {
    async fn step(&self) {
        self.steps.send_modify(|steps| *steps += 1);
        let step = *self.steps.borrow();
        let mut open = self.open.clone();
        // A door whose keeper is gone stays shut.
        if open.wait_for(|open| *open >= step).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl ArtifactStore for Gated {
    async fn put(&self, id: ArtifactId, content: Arc<[u8]>) -> Result<Digest, ArtifactError> {
        self.step().await;
        if self.fails {
            return Err(ArtifactError::Store("the disk is full".to_owned()));
        }
        let put = self.inner.put(id, content).await;
        self.step().await;
        put
    }

    async fn remove(&self, id: ArtifactId) -> Result<(), ArtifactError> {
        self.inner.remove(id).await
    }

    async fn read(
        &self,
        id: ArtifactId,
        offset: u64,
        max: usize,
    ) -> Result<Option<Vec<u8>>, ArtifactError> {
        self.inner.read(id, offset, max).await
    }
}

/// A gated store, and its keeper's ends: what came to a door, and how many may pass.
fn gated(fails: bool) -> (Gated, watch::Receiver<u32>, watch::Sender<u32>) {
    let (steps, came) = watch::channel(0);
    let (keeper, open) = watch::channel(0);
    let inner = MemoryArtifacts::default();
    let gated = Gated {
        inner,
        steps,
        open,
        fails,
    };
    (gated, came, keeper)
}

/// C30 C39: nobody hears of an output before it is kept whole: no event, no entry.
#[tokio::test(flavor = "multi_thread")]
async fn c30_c39_nothing_names_an_output_before_it_is_synced() {
    let (gated, mut came, keeper) = gated(false);
    let house = House::keeping(quick(), Arc::new(gated));
    let desk = Desk::new(&house.world(), "held");
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    let run = desk.invoke(&*says(&output(100_000))).await;
    let mut events = watch.until_type("tool_started").await;
    for step in 1..=2 {
        let reached = came.wait_for(|steps| *steps == step);
        within("the artifact is on its way", reached)
            .await
            .expect("a store");
        // What was said before is told; others go on meanwhile.
        let entries = desk.entries().await;
        let is_tool = |entry: &Entry| matches!(entry.body, EntryBody::Tool { .. });
        assert!(!entries.iter().any(is_tool), "at step {step}");
        let seen = desk.watch_from(Some(run.position), None).await.missed;
        assert!(types(&seen).contains(&"message_delta"));
        assert!(!types(&seen).contains(&"tool_finished"), "at step {step}");
        let other = Desk::new(&house.world(), "other");
        assert_eq!(code(&other.run("say \"x\"").await), "completed");
        keeper.send_replace(step);
    }
    events.extend(watch.until_settled().await);
    assert!(finished(&events).1.is_some());
    assert_eq!(code(&run.finish().await), "completed");
}

/// C21 C30: an artifact store that hangs does not keep a run from being aborted.
#[tokio::test(flavor = "multi_thread")]
async fn c21_c30_a_store_that_hangs_keeps_nobody_from_aborting() {
    let (gated, mut came, _keeper) = gated(false);
    let house = House::keeping(quick(), Arc::new(gated));
    let desk = Desk::new(&house.world(), "hangs");
    let run = desk.invoke(&*says(&output(100_000))).await;
    let reached = came.wait_for(|steps| *steps == 1);
    within("the artifact is on its way", reached)
        .await
        .expect("a store");
    desk.abort().await;
    assert_eq!(code(&run.finish().await), "aborted");
    assert_eq!(code(&desk.run("say \"x\"").await), "completed");
}

/// C30: an output that cannot be kept whole is told by its tail, and nothing else is lost.
#[tokio::test(flavor = "multi_thread")]
async fn c30_a_failing_store_loses_nothing_but_the_artifact() {
    let (gated, _came, keeper) = gated(true);
    keeper.send_replace(u32::MAX);
    let house = House::keeping(quick(), Arc::new(gated));
    let desk = Desk::new(&house.world(), "full");
    desk.run("say \"x\"").await;
    let output = output(100_000);
    let (prompt, mut watch) = (says(&output), desk.watch().await);
    let (events_of_run, events) = tokio::join!(desk.run(&*prompt), watch.until_settled());
    assert_eq!(code(&events_of_run), "completed");
    let (told, artifact) = finished(&events);
    assert_eq!(artifact, None);
    assert!(told.omitted_bytes > 0 && output.ends_with(&told.text));
    let entries = desk.entries().await;
    let (entry, artifact) = kept(&entries);
    assert_eq!((entry.text, artifact), (output, None));
    let assistants = entries
        .iter()
        .filter(|entry| entry.body.kind() == "assistant");
    assert_eq!(assistants.count(), 3, "before and after it");
}
