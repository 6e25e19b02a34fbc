//! What each verb of the scripted engine's language leads to.

use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::capabilities::{Capabilities, SandboxLevel, Steering};
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::interaction::InteractionKind;
use sessionplane_core::domain::run::Failure;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::clock::Clock as _;
use sessionplane_core::ports::engine::{EngineEvent, Revalidation, StopReason};
use sessionplane_server::adapters::engine::scripted::ScriptedEngine;

use crate::suite::bench::{Bench, Opened, conversation, session, stop_of};
use crate::suite::{Patience, Promises, Prompts, Subject};

pub(crate) fn subject() -> Subject {
    Subject {
        factory: Box::new(|clock, spawner| Arc::new(ScriptedEngine::new(clock, spawner))),
        capabilities: Capabilities {
            steering: Some(Steering {
                after_tools: true,
                preempts_text: false,
            }),
            follow_up: true,
            tool_progress: true,
            usage: true,
            manual_compaction: true,
            model_selection: true,
            thinking: true,
            navigate: true,
            interactions: InteractionKind::ALL.into(),
            sandbox: SandboxLevel::Confined,
        },
        prompts: Prompts {
            plain: "Say this back to me, please.",
            long_text: Some("think \"hm\"\nsay-words 200 every 20ms\nusage in=1"),
            overflows: Some("say-words 1000"),
            too_long: Some("tool-big 9MiB"),
            long_tool: Some("tool build {\"a\":1} progress 40 every 100ms\ntool test fail"),
            retry: Some("retry 1 of 3 after 10m \"rate limited\"\nsay \"never\""),
            hang: Some("say \"x\"\nhang"),
            crash: Some("say \"x\"\ncrash"),
            steerable: Some("wait 1s\nturn\nwait 1s\nturn\nwait 1s\nturn\nsay \"end\""),
            awaits_steer: Some("say \"x\"\nwait-steer"),
            steer: "look elsewhere",
            asks: Some("ask go approval \"Go?\"\nwait-answers\nsay \"end\""),
            asks_three: Some(
                "ask one confirm \"1?\"\nask two input \"2?\"\n\
                 ask three select \"3?\" choices a=A b=B\nwait-answers",
            ),
            withdraws: Some(
                "ask one confirm \"1?\"\nwithdraw one\nwait 1s\nwait-answers\nsay \"end\"",
            ),
            recalls: Some("/recall"),
            settings: Some("settings"),
            compaction_fails: Some("say \"half\"\nfail full \"no room\""),
            compaction_hangs: Some("say \"half\"\nhang"),
            compaction_crashes: Some("say \"half\"\ncrash"),
        },
        promises: Promises::ALL,
        patience: Patience::VIRTUAL,
    }
}

async fn play(scenario: &str) -> Vec<EngineEvent> {
    let mut opened = Bench::new(subject()).open().await;
    opened.prompt(scenario).await;
    opened.read_to_stop().await
}

fn said(events: &[EngineEvent]) -> String {
    let said = |event: &EngineEvent| match event {
        EngineEvent::MessageDelta {
            channel: OutputChannel::Text,
            text,
            ..
        } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(said).collect()
}

/// The end of a message that used nothing.
fn finished(message: &str, text: &str) -> EngineEvent {
    EngineEvent::MessageFinished {
        message: message.to_owned(),
        text: Some(text.to_owned()),
        usage: Usage::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_text_that_is_no_scenario_is_said_back_word_by_word() {
    let events = play("Hello there, you.").await;
    assert_eq!(said(&events), "Hello there, you.");
    let turns = events
        .iter()
        .filter(|event| **event == EngineEvent::TurnStarted);
    assert_eq!(turns.count(), 1);
    let delta = |event: &&EngineEvent| matches!(event, EngineEvent::MessageDelta { .. });
    assert_eq!(events.iter().filter(delta).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_bad_scenario_fails_and_names_its_line() {
    let events = play("say \"a\"\nsing").await;
    let Some(StopReason::Failed(failure)) = events.last().and_then(stop_of) else {
        panic!("{events:?}");
    };
    assert_eq!(failure.code, "bad_scenario");
    assert!(
        failure.details.starts_with("line 2: `sing` is not a verb"),
        "{failure:?}"
    );
    assert_eq!(said(&events), "", "nothing of it was played");
}

#[tokio::test(start_paused = true)]
async fn thinking_text_and_usage_make_one_message() {
    let events = play("think \"a\"\nsay \"b\"\nusage in=1 cost=0.5\nsay \"c\"").await;
    let finished: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            EngineEvent::MessageFinished {
                message,
                text,
                usage,
            } => Some((
                message.as_str(),
                text.as_deref(),
                usage.input_tokens,
                usage.cost_usd,
            )),
            _ => None,
        })
        .collect();
    assert_eq!(
        finished,
        [
            ("m1", Some("b"), Some(1), Some(0.5)),
            ("m2", Some("c"), None, None),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_reports_all_its_output_so_far() {
    let events = play("tool grep {\"q\":1} progress 2 every 1s\ntool x output \"no\" fail").await;
    let tool: Vec<_> = events
        .into_iter()
        .filter(|event| {
            matches!(
                event,
                EngineEvent::ToolProgress { .. } | EngineEvent::ToolFinished { .. }
            )
        })
        .collect();
    let progress = |output: &str| EngineEvent::ToolProgress {
        call: "c1".to_owned(),
        output: output.to_owned(),
    };
    let finished = |call: &str, output: &str, failed| EngineEvent::ToolFinished {
        call: call.to_owned(),
        output: output.to_owned(),
        failed,
    };
    assert_eq!(
        tool,
        [
            progress("1/2\n"),
            progress("1/2\n2/2\n"),
            finished("c1", "1/2\n2/2\n", false),
            finished("c2", "no", true),
        ]
    );
}

/// The guide: of more than 4 KiB the newest lines, and each of them whole.
#[tokio::test(start_paused = true)]
async fn a_long_tool_reports_its_newest_lines() {
    let events = play("tool x progress 3000").await;
    let outputs = events.iter().filter_map(|event| match event {
        EngineEvent::ToolProgress { output, .. } | EngineEvent::ToolFinished { output, .. } => {
            Some(output)
        }
        _ => None,
    });
    let mut reports = 0;
    for (output, last) in outputs.zip((1..=3000).chain([3000])) {
        let lines: Vec<String> = output.lines().map(str::to_owned).collect();
        let first = last + 1 - lines.len();
        let expected: Vec<String> = (first..=last).map(|n| format!("{n}/3000")).collect();
        assert_eq!(lines, expected);
        assert!(output.len() <= 4096 && (first == 1 || output.len() > 1024));
        reports += 1;
    }
    assert_eq!(reports, 3001);
}

#[tokio::test(start_paused = true)]
async fn sizes_are_kept_to_the_byte() {
    assert_eq!(said(&play("big 10MiB").await).len(), 10 * 1024 * 1024);
    let odd = said(&play("odd").await);
    for part in [
        "\0",
        "\u{1b}[31m",
        "\u{202e}",
        "\u{fffd}",
        "\u{1f467}",
        "\u{1d11e}",
    ] {
        assert!(odd.contains(part), "{part:?} is missing");
    }
    assert!(odd.len() > 1024 * 1024);
    let big = play("tool-big 3MiB").await;
    let output = |event: &EngineEvent| match event {
        EngineEvent::ToolFinished { output, .. } => Some(output.len()),
        _ => None,
    };
    assert_eq!(big.iter().find_map(output), Some(3 * 1024 * 1024));
}

#[tokio::test(start_paused = true)]
async fn delays_take_their_time_and_no_more() {
    for (scenario, waits, millis) in [
        ("wait 3s", 1, 3_000),
        ("say-words 500 every 2ms", 500, 1_000),
        ("slow 1s\nsay \"a\"\nsay \"b\"", 2, 2_000),
        ("retry 1 of 2 after 5s \"busy\"", 1, 5_000),
        ("tool x progress 5 every 10ms", 5, 50),
        ("say \"at once\"", 0, 0),
    ] {
        let bench = Bench::new(subject());
        let before = bench.clock.now();
        let mut opened = bench.open().await;
        opened.prompt(scenario).await;
        opened.read_to_stop().await;
        let took = bench.clock.now().since(before);
        let expected = Duration::from_millis(millis);
        // The clock's grain is a millisecond for each wait.
        let late = Duration::from_millis(waits + 5);
        assert!(
            took >= expected && took <= expected + late,
            "{scenario}: {took:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn slow_lasts_to_the_end_of_the_run_and_no_longer() {
    let bench = Bench::new(subject());
    let mut opened = bench.open().await;
    opened.prompt("slow 10s").await;
    opened.read_to_stop().await;
    let before = bench.clock.now();
    let input = opened.input(1);
    opened.follow_up("say \"a\"", input).await;
    opened.read_to_stop().await;
    let slow = bench.clock.now();
    opened.prompt("say \"b\"").await;
    opened.read_to_stop().await;
    assert!(slow.since(before) >= Duration::from_secs(10));
    assert!(bench.clock.now().since(slow) < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_reported_as_it_was_written() {
    let events = play("say \"a\"\nfail overloaded \"try later\" retryable\nsay \"never\"").await;
    let failure = Failure {
        code: "overloaded".to_owned(),
        details: "try later".to_owned(),
        retryable: true,
    };
    let stopped = EngineEvent::Stopped {
        prompt: 1,
        reason: StopReason::Failed(failure),
    };
    assert_eq!(events[events.len() - 2..], [finished("m1", "a"), stopped]);
    assert_eq!(said(&events), "a");
}

/// C19: after the tool calls of the turn and before the model is called again.
#[tokio::test(start_paused = true)]
async fn c19_a_steer_is_shown_after_the_tool_and_before_the_next_turn() {
    let mut opened = Bench::new(subject()).open().await;
    opened
        .prompt("tool x progress 10 every 1s\nsay \"rest\"")
        .await;
    let started = |event: &EngineEvent| matches!(event, EngineEvent::ToolStarted { .. });
    opened.read_to(started).await;
    let input = opened.input(1);
    opened.steer("say \"steered \"", input).await;
    let events = opened.read_to_stop().await;
    let at = |wanted: &dyn Fn(&EngineEvent) -> bool| events.iter().position(wanted).expect("there");
    let tool = at(&|event| matches!(event, EngineEvent::ToolFinished { .. }));
    let shown = at(&|event| *event == EngineEvent::InputShown { input });
    let turn = at(&|event| *event == EngineEvent::TurnStarted);
    assert!(tool < shown && shown < turn, "{events:?}");
    assert_eq!(said(&events), "steered rest");
}

#[tokio::test(start_paused = true)]
async fn a_steer_can_be_waited_for_and_echoed() {
    let mut opened = Bench::new(subject()).open().await;
    opened.prompt("wait-steer\necho").await;
    let quiet = opened.read_at_rest().await;
    assert!(quiet.iter().all(|event| stop_of(event).is_none()));
    let input = opened.input(1);
    opened.steer("# only a comment\n#!scenario", input).await;
    let events = opened.read_to_stop().await;
    assert_eq!(said(&events), "# only a comment\n#!scenario");
}

/// C20: handed, and the engine stopped without having shown it.
#[tokio::test(start_paused = true)]
async fn c20_a_stop_leaves_a_steer_that_was_handed_over_unshown() {
    let mut opened = Bench::new(subject()).open().await;
    opened.prompt("say \"a\"\nwait 10s\nstop").await;
    let delta = |event: &EngineEvent| matches!(event, EngineEvent::MessageDelta { .. });
    opened.read_to(delta).await;
    let input = opened.input(1);
    opened.steer("say \"b\"", input).await;
    let mut events = opened.read_to_stop().await;
    events.extend(opened.read_at_rest().await);
    let stopped = EngineEvent::Stopped {
        prompt: 1,
        reason: StopReason::Completed,
    };
    assert_eq!(events, [finished("m1", "a"), stopped]);
}

#[tokio::test(start_paused = true)]
async fn a_reopened_session_knows_its_entries_up_to_the_leaf() {
    let bench = Bench::new(subject());
    let id = session(5);
    let mut opened: Opened = bench.reopen(id, conversation(id, 10)).await;
    assert_eq!(opened.revalidation, Revalidation::Current);
    opened.prompt("recall").await;
    let answer = said(&opened.read_to_stop().await);
    assert!(answer.starts_with("opened at entry 10"), "{answer}");
    assert!(answer.contains("earlier text 10"), "{answer}");
}
