//! Accepted steers against a bare handler that commits the same keys, and against a raw log.

use std::sync::Arc;

use sessionplane::v1 as wire;
use sessionplane::v1::dispatch_response::Answer;
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::time::Timestamp;
use tonic::Status;

use super::session::{self, by_id};
use super::{CONNECTIONS, Pair};
use crate::load::{Sample, Target, closed_loop};
use crate::process::Server;
use crate::report::{Goal, Line, Report, median};
use crate::settings::Settings;
use crate::{Outcome, raw_log};

/// Lowest rate on the most sessions, in floors.
const RATE: f64 = 0.7;
/// Lowest rate on one session, in rates on as many sessions as callers.
const ONE_SESSION: f64 = 0.5;
/// Lowest rate on the most sessions, in raw logs.
const OF_RAW_LOG: f64 = 0.4;
/// The most callers, and sessions.
const MOST: usize = 64;
/// 64 bytes, a short instruction.
const TEXT: &str = "Please look at the lease check first, before the other findings.";

/// Measures the row.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    let pair = Pair::start().await?;
    let bench = Bench {
        settings,
        floor_target: Target::connect(&pair.floor, CONNECTIONS).await?,
        our_target: Target::connect(&pair.ours, CONNECTIONS).await?,
        pair,
    };
    let mut most = Rates::default();
    for callers in [1, 16, MOST] {
        most = bench.rows(callers, report).await?;
    }
    let mut one = Vec::new();
    for number in 0..settings.rounds {
        let sessions = bench.our_sessions(&format!("one-{number}"), 1).await?;
        let sample = bench.round(&bench.pair.ours, &bench.our_target, &sessions, MOST, number);
        one.push(sample.await?.rate());
    }
    let name = format!("Dispatch, {MOST} on one session, to {MOST} sessions");
    report.add(Line::paired(
        name,
        &most.ours,
        &one,
        "1/s",
        Goal::AtLeast(ONE_SESSION),
    ));
    let name = format!("Dispatch, {MOST} on one session, to the floor");
    let goal = Goal::AtLeast(RATE * ONE_SESSION);
    report.add(Line::paired(name, &most.floor, &one, "1/s", goal));
    Ok(())
}

#[derive(Default)]
struct Rates {
    floor: Vec<f64>,
    ours: Vec<f64>,
}

struct Bench<'a> {
    settings: &'a Settings,
    pair: Pair,
    floor_target: Target,
    our_target: Target,
}

impl Bench<'_> {
    /// Floor, ours and raw log with so many callers on as many sessions.
    async fn rows(&self, callers: usize, report: &mut Report) -> Outcome<Rates> {
        let (mut floor, mut ours, mut log) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..self.settings.rounds {
            log.push(raw_log::rate(callers, self.settings.round).await?);
            let sessions = floor_sessions(callers * 100 + number, callers);
            let (server, target) = (&self.pair.floor, &self.floor_target);
            floor.push(
                self.round(server, target, &sessions, callers, number)
                    .await?,
            );
            let sessions = self
                .our_sessions(&format!("{callers}-{number}"), callers)
                .await?;
            let (server, target) = (&self.pair.ours, &self.our_target);
            ours.push(
                self.round(server, target, &sessions, callers, number)
                    .await?,
            );
        }
        let cpu = |samples: &[Sample]| samples.iter().map(Sample::cpu_us).collect::<Vec<_>>();
        let rate = |samples: &[Sample]| samples.iter().map(Sample::rate).collect::<Vec<_>>();
        let p50 = |samples: &[Sample]| samples.iter().map(|s| s.p50_us).collect::<Vec<_>>();
        let rates = Rates {
            floor: rate(&floor),
            ours: rate(&ours),
        };
        let goal = |goal| {
            if callers == MOST {
                Goal::AtLeast(goal)
            } else {
                Goal::None
            }
        };
        let name = |what: &str| format!("Dispatch, {callers} callers and sessions: {what}");
        let line = Line::paired(name("rate"), &rates.floor, &rates.ours, "1/s", goal(RATE));
        report.add(line);
        let line = Line::paired(name("CPU"), &cpu(&floor), &cpu(&ours), "us", Goal::None);
        report.add(line);
        let line = Line::paired(name("p50"), &p50(&floor), &p50(&ours), "us", Goal::None);
        report.add(line);
        let name = format!("Dispatch, {callers}, to a raw log of {callers} writers");
        report.add(Line::paired(
            name,
            &log,
            &rates.ours,
            "1/s",
            goal(OF_RAW_LOG),
        ));
        let name = format!("the commit floor, {callers}, to that raw log");
        report.add(Line {
            name,
            floor: median(&log),
            ours: median(&rates.floor),
            unit: "1/s",
            ratio: median(&rates.floor) / median(&log),
            goal: Goal::None,
        });
        Ok(rates)
    }

    /// Sessions with a run that takes steers and shows none, so that each is one commit.
    async fn our_sessions(&self, name: &str, count: usize) -> Outcome<Vec<String>> {
        let mut sessions = Vec::new();
        for index in 0..count {
            let name = format!("d-{name}-{index}");
            sessions.push(session::start(&self.our_target, &name, "hang").await?);
        }
        Ok(sessions)
    }

    async fn round(
        &self,
        server: &Server,
        target: &Target,
        sessions: &[String],
        callers: usize,
        number: usize,
    ) -> Outcome<Sample> {
        closed_loop(server, callers, self.settings.round, |caller| {
            let target = target.clone();
            let session: Arc<str> = sessions[caller % sessions.len()].as_str().into();
            let client = target.control(caller);
            let mut calls = 0_u64;
            move || {
                calls += 1;
                let steer = wire::Steer {
                    text: TEXT.to_owned(),
                };
                let request = target.request(wire::DispatchRequest {
                    session: Some(by_id(&session)),
                    request_id: format!("{session}-{number}-{caller}-{calls}"),
                    command: Some(wire::dispatch_request::Command::Steer(steer)),
                    ..Default::default()
                });
                let mut client = client.clone();
                async move {
                    match client.dispatch(request).await?.into_inner().answer {
                        Some(Answer::Accepted(_)) => Ok(()),
                        other => Err(Status::aborted(format!("not accepted: {other:?}"))),
                    }
                }
            }
        })
        .await
    }
}

/// Ids of sessions that the floor makes when it first meets them.
fn floor_sessions(round: usize, count: usize) -> Vec<String> {
    let at = Timestamp::from_millis(1_760_000_000_000 + round as u64);
    (0..count)
        .map(|index| SessionId::mint(at, index as u128).to_string())
        .collect()
}
