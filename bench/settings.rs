//! How long, how often and what is measured. Nothing here measures.

use std::env;
use std::time::Duration;

use crate::Outcome;

/// Events that are published together.
pub(crate) const BURST: u64 = 16;
/// The pause between bursts.
const BURST_EVERY: Duration = Duration::from_millis(4);
/// The pause between events that are published one at a time.
const SINGLE_EVERY: Duration = Duration::from_millis(10);

/// How a session publishes.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// Events at a time.
    pub(crate) burst: u64,
    /// The pause before each time.
    pub(crate) every: Duration,
}

impl Pace {
    /// Bursts.
    pub(crate) const BURSTS: Self = Self {
        burst: BURST,
        every: BURST_EVERY,
    };
    /// One at a time, a hundred a second.
    pub(crate) const SINGLE: Self = Self {
        burst: 1,
        every: SINGLE_EVERY,
    };

    /// A scenario that says so many words at this pace.
    pub(crate) fn words(self, words: u64) -> String {
        let (every, by) = (self.every.as_micros(), self.burst);
        format!("say-words {words} every {every}us by {by}")
    }
}

/// What the environment asks for.
pub(crate) struct Settings {
    /// The length of a round.
    pub(crate) round: Duration,
    /// Rounds of each configuration; their median is reported.
    pub(crate) rounds: usize,
    /// Everything small and short: it shows that the benchmark runs, and measures nothing.
    pub(crate) quick: bool,
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
        let quick = env::var_os("BENCH_QUICK").is_some();
        let (seconds, rounds) = if quick { (0.2, 1) } else { (2.0, 5) };
        Ok(Self {
            round: Duration::try_from_secs_f64(number("BENCH_SECONDS", seconds)?)?,
            rounds: env::var("BENCH_ROUNDS").map_or(Ok(rounds), |text| text.parse())?,
            quick,
            rows: rows.map(|rows| rows.split(',').map(str::to_owned).collect()),
        })
    }

    /// A size, or a small one if everything is.
    pub(crate) fn size(&self, whole: usize, small: usize) -> usize {
        if self.quick { small } else { whole }
    }

    /// Whether a row is wanted.
    pub(crate) fn wants(&self, row: &str) -> bool {
        self.rows
            .as_ref()
            .is_none_or(|rows| rows.iter().any(|wanted| wanted == row))
    }
}
