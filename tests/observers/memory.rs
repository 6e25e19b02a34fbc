//! C35, B10: what a server keeps in memory does not grow with what it tells, nor with those who do
//! not listen.
//!
//! `SESSIONPLANE_OBSERVERS` (60) is the number of observers, of which a tenth does not read.

use std::fs;
use std::future::pending;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane_client::Client;
use sessionplane_core::contract::{
    Agent as _, CallOptions, EventFilter, EventItem, EventsRequest, InvokeRequest, OnDisconnect,
    ResultStream, SessionControl as _,
};
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::{SessionName, SessionRef};
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::daemon::{Daemon, Home};

/// How long anything may take: a thousand observers are told 30 GiB.
const PATIENCE: Duration = Duration::from_secs(1200);
/// Observers on one connection.
const ON_ONE: usize = 20;
/// Events that the session's ring holds, and about how many bytes they keep alive.
const RING_EVENTS: usize = 256;
const RING_BYTES: usize = RING_EVENTS * 2 * (4096 + 512);
/// Most bytes that an idle observer takes, its HTTP/2 stream and its share of a connection
/// included.
const IDLE_BYTES: usize = 32 * 1024;
/// Rounds of a run's one message. After the second one they tell 24 MiB of text, of which a server
/// that forgot none would keep more than twice as much. The entry that it becomes is bounded, and is
/// written at the end: what the store keeps does not grow meanwhile.
const ROUNDS: usize = 8;
/// How much more may be on its way to one observer at the end of one round than at the end of
/// another: a quarter of [`BUSY_BYTES`]. On a machine that does other things, a thousand of them are not
/// equally far each time.
const UNEVEN_BYTES: usize = BUSY_BYTES / 4;
/// Pieces in a round: four times what the ring holds.
const PIECES: usize = 4 * RING_EVENTS;
/// Most bytes that an observer has on its way, besides: its send buffer, and what is being encoded.
const BUSY_BYTES: usize = 96 * 1024;
/// Most bytes that the cursor of one that does not read has taken out of the ring.
const TAKEN_BYTES: usize = 256 * 1024;
/// What the allocator, the store and the open message may take and keep for themselves.
const SLACK: usize = 32 * 1024 * 1024;
/// By how much the server may be larger after the last round than after the second: a quarter of what
/// it would keep if it forgot nothing. The first one pays for what a subscription needs once.
const GROWTH: usize = (ROUNDS - 2) * PIECES * 2 * (4096 + 512) / 4;

fn session() -> SessionRef {
    SessionRef::Name(SessionName::parse("watched").unwrap())
}

/// Says rounds of pieces of 4 KiB in one message, with a pause after each piece.
async fn run(client: &Client, rounds: usize, pieces: usize, pause: Duration) {
    let piece = format!("big 4KiB\nwait {}ms\n", pause.as_millis());
    // The pause after a round gives observers the time to come to rest.
    let round = piece.repeat(pieces) + "wait 200ms\n";
    let request = InvokeRequest {
        session: session(),
        prompt: round.repeat(rounds),
        given: Given::default(),
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

/// Reads until the run has settled, and tells of each round's end; nothing is missing.
async fn read(mut stream: ResultStream<EventItem>, rounds: mpsc::Sender<()>) {
    let (mut pieces, mut last) = (0, None);
    loop {
        match stream.next().await.expect("an item").expect("no status") {
            EventItem::Event(event) => {
                assert!(last.is_none_or(|last| event.seq == last + 1));
                last = Some(event.seq);
                match event.event.body {
                    EventBody::MessageDelta { .. } => pieces += 1,
                    EventBody::RunSettled { .. } => return assert_eq!(pieces, ROUNDS * PIECES),
                    _ => continue,
                }
                if pieces % PIECES == 0 {
                    rounds.send(()).await.expect("somebody counts");
                }
            }
            EventItem::Heartbeat(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// A way to the server that one connection goes: it says at some time that it is at its end, and
/// stays, and reads nothing more.
async fn half_closing(to: SocketAddr) -> (SocketAddr, oneshot::Sender<()>, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (close, closing) = oneshot::channel();
    let relay = tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = TcpStream::connect(to).await.unwrap();
        tokio::select! {
            _ended = copy_bidirectional(&mut near, &mut far) => panic!("the connection ended"),
            closed = closing => closed.expect("the test is there"),
        }
        far.shutdown().await.unwrap();
        pending::<()>().await;
    });
    (address, close, AbortOnDropHandle::new(relay))
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
    run(&server.client(), 1, 1, Duration::ZERO).await;
    // The first ones pay for what grows once.
    let first = idle(&server, 10).await;
    let before = server.resident();
    let counted = idle(&server, 20).await;
    let each = server.resident().saturating_sub(before) / counted.len();
    eprintln!("an idle observer takes {each} bytes of the server, HTTP/2 included");
    assert!(each < IDLE_BYTES, "{each} bytes");
    drop((first, counted));
}

/// Reads on where nobody read for long.
async fn is_told_that_it_was_too_slow(mut stream: ResultStream<EventItem>) {
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

/// A server whose rings are small.
async fn small(home: &Home) -> Daemon {
    let config = home.path().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    let limits = format!("[limits]\nring_events = {RING_EVENTS}\n");
    assert!(text.contains("[limits]\n"), "{text}");
    fs::write(&config, text.replace("[limits]\n", &limits)).unwrap();
    home.start().await
}

/// C35 B10: a tenth of the observers does not read, and as many as share a connection have closed
/// their half of it.
#[tokio::test(flavor = "multi_thread")]
#[allow(
    clippy::print_stderr,
    reason = "the measured bytes are part of the result"
)]
async fn c35_b10_memory_stays_fixed_under_observers_of_which_some_do_not_read() {
    let wanted = std::env::var("SESSIONPLANE_OBSERVERS");
    let observers: usize = wanted.map_or(60, |text| text.parse().expect("a number"));
    let home = Home::new();
    let server = small(&home).await;
    let client = server.client();
    // What grows once has grown: the ring, the allocator's arenas.
    run(&client, 1, PIECES, Duration::from_millis(1)).await;
    let before = server.resident();
    let clients: Vec<Client> = (0..observers.div_ceil(ON_ONE))
        .map(|_| server.client())
        .collect();
    let (mut readers, mut stalled) = (JoinSet::new(), Vec::new());
    let (rounds, mut ended) = mpsc::channel(observers);
    for at in 0..observers {
        let stream = observe(&clients[at / ON_ONE]).await;
        if at % 10 == 9 {
            stalled.push(stream);
        } else {
            readers.spawn(read(stream, rounds.clone()));
        }
    }
    let (address, close, _relay) = half_closing(server.socket()).await;
    let closing = server.client_at(address);
    let mut closed = Vec::new();
    for _ in 0..ON_ONE {
        closed.push(observe(&closing).await);
    }
    close.send(()).unwrap();
    // As much each second to all of them together as a machine can take that does other things, too.
    let pause = Duration::from_millis(2) * u32::try_from(observers.div_ceil(60)).unwrap();
    let talk = tokio::spawn(async move { run(&client, ROUNDS, PIECES, pause).await });
    let (mut busy, mut rest) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for reader in 0..readers.len() {
            let told = timeout(PATIENCE, ended.recv()).await;
            told.expect("each of them reads on").unwrap();
            if reader == 0 {
                busy.push(server.resident());
            }
        }
        rest.push(server.resident());
    }
    talk.await.unwrap();
    eprintln!("{observers} observers: {before} bytes without them, {busy:?} with them, {rest:?}");
    let unread = stalled.len() * TAKEN_BYTES;
    let allowed = before + RING_BYTES + observers * (IDLE_BYTES + BUSY_BYTES) + unread + SLACK;
    assert!(
        busy.iter().all(|size| *size < allowed),
        "{busy:?}, {allowed} allowed"
    );
    let growth = GROWTH + observers * UNEVEN_BYTES;
    assert!(
        rest[ROUNDS - 1] < rest[1] + growth,
        "it grows with what it tells: {rest:?}, {growth} allowed"
    );
    // Those that read got everything; those that did not are told so.
    while let Some(read) = timeout(PATIENCE, readers.join_next()).await.unwrap() {
        read.unwrap();
    }
    for stream in stalled {
        is_told_that_it_was_too_slow(stream).await;
    }
    drop(closed);
}
