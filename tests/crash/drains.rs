//! C63: a stop tells, waits for what is at work, and is over in time whatever its clients do.

use std::process::Stdio;
use std::time::Duration;

use futures_util::StreamExt as _;
use rustix::process::{Pid, Signal, kill_process};
use sessionplane_client::contract::{
    Agent as _, CallOptions, DispatchRequest, EventFilter, EventItem, EventsRequest, InvokeEvent,
    ResultStream, SessionControl as _,
};
use sessionplane_client::detached;
use sessionplane_client::domain::command::Command as Order;
use sessionplane_client::domain::error::{Outcome, Reason};
use sessionplane_client::domain::ids::{RunId, SessionName, SessionRef};
use sessionplane_client::domain::run::code;
use sessionplane_core::domain::given::Given;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::daemon::{Daemon, Home, Started, sessiond};

/// What a stop may take beyond what the configuration says.
const BEYOND: Duration = Duration::from_millis(200);
/// Enough for whatever a busy machine is at; nothing waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server with so much time for its runs, and for the rest of its stop.
async fn with_time(home: &Home, deadline: u32, close: u32) -> Daemon {
    let mut command = home.command(&sessiond());
    command.args(home.flags());
    for (key, seconds) in [("deadline", deadline), ("close", close)] {
        command.args(["--set", &format!("drain.{key}_seconds={seconds}")]);
    }
    match home.launch(command).await {
        Started::Ready(daemon) => daemon,
        Started::Ended(status) => panic!("did not start: {status}; it said:\n{}", home.said()),
    }
}

fn named(name: &str) -> SessionRef {
    SessionRef::Name(SessionName::parse(name).unwrap())
}

async fn invoke(daemon: &Daemon, name: &str, text: &str) -> (RunId, ResultStream<InvokeEvent>) {
    let request = detached(named(name), text.to_owned());
    let client = daemon.client();
    let mut stream = client
        .invoke(request, CallOptions::default())
        .await
        .unwrap();
    let Some(Ok(InvokeEvent::Accepted { run, .. })) = stream.next().await else {
        panic!("not accepted");
    };
    (run, stream)
}

async fn observe(daemon: &Daemon, name: &str) -> ResultStream<EventItem> {
    let request = EventsRequest {
        session: named(name),
        resume: None,
        entries_since: None,
        filter: EventFilter::default(),
    };
    let client = daemon.client();
    let mut stream = client
        .events(request, CallOptions::default())
        .await
        .unwrap();
    // Told once it is open on both sides.
    let first = stream.next().await;
    assert!(matches!(first, Some(Ok(EventItem::Subscribed { .. }))));
    stream
}

/// A client that has stopped (SIGSTOP) while it watches a session.
async fn stopped_watcher(daemon: &Daemon, home: &Home, name: &str) -> Child {
    let mut command = Command::new(sessiond().with_file_name("sessionctl"));
    let address = format!("http://{}", daemon.socket());
    let data_dir = home.data_dir();
    command
        .args(["--address", &address, "--json", "--data-dir"])
        .arg(data_dir)
        .args(["events", name])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = timeout(PATIENCE, lines.next_line()).await;
    first.expect("it watches").unwrap().expect("a line");
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP).unwrap();
    child
}

/// A client that begins HTTP/2, and says and reads nothing more.
async fn stalled(daemon: &Daemon) -> TcpStream {
    let mut stream = TcpStream::connect(daemon.socket()).await.unwrap();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let said = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &settings].concat();
    stream.write_all(&said).await.unwrap();
    stream
}

/// Everybody who might keep a server: a connection that says nothing, one that stalls, 50 watchers
/// that do not read, and a client that has stopped.
async fn nuisances(daemon: &Daemon, home: &Home, name: &str) -> impl Sized + use<> {
    let silent = TcpStream::connect(daemon.socket()).await.unwrap();
    let stalled = stalled(daemon).await;
    let mut watchers = Vec::new();
    for _ in 0..50 {
        watchers.push(observe(daemon, name).await);
    }
    let stopped = stopped_watcher(daemon, home, name).await;
    (silent, stalled, watchers, stopped)
}

#[tokio::test]
async fn c63_b59_no_client_delays_a_stop_without_a_run() {
    let home = Home::new();
    // Time enough for it to be seen that nothing waits for it.
    let daemon = with_time(&home, 600, 5).await;
    let (_, stream) = invoke(&daemon, "idle", "say \"x\"").await;
    let _events: Vec<_> = stream.collect().await;
    let nuisances = nuisances(&daemon, &home, "idle").await;
    daemon.terminate();
    let ended = daemon.ended(Duration::from_secs(5) + BEYOND).await;
    assert_eq!(ended.code(), Some(0), "{}", home.said());
    drop(nuisances);
}

#[tokio::test]
async fn c63_b59_a_run_that_does_not_settle_is_interrupted_in_time_whatever_clients_do() {
    let home = Home::new();
    let daemon = with_time(&home, 1, 3).await;
    let (run, _stream) = invoke(&daemon, "long", "say \"x\"\nhang").await;
    let nuisances = nuisances(&daemon, &home, "long").await;
    daemon.terminate();
    let ended = daemon.ended(Duration::from_secs(4) + BEYOND).await;
    assert_eq!(ended.code(), Some(0), "{}", home.said());
    let said = home.said();
    assert!(said.contains("settled as interrupted"), "{said}");
    drop(nuisances);

    // It was settled before the end: the next start finds nothing to be settled.
    let daemon = home.start().await;
    assert!(!home.said().contains("run(s)"), "{}", home.said());
    let client = daemon.client();
    let record = client.get_run(run, CallOptions::default()).await.unwrap();
    let outcome = record.settled.expect("settled").outcome;
    assert_eq!(outcome.code(), Some(code::INTERRUPTED));
}

#[tokio::test]
async fn c63_a_run_settles_in_a_drain_and_who_watches_it_is_told_while_the_rest_goes() {
    let home = Home::new();
    let daemon = with_time(&home, 600, 5).await;
    let (_, stream) = invoke(&daemon, "idle", "say \"x\"").await;
    let _events: Vec<_> = stream.collect().await;
    let (_, running) = invoke(&daemon, "busy", "wait-steer\nsay \"done\"").await;
    let (idle, busy) = (
        observe(&daemon, "idle").await,
        observe(&daemon, "busy").await,
    );
    daemon.terminate();

    let idle: Vec<_> = timeout(PATIENCE, idle.collect()).await.expect("it goes");
    let gone = idle.last().unwrap().as_ref().expect_err("in words");
    let ended = (Reason::ServerDraining, Outcome::StreamEnded);
    assert_eq!((gone.reason, gone.outcome), ended);
    let new = detached(named("late"), "say \"x\"".to_owned());
    let client = daemon.client();
    let refused = client.invoke(new, CallOptions::default()).await;
    let refused = refused.err().expect("nothing new begins");
    let not_taken = (Reason::ServerDraining, Outcome::Refused);
    assert_eq!((refused.reason, refused.outcome), not_taken);
    assert!(refused.retry_after.is_some(), "{refused:?}");

    let steer = DispatchRequest {
        session: named("busy"),
        command: Order::Steer {
            text: "go on".into(),
            given: Given::default(),
        },
        expected_run: None,
    };
    client
        .dispatch(steer, CallOptions::default())
        .await
        .unwrap();
    let events: Vec<_> = timeout(PATIENCE, running.collect()).await.expect("its end");
    let last = events.last().unwrap().as_ref().expect("a terminal");
    assert!(matches!(last, InvokeEvent::Completed { .. }), "{last:?}");
    let items: Vec<_> = timeout(PATIENCE, busy.collect()).await.expect("its end");
    let settled = items.iter().flatten().any(|item| match item {
        EventItem::Event(event) => event.event.body.event_type() == "run_settled",
        _ => false,
    });
    assert!(settled, "{items:?}");
    let gone = items.last().unwrap().as_ref().expect_err("in words");
    assert_eq!((gone.reason, gone.outcome), ended);
    let status = daemon.ended(Duration::from_secs(5) + BEYOND).await;
    assert_eq!(status.code(), Some(0), "{}", home.said());
}

#[tokio::test]
async fn c63_a_second_signal_does_not_wait_for_a_run() {
    let home = Home::new();
    let daemon = with_time(&home, 600, 5).await;
    let (_, _stream) = invoke(&daemon, "long", "hang").await;
    daemon.terminate();
    home.until_said("a second signal ends at once").await;
    daemon.terminate();
    assert_eq!(
        daemon.ended(PATIENCE).await.code(),
        Some(130),
        "{}",
        home.said()
    );
}
