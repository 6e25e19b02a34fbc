//! Accepted steers against a bare handler that commits the same keys, and against a raw log.

use std::sync::Arc;

use sessionplane::v1 as wire;
use sessionplane::v1::dispatch_response::Answer;
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::time::Timestamp;
use tonic::Status;

use super::session::{self, by_id};
use super::{CONNECTIONS, Pair};
use crate::floor::commit::Commits;
use crate::load::{Sample, Target, closed_loop};
use crate::process::{Server, data_dir};
use crate::report::{Goal, Line, Report};
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
        let (mut floor, mut ours) = (Vec::new(), Vec::new());
        let (mut log, mut store) = (Vec::new(), Vec::new());
        for number in 0..self.settings.rounds {
            log.push(raw_log::rate(callers, self.settings.round).await?);
            store.push(store_alone(self.settings, callers).await?);
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
        let told = |what: &str| format!("{what}, {callers}, to that raw log");
        let line = Line::paired(told("the floor"), &log, &rates.floor, "1/s", Goal::None);
        report.add(line);
        let line = Line::paired(told("its store alone"), &log, &store, "1/s", Goal::None);
        report.add(line);
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
        closed_loop(Some(server), callers, self.settings.round, |caller| {
            let target = target.clone();
            let session: Arc<str> = sessions[caller % sessions.len()].as_str().into();
            let client = target.control(caller);
            let mut calls = 0_u64;
            move || {
                calls += 1;
                let id = format!("{session}-{number}-{caller}-{calls}");
                let request = target.request(steer(&session, id));
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

pub(super) fn steer(session: &str, request_id: String) -> wire::DispatchRequest {
    let steer = wire::Steer {
        text: TEXT.to_owned(),
        ..Default::default()
    };
    wire::DispatchRequest {
        session: Some(by_id(session)),
        request_id,
        command: Some(wire::dispatch_request::Command::Steer(steer)),
        ..Default::default()
    }
}

/// The floor's commits without a server: what the store takes of the raw log's rate, before any
/// call. On a fresh store, like every round of it.
async fn store_alone(settings: &Settings, callers: usize) -> Outcome<f64> {
    let directory = data_dir()?;
    let commits = Arc::new(Commits::open(&directory.path().join("store"))?);
    let sessions = floor_sessions(0, callers);
    let sample = closed_loop(None, callers, settings.round, |caller| {
        let (commits, session) = (commits.clone(), sessions[caller].clone());
        let mut calls = 0_u64;
        move || {
            calls += 1;
            let request = steer(&session, format!("{session}-0-{caller}-{calls}"));
            let commits = commits.clone();
            async move { commits.dispatch(request).await.map(drop) }
        }
    });
    Ok(sample.await?.rate())
}

/// Ids of sessions that the floor makes when it first meets them.
pub(super) fn floor_sessions(round: usize, count: usize) -> Vec<String> {
    let at = Timestamp::from_millis(1_760_000_000_000 + round as u64);
    (0..count)
        .map(|index| SessionId::mint(at, index as u128).to_string())
        .collect()
}
