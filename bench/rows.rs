//! What is measured, a file for each row. A row starts its servers, measures floor and ours round
//! by round, and adds its lines to the report.

mod admission;
mod burst;
mod dispatch;
mod dormant;
mod events;
mod fleet;
mod lag;
mod lossless;
mod pages;
mod policy;
mod reconnect;
mod runs;
mod session;
mod tls;
mod unary;
mod watch;

use crate::Outcome;
use crate::load::Target;
use crate::process::{Server, Wire};
use crate::report::Report;
use crate::settings::Settings;

/// Connections of a unary load.
const CONNECTIONS: usize = 4;

/// Measures every row that is wanted.
pub(crate) fn main() -> Outcome<()> {
    let settings = Settings::read()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut report = Report::begin();
        if settings.wants("unary") {
            unary::measure(&settings, &mut report).await?;
        }
        if settings.wants("tls") {
            tls::measure(&settings, &mut report).await?;
        }
        if settings.wants("events") {
            events::measure(&settings, &mut report).await?;
        }
        if settings.wants("dispatch") {
            dispatch::measure(&settings, &mut report).await?;
        }
        if settings.wants("lossless") {
            lossless::measure(&mut report).await?;
        }
        if settings.wants("lag") {
            lag::measure(&settings, &mut report).await?;
        }
        if settings.wants("admission") {
            admission::measure(&settings, &mut report).await?;
        }
        if settings.wants("runs") {
            runs::measure(&settings, &mut report).await?;
        }
        if settings.wants("burst") {
            burst::measure(&settings, &mut report).await?;
        }
        if settings.wants("reconnect") {
            reconnect::measure(&settings, &mut report).await?;
        }
        if settings.wants("pages") {
            pages::measure(&settings, &mut report).await?;
        }
        if settings.wants("dormant") {
            dormant::measure(&settings, &mut report).await?;
        }
        if settings.wants("watch") {
            watch::measure(&settings, &mut report).await?;
        }
        if settings.wants("fleet") {
            fleet::measure(&settings, &mut report).await?;
        }
        if settings.wants("policy") {
            policy::measure(&settings, &mut report).await?;
        }
        report.end()
    })
}

/// Ours, and a floor that answers with the same bytes.
struct Pair {
    ours: Server,
    floor: Server,
    /// A session whose run has ended.
    session: String,
}

impl Pair {
    async fn start() -> Outcome<Self> {
        let ours = Server::sessiond(Wire::Plain)?;
        let target = Target::connect(&ours, 1).await?;
        let taken = session::samples(&target).await?;
        let floor = Server::floor(&taken.state, &taken.event)?;
        Ok(Self {
            ours,
            floor,
            session: taken.session,
        })
    }
}
