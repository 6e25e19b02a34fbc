//! From the moment an event is decided until an observer has it, at a hundred events a second.
//!
//! An event tells its time in whole milliseconds, rounded down, so that a figure here is up to one
//! millisecond more than what passed: it is an upper bound. Server and observers share a clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use prost::Message;
use sessionplane::v1 as wire;
use sessionplane::v1::events_response::Item;
use tokio::task::JoinSet;
use tonic::Streaming;

use super::burst::until_snapshot;
use super::session::{self, EVENTS, by_id};
use crate::Outcome;
use crate::load::Target;
use crate::process::Server;
use crate::report::{Goal, Line, Report, median};
use crate::settings::{Pace, Settings};

/// Observers, and the most that 99 of 100 deliveries may take, in milliseconds.
const LOADS: [(usize, f64); 2] = [(100, 2.0), (1000, 20.0)];
const CONNECTIONS: usize = 16;
/// The first events of a run are not counted: the observers are still being subscribed.
const UNCOUNTED: usize = 50;

/// Measures the row.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    let server = Server::sessiond()?;
    for (observers, goal) in LOADS {
        let observers = settings.size(observers, observers / 50);
        let target = Target::connect(&server, CONNECTIONS.min(observers)).await?;
        let (mut p50, mut p99) = (Vec::new(), Vec::new());
        for number in 0..settings.rounds {
            let name = format!("lag-{observers}-{number}");
            let mut lags = round(settings, &target, &name, observers).await?;
            lags.sort_unstable();
            let at = |part: usize| lags.get(lags.len() * part / 100).copied();
            p50.push(at(50).ok_or("nothing was delivered")?.as_secs_f64() * 1e3);
            p99.push(at(99).ok_or("nothing was delivered")?.as_secs_f64() * 1e3);
        }
        let name = |what: &str| format!("Events at 100/s, {observers} observers: lag, {what}");
        report.add(Line::alone(name("p50"), median(&p50), "ms", Goal::None));
        let goal = Goal::AtMost(goal);
        report.add(Line::alone(name("p99"), median(&p99), "ms", goal));
    }
    Ok(())
}

async fn round(
    settings: &Settings,
    target: &Target,
    name: &str,
    observers: usize,
) -> Outcome<Vec<Duration>> {
    let session = session::start(target, name, &Pace::SINGLE.words(10_000_000)).await?;
    let request = wire::EventsRequest {
        session: Some(by_id(&session)),
        ..Default::default()
    };
    let mut readers = JoinSet::new();
    let events = usize::try_from(settings.round.as_millis() / Pace::SINGLE.every.as_millis())?;
    for observer in 0..observers {
        let mut stream = target.observe(observer, EVENTS, &request).await?;
        until_snapshot(&mut stream).await?;
        readers.spawn(read(stream, UNCOUNTED, events));
    }
    let mut lags = Vec::new();
    while let Some(read) = readers.join_next().await {
        lags.extend(read??);
    }
    session::abort(target, &session).await?;
    Ok(lags)
}

/// How long so many events took.
async fn read(
    mut stream: Streaming<Bytes>,
    uncounted: usize,
    events: usize,
) -> Outcome<Vec<Duration>> {
    let mut lags = Vec::with_capacity(uncounted + events);
    while lags.len() < uncounted + events {
        let message = stream
            .message()
            .await?
            .ok_or("an observer's stream ended")?;
        let arrived = wall();
        if let Some(Item::Event(event)) = wire::EventsResponse::decode(message)?.item {
            let at = event.event.and_then(|event| event.time);
            let at = at.ok_or("an event has no time")?;
            let at = Duration::new(u64::try_from(at.seconds)?, u32::try_from(at.nanos)?);
            lags.push(arrived.saturating_sub(at));
        }
    }
    Ok(lags.split_off(uncounted))
}

/// The time that the server's clock shows, too.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn wall() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
