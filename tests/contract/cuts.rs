//! C13, C32, C35, B01, B05, B10 on real connections: what is cut, what grows old, and what falls
//! silent without a word.

use std::sync::Arc;
use std::time::Duration;

use sessionplane_client::{Client, Watch, WatchItem, WatchOptions};
use sessionplane_core::contract::{CallOptions, EventFilter, EventsRequest, SessionControl as _};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::event::{EventBody, EventEnvelope};
use sessionplane_core::domain::ids::EntryId;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_server::app::config::AppConfig;
use sessionplane_server::grpc::server::Config;
use tempfile::TempDir;

use crate::relay::Relay;
use crate::remote::{Start, owner_at, start};
use crate::suite::desk::{Ask, Desk, named, within};
use crate::suite::disconnects::outcome;
use crate::suite::filters::evict;
use crate::suite::world::{Caller, Pinned, World, quick};

/// A server behind a relay.
struct Line {
    directory: TempDir,
    face: Config,
    config: AppConfig,
    server: Option<Start>,
    relay: Relay,
}

impl Line {
    async fn new(config: AppConfig, face: Config) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let server = start(&directory, config, face.clone()).await;
        let relay = Relay::to(server.address).await;
        Self {
            directory,
            face,
            config,
            server: Some(server),
            relay,
        }
    }

    /// The server itself, without the relay.
    fn near(&self) -> Arc<dyn World> {
        let server = self.server.as_ref().expect("it runs");
        let caller: Arc<dyn Caller> = server.owner.clone();
        Arc::new(Pinned(caller))
    }

    /// A client on the far side of the relay.
    fn far(&self) -> Arc<Client> {
        owner_at(self.relay.address())
    }

    /// The server is killed; the relay leads to its next start.
    async fn restart(&mut self) {
        self.server.take().expect("it runs").kill().await;
        let server = start(&self.directory, self.config, self.face.clone()).await;
        self.relay.retarget(server.address);
        self.server = Some(server);
    }
}

pub(crate) async fn next(watch: &mut Watch) -> WatchItem {
    let item = within("the next item", watch.next()).await;
    item.expect("a watch ends with an error only")
        .unwrap_or_else(|error| panic!("{error:?}"))
}

/// What a watch told, and how often it had to go on anew.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) events: Vec<EventEnvelope>,
    pub(crate) entries: Vec<EntryId>,
    pub(crate) reconnected: usize,
    pub(crate) gaps: usize,
}

impl Told {
    fn take(&mut self, item: WatchItem) {
        let ids = |entries: Vec<Entry>| entries.into_iter().map(|entry| entry.id);
        match item {
            WatchItem::Event(event) => {
                if let EventBody::EntryAppended { entry } = &event.event.body {
                    self.entries.push(entry.id);
                }
                self.events.push(event);
            }
            WatchItem::Entries { entries, .. } => self.entries.extend(ids(entries)),
            WatchItem::Reconnected { .. } => self.reconnected += 1,
            WatchItem::Gap => self.gaps += 1,
            _ => {}
        }
    }

    /// Reads until the run is over that is active, or comes next.
    pub(crate) async fn until_settled(&mut self, watch: &mut Watch) {
        loop {
            self.take(next(watch).await);
            let last = self.events.last().map(|event| &event.event.body);
            if matches!(last, Some(EventBody::RunSettled { .. })) {
                return;
            }
        }
    }

    /// Reads until the stream was taken up again, and its snapshot told.
    async fn until_reconnected(&mut self, watch: &mut Watch) {
        let before = self.reconnected;
        loop {
            let item = next(watch).await;
            let snapshot = matches!(item, WatchItem::Snapshot(_));
            self.take(item);
            if snapshot && self.reconnected > before {
                return;
            }
        }
    }
}

pub(crate) async fn subscribed(watch: &mut Watch) -> Told {
    let mut told = Told::default();
    loop {
        let item = next(watch).await;
        let snapshot = matches!(item, WatchItem::Snapshot(_));
        told.take(item);
        if snapshot {
            return told;
        }
    }
}

/// C32 B01: 500 numbered words, told over a connection that is cut again and again: all of them,
/// once, in order.
#[tokio::test(flavor = "multi_thread")]
async fn c32_b01_500_words_over_a_connection_that_is_cut_have_no_hole() {
    let line = Line::new(quick(), Config::default()).await;
    let desk = Desk::new(&line.near(), "words");
    desk.run("say \"x\"").await;
    let mut watch = line.far().watch(named("words"), WatchOptions::default());
    let mut told = subscribed(&mut watch).await;
    let run = desk.invoke("say-words 500 every 4ms").await;
    let mut cuts = 0;
    loop {
        told.take(next(&mut watch).await);
        let seen = told.events.len();
        if matches!(
            told.events.last().map(|event| &event.event.body),
            Some(EventBody::RunSettled { .. })
        ) {
            break;
        }
        if seen >= 40 * (cuts + 1) {
            cuts += 1;
            line.relay.cut();
        }
    }
    assert!(cuts > 3 && told.reconnected > 2, "{cuts} cuts");
    assert_eq!(told.gaps, 0);
    let numbers: Vec<u64> = told.events.iter().map(|event| event.seq).collect();
    let first = run.position.seq + 1;
    let all: Vec<u64> = (first..first + numbers.len() as u64).collect();
    assert_eq!(numbers, all, "no hole, nothing twice");
    let words = told
        .events
        .iter()
        .filter_map(|event| match &event.event.body {
            EventBody::MessageDelta { text, .. } => Some(text.trim().to_owned()),
            _ => None,
        });
    let expected: Vec<String> = (1..=500).map(|number| format!("w{number}")).collect();
    assert_eq!(words.collect::<Vec<_>>(), expected);
    run.finish().await;
}

/// C32 B05: a connection's age (GOAWAY and a status), a cut and a killed server end a watch's
/// stream; each time it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn c32_b05_a_watch_goes_on_after_goaway_a_cut_and_a_restart() {
    let face = Config {
        max_connection_age: Some(Duration::from_millis(500)),
        max_connection_age_grace: Duration::from_millis(50),
        ..Config::default()
    };
    let mut line = Line::new(quick(), face).await;
    let prompt = "say \"a\"\nmessage\nsay \"b\"";
    Desk::new(&line.near(), "goes-on").run(prompt).await;
    let mut watch = line.far().watch(named("goes-on"), WatchOptions::default());
    let mut told = subscribed(&mut watch).await;
    // Its age.
    told.until_reconnected(&mut watch).await;
    Desk::new(&line.near(), "goes-on").run(prompt).await;
    told.until_settled(&mut watch).await;
    line.relay.cut();
    told.until_reconnected(&mut watch).await;
    assert_eq!(told.gaps, 0, "all of it was retained");
    line.restart().await;
    told.until_reconnected(&mut watch).await;
    assert_eq!(
        told.gaps, 1,
        "that events of another start are gone is told"
    );
    let desk = Desk::new(&line.near(), "goes-on");
    let run = desk.invoke(prompt).await;
    let id = run.id;
    told.until_settled(&mut watch).await;
    desk.settled(id).await;
    let entries: Vec<EntryId> = desk.entries().await.iter().map(|entry| entry.id).collect();
    assert_eq!(told.entries, entries, "each entry once, none missing");
}

/// C13 C35 B10: a peer that is gone without a word is found by keepalive: its streams end and are
/// kept for nobody, and its CANCEL run is aborted.
#[tokio::test(flavor = "multi_thread")]
async fn c13_c35_b10_half_open_connections_are_found_by_keepalive() {
    let config = AppConfig {
        idle_channels: 1,
        ..quick()
    };
    let face = Config {
        keepalive_interval: Duration::from_millis(200),
        keepalive_timeout: Duration::from_millis(300),
        ..Config::default()
    };
    let line = Line::new(config, face).await;
    let (near, far) = (line.near(), line.far());
    let desk = Desk::new(&near, "half-open");
    desk.run("say \"x\"").await;
    let gone: Arc<dyn Caller> = far.clone();
    let gone = Desk::new(&(Arc::new(Pinned(gone)) as Arc<dyn World>), "half-open");
    let run = gone.invoke(Ask::new("hang").cancel()).await;
    let mut streams = Vec::new();
    for _ in 0..20 {
        let request = EventsRequest {
            session: named("half-open"),
            resume: None,
            entries_since: None,
            filter: EventFilter::default(),
        };
        let stream = far.events(request, CallOptions::default()).await;
        streams.push(stream.expect("a stream"));
    }
    // The peer answers while it lives, however quiet its streams are: twice what it may take.
    let quiet = tokio::time::timeout(Duration::from_secs(1), desk.settled(run.id)).await;
    assert!(quiet.is_err(), "it was given up although it answers");
    line.relay.fall_silent();
    let record = desk.settled(run.id).await;
    assert_eq!(outcome(&record), &RunOutcome::Aborted);
    // Nobody holds the session any more: the 20 streams are gone as well.
    evict(&desk, &near).await;
    drop((run, streams));
}
