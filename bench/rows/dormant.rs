//! A start on a million sessions at rest against the storage engine that opens the same store alone:
//! time until it is ready, and memory then.

use crate::Outcome;
use crate::engine;
use crate::fill;
use crate::load::now;
use crate::process::{Home, Wire};
use crate::report::{Goal, Line, Report};
use crate::settings::Settings;

const SESSIONS: usize = 1_000_000;
/// Most time beyond the engine's own, in milliseconds.
const TIME: f64 = 100.0;
/// Most memory beyond the engine's own, in megabytes.
const MEMORY: f64 = 20.0;

/// Measures the row.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    let sessions = settings.size(SESSIONS, 2_000);
    let home = Home::new(Wire::Plain)?;
    // Makes the directory, with its keys.
    drop(home.start()?);
    let store = home.data().join("store");
    fill::dormant(&store, u64::try_from(sessions)?).await;
    // Whoever opens what was just written also sorts the engine's own snapshot: a price of the filling.
    engine::open(&store)?;
    let (mut times, mut sizes) = ([const { Vec::new() }; 2], [const { Vec::new() }; 2]);
    for _ in 0..settings.rounds {
        let alone = engine::open(&store)?;
        times[0].push(alone.time.as_secs_f64() * 1e3);
        sizes[0].push(megabytes(alone.memory));
        let begun = now();
        let server = home.start_lean()?;
        times[1].push(begun.elapsed().as_secs_f64() * 1e3);
        sizes[1].push(megabytes(engine::anonymous(server.pid())?));
    }
    let [alone, ours] = &times;
    let name = format!("a start on {sessions} sessions at rest");
    let goal = Goal::AtMost(TIME);
    report.add(Line::beyond(
        format!("{name}: time more"),
        alone,
        ours,
        "ms",
        goal,
    ));
    let [alone, ours] = &sizes;
    let goal = Goal::AtMost(MEMORY);
    report.add(Line::beyond(
        format!("{name}: memory more"),
        alone,
        ours,
        "MB",
        goal,
    ));
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
