//! Reads the scenario language. The language itself is described in `docs/scripted-engine.md`; a
//! test keeps its list of verbs and ours equal.

use sessionplane_core::domain::run::Failure;
use sessionplane_core::domain::usage::Usage;

use super::ask;
use super::lex::Line;
use super::scenario::{CompactStep, Deed, ScenarioError, Step, ToolOutput, ToolStep};

/// Every verb.
pub(super) const VERBS: [&str; 29] = [
    "say",
    "think",
    "say-words",
    "big",
    "odd",
    "echo",
    "received",
    "recall",
    "message",
    "usage",
    "tool",
    "tool-big",
    "turn",
    "wait-steer",
    "retry",
    "ask",
    "wait-answers",
    "withdraw",
    "compact",
    "settings",
    "fail",
    "stop",
    "crash",
    "hang",
    "wait",
    "slow",
    "read-file",
    "write-file",
    "sh",
];

/// A line that begins a scenario inside a longer text.
const BEGIN: &str = "#!scenario";
/// A line that ends it.
const END: &str = "#!end";

/// The most words that one `say-words` may say.
const MAX_WORDS: u64 = 10_000_000;
/// The most times that one tool may report progress.
const MAX_PROGRESS: u32 = 1_000_000;

/// The steps of a text, or `None` when the text is no scenario.
pub(super) fn parse(text: &str) -> Result<Option<Vec<Step>>, ScenarioError> {
    let lines = || {
        text.lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line.trim()))
    };
    let marked = lines().find(|(_, line)| *line == BEGIN);
    let from = match marked {
        Some((at, _)) => at,
        None if begins_with_verb(text) => 0,
        None => return Ok(None),
    };
    let mut steps = Vec::new();
    for (at, line) in lines().skip(from) {
        if line == END {
            break;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let step = parse_line(line).map_err(|problem| ScenarioError { line: at, problem })?;
        steps.push(step);
    }
    Ok(Some(steps))
}

fn begins_with_verb(text: &str) -> bool {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))
        .and_then(|line| line.split_whitespace().next())
        .is_some_and(|word| VERBS.contains(&word))
}

fn parse_line(text: &str) -> Result<Step, String> {
    let mut line = Line::split(text)?;
    let step = step(&mut line)?;
    if line.is_empty() {
        Ok(step)
    } else {
        Err(line.wrong("nothing more"))
    }
}

fn step(line: &mut Line) -> Result<Step, String> {
    Ok(match line.verb.as_str() {
        "say" => Step::Say(line.text("a text")?),
        "think" => Step::Think(line.text("a text")?),
        "say-words" => say_words(line)?,
        "big" => Step::Big {
            bytes: line.size()?,
        },
        "odd" => Step::Odd,
        "echo" => Step::Echo,
        "received" => Step::Received,
        "recall" => Step::Recall,
        "message" => Step::Message,
        "usage" => Step::Usage(usage(line)?),
        "tool" => Step::Tool(tool(line)?),
        "tool-big" => Step::Tool(tool_big(line)?),
        "turn" => Step::Turn,
        "wait-steer" => Step::WaitSteer,
        "retry" => retry(line)?,
        "ask" => Step::Ask(Box::new(ask::parse(line)?)),
        "wait-answers" => Step::WaitAnswers,
        "withdraw" => Step::Withdraw(line.word("the name of a question")?),
        "compact" => Step::Compact(compact(line)?),
        "settings" => Step::Settings,
        "fail" => Step::Fail(failure(line)?),
        "stop" => Step::Stop,
        "crash" => Step::Crash,
        "hang" => Step::Hang,
        "wait" => Step::Wait(line.delay()?),
        "slow" => Step::Slow(line.delay()?),
        "read-file" => Step::Deed(Deed::ReadFile {
            path: line.text("a path")?,
        }),
        "write-file" => Step::Deed(Deed::WriteFile {
            path: line.text("a path")?,
            text: line.text("what is written")?,
        }),
        "sh" => Step::Deed(Deed::Shell {
            command: line.text("a command")?,
        }),
        verb => {
            return Err(format!(
                "`{verb}` is not a verb; there are: {}",
                VERBS.join(", ")
            ));
        }
    })
}

fn say_words(line: &mut Line) -> Result<Step, String> {
    let count = line.number("a number of words")?;
    if count > MAX_WORDS {
        return Err(format!("`say-words` says at most {MAX_WORDS} words"));
    }
    let every = line.every()?;
    let by = if line.keyword("by") {
        line.number("how many words at a time")?
    } else {
        1
    };
    if by == 0 {
        return Err("`say-words` says at least one word at a time".to_owned());
    }
    Ok(Step::SayWords { count, every, by })
}

fn tool(line: &mut Line) -> Result<ToolStep, String> {
    let mut tool = ToolStep {
        name: line.word("a tool's name")?,
        input_json: line.json().unwrap_or_else(|| "{}".to_owned()),
        progress: 0,
        every: std::time::Duration::ZERO,
        output: ToolOutput::Progress,
        failed: false,
    };
    while !line.is_empty() {
        if line.keyword("progress") {
            tool.progress = line.number("a number of reports")?;
            if tool.progress > MAX_PROGRESS {
                return Err(format!(
                    "`tool` reports progress at most {MAX_PROGRESS} times"
                ));
            }
            tool.every = line.every()?;
        } else if line.keyword("output") {
            tool.output = ToolOutput::Text(line.text("what the tool gives back")?);
        } else if line.keyword("fail") {
            tool.failed = true;
        } else {
            return Err(line.wrong("`progress N [every DELAY]`, `output \"...\"` or `fail`"));
        }
    }
    Ok(tool)
}

fn tool_big(line: &mut Line) -> Result<ToolStep, String> {
    Ok(ToolStep {
        name: "big".to_owned(),
        input_json: "{}".to_owned(),
        progress: 0,
        every: std::time::Duration::ZERO,
        output: ToolOutput::Bytes(line.size()?),
        failed: false,
    })
}

fn usage(line: &mut Line) -> Result<Usage, String> {
    let mut usage = Usage::default();
    while let Some((key, value)) = line.pair()? {
        let count = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("`usage`: `{value}` is not a number of tokens"))
        };
        match key.as_str() {
            "in" => usage.input_tokens = Some(count()?),
            "out" => usage.output_tokens = Some(count()?),
            "cached" => usage.cached_tokens = Some(count()?),
            "cost" => {
                let cost = value
                    .parse::<f64>()
                    .ok()
                    .filter(|cost| cost.is_finite() && *cost >= 0.0);
                let problem = || format!("`usage`: `{value}` is not a cost in dollars");
                usage.cost_usd = Some(cost.ok_or_else(problem)?);
            }
            _ => {
                return Err(format!(
                    "`usage` knows in, out, cached and cost, not `{key}`"
                ));
            }
        }
    }
    Ok(usage)
}

fn retry(line: &mut Line) -> Result<Step, String> {
    let attempt = line.number("the number of the attempt")?;
    line.expect_keyword("of")?;
    let max_attempts = line.number("the number of attempts")?;
    line.expect_keyword("after")?;
    Ok(Step::Retry {
        attempt,
        max_attempts,
        delay: line.delay()?,
        reason: line.text("a reason")?,
    })
}

fn compact(line: &mut Line) -> Result<CompactStep, String> {
    let mut step = CompactStep {
        summary: line.text("a summary")?,
        after: std::time::Duration::ZERO,
        kept: 0,
        failure: None,
    };
    while !line.is_empty() {
        if line.keyword("after") {
            step.after = line.delay()?;
        } else if line.keyword("kept") {
            step.kept = line.number("a number of entries")?;
        } else if line.keyword("fail") {
            step.failure = Some(failure(line)?);
        } else {
            return Err(line.wrong("`after DELAY`, `kept N` or `fail CODE \"...\"`"));
        }
    }
    Ok(step)
}

fn failure(line: &mut Line) -> Result<Failure, String> {
    Ok(Failure {
        code: line.word("a failure code")?,
        details: line.text("details")?,
        retryable: line.keyword("retryable"),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn steps(text: &str) -> Vec<Step> {
        parse(text).expect("a good scenario").expect("a scenario")
    }

    fn problem(text: &str) -> String {
        parse(text).expect_err("a bad scenario").to_string()
    }

    #[test]
    fn every_verb_of_the_language_is_documented_and_no_other() {
        let guide = include_str!("../../../../../docs/scripted-engine.md");
        let documented: Vec<&str> = guide
            .lines()
            .filter_map(|line| line.strip_prefix("| `"))
            .filter_map(|cell| cell.split(['`', ' ']).next())
            .collect();
        assert_eq!(documented, VERBS);
    }

    #[test]
    fn every_scenario_in_the_guide_reads() {
        let guide = include_str!("../../../../../docs/scripted-engine.md");
        let examples: Vec<&str> = guide.split("```").skip(1).step_by(2).collect();
        assert!(examples.len() >= 3);
        for example in examples {
            let scenario = example
                .strip_prefix("scenario\n")
                .expect("a scenario fence");
            assert!(!steps(scenario).is_empty(), "{scenario}");
        }
    }

    #[test]
    fn a_scenario_reads_in_order() {
        let read = steps(
            "# greet\nsay \"a\\n\\\"b\\\"\"\n\n  say-words 3 every 2ms\nsay-words 32 every 1s by 16\nhang\n",
        );
        assert_eq!(
            read,
            [
                Step::Say("a\n\"b\"".into()),
                Step::SayWords {
                    count: 3,
                    every: Duration::from_millis(2),
                    by: 1,
                },
                Step::SayWords {
                    count: 32,
                    every: Duration::from_secs(1),
                    by: 16,
                },
                Step::Hang,
            ]
        );
    }

    #[test]
    fn a_tool_takes_its_options_in_any_order() {
        let read = steps("tool grep {\"q\": \"a b\"} output \"hit\" progress 5 every 10ms fail");
        let [Step::Tool(tool)] = read.as_slice() else {
            panic!("{read:?}");
        };
        assert_eq!(tool.input_json, "{\"q\": \"a b\"}");
        assert_eq!((tool.progress, tool.every), (5, Duration::from_millis(10)));
        assert_eq!(tool.output, ToolOutput::Text("hit".into()));
        assert!(tool.failed);
    }

    #[test]
    fn c22_a_compaction_takes_its_options_in_any_order() {
        let plain = CompactStep {
            summary: "short".into(),
            after: Duration::ZERO,
            kept: 0,
            failure: None,
        };
        let full = CompactStep {
            after: Duration::from_secs(2),
            kept: 3,
            failure: Some(Failure {
                code: "full".into(),
                details: "no room".into(),
                retryable: true,
            }),
            ..plain.clone()
        };
        let read = steps(
            "compact \"short\"\ncompact \"short\" fail full \"no room\" retryable kept 3 after 2s\nsettings",
        );
        assert_eq!(
            read,
            [Step::Compact(plain), Step::Compact(full), Step::Settings]
        );
        assert!(problem("compact \"short\" keep 3").contains("`kept N`"));
        assert!(problem("compact short").contains("a summary in double quotes"));
    }

    #[test]
    fn plain_words_are_no_scenario() {
        assert_eq!(parse("Where is the gate painted?"), Ok(None));
        assert_eq!(parse("please say \"hello\""), Ok(None));
        assert_eq!(parse(""), Ok(None));
    }

    #[test]
    fn a_marked_scenario_may_stand_inside_other_text() {
        let text = "From: someone\n#!scenario\nsay \"x\"\n#!end\nRegards";
        assert_eq!(steps(text), [Step::Say("x".into())]);
        assert!(problem("From: someone\n#!scenario\nsing\n").starts_with("line 3: `sing`"));
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_what_is_wanted() {
        let cases = [
            (
                "say \"a\"\nsay b",
                "line 2: `say` wants a text in double quotes, not `b`",
            ),
            ("say", "line 1: `say` wants a text in double quotes"),
            ("say \"a", "line 1: the text \"a has no closing quote"),
            ("hang now", "line 1: `hang` wants nothing more, not `now`"),
            (
                "retry 3 off 5",
                "line 1: `retry` wants the word `of`, not `off`",
            ),
            (
                "usage in=x",
                "line 1: `usage`: `x` is not a number of tokens",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(problem(text), expected);
        }
        assert!(problem("say \"a\"\n\nshout \"b\"").starts_with("line 3: `shout` is not a verb"));
        assert!(problem("say-words 9 every 1s by 0").contains("at least one word"));
        assert!(problem("slow 2h").contains("is not a delay"));
        assert!(problem("big 65MiB").contains("is not a size up to 64MiB"));
        assert!(problem("big 99999999999999999999").contains("is not a size"));
        assert!(problem("tool x {oops}").contains("is not a JSON object"));
    }
}
