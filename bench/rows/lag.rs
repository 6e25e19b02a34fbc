//! From the moment an event is decided until an observer has it, at a hundred events a second.
//!
//! All observers are there at once: each reads from its snapshot on, the same events are counted for
//! all of them, and none leaves before the last has them.
//!
//! An event tells its time in whole milliseconds, rounded down, so that a figure here is up to one
//! millisecond more than what passed: it is an upper bound. Server and observers share a clock.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use prost::Message;
use sessionplane::v1 as wire;
use sessionplane::v1::events_response::Item;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::Streaming;

use super::burst::until_snapshot;
use super::session::{self, EVENTS, by_id};
use crate::load::Target;
use crate::process::{Server, Wire};
use crate::report::{Goal, Line, Report, median};
use crate::settings::{Pace, Settings};
use crate::{Failure, Outcome};

/// Observers, and the most that 99 of 100 deliveries may take, in milliseconds.
const LOADS: [(usize, f64); 2] = [(100, 2.0), (1000, 20.0)];
const CONNECTIONS: usize = 16;
/// Events after the last subscription that are not counted: what subscribing left behind is read by
/// then, and every observer knows of the window before it begins.
const UNCOUNTED: u64 = 50;

/// How long the events of the window took at one observer.
type Counted = Outcome<Vec<Duration>>;

/// Measures the row.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    let server = Server::sessiond(Wire::Plain)?;
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
    let window = Arc::new(OnceLock::new());
    let (done, mut counted) = mpsc::channel(observers);
    // Whoever is there reads, from its snapshot until the last one has counted: they are dropped
    // together, at the end of the round.
    let mut readers = JoinSet::new();
    for observer in 0..observers {
        let mut stream = target.observe(observer, EVENTS, &request).await?;
        until_snapshot(&mut stream).await?;
        readers.spawn(observe(stream, window.clone(), done.clone()));
    }
    let from = session::newest_seq(target, &session).await? + UNCOUNTED;
    let events = settings.round.as_millis() / Pace::SINGLE.every.as_millis();
    let counts = from..from + u64::try_from(events)?;
    window
        .set(counts.clone())
        .map_err(|_| "a window is set once")?;
    let mut lags = Vec::new();
    for _ in 0..observers {
        let told: Counted = counted.recv().await.ok_or("the observers are gone")?;
        let told = told?;
        if told.len() as u64 != counts.end - counts.start {
            return Err(format!("an observer had {} events of {counts:?}", told.len()).into());
        }
        lags.extend(told);
    }
    session::abort(target, &session).await?;
    Ok(lags)
}

/// Reads until the task is dropped; tells how long the events of the window took.
async fn observe(
    mut stream: Streaming<Bytes>,
    window: Arc<OnceLock<Range<u64>>>,
    done: mpsc::Sender<Counted>,
) {
    let ended = async {
        let mut lags = Vec::new();
        loop {
            let (seq, lag) = next(&mut stream).await?;
            // It is set a while before its first event is there: nobody misses a part of it.
            let Some(window) = window.get() else { continue };
            if window.contains(&seq) {
                lags.push(lag);
            }
            if seq + 1 == window.end {
                // Nobody listens any more only once the round has failed.
                let _gone = done.send(Ok(std::mem::take(&mut lags))).await;
            }
        }
    };
    let Err::<Infallible, Failure>(error) = ended.await;
    let _gone = done.send(Err(error)).await;
}

/// The number of the next event, and how long it took.
pub(super) async fn next(stream: &mut Streaming<Bytes>) -> Outcome<(u64, Duration)> {
    loop {
        let message = stream
            .message()
            .await?
            .ok_or("an observer's stream ended")?;
        let arrived = wall();
        if let Some(Item::Event(event)) = wire::EventsResponse::decode(message)?.item {
            let at = event.event.and_then(|event| event.time);
            let at = at.ok_or("an event has no time")?;
            let at = Duration::new(u64::try_from(at.seconds)?, u32::try_from(at.nanos)?);
            return Ok((event.seq, arrived.saturating_sub(at)));
        }
    }
}

/// The time that the server's clock shows, too.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(super) fn wall() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
