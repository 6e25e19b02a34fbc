//! 100,000 events to 100 observers: each gets every event once, in order, the same bytes as all.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use sessionplane::v1 as wire;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::session::{self, EVENTS, by_id};
use crate::Outcome;
use crate::load::Target;
use crate::process::{Server, Wire};
use crate::report::{Goal, Line, Report};
use crate::settings::BURST;

const WORDS: u64 = 100_000;
const OBSERVERS: usize = 100;
const CONNECTIONS: usize = 16;
const SETTLED: Duration = Duration::from_millis(500);

/// As much of a message as has to be known; the rest is skipped.
#[derive(Clone, PartialEq, Message)]
struct Glance {
    #[prost(message, optional, tag = "3")]
    snapshot: Option<wire::Snapshot>,
    #[prost(message, optional, tag = "4")]
    event: Option<Envelope>,
}

#[derive(Clone, PartialEq, Message)]
struct Envelope {
    #[prost(uint64, tag = "2")]
    epoch: u64,
    #[prost(uint64, tag = "3")]
    seq: u64,
    #[prost(message, optional, tag = "4")]
    event: Option<Kind>,
}

#[derive(Clone, PartialEq, Message)]
struct Kind {
    #[prost(bytes = "bytes", tag = "1")]
    kind: Bytes,
}

/// What one observer saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seen {
    first: u64,
    last: u64,
    events: u64,
    checksum: u32,
}

/// Counts the row; what is lost or reordered ends the benchmark.
pub(super) async fn measure(report: &mut Report) -> Outcome<()> {
    let server = Server::sessiond(Wire::Plain)?;
    let target = Target::connect(&server, CONNECTIONS).await?;
    let scenario = format!("wait-steer\nsay-words {WORDS} every 2ms by {BURST}");
    let session = session::start(&target, "lossless", &scenario).await?;
    // Until the run waits for the steer.
    sleep(SETTLED).await;
    let mut observers = JoinSet::new();
    let from = session::newest_seq(&target, &session).await?;
    let (ready, mut subscribed) = tokio::sync::mpsc::channel(OBSERVERS);
    for observer in 0..OBSERVERS {
        let (target, session, ready) = (target.clone(), session.clone(), ready.clone());
        observers.spawn(async move { watch(&target, observer, &session, from, ready).await });
    }
    for _ in 0..OBSERVERS {
        subscribed.recv().await.ok_or("an observer ended early")?;
    }
    session::steer(&target, &session, "say \"go\"").await?;
    let (mut all, mut laps) = (Vec::new(), 0);
    while let Some(ended) = observers.join_next().await {
        let (seen, resumed) = ended??;
        all.push(seen);
        laps += resumed;
    }
    let appended = session::newest_seq(&target, &session).await? - from;
    let first = *all.first().ok_or("nobody observed")?;
    if first.events != appended || appended < WORDS || all.iter().any(|seen| *seen != first) {
        return Err(format!("{appended} events were appended, and observers saw {all:?}").into());
    }
    report.add(Line {
        name: format!("{appended} events to {OBSERVERS} observers, lost"),
        floor: 0.0,
        ours: 0.0,
        unit: "events",
        ratio: 0.0,
        goal: Goal::AtMost(0.0),
    });
    println!(
        "  each saw seq {} to {}, the same bytes; streams resumed: {laps}",
        first.first, first.last
    );
    Ok(())
}

/// Reads until the run settles; resumes where it was when the server says that it is too slow.
async fn watch(
    target: &Target,
    observer: usize,
    session: &str,
    from: u64,
    ready: tokio::sync::mpsc::Sender<()>,
) -> Outcome<(Seen, u32)> {
    let mut seen = Seen {
        first: 0,
        last: from,
        events: 0,
        checksum: 0,
    };
    let (mut epoch, mut resumed, mut hash) = (0, 0, crc32fast::Hasher::new());
    loop {
        let resume = wire::Position {
            epoch,
            seq: seen.last,
        };
        let request = wire::EventsRequest {
            session: Some(by_id(session)),
            resume: (epoch > 0).then_some(resume),
            ..Default::default()
        };
        let mut stream = target.observe(observer, EVENTS, &request).await?;
        while let Ok(Some(message)) = stream.message().await {
            let glance = Glance::decode(message.clone())?;
            if let Some(position) = glance.snapshot.and_then(|snapshot| snapshot.position)
                && epoch == 0
            {
                (epoch, seen.last) = (position.epoch, position.seq);
                ready.send(()).await?;
            }
            let Some(Envelope { seq, event, .. }) = glance.event else {
                continue;
            };
            if seq != seen.last + 1 {
                return Err(format!("after event {} came {seq}", seen.last).into());
            }
            if seen.events == 0 {
                seen.first = seq;
            }
            seen.last = seq;
            seen.events += 1;
            hash.update(&message);
            if event.is_some_and(|event| *event.kind == *b"run_settled") {
                seen.checksum = hash.finalize();
                return Ok((seen, resumed));
            }
        }
        resumed += 1;
    }
}
