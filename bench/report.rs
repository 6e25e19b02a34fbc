//! What was measured, as a table and as JSON.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::Outcome;

/// What a figure must reach.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
    /// Told only.
    None,
}

/// One line of the table.
pub(crate) struct Line {
    /// What was measured, with its load.
    pub(crate) name: String,
    /// The floor's figure; 0 where there is none.
    pub(crate) floor: f64,
    /// Our figure.
    pub(crate) ours: f64,
    /// The unit of both.
    pub(crate) unit: &'static str,
    /// The median of the rounds' ratios.
    pub(crate) ratio: f64,
    /// What the ratio must reach.
    pub(crate) goal: Goal,
}

impl Line {
    /// A line whose one figure is what must reach the goal.
    pub(crate) fn alone(name: String, ours: f64, unit: &'static str, goal: Goal) -> Self {
        Self {
            name,
            floor: 0.0,
            ours,
            unit,
            ratio: ours,
            goal,
        }
    }

    /// A line whose ratio is the median of those of paired rounds.
    pub(crate) fn paired(
        name: String,
        floor: &[f64],
        ours: &[f64],
        unit: &'static str,
        goal: Goal,
    ) -> Self {
        let ratios: Vec<f64> = ours.iter().zip(floor).map(|(a, b)| a / b).collect();
        Self {
            name,
            floor: median(floor),
            ours: median(ours),
            unit,
            ratio: median(&ratios),
            goal,
        }
    }

    /// A line whose figure is what ours takes beyond the floor, the median of paired rounds.
    pub(crate) fn beyond(
        name: String,
        floor: &[f64],
        ours: &[f64],
        unit: &'static str,
        goal: Goal,
    ) -> Self {
        let more: Vec<f64> = ours.iter().zip(floor).map(|(a, b)| a - b).collect();
        Self {
            name,
            floor: median(floor),
            ours: median(ours),
            unit,
            ratio: median(&more),
            goal,
        }
    }

    fn met(&self) -> Option<bool> {
        match self.goal {
            Goal::AtMost(goal) => Some(self.ratio <= goal),
            Goal::AtLeast(goal) => Some(self.ratio >= goal),
            Goal::None => None,
        }
    }

    fn print(&self) {
        let goal = match self.goal {
            Goal::AtMost(goal) => format!("<= {goal:.2}"),
            Goal::AtLeast(goal) => format!(">= {goal:.2}"),
            Goal::None => String::new(),
        };
        let verdict = self
            .met()
            .map_or("", |met| if met { "met" } else { "MISSED" });
        let floor = if self.floor == 0.0 {
            "-".to_owned()
        } else {
            format!("{:.2}", self.floor)
        };
        println!(
            "{:<46} {floor:>11} {:>11.2} {:<6} {:>7.2} {goal:>8} {verdict}",
            self.name, self.ours, self.unit, self.ratio
        );
    }
}

/// The middle one of some figures; the lower middle of an even number.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get(sorted.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0.0)
}

/// All that a run measured.
pub(crate) struct Report {
    lines: Vec<Line>,
    load: String,
}

impl Report {
    /// Prints the machine and the table's head.
    pub(crate) fn begin() -> Self {
        println!("{}", machine());
        println!(
            "{:<46} {:>11} {:>11} {:<6} {:>7} {:>8}",
            "row", "floor", "ours", "unit", "ratio", "target"
        );
        Self {
            lines: Vec::new(),
            load: load(),
        }
    }

    /// Adds a line and prints it.
    pub(crate) fn add(&mut self, line: Line) {
        line.print();
        self.lines.push(line);
    }

    /// Writes everything beside the benchmark's sources and says how many targets were missed.
    pub(crate) fn end(&self) -> Outcome<()> {
        let rows: Vec<_> = self
            .lines
            .iter()
            .map(|line| {
                let (kind, goal) = match line.goal {
                    Goal::AtMost(goal) => ("at_most", Some(goal)),
                    Goal::AtLeast(goal) => ("at_least", Some(goal)),
                    Goal::None => ("told", None),
                };
                json!({
                    "name": line.name, "floor": line.floor, "ours": line.ours, "unit": line.unit,
                    "ratio": line.ratio, "goal": goal, "kind": kind, "met": line.met(),
                })
            })
            .collect();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/results.json");
        let (before, after) = (&self.load, load());
        let report = json!({
            "machine": machine(), "load_before": before, "load_after": after, "rows": rows,
        });
        fs::write(&path, format!("{report:#}\n"))?;
        let with_goal = self.lines.iter().filter_map(Line::met);
        let (met, missed): (Vec<bool>, Vec<bool>) = with_goal.partition(|met| *met);
        println!(
            "{} targets met, {} missed; load average {before} before, {after} after; {}",
            met.len(),
            missed.len(),
            path.display()
        );
        Ok(())
    }
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let models: Vec<&str> = cpu
        .lines()
        .filter_map(|line| line.strip_prefix("model name"))
        .map(|line| line.trim_start_matches([' ', '\t', ':']))
        .collect();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = models.first().copied().unwrap_or("unknown CPU");
    let system = file_system().unwrap_or_default();
    format!(
        "{model}, {} cores, Linux {}, {system}",
        models.len(),
        kernel.trim()
    )
}

/// The kind of file system that the data lies on.
fn file_system() -> Option<String> {
    let here = crate::process::release_dir().ok()?.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mounted = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, kind) = (fields.next()?, fields.next()?);
        here.starts_with(place).then_some((place.len(), kind))
    });
    mounted.max().map(|(_, kind)| kind.to_owned())
}
