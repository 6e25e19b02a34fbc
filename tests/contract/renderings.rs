//! C57-C59: what a model gets of a text, by how far it is trusted, through real runs; and what is kept
//! of data beside it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sessionplane_core::contract::fleet::DeleteSession;
use sessionplane_core::contract::{
    CallOptions, DispatchRequest, InvokeEvent, InvokeRequest, OnDisconnect,
};
use sessionplane_core::domain::command::{Command, DispatchAnswer};
use sessionplane_core::domain::data::{Content, Data, INLINE_DATA_BYTES, MAX_DATA_PARTS};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::given::{Given, GivenData};
use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::provenance::{Digest, Trust};
use sessionplane_core::domain::rendering::{ON_FILE, Speaker, read, rendered_entry};
use sessionplane_core::ports::artifact_store::{ArtifactError, ArtifactStore};
use sessionplane_server::adapters::artifacts::MemoryArtifacts;

use crate::corpus;
use crate::house::House;
use crate::suite::desk::{Desk, with_id, within};
use crate::suite::fleet::FleetWorld as _;
use crate::suite::run::Run;
use crate::suite::world::quick;

fn part(name: &str, content: impl Into<Arc<[u8]>>) -> GivenData {
    GivenData {
        name: name.into(),
        media_type: "text/plain".into(),
        content: content.into(),
    }
}

fn with(parts: Vec<GivenData>) -> Given {
    Given {
        data: parts.into(),
        ..Given::default()
    }
}

async fn invoke(
    desk: &Desk,
    prompt: &str,
    given: Given,
    id: Option<&str>,
) -> Result<Vec<InvokeEvent>, CallError> {
    let request = InvokeRequest {
        session: desk.session.clone(),
        prompt: prompt.to_owned(),
        given,
        agent: None,
        parent: None,
        must_exist: false,
        on_disconnect: OnDisconnect::Detach,
    };
    let stream = desk.caller().invoke(request, with_id(id)).await?;
    Ok(Run::accepted(stream).await.finish().await)
}

/// The newest text of a sender, and what the engine says that it received.
fn newest(entries: &[Entry]) -> (&Entry, String) {
    let user = |entry: &&Entry| matches!(entry.body, EntryBody::User { .. });
    let asked = entries.iter().rev().find(user).expect("somebody asked");
    let said = entries.iter().rev().find_map(|entry| match &entry.body {
        EntryBody::Assistant { text, .. } => Some(text.text.clone()),
        _ => None,
    });
    (asked, said.expect("it answered"))
}

fn user(entry: &Entry) -> (&str, Trust, Option<&Data>) {
    match &entry.body {
        EntryBody::User {
            text, origin, data, ..
        } => (text, origin.trust, data.as_deref()),
        other => panic!("no text of a sender: {other:?}"),
    }
}

/// Each shape beside an instruction: the engine gets what the entry renders to, obeys the instruction
/// and nothing of the shape.
#[tokio::test(flavor = "multi_thread")]
async fn c58_every_shape_of_the_corpus_arrives_byte_for_byte_as_documented() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "corpus");
    let shapes = corpus::SHAPES.iter();
    let shapes = shapes.map(|(kind, text)| (*kind, (*text).to_owned()));
    for (kind, shape) in shapes.chain(corpus::long()) {
        let given = with(vec![part(kind, shape.as_bytes())]);
        let run = invoke(&desk, "received", given, None).await;
        let events = run.unwrap_or_else(|error| panic!("{kind}: {error:?}"));
        let completed = matches!(events.last(), Some(InvokeEvent::Completed { .. }));
        assert!(completed, "{kind}: {:?}", events.last());
    }
    let entries = desk.entries().await;
    let mut checked = 0;
    for pair in entries.windows(2) {
        let EntryBody::Assistant { text, .. } = &pair[1].body else {
            continue;
        };
        let rendered = rendered_entry(&pair[0]).expect("it was asked");
        assert_eq!(*rendered, *text.text, "byte for byte");
        let reading = read(&rendered);
        assert_eq!(&*reading.instruction, "received");
        assert_eq!(reading.speaker, Speaker::Relayed);
        let (_, _, data) = user(&pair[0]);
        let carried = match &data.expect("there is data").parts()[0].content {
            Content::Whole(whole) => whole.to_vec(),
            Content::Cut { head, tail, .. } => [&**head, &**tail].concat(),
        };
        assert_eq!(reading.data, [carried]);
        checked += 1;
    }
    assert_eq!(checked, corpus::SHAPES.len() + corpus::long().len());
}

/// C57: what the client says of a text, and what comes of it.
#[tokio::test(flavor = "multi_thread")]
async fn c57_typed_takes_the_statement_and_a_call_may_only_lower() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "trusts");
    let lowered = |at_most, typed| Given {
        typed,
        at_most: Some(at_most),
        ..Given::default()
    };
    let cases = [
        (Given::typed(), Trust::Typed),
        (Given::default(), Trust::Relayed),
        (lowered(Trust::Typed, false), Trust::Relayed),
        (lowered(Trust::Relayed, true), Trust::Relayed),
        (lowered(Trust::Untrusted, true), Trust::Untrusted),
    ];
    for (given, trust) in cases {
        invoke(&desk, "received", given, None)
            .await
            .expect("it runs");
        let entries = desk.entries().await;
        let (asked, said) = newest(&entries);
        let (text, told, data) = user(asked);
        assert_eq!(told, trust);
        match trust {
            Trust::Typed => assert_eq!(said, "received", "plain"),
            Trust::Relayed => {
                let header = "[relayed instruction from human \"owner\" by prompt;";
                assert!(said.starts_with(header), "{said}");
            }
            // Nobody told it to say what it received: it says the configuration's instruction back.
            Trust::Untrusted => {
                assert_eq!((text, &*said), ("", ON_FILE));
                let data = data.expect("the text is data");
                assert_eq!(&**data.on_file().expect("marked as such"), ON_FILE);
                let whole = Content::Whole((*b"received").into());
                assert_eq!(data.parts()[0].content, whole);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c03_the_same_id_with_other_data_or_another_statement_is_another_call() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "again");
    let given = || with(vec![part("a", *b"one")]);
    let first = invoke(&desk, "say \"x\"", given(), Some("r1")).await;
    let again = invoke(&desk, "say \"x\"", given(), Some("r1")).await;
    assert_eq!(first.is_ok(), again.is_ok());
    let typed = Given {
        typed: true,
        ..given()
    };
    let less = Given {
        at_most: Some(Trust::Relayed),
        ..given()
    };
    let other = [
        with(vec![part("a", *b"two")]),
        with(vec![part("b", *b"one")]),
        with(vec![part("a", *b"one"), part("a", *b"one")]),
        Given::default(),
        typed,
        less,
    ];
    for given in other {
        let refused = invoke(&desk, "say \"x\"", given, Some("r1")).await;
        assert_eq!(
            refused.expect_err("it is another").reason,
            Reason::RequestIdReused
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c60_data_over_a_limit_is_refused_and_nothing_of_it_is_kept() {
    let artifacts = Counted::default();
    let house = House::keeping(quick(), Arc::new(artifacts.clone()));
    let desk = Desk::new(&house.world(), "limits");
    let parts = vec![part("a", vec![b'x'; 70_000]); MAX_DATA_PARTS + 1];
    let refused = invoke(&desk, "say \"x\"", with(parts), None).await;
    assert_eq!(
        refused.expect_err("too many").violations[0].field,
        "prompt.data"
    );
    assert!(artifacts.left().is_empty());
}

/// A store that knows what lies in it.
#[derive(Clone, Default)]
struct Counted {
    inner: MemoryArtifacts,
    there: Arc<Mutex<BTreeSet<ArtifactId>>>,
}

impl Counted {
    fn left(&self) -> BTreeSet<ArtifactId> {
        self.there.lock().expect("no panic").clone()
    }
}

#[async_trait]
impl ArtifactStore for Counted {
    async fn put(&self, id: ArtifactId, content: Arc<[u8]>) -> Result<Digest, ArtifactError> {
        self.there.lock().expect("no panic").insert(id);
        self.inner.put(id, content).await
    }
    async fn remove(&self, id: ArtifactId) -> Result<(), ArtifactError> {
        self.there.lock().expect("no panic").remove(&id);
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

fn log() -> Vec<u8> {
    let lines = (0..9_000).map(|line| format!("line {line}\n"));
    lines.collect::<String>().into_bytes()
}

async fn dispatch(desk: &Desk, command: Command) -> DispatchAnswer {
    let request = DispatchRequest {
        session: desk.session.clone(),
        command,
        expected_run: None,
    };
    let caller = desk.caller();
    let answer = caller.dispatch(request, CallOptions::default());
    answer.await.expect("it is answered")
}

/// C58, C61: the whole of long data is kept before anybody is told, named in the entry, and goes with
/// the session, also where no entry came of it; and of what was refused nothing stays.
#[tokio::test(flavor = "multi_thread")]
async fn c58_long_data_is_kept_whole_and_goes_with_its_session() {
    let artifacts = Counted::default();
    let house = House::keeping(quick(), Arc::new(artifacts.clone()));
    let desk = Desk::new(&house.world(), "logs");
    let steer = || Command::Steer {
        text: "read it".into(),
        given: with(vec![part("build.log", log())]),
    };
    invoke(&desk, "say \"x\"", Given::default(), None)
        .await
        .expect("it runs");
    assert!(matches!(
        dispatch(&desk, steer()).await,
        DispatchAnswer::Rejected(_)
    ));
    assert!(artifacts.left().is_empty(), "nobody took it");
    invoke(
        &desk,
        "received",
        with(vec![part("build.log", log())]),
        None,
    )
    .await
    .expect("it runs");
    let entries = desk.entries().await;
    let (asked, _) = newest(&entries);
    let (_, _, data) = user(asked);
    let data = data.expect("there is data");
    assert!(data.carried() <= INLINE_DATA_BYTES);
    let artifact = data.artifacts().next().expect("the whole is named").clone();
    let whole = artifacts
        .read(artifact.id, 0, usize::MAX)
        .await
        .expect("it is readable");
    assert_eq!(whole.expect("it is there"), log());
    let page = artifacts
        .read(artifact.id, 10, 7)
        .await
        .expect("it is readable");
    assert_eq!(page.as_deref(), Some(&log()[10..17]), "page by page");
    // One that its engine never shows.
    let run = desk.invoke("hang").await;
    let taken = dispatch(&desk, steer()).await;
    assert!(matches!(taken, DispatchAnswer::Accepted(_)));
    let refused = desk.busy("again").await;
    assert!(matches!(refused, InvokeEvent::Failed { .. }));
    desk.abort().await;
    run.finish().await;
    assert_eq!(artifacts.left().len(), 2);
    let request = DeleteSession {
        session: desk.session.clone(),
        etag: None,
        abort: false,
    };
    house
        .fleet()
        .delete_session(request, CallOptions::default())
        .await
        .expect("it goes");
    let gone = async {
        while !artifacts.left().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    within("what was given is erased", gone).await;
}
