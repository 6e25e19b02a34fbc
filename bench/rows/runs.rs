//! A thousand runs at once, ten events a second each, with one observer each: how long an event
//! takes from the moment it is decided.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sessionplane::v1 as wire;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tonic::Streaming;

use super::burst::until_snapshot;
use super::lag;
use super::session::{self, EVENTS, by_id};
use crate::Outcome;
use crate::load::Target;
use crate::process::{Server, Wire};
use crate::report::{Goal, Line, Report, median};
use crate::settings::{Pace, Settings};

const RUNS: usize = 1000;
const CONNECTIONS: usize = 50;
/// Most that 99 of 100 deliveries may take, in milliseconds.
const LAG: f64 = 100.0;
/// Events of each observer that are not counted: all observers are there by then.
const UNCOUNTED: usize = 5;
/// Ten events a second.
const PACE: Pace = Pace {
    burst: 1,
    every: Duration::from_millis(100),
};

/// Measures the row.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    let runs = settings.size(RUNS, 20);
    let (mut p50, mut p99) = (Vec::new(), Vec::new());
    let rounds = settings.rounds.min(3);
    for _ in 0..rounds {
        // A server of its own: no session of another round rests in it.
        let server = Server::sessiond(Wire::Plain)?;
        let mut lags = round(settings, &server, runs).await?;
        lags.sort_unstable();
        let at = |part: usize| lags.get(lags.len() * part / 100).copied();
        p50.push(at(50).ok_or("nothing was delivered")?.as_secs_f64() * 1e3);
        p99.push(at(99).ok_or("nothing was delivered")?.as_secs_f64() * 1e3);
    }
    let name = |what: &str| format!("{runs} runs at 10 events/s, observed: lag, {what}");
    report.add(Line::alone(name("p50"), median(&p50), "ms", Goal::None));
    let goal = Goal::AtMost(LAG);
    report.add(Line::alone(name("p99"), median(&p99), "ms", goal));
    Ok(())
}

async fn round(settings: &Settings, server: &Server, runs: usize) -> Outcome<Vec<Duration>> {
    let target = Target::connect(server, CONNECTIONS.min(runs)).await?;
    let events = settings.round.as_millis() / PACE.every.as_millis();
    let counted = usize::try_from(events)?.max(2);
    let all_there = Arc::new(Barrier::new(runs));
    let mut readers = JoinSet::new();
    for number in 0..runs {
        let name = format!("runs-{number}");
        let session = session::start(&target, &name, &PACE.words(10_000_000)).await?;
        let request = wire::EventsRequest {
            session: Some(by_id(&session)),
            ..Default::default()
        };
        let stream = target.observe(number, EVENTS, &request).await?;
        readers.spawn(read(stream, all_there.clone(), counted));
    }
    let mut lags = Vec::new();
    while let Some(ended) = readers.join_next().await {
        lags.extend(ended??);
    }
    Ok(lags)
}

/// Reads on until all are there, and then so many events that count. It ends when all have theirs.
async fn read(
    mut stream: Streaming<Bytes>,
    all_there: Arc<Barrier>,
    counted: usize,
) -> Outcome<Vec<Duration>> {
    until_snapshot(&mut stream).await?;
    {
        let there = all_there.wait();
        tokio::pin!(there);
        loop {
            tokio::select! {
                _ = &mut there => break,
                told = lag::next(&mut stream) => drop(told?),
            }
        }
    }
    let mut lags = Vec::with_capacity(counted);
    for number in 0..UNCOUNTED + counted {
        let (_seq, lag) = lag::next(&mut stream).await?;
        if number >= UNCOUNTED {
            lags.push(lag);
        }
    }
    let over = all_there.wait();
    tokio::pin!(over);
    loop {
        tokio::select! {
            _ = &mut over => return Ok(lags),
            told = lag::next(&mut stream) => drop(told?),
        }
    }
}
