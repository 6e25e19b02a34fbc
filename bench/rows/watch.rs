//! From the moment a session's phase changes until a hundred watchers know, while a thousand sessions
//! change a second.
//!
//! Each session asks, is left without an answer for a second, works for a second, and asks again. What
//! is told of a session says since when its phase holds, in whole milliseconds, rounded down: a figure
//! is up to one millisecond more than what passed.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use sessionplane::v1 as wire;
use sessionplane::v1::watch_sessions_response::Item;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::Streaming;

use super::lag::wall;
use super::session;
use crate::load::Target;
use crate::process::{Server, Wire};
use crate::report::{Goal, Line, Report, median};
use crate::settings::Settings;
use crate::{Failure, Outcome};

const SESSIONS: usize = 1000;
const WATCHERS: usize = 100;
const CONNECTIONS: usize = 16;
/// Most time that 99 of 100 changes take until a watcher has them, in milliseconds.
const LAG: f64 = 50.0;
/// The path of our watch.
const WATCH: &str = "/sessionplane.v1.Fleet/WatchSessions";
/// Questions of a session: more than it comes to ask.
const QUESTIONS: usize = 500;

/// What a watcher has been told, with how long it took.
struct Told {
    lags: Vec<Duration>,
}

/// Measures the row.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    let server = Server::sessiond(Wire::Plain)?;
    let sessions = settings.size(SESSIONS, 20);
    let watchers = settings.size(WATCHERS, 4);
    let target = Target::connect(&server, CONNECTIONS.min(watchers)).await?;
    let counts = Arc::new(AtomicBool::new(false));
    let (done, mut counted) = mpsc::channel(watchers);
    // They read until the row is over.
    let mut readers = JoinSet::new();
    for watcher in 0..watchers {
        let request = wire::WatchSessionsRequest::default();
        let stream = target.observe(watcher, WATCH, &request).await?;
        readers.spawn(watch(stream, counts.clone(), done.clone()));
    }
    let flaps = flaps();
    for number in 0..sessions {
        // Spread over the two seconds of a turn.
        session::start(&target, &format!("flap-{number}"), &flaps).await?;
        sleep(Duration::from_secs(2) / u32::try_from(sessions)?).await;
    }
    let (mut p50, mut p99, mut rate) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..settings.rounds {
        counts.store(true, Ordering::Relaxed);
        sleep(settings.round).await;
        counts.store(false, Ordering::Relaxed);
        let mut lags = Vec::new();
        for _ in 0..watchers {
            let told: Outcome<Told> = counted.recv().await.ok_or("the watchers are gone")?;
            lags.extend(told?.lags);
        }
        lags.sort_unstable();
        let at = |part: usize| lags.get(lags.len() * part / 100).copied();
        p50.push(at(50).ok_or("nothing was told")?.as_secs_f64() * 1e3);
        p99.push(at(99).ok_or("nothing was told")?.as_secs_f64() * 1e3);
        let told = u32::try_from(lags.len() / watchers)?;
        rate.push(f64::from(told) / settings.round.as_secs_f64());
    }
    let name = |what: &str| format!("{sessions} flapping, {watchers} watchers: {what}");
    report.add(Line::alone(
        name("changes"),
        median(&rate),
        "1/s",
        Goal::None,
    ));
    report.add(Line::alone(
        name("lag, p50"),
        median(&p50),
        "ms",
        Goal::None,
    ));
    report.add(Line::alone(
        name("lag, p99"),
        median(&p99),
        "ms",
        Goal::AtMost(LAG),
    ));
    Ok(())
}

/// A second with a question, a second without.
fn flaps() -> String {
    let mut scenario = String::new();
    for number in 0..QUESTIONS {
        // Writing to a String cannot fail.
        let _ = writeln!(
            scenario,
            "ask q{number} confirm \"Go on?\" within 1s default yes\nwait-answers\nwait 1s"
        );
    }
    scenario
}

/// Reads until the task is dropped; tells at the end of each round what it was told in it.
async fn watch(
    mut stream: Streaming<Bytes>,
    counts: Arc<AtomicBool>,
    done: mpsc::Sender<Outcome<Told>>,
) {
    let ended = async {
        let (mut known, mut lags) = (HashMap::new(), Vec::new());
        let mut was_counting = false;
        loop {
            let message = stream.message().await?.ok_or("a watch ended")?;
            let arrived = wall();
            let is_counting = counts.load(Ordering::Relaxed);
            for (id, since) in changes(message)? {
                if known.insert(id, since) != Some(since) && is_counting {
                    lags.push(arrived.saturating_sub(since));
                }
            }
            if was_counting && !is_counting {
                let lags = std::mem::take(&mut lags);
                // Nobody listens any more only once the row has failed.
                let _gone = done.send(Ok(Told { lags })).await;
            }
            was_counting = is_counting;
        }
    };
    let Err::<Infallible, Failure>(error) = ended.await;
    let _gone = done.send(Err(error)).await;
}

/// The sessions that a message tells of, and since when their phase holds.
fn changes(message: Bytes) -> Outcome<Vec<(String, Duration)>> {
    let Some(Item::Changed(changed)) = wire::WatchSessionsResponse::decode(message)?.item else {
        return Ok(Vec::new());
    };
    let since = |session: wire::Session| {
        let since = session.phase_since?;
        let seconds = u64::try_from(since.seconds).ok()?;
        let nanos = u32::try_from(since.nanos).ok()?;
        Some((session.id, Duration::new(seconds, nanos)))
    };
    Ok(changed.sessions.into_iter().filter_map(since).collect())
}
