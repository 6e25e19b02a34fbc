//! C63: a stop is over in time however much there is to be torn down, and whatever hangs.

use std::time::Duration;

use futures_util::StreamExt as _;
use prost::Message as _;
use sessionplane::v1 as wire;
use sessionplane_client::contract::{Agent as _, CallOptions, InvokeEvent, ResultStream};
use sessionplane_client::detached;
use sessionplane_client::domain::ids::{RunId, SessionName, SessionRef};
use sessionplane_client::domain::run::code;
use sessionplane_server::adapters::secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::daemon::{Daemon, Home, Started, sessiond};

/// What a stop may take beyond what the configuration says.
const BEYOND: Duration = Duration::from_millis(200);
/// Enough for whatever a busy machine is at; nothing waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

const CONNECTIONS: usize = 20;
const STREAMS: u32 = 1000;

async fn start(home: &Home, (deadline, close): (u32, u32), failpoints: &str) -> Daemon {
    let mut command = home.command(&sessiond());
    command.args(home.flags()).env("FAILPOINTS", failpoints);
    for setting in [
        format!("drain.deadline_seconds={deadline}"),
        format!("drain.close_seconds={close}"),
        "limits.max_waits=1000000".to_owned(),
    ] {
        command.args(["--set", &setting]);
    }
    match home.launch(command).await {
        Started::Ready(daemon) => daemon,
        Started::Ended(status) => panic!("did not start: {status}; it said:\n{}", home.said()),
    }
}

async fn hang(daemon: &Daemon) -> (RunId, ResultStream<InvokeEvent>) {
    let session = SessionRef::Name(SessionName::parse("long").unwrap());
    let request = detached(session, "say \"x\"\nhang".to_owned());
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

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A connection with as many waits for a run as it may have. Its peer has read them all, and its
/// answers are read by nobody.
async fn waits(daemon: &Daemon, token: &str, run: RunId) -> TcpStream {
    let bearer = format!("Bearer {token}");
    let mut headers = Vec::new();
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "server"),
        (":path", "/sessionplane.v1.Invoke/WaitRun"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("authorization", &bearer),
    ] {
        // A literal field that is not indexed, its texts as they are.
        headers.push(0);
        for text in [name, value] {
            headers.push(u8::try_from(text.len()).unwrap());
            headers.extend(text.as_bytes());
        }
    }
    let request = wire::WaitRunRequest {
        run_id: run.to_string(),
    };
    let message = request.encode_to_vec();
    let mut framed = vec![0];
    framed.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend(message);

    let mut said = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    said.extend(frame(4, 0, 0, &[]));
    for number in 0..STREAMS {
        let stream = 2 * number + 1;
        said.extend(frame(1, 4, stream, &headers));
        said.extend(frame(0, 1, stream, &framed));
    }
    said.extend(frame(6, 0, 0, b"all-read"));
    let mut connection = TcpStream::connect(daemon.socket()).await.unwrap();
    connection.write_all(&said).await.unwrap();
    let answered = async {
        loop {
            let mut head = [0; 9];
            connection.read_exact(&mut head).await.unwrap();
            let [a, b, c, kind, flags, ..] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            connection.read_exact(&mut payload).await.unwrap();
            if (kind, flags) == (6, 1) {
                return;
            }
            assert_ne!(kind, 1, "a wait was answered");
        }
    };
    timeout(PATIENCE, answered).await.expect("they are read");
    connection
}

async fn settled_as_interrupted(home: &Home, run: RunId) {
    let daemon = home.start().await;
    let client = daemon.client();
    let record = client.get_run(run, CallOptions::default()).await.unwrap();
    let outcome = record.settled.expect("settled").outcome;
    assert_eq!(outcome.code(), Some(code::INTERRUPTED));
}

#[tokio::test]
async fn c63_b59_tens_of_thousands_of_waits_delay_neither_the_settlement_nor_the_exit() {
    let home = Home::new();
    // On a machine with nothing else to do, what the waits read is read before the drain's time is over.
    let daemon = start(&home, (1, 3), "store::read=sleep(10)").await;
    let (run, _stream) = hang(&daemon).await;
    let token = std::fs::read_to_string(daemon.token_file()).unwrap();
    let mut crowd = Vec::new();
    for _ in 0..CONNECTIONS {
        crowd.push(waits(&daemon, token.trim_end(), run).await);
    }
    daemon.terminate();
    let ended = daemon.ended(Duration::from_secs(4) + BEYOND).await;
    assert_eq!(ended.code(), Some(0), "{}", home.said());
    let said = home.said();
    assert!(said.contains("settled as interrupted"), "{said}");
    drop(crowd);
    settled_as_interrupted(&home, run).await;
    assert!(!home.said().contains("run(s)"), "{}", home.said());
}

#[tokio::test]
async fn c63_b59_a_process_that_does_not_get_to_its_end_is_ended_in_time() {
    let home = Home::new();
    // The thread that stops everything hangs: nothing of the runtime can help.
    let daemon = start(&home, (1, 1), "process::ending=sleep(600000)").await;
    let (run, _stream) = hang(&daemon).await;
    daemon.terminate();
    let ended = daemon.ended(Duration::from_secs(2) + BEYOND).await;
    let said = home.said();
    assert_eq!(ended.code(), Some(0), "{said}");
    assert!(said.contains("not done in time"), "{said}");
    settled_as_interrupted(&home, run).await;
}

#[tokio::test]
async fn c63_a_second_signal_ends_a_process_that_hangs() {
    let home = Home::new();
    let daemon = start(&home, (600, 60), "process::ending=sleep(600000)").await;
    daemon.terminate();
    home.until_said("no longer serving").await;
    daemon.terminate();
    let ended = daemon.ended(Duration::from_secs(5)).await;
    assert_eq!(ended.code(), Some(130), "{}", home.said());
}

#[tokio::test]
async fn a_panic_of_the_main_thread_ends_the_process_although_a_thread_hangs() {
    let home = Home::new();
    let failpoints = "process::ending=panic(a bug);store::snapshot-page=sleep(600000)";
    let daemon = start(&home, (600, 60), failpoints).await;
    // A backup that hangs keeps a thread that the runtime would wait for.
    let socket = home.data_dir().join("backup.sock");
    let (mut one, mut other) = (
        UnixStream::connect(&socket).await.unwrap(),
        UnixStream::connect(&socket).await.unwrap(),
    );
    // One of them is refused, because the other is being made.
    let (mut said, mut refused) = ([0; 1], [0; 1]);
    let proof = secret::proof(&home.data_dir(), "backup").unwrap();
    let request = format!("backup 2 {proof}\n");
    one.write_all(request.as_bytes()).await.unwrap();
    other.write_all(request.as_bytes()).await.unwrap();
    let answered = async {
        tokio::select! {
            read = one.read_exact(&mut said) => read,
            read = other.read_exact(&mut refused) => read,
        }
    };
    let answered = timeout(PATIENCE, answered);
    answered.await.expect("one is refused").unwrap();
    daemon.terminate();
    let ended = daemon.ended(PATIENCE).await;
    let said = home.said();
    assert_eq!(ended.code(), Some(101), "{said}");
    assert!(said.contains("an internal error: "), "{said}");
    assert!(said.contains("a bug"), "{said}");
}
