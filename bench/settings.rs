//! How long, how often and what is measured. Nothing here measures.

use std::env;
use std::time::Duration;

use crate::Outcome;

/// Events that are published together.
pub(crate) const BURST: u64 = 16;
/// The pause between bursts.
pub(crate) const BURST_EVERY: Duration = Duration::from_millis(4);

/// What the environment asks for.
pub(crate) struct Settings {
    /// The length of a round.
    pub(crate) round: Duration,
    /// Rounds of each configuration; their median is reported.
    pub(crate) rounds: usize,
    rows: Option<Vec<String>>,
}

impl Settings {
    /// Reads the environment.
    pub(crate) fn read() -> Outcome<Self> {
        let number = |name: &str, default: f64| match env::var(name) {
            Ok(text) => text
                .parse()
                .map_err(|_| format!("{name}: {text:?} is not a number")),
            Err(_) => Ok(default),
        };
        let rows = env::var("BENCH_ROWS").ok();
        Ok(Self {
            round: Duration::try_from_secs_f64(number("BENCH_SECONDS", 2.0)?)?,
            rounds: env::var("BENCH_ROUNDS").map_or(Ok(5), |text| text.parse())?,
            rows: rows.map(|rows| rows.split(',').map(str::to_owned).collect()),
        })
    }

    /// Whether a row is wanted.
    pub(crate) fn wants(&self, row: &str) -> bool {
        self.rows
            .as_ref()
            .is_none_or(|rows| rows.iter().any(|wanted| wanted == row))
    }
}
