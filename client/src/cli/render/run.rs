//! Run records.

use sessionplane_core::domain::input::UndeliveredInput;
use sessionplane_core::domain::run::{RunOutcome, RunRecord, Settlement};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;

use super::WIDTH;
use super::time::{age, brief, rfc3339};
use crate::cli::visible;

/// A run's record, one fact a line.
pub(crate) fn run_lines(run: &RunRecord) -> Vec<String> {
    let mut lines = vec![
        format!("run        {}", run.id),
        format!("session    {}", run.session),
        format!("agent      {}{}", run.agent, settings(run)),
        format!("from       {}", run.origin.principal),
    ];
    if let Some(request) = &run.request_id {
        lines.push(format!("request    {request}"));
    }
    lines.push(format!("started    {}", rfc3339(run.started_at)));
    match &run.settled {
        Some(settled) => {
            let took = age(settled.at.since(run.started_at));
            lines.push(format!("settled    {} after {took}", rfc3339(settled.at)));
            lines.push(format!("outcome    {}", outcome(&settled.outcome)));
        }
        None => lines.push("outcome    still running".to_owned()),
    }
    let first = run.first_entry;
    lines.push(match run.final_entry {
        Some(last) => format!("entries    {first} to {}", last.seq),
        None => format!("entries    {first} and on"),
    });
    if let Some(usage) = usage_words(&run.usage) {
        lines.push(format!("usage      {usage}"));
    }
    for input in &run.undelivered {
        lines.push(format!("not shown  {}", undelivered(input)));
        let text = input.text.as_deref().unwrap_or_default();
        lines.extend(text.lines().map(|line| format!("           {line}")));
    }
    lines
}

/// The heading of a list of runs.
pub(crate) fn runs_heading() -> String {
    row(["RUN", "OUTCOME", "AGE", "TOOK", "MODEL"], WIDTH)
}

/// A run as a row of a list, no cell of which is cut if it may be wider than a terminal; `now` is
/// what its age is of.
pub(crate) fn run_row(run: &RunRecord, now: Timestamp, width: usize) -> String {
    let how = run.settled.as_ref().map(|settled| &settled.outcome);
    let outcome = match how {
        None => "running".to_owned(),
        Some(RunOutcome::Failed(failure)) => format!("failed: {}", failure.code),
        Some(outcome) => outcome.as_str().to_owned(),
    };
    let end = run.settled.as_ref().map_or(now, |settled| settled.at);
    let cells = [
        &run.id.to_string(),
        &outcome,
        &brief(now.since(run.started_at)),
        &brief(end.since(run.started_at)),
        run.settings.model.as_deref().unwrap_or("-"),
    ];
    row(cells, width)
}

fn row([run, outcome, age, took, model]: [&str; 5], width: usize) -> String {
    let cell = |text, most| {
        let most = if width > WIDTH { usize::MAX } else { most };
        visible::clipped(text, most)
    };
    let (outcome, model) = (cell(outcome, 22), cell(model, 14));
    let row = format!("{run:<26}  {outcome:<22}  {age:>4}  {took:>5}  {model}");
    row.trim_end().to_owned()
}

/// How a run ended, then each input that was never shown to the model.
pub(crate) fn settled_lines(run: &RunRecord) -> Vec<String> {
    let mut lines = vec![settled_line(run)];
    for input in &run.undelivered {
        lines.push(format!("  not shown: {}", undelivered(input)));
        let text = input.text.as_deref().map(|text| format!("    {text}"));
        lines.extend(text.map(|text| visible::clipped(&text, WIDTH)));
    }
    lines
}

fn undelivered(input: &UndeliveredInput) -> String {
    let (kind, cause) = (input.kind.as_str(), input.cause.as_str());
    format!("{kind} {}, {cause}", input.id)
}

/// How a run ended, in one line.
pub(crate) fn settled_line(run: &RunRecord) -> String {
    let Some(Settlement { at, outcome: how }) = &run.settled else {
        return format!("run {} is still running", run.id);
    };
    let took = age(at.since(run.started_at));
    let mut words = vec![format!("{}: run {}", outcome(how), run.id), took];
    words.extend(usage_words(&run.usage));
    match run.undelivered.len() {
        0 => {}
        1 => words.push("1 input was not shown".to_owned()),
        more => words.push(format!("{more} inputs were not shown")),
    }
    words.join(", ")
}

fn outcome(outcome: &RunOutcome) -> String {
    match outcome {
        RunOutcome::Completed | RunOutcome::Aborted => outcome.as_str().to_owned(),
        RunOutcome::Failed(failure) => {
            let details = visible::line(&failure.details);
            // Said once: some failures tell it themselves.
            let told = details.contains("new invoke");
            let again = if failure.retryable && !told {
                "; a new invoke may succeed"
            } else {
                ""
            };
            format!("failed ({}: {details}{again})", failure.code)
        }
    }
}

fn settings(run: &RunRecord) -> String {
    let settings = &run.settings;
    let model = settings.model.as_deref();
    let level = settings.thinking_level.as_ref();
    let level = level.map(|level| format!("thinking {level}"));
    let words = [
        model.filter(|model| *model != run.agent.as_str()),
        level.as_deref(),
    ];
    let words: Vec<_> = words.into_iter().flatten().collect();
    if words.is_empty() {
        return String::new();
    }
    format!(" ({})", visible::line(&words.join(", ")))
}

/// Consumption in words; none if nothing is known of it.
pub(super) fn usage_words(usage: &Usage) -> Option<String> {
    let count = |count: Option<u64>, word: &str| count.map(|count| format!("{count} {word}"));
    let words = [
        count(usage.input_tokens, "in"),
        count(usage.output_tokens, "out"),
        count(usage.cached_tokens, "cached"),
        usage.cost_usd.map(|cost| format!("${cost:.4}")),
    ];
    let words: Vec<_> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(" / "))
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::run::Failure;

    use super::*;

    #[test]
    fn a_new_invoke_is_proposed_once() {
        let failed = |details: &str| {
            let details = details.to_owned();
            let code = "interrupted".to_owned();
            let retryable = true;
            outcome(&RunOutcome::Failed(Failure {
                code,
                details,
                retryable,
            }))
        };
        assert_eq!(
            failed("it broke"),
            "failed (interrupted: it broke; a new invoke may succeed)"
        );
        let told = "a new invoke goes on from here";
        assert_eq!(failed(told), format!("failed (interrupted: {told})"));
    }

    #[test]
    fn a_row_fits_a_terminal_and_is_whole_for_a_program() {
        let cells = [
            "01K00000000000000000000002",
            "failed: a_code_that_is_far_too_long_for_it",
            "3d",
            "12s",
            "scripted-thinking",
        ];
        let fitting = row(cells, WIDTH);
        assert!(fitting.chars().count() <= WIDTH, "{fitting}");
        assert!(fitting.contains("failed: a_code_that_i…"), "{fitting}");
        assert!(fitting.ends_with("scripted-thin…"), "{fitting}");
        let whole = row(cells, usize::MAX);
        assert!(cells.iter().all(|cell| whole.contains(cell)), "{whole}");
    }
}
