//! C35, B10: what a server keeps in memory does not grow with what it tells, nor with those who do
//! not listen.
//!
//! `SESSIONPLANE_OBSERVERS` (60) is the number of observers, of which a tenth does not read.

use std::fs;
use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane_client::Client;
use sessionplane_core::contract::{
    Agent as _, CallOptions, EventFilter, EventItem, EventsRequest, InvokeRequest, OnDisconnect,
    ResultStream, SessionControl as _,
};
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::{SessionName, SessionRef};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::daemon::{Daemon, Home};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// Observers on one connection.
const ON_ONE: usize = 20;
/// Events that the session's ring holds, and about how many bytes they keep alive.
const RING_EVENTS: usize = 256;
const RING_BYTES: usize = RING_EVENTS * 2 * (4096 + 512);
/// Most bytes that an idle observer takes, its HTTP/2 stream and its share of a connection
/// included.
const IDLE_BYTES: usize = 32 * 1024;
/// Runs that are measured, without observers and then with them.
const ROUNDS: usize = 3;
/// Most bytes that an observer has on its way: its send buffer, and what is being encoded.
const BUSY_BYTES: usize = 96 * 1024;
/// Most bytes that the cursor of one that does not read has taken out of the ring.
const TAKEN_BYTES: usize = 256 * 1024;
/// What the allocator and the store may take and keep for themselves.
const SLACK: usize = 32 * 1024 * 1024;

fn session() -> SessionRef {
    SessionRef::Name(SessionName::parse("watched").unwrap())
}

/// Says so many pieces of 4 KiB.
async fn run(client: &Client, pieces: usize) {
    let request = InvokeRequest {
        session: session(),
        prompt: "big 4KiB\nwait 2ms\n".repeat(pieces),
        agent: None,
        parent: None,
        must_exist: false,
        on_disconnect: OnDisconnect::Detach,
    };
    let mut stream = client
        .invoke(request, CallOptions::default())
        .await
        .unwrap();
    let told = async {
        let mut last = None;
        while let Some(event) = stream.next().await {
            last = Some(event.unwrap());
        }
        last
    };
    let last = timeout(PATIENCE, told).await.expect("it settles");
    assert!(last.is_some_and(|event| event.is_terminal()));
}

/// Observes from now on.
async fn observe(client: &Client) -> ResultStream<EventItem> {
    let state = client.get_state(session(), None, CallOptions::default());
    let leaf = state.await.unwrap().view.leaf;
    let request = EventsRequest {
        session: session(),
        resume: None,
        entries_since: leaf.map(|leaf| leaf.to_string()),
        filter: EventFilter::default(),
    };
    let mut stream = client
        .events(request, CallOptions::default())
        .await
        .unwrap();
    while !matches!(stream.next().await, Some(Ok(EventItem::Snapshot(_)))) {}
    stream
}

/// Reads until so many runs have settled; nothing is missing.
async fn read(mut stream: ResultStream<EventItem>, runs: usize) {
    let (mut settled, mut last) = (0, None);
    while settled < runs {
        match stream.next().await.expect("an item").expect("no status") {
            EventItem::Event(event) => {
                assert!(last.is_none_or(|last| event.seq == last + 1));
                last = Some(event.seq);
                settled += usize::from(matches!(event.event.body, EventBody::RunSettled { .. }));
            }
            EventItem::Heartbeat(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// The bytes of the server after each of some runs, which tell more than the ring holds.
async fn rounds(server: &Daemon, client: &Client) -> Vec<usize> {
    let mut sizes = Vec::new();
    for _ in 0..ROUNDS {
        run(client, 4 * RING_EVENTS).await;
        sizes.push(server.resident());
    }
    sizes
}

/// So many observers of a session in which nothing happens, each beginning with the whole of it.
async fn idle(server: &Daemon, connections: usize) -> Vec<ResultStream<EventItem>> {
    let mut streams = Vec::new();
    for _ in 0..connections {
        let client = server.client();
        for _ in 0..ON_ONE {
            streams.push(observe(&client).await);
        }
    }
    streams
}

/// C35: what an observer of a quiet session costs.
#[tokio::test(flavor = "multi_thread")]
#[allow(
    clippy::print_stderr,
    reason = "the measured bytes are part of the result"
)]
async fn c35_an_idle_observer_takes_little_memory() {
    let home = Home::new();
    let server = home.start().await;
    run(&server.client(), 1).await;
    // The first ones pay for what grows once.
    let first = idle(&server, 10).await;
    let before = server.resident();
    let counted = idle(&server, 20).await;
    let each = server.resident().saturating_sub(before) / counted.len();
    eprintln!("an idle observer takes {each} bytes of the server, HTTP/2 included");
    assert!(each < IDLE_BYTES, "{each} bytes");
    drop((first, counted));
}

/// C35 B10: a tenth of the observers does not read.
#[tokio::test(flavor = "multi_thread")]
#[allow(
    clippy::print_stderr,
    reason = "the measured bytes are part of the result"
)]
async fn c35_b10_memory_stays_fixed_under_observers_of_which_some_do_not_read() {
    let wanted = std::env::var("SESSIONPLANE_OBSERVERS");
    let observers: usize = wanted.map_or(60, |text| text.parse().expect("a number"));
    let home = Home::new();
    let config = home.path().join("config.toml");
    let limits = format!("ring_events = {RING_EVENTS}\n");
    fs::write(&config, fs::read_to_string(&config).unwrap() + &limits).unwrap();
    let server = home.start().await;
    let client = server.client();
    // What grows once has grown: the ring, the allocator's arenas.
    rounds(&server, &client).await;
    // What a run leaves in the store's cache, it leaves there with and without observers.
    let unobserved = rounds(&server, &client).await;
    let kept = unobserved[ROUNDS - 1].saturating_sub(unobserved[0]);
    let before = server.resident();
    let clients: Vec<Client> = (0..observers.div_ceil(ON_ONE))
        .map(|_| server.client())
        .collect();
    let (mut reading, mut stalled) = (Vec::new(), Vec::new());
    for (at, client) in clients
        .iter()
        .flat_map(|it| std::iter::repeat_n(it, ON_ONE))
        .enumerate()
    {
        let into = if at % 10 == 9 {
            &mut stalled
        } else {
            &mut reading
        };
        into.push(observe(client).await);
    }
    let mut readers = JoinSet::new();
    for stream in reading {
        readers.spawn(read(stream, ROUNDS));
    }
    let on_their_way = clients.len() * ON_ONE * BUSY_BYTES + stalled.len() * TAKEN_BYTES;
    let allowed = before + RING_BYTES + on_their_way + SLACK;
    let sizes = rounds(&server, &client).await;
    eprintln!("{observers} observers: {unobserved:?} bytes without them, {sizes:?} with them");
    assert!(
        sizes.iter().all(|size| *size < allowed),
        "{sizes:?}, {allowed} allowed"
    );
    assert!(
        sizes[ROUNDS - 1] < sizes[0] + kept + on_their_way + SLACK / 2,
        "it grows with every round: {sizes:?}"
    );
    // Those that read got everything; those that did not are told so.
    while let Some(read) = timeout(PATIENCE, readers.join_next()).await.unwrap() {
        read.unwrap();
    }
    for mut stream in stalled {
        let ended = async {
            loop {
                if let Err(error) = stream.next().await.expect("no silent end") {
                    return error;
                }
            }
        };
        let error = timeout(PATIENCE, ended).await.expect("it ends");
        assert_eq!(error.reason, Reason::ObserverTooSlow);
    }
}
