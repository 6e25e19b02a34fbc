//! How long it takes until a steer has reached an engine that waits for one, and until an invoke is
//! admitted: both against a bare unary call that awaits one commit of the same store.
//!
//! That a steer has reached the engine is seen at the turn that the engine then begins: the figure
//! has the event's way to its observer in it, and is an upper bound.

use sessionplane::v1 as wire;
use sessionplane::v1::events_response::Item;

use bytes::Bytes;
use prost::Message as _;
use tonic::Streaming;

use super::Pair;
use super::burst::until_snapshot;
use super::dispatch::{floor_sessions, steer};
use super::session::{self, EVENTS, by_id};
use crate::Outcome;
use crate::load::{Target, now};
use crate::report::{Goal, Line, Report, median};
use crate::settings::Settings;

/// Longest way of a steer to its engine, in floors.
const STEER: f64 = 1.5;
/// Measured in each round.
const TIMES: usize = 200;

/// Measures the row.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    let pair = Pair::start().await?;
    let bench = Bench {
        times: settings.size(TIMES, 5),
        floor: Target::connect(&pair.floor, 1).await?,
        ours: Target::connect(&pair.ours, 2).await?,
        _pair: pair,
    };
    let (mut floor, mut steers, mut invokes) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..settings.rounds {
        floor.push(bench.commits(number).await?);
        steers.push(bench.steers(number).await?);
        invokes.push(bench.invokes(number).await?);
    }
    let goal = Goal::AtMost(STEER);
    let name = "Dispatch until the engine has the steer: p50".to_owned();
    report.add(Line::paired(name, &floor, &steers, "us", goal));
    let name = "Invoke until it is accepted: p50".to_owned();
    report.add(Line::paired(name, &floor, &invokes, "us", Goal::None));
    Ok(())
}

struct Bench {
    times: usize,
    floor: Target,
    ours: Target,
    _pair: Pair,
}

impl Bench {
    /// One call after another that each commit once.
    async fn commits(&self, number: usize) -> Outcome<f64> {
        let sessions = floor_sessions(90_000 + number, 1);
        let session = sessions.first().ok_or("no session")?;
        let mut client = self.floor.control(0);
        let mut took = Vec::new();
        // The first one makes the session, too.
        for call in 0..=self.times {
            let request = self
                .floor
                .request(steer(session, format!("{number}-{call}")));
            let began = now();
            client.dispatch(request).await?;
            took.push(micros(began));
        }
        Ok(median(&took[1..]))
    }

    /// One steer after another, each to an engine that waits at a boundary.
    async fn steers(&self, number: usize) -> Outcome<f64> {
        let scenario = "wait-steer\n".repeat(self.times + 2);
        let session = session::start(&self.ours, &format!("steer-{number}"), &scenario).await?;
        let request = wire::EventsRequest {
            session: Some(by_id(&session)),
            ..Default::default()
        };
        let mut events = self.ours.observe(1, EVENTS, &request).await?;
        until_snapshot(&mut events).await?;
        let mut client = self.ours.control(0);
        let mut took = Vec::new();
        for call in 0..self.times {
            let request = self
                .ours
                .request(steer(&session, format!("{number}-{call}")));
            let began = now();
            let (answer, reached) = tokio::join!(client.dispatch(request), async {
                until(&mut events, "turn_started").await?;
                Outcome::Ok(micros(began))
            });
            answer?;
            took.push(reached?);
            // It waits again, and all that this one wrote is written.
            until(&mut events, "entry_appended").await?;
        }
        session::abort(&self.ours, &session).await?;
        Ok(median(&took))
    }

    /// One new session after another.
    async fn invokes(&self, number: usize) -> Outcome<f64> {
        let mut took = Vec::new();
        for call in 0..self.times {
            let began = now();
            let name = format!("invoke-{number}-{call}");
            let (_accepted, mut run) = session::invoke(&self.ours, &name, "say \"x\"").await?;
            took.push(micros(began));
            while run.message().await?.is_some() {}
        }
        Ok(median(&took))
    }
}

async fn until(events: &mut Streaming<Bytes>, wanted: &str) -> Outcome<()> {
    while let Some(message) = events.message().await? {
        if let Some(Item::Event(event)) = wire::EventsResponse::decode(message)?.item
            && event.event.is_some_and(|event| event.r#type == wanted)
        {
            return Ok(());
        }
    }
    Err("a stream of events ended".into())
}

fn micros(began: std::time::Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e6
}
