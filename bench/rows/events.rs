//! `Events` of a session that says words in bursts, against a broadcast of bursts of the same bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use sessionplane::v1 as wire;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::Streaming;

use super::Pair;
use super::session::{self, EVENTS, by_id};
use crate::Outcome;
use crate::floor::stream;
use crate::load::{Sample, Target, measure as measure_load};
use crate::process::Server;
use crate::report::{Goal, Line, Report, median};
use crate::settings::{Pace, Settings};

/// Most CPU time of a delivery in bursts, in floors, the session's own work included.
const CPU: f64 = 1.4;
/// Most CPU time of a delivery of one event at a time.
const CPU_SINGLE: f64 = 1.5;
/// How many observers there are for single events.
const MANY: usize = 1000;
/// Words of a run that does not end while it is measured.
const ENDLESS: u64 = 10_000_000;
/// Most connections of the observers.
const CONNECTIONS: usize = 16;
/// From the first event until the measuring begins.
const WARM_UP: Duration = Duration::from_millis(300);

/// Measures the row.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    let pair = Pair::start().await?;
    alone(settings, &pair, report).await?;
    let bursts = Load {
        name: "Events",
        path: stream::PATH,
        pace: Pace::BURSTS,
        goal: CPU,
    };
    let loads: &[usize] = if settings.quick {
        &[1, 10]
    } else {
        &[1, 10, 100, MANY]
    };
    for &observers in loads {
        compared(settings, &pair, &bursts, observers, report).await?;
    }
    let single = Load {
        name: "Events one at a time",
        path: stream::PACED,
        pace: Pace::SINGLE,
        goal: CPU_SINGLE,
    };
    let observers = settings.size(MANY, 20);
    compared(settings, &pair, &single, observers, report).await
}

/// How events are published, and what a delivery may cost.
struct Load {
    name: &'static str,
    /// The floor's stream.
    path: &'static str,
    pace: Pace,
    goal: f64,
}

/// Floor and ours in alternating rounds.
async fn compared(
    settings: &Settings,
    pair: &Pair,
    load: &Load,
    observers: usize,
    report: &mut Report,
) -> Outcome<()> {
    let connections = observers.min(CONNECTIONS);
    let floor_target = Target::connect(&pair.floor, connections).await?;
    let our_target = Target::connect(&pair.ours, connections).await?;
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for number in 0..settings.rounds {
        let request = wire::EventsRequest::default();
        let sample = round(
            settings,
            &pair.floor,
            &floor_target,
            observers,
            load.path,
            &request,
        );
        floor.push(sample.await?);

        let name = format!("events-{observers}-{}-{number}", load.pace.burst);
        session::filled(&our_target, &name).await?;
        let session = session::start(&our_target, &name, &load.pace.words(ENDLESS)).await?;
        let request = wire::EventsRequest {
            session: Some(by_id(&session)),
            ..Default::default()
        };
        let sample = round(
            settings,
            &pair.ours,
            &our_target,
            observers,
            EVENTS,
            &request,
        );
        ours.push(sample.await?);
        session::abort(&our_target, &session).await?;
    }
    let cpu = |samples: &[Sample]| samples.iter().map(Sample::cpu_us).collect::<Vec<_>>();
    let rate = |samples: &[Sample]| samples.iter().map(Sample::rate).collect::<Vec<_>>();
    let Load { name, goal, .. } = load;
    report.add(Line::paired(
        format!("{name}, {observers} observers: CPU a delivery"),
        &cpu(&floor),
        &cpu(&ours),
        "us",
        Goal::AtMost(*goal),
    ));
    report.add(Line::paired(
        format!("{name}, {observers} observers: deliveries"),
        &rate(&floor),
        &rate(&ours),
        "1/s",
        Goal::None,
    ));
    Ok(())
}

/// What the session itself costs: the engine's words become events, and nobody observes.
async fn alone(settings: &Settings, pair: &Pair, report: &mut Report) -> Outcome<()> {
    let target = Target::connect(&pair.ours, 1).await?;
    let mut costs = Vec::new();
    for number in 0..settings.rounds {
        let name = format!("alone-{number}");
        session::filled(&target, &name).await?;
        let session = session::start(&target, &name, &Pace::BURSTS.words(ENDLESS)).await?;
        sleep(WARM_UP).await;
        let before = session::newest_seq(&target, &session).await?;
        let mut sample = measure_load(Some(&pair.ours), settings.round, || 0).await?;
        let events = session::newest_seq(&target, &session).await? - before;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let events = events as f64;
        sample.operations = events;
        costs.push(sample.cpu_us());
        session::abort(&target, &session).await?;
    }
    report.add(Line {
        name: "Events, nobody observes: CPU an event".to_owned(),
        floor: 0.0,
        ours: median(&costs),
        unit: "us",
        ratio: 0.0,
        goal: Goal::None,
    });
    Ok(())
}

async fn round(
    settings: &Settings,
    server: &Server,
    target: &Target,
    observers: usize,
    path: &'static str,
    request: &wire::EventsRequest,
) -> Outcome<Sample> {
    let delivered = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for observer in 0..observers {
        let stream = target.observe(observer, path, request).await?;
        tasks.spawn(read(stream, delivered.clone()));
    }
    sleep(WARM_UP).await;
    let sample = measure_load(Some(server), settings.round, || {
        delivered.load(Ordering::Relaxed)
    })
    .await?;
    if let Some(ended) = tasks.try_join_next() {
        return Err(format!("an observer's stream ended: {:?}", ended?).into());
    }
    tasks.shutdown().await;
    Ok(sample)
}

/// Counts until the stream ends, which it must not.
async fn read(mut stream: Streaming<Bytes>, delivered: Arc<AtomicU64>) -> Option<tonic::Status> {
    loop {
        match stream.message().await {
            Ok(Some(_event)) => delivered.fetch_add(1, Ordering::Relaxed),
            Ok(None) => return None,
            Err(status) => return Some(status),
        };
    }
}
