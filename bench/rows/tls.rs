//! `GetState` in TLS against the same without: what encryption takes of the rate, the client's share
//! of it included, since both sides share the machine.

use super::{CONNECTIONS, session, unary};
use crate::Outcome;
use crate::load::{Sample, Target};
use crate::process::{Server, Wire};
use crate::report::{Goal, Line, Report};

use crate::settings::Settings;

/// Lowest rate, in those without TLS.
const RATE: f64 = 0.75;
const CALLERS: usize = 64;

/// A server with a session at rest, and connections to it.
struct Side {
    server: Server,
    target: Target,
    session: String,
}

/// Measures the row.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    let sides = [start(Wire::Plain).await?, start(Wire::Tls).await?];
    let mut samples = [Vec::new(), Vec::new()];
    for _ in 0..settings.rounds {
        for (side, samples) in sides.iter().zip(&mut samples) {
            let (server, target) = (&side.server, &side.target);
            let sample = unary::round(settings, server, target, &side.session, CALLERS).await?;
            samples.push(sample);
        }
    }
    let figures = |of: fn(&Sample) -> f64| {
        let [plain, tls] = samples.each_ref();
        let figures = |samples: &[Sample]| samples.iter().map(of).collect::<Vec<_>>();
        (figures(plain), figures(tls))
    };
    let (plain, tls) = figures(Sample::rate);
    let name = format!("GetState in TLS, {CALLERS} callers: rate");
    report.add(Line::paired(name, &plain, &tls, "1/s", Goal::AtLeast(RATE)));
    let (plain, tls) = figures(Sample::cpu_us);
    let name = format!("GetState in TLS, {CALLERS} callers: CPU a request");
    report.add(Line::paired(name, &plain, &tls, "us", Goal::None));
    Ok(())
}

async fn start(wire: Wire) -> Outcome<Side> {
    let server = Server::sessiond(wire)?;
    let target = Target::connect(&server, CONNECTIONS).await?;
    let session = session::samples(&target).await?.session;
    Ok(Side {
        server,
        target,
        session,
    })
}
