//! `GetState` against a bare handler that returns the same message.

use sessionplane::v1 as wire;

use super::session::by_id;
use super::{CONNECTIONS, Pair};
use crate::Outcome;
use crate::load::{Sample, Target, closed_loop};
use crate::process::Server;
use crate::report::{Goal, Line, Report};
use crate::settings::Settings;

/// Most CPU time of a request, in floors.
const CPU: f64 = 1.3;
/// Lowest rate with the most callers, in floors.
const RATE: f64 = 0.8;

/// Measures the row.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    let pair = Pair::start().await?;
    let floor_target = Target::connect(&pair.floor, CONNECTIONS).await?;
    let our_target = Target::connect(&pair.ours, CONNECTIONS).await?;
    for callers in [1, 8, 64] {
        let (mut floor, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..settings.rounds {
            let session = &pair.session;
            floor.push(round(settings, &pair.floor, &floor_target, session, callers).await?);
            ours.push(round(settings, &pair.ours, &our_target, session, callers).await?);
        }
        let cpu = |samples: &[Sample]| samples.iter().map(Sample::cpu_us).collect::<Vec<_>>();
        let rate = |samples: &[Sample]| samples.iter().map(Sample::rate).collect::<Vec<_>>();
        let name = format!("GetState, {callers} callers: CPU a request");
        let line = Line::paired(name, &cpu(&floor), &cpu(&ours), "us", Goal::AtMost(CPU));
        report.add(line);
        let goal = if callers == 64 {
            Goal::AtLeast(RATE)
        } else {
            Goal::None
        };
        let name = format!("GetState, {callers} callers: rate");
        report.add(Line::paired(name, &rate(&floor), &rate(&ours), "1/s", goal));
    }
    Ok(())
}

/// So many callers for a round, each on the connection that is its.
pub(super) async fn round(
    settings: &Settings,
    server: &Server,
    target: &Target,
    session: &str,
    callers: usize,
) -> Outcome<Sample> {
    closed_loop(Some(server), callers, settings.round, |caller| {
        let (target, session) = (target.clone(), by_id(session));
        let client = target.control(caller);
        move || {
            let request = target.request(wire::GetStateRequest {
                session: Some(session.clone()),
                min_position: None,
            });
            let mut client = client.clone();
            async move { client.get_state(request).await.map(drop) }
        }
    })
    .await
}
