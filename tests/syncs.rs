//! The system calls of the real server: nothing is sent to a client before what it tells is synced
//! to the device, and one sequential call costs about one sync.
//!
//! The server runs under strace; what is judged is the trace.
#![cfg(test)]

#[path = "crash/daemon.rs"]
#[allow(dead_code, reason = "the crash suite's room; here it is started once")]
mod daemon;
#[path = "syncs/trace.rs"]
mod trace;

use sessionplane_core::domain::given::Given;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane_client::Client;
use sessionplane_client::contract::{
    Agent as _, CallOptions, DispatchRequest, EventFilter, EventItem, EventsRequest, InvokeEvent,
    SessionControl as _,
};
use sessionplane_client::detached;
use sessionplane_client::domain::command::{Acceptance, Command, DispatchAnswer};
use sessionplane_client::domain::event::EventBody;
use sessionplane_client::domain::ids::{RunId, SessionName, SessionRef};

use daemon::{Daemon, Home, Started, sessiond};
use trace::{Call, Trace};

/// Sequential rounds of each kind.
const ROUNDS: usize = 20;

fn at(name: &str) -> SessionRef {
    SessionRef::Name(SessionName::parse(name).unwrap())
}

/// Starts the server under strace; its calls go to `trace`.
async fn traced(home: &Home, trace: &Path) -> Daemon {
    let strace = Path::new("strace");
    let mut command = home.command(strace);
    command
        // -D: the server is our child, and strace its grandchild.
        // The bytes are wanted whole: a round is one write of up to a segment.
        .args(["-D", "-f", "-y", "-xx", "-s", "1048576", "-o"])
        .arg(trace)
        .args([
            "-e",
            "trace=pwrite64,fdatasync,fsync,sync_file_range,write,writev,sendto,sendmsg",
        ])
        .arg(sessiond())
        .args(home.flags());
    match home.launch(command).await {
        Started::Ready(daemon) => daemon,
        Started::Ended(status) => panic!("{status} (is strace installed?): {}", home.said()),
    }
}

/// A run, read to its end or left hanging.
async fn invoke(client: &Client, name: &str, prompt: &str) -> RunId {
    let request = detached(at(name), prompt.to_owned());
    let mut stream = client
        .invoke(request, CallOptions::default())
        .await
        .unwrap();
    let Some(Ok(InvokeEvent::Accepted { run, .. })) = stream.next().await else {
        panic!("not accepted");
    };
    if !prompt.ends_with("hang") {
        while let Some(event) = stream.next().await {
            event.unwrap();
        }
    }
    run
}

async fn follow_up(client: &Client, name: &str, text: &str) -> Acceptance {
    let command = Command::FollowUp {
        text: text.into(),
        given: Given::default(),
    };
    let request = DispatchRequest {
        session: at(name),
        command,
        expected_run: None,
    };
    match client
        .dispatch(request, CallOptions::default())
        .await
        .unwrap()
    {
        DispatchAnswer::Accepted(acceptance) => acceptance,
        DispatchAnswer::Rejected(rejection) => panic!("{rejection:?}"),
    }
}

/// What an acknowledgement tells, and what is written for it.
struct Told {
    sent: String,
    written: Vec<u8>,
}

fn admitted(run: RunId) -> Told {
    Told {
        sent: run.to_string(),
        written: run.to_bytes().to_vec(),
    }
}

/// Works one call at a time; gives what each acknowledgement tells, in order, and the number of
/// the first that is a dispatch's.
async fn work(daemon: &Daemon) -> (Vec<Told>, usize) {
    let client = daemon.client();
    let mut told = Vec::new();
    for _ in 0..ROUNDS {
        told.push(admitted(invoke(&client, "quick", "say \"x\"").await));
    }
    let queued = invoke(&client, "queued", "say \"x\"\nhang").await;
    told.push(admitted(queued));
    // An observer that has seen the engine start: from here on only dispatches write.
    let request = EventsRequest {
        session: at("queued"),
        resume: None,
        entries_since: None,
        filter: EventFilter::default(),
    };
    let mut events = daemon
        .client()
        .events(request, CallOptions::default())
        .await
        .unwrap();
    while let Some(Ok(EventItem::Subscribed { .. } | EventItem::Entries { .. })) =
        events.next().await
    {}
    let from = told.len();
    for number in 0..ROUNDS {
        let text = format!("followup-number-{number};");
        let input = follow_up(&client, "queued", &text)
            .await
            .input
            .expect("it is queued");
        told.push(Told {
            sent: input.id.to_string(),
            written: text.into_bytes(),
        });
        // The event tells of the same durable fact.
        loop {
            let Some(Ok(item)) = events.next().await else {
                panic!("the observer lost its stream")
            };
            if let EventItem::Event(envelope) = item
                && let EventBody::QueueChanged { .. } = envelope.event.body
            {
                break;
            }
        }
    }
    (told, from)
}

#[tokio::test]
async fn c39_nothing_is_acknowledged_or_told_before_it_is_synced() {
    let home = Home::new();
    let file = home.path().join("trace");
    let daemon = traced(&home, &file).await;
    let (told, from) = work(&daemon).await;
    daemon.terminate();
    assert!(
        daemon.ended(Duration::from_secs(60)).await.success(),
        "{}",
        home.said()
    );
    let trace = Trace::read(&file).await;

    let sends: Vec<usize> = told
        .iter()
        .map(|told| trace.first_sent(&told.sent))
        .collect();
    assert!(sends.is_sorted(), "the acknowledgements are out of order");
    for (told, &sent) in told.iter().zip(&sends) {
        trace.assert_synced_before(sent, &told.written, &told.sent);
    }
    let pairs = sends[from - 1..].windows(2);
    let mut syncs = 0;
    for pair in pairs {
        let window = pair[0]..pair[1];
        let written = trace.count(window.clone(), |call| matches!(call, Call::Write(_)));
        assert!(written > 0, "an acknowledgement of nothing");
        syncs += trace.count(window, |call| matches!(call, Call::SyncBegins));
    }
    println!("{syncs} syncs for {ROUNDS} sequential dispatches");
    assert!(
        (ROUNDS..=ROUNDS + 2).contains(&syncs),
        "{syncs} syncs for {ROUNDS} dispatches"
    );
}
