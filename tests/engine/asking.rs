//! What the verbs of the scripted engine lead to that ask, compact and tell its settings.

use std::time::Duration;

use sessionplane_core::domain::compaction::Compacted;
use sessionplane_core::domain::ids::EntryId;
use sessionplane_core::domain::interaction::InteractionAnswer;
use sessionplane_core::domain::run::{Failure, RunSettings};
use sessionplane_core::ports::clock::Clock as _;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use crate::scripted::subject;
use crate::suite::answers::text_of;
use crate::suite::bench::{Bench, Opened, asked, conversation, session, stop_of};

async fn begin(scenario: &str) -> Opened {
    let mut opened = Bench::new(subject()).open().await;
    opened.prompt(scenario).await;
    opened
}

/// Opens a session that knows ten entries.
async fn knowing_ten(bench: &Bench) -> Opened {
    let id = session(5);
    bench.reopen(id, conversation(id, 10)).await
}

fn entry(seq: u64) -> EntryId {
    let session = session(5);
    EntryId { session, seq }
}

fn stopped(events: &[EngineEvent]) -> Option<&StopReason> {
    events.last().and_then(stop_of)
}

/// The texts of the messages, each whole.
fn messages(events: &[EngineEvent]) -> Vec<&str> {
    let mut texts = Vec::new();
    for event in events {
        if let EngineEvent::MessageFinished { text, .. } = event {
            texts.extend(text.as_deref());
        }
    }
    texts
}

fn withdrawn(events: &[EngineEvent]) -> Vec<&str> {
    let mut names = Vec::new();
    for event in events {
        if let EngineEvent::AskWithdrawn { ask } = event {
            names.push(ask.as_str());
        }
    }
    names
}

/// What an engine makes of a compaction that it is asked for.
async fn compacted(instructions: Option<&str>) -> Option<Result<Compacted, Failure>> {
    let mut opened = knowing_ten(&Bench::new(subject())).await;
    opened.compact(instructions).await;
    opened.read_to_compacted().await
}

async fn summary_of(instructions: Option<&str>) -> String {
    let result = compacted(instructions).await.expect("it lives");
    result.expect("a summary").summary
}

#[tokio::test(start_paused = true)]
async fn c25_each_answer_is_said_in_a_message_of_its_own() {
    let fields = [("zone", "north"), ("copies", "3")];
    let fields = fields.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let text = |text: &str| InteractionAnswer::Text(text.to_owned());
    let cases = [
        (
            "approval \"?\"",
            Some(InteractionAnswer::Choice("deny".to_owned())),
            "q: deny",
        ),
        (
            "select \"?\" choices a=A b=B",
            Some(InteractionAnswer::Choice("b".to_owned())),
            "q: b",
        ),
        (
            "confirm \"?\"",
            Some(InteractionAnswer::Confirmed(true)),
            "q: yes",
        ),
        ("input \"?\"", Some(text("two words")), "q: two words"),
        ("input \"?\" secret", Some(text("hunter2")), "q: 7 bytes"),
        (
            "form \"?\" field zone:north/south field copies:number",
            Some(InteractionAnswer::Fields(fields.into())),
            "q: copies=3 zone=north",
        ),
        ("confirm \"?\" default yes", None, "q: nobody"),
    ];
    for (question, answer, expected) in cases {
        let scenario = format!("ask q {question}\nsay \"before\"\nwait-answers\nsay \"after\"");
        let mut opened = begin(&scenario).await;
        opened.read_to(|event| asked(event).is_some()).await;
        opened.answer("q", answer).await;
        let events = opened.read_to_stop().await;
        assert_eq!(stopped(&events), Some(&StopReason::Completed));
        assert_eq!(messages(&events), ["before", expected, "after"]);
        assert!(!format!("{events:?}").contains("hunter2"), "{events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c25_a_question_carries_its_deadline_and_its_default() {
    let mut opened = begin("ask q confirm \"?\" within 90s default no\nhang").await;
    let events = opened.read_to(|event| asked(event).is_some()).await;
    let Some(EngineEvent::Asked {
        ask,
        question,
        timeout,
    }) = events.last()
    else {
        panic!("{events:?}");
    };
    assert_eq!((ask.as_str(), question.title.as_str()), ("q", "?"));
    assert_eq!(*timeout, Some(Duration::from_secs(90)));
    assert_eq!(question.default, Some(InteractionAnswer::Confirmed(false)));
}

/// Queued text never answers a question: it is shown at the next boundary.
#[tokio::test(start_paused = true)]
async fn c25_a_steer_answers_no_question() {
    let mut opened = begin("ask q confirm \"?\"\nwait-answers\nsay \"rest\"").await;
    opened.read_to(|event| asked(event).is_some()).await;
    let input = opened.input(1);
    opened.steer("yes", input).await;
    assert_eq!(opened.read_at_rest().await, [], "it took it for an answer");
    let no = Some(InteractionAnswer::Confirmed(false));
    opened.answer("q", no).await;
    let events = opened.read_to_stop().await;
    assert_eq!(messages(&events), ["q: no", "rest", "yes"]);
}

#[tokio::test(start_paused = true)]
async fn c25_what_is_open_at_the_end_is_taken_back_and_at_a_stop_is_not() {
    let both = "ask a confirm \"?\"\nask b confirm \"?\"";
    let mut opened = begin(both).await;
    let events = opened.read_to_stop().await;
    assert_eq!(withdrawn(&events), ["b", "a"]);
    let mut opened = begin(&format!("{both}\nstop")).await;
    let events = opened.read_to_stop().await;
    assert_eq!(withdrawn(&events), [""; 0]);
    assert_eq!(stopped(&events), Some(&StopReason::Completed));
    // The next prompt waits for nothing of this one.
    opened.prompt("wait-answers\nsay \"on\"").await;
    let events = opened.read_to_stop().await;
    assert_eq!(messages(&events), ["on"]);
}

#[tokio::test(start_paused = true)]
async fn c25_more_questions_than_can_wait_fail_the_run() {
    let ask = |number: u32| format!("ask q{number} confirm \"?\"\n");
    let scenario: String = (0..=64).map(ask).collect();
    let events = begin(&scenario).await.read_to_stop().await;
    assert_eq!(events.iter().filter_map(asked).count(), 64);
    let Some(StopReason::Failed(failure)) = stopped(&events) else {
        panic!("{events:?}");
    };
    assert_eq!(failure.code, "bad_scenario");
    // Of those whose end is known any number may be asked.
    let taken_back = |number: u32| ask(number) + &format!("withdraw q{number}\n");
    let scenario: String = (0..100).map(taken_back).collect();
    let events = begin(&scenario).await.read_to_stop().await;
    assert_eq!(stopped(&events), Some(&StopReason::Completed));
}

#[tokio::test(start_paused = true)]
async fn c22_a_compaction_in_a_run_puts_a_summary_before_what_is_kept() {
    let mut opened = knowing_ten(&Bench::new(subject())).await;
    let scenario = "say \"a\"\ncompact \"in short\" after 5s kept 2\nrecall";
    opened.prompt(scenario).await;
    let events = opened.read_to_stop().await;
    let finished = EngineEvent::CompactionFinished(Ok(Compacted {
        summary: "in short".to_owned(),
        first_kept: Some(entry(9)),
        tokens_before: None,
        tokens_after: None,
    }));
    let started = events
        .iter()
        .position(|event| *event == EngineEvent::CompactionStarted)
        .expect("it starts");
    assert_eq!(events[started + 1], finished);
    assert!(
        matches!(
            &events[started - 1],
            EngineEvent::MessageFinished { text: Some(text), .. } if text == "a"
        ),
        "the message before it is complete"
    );
    let known = ["in short", "earlier text 9", "earlier text 10", scenario];
    let said = text_of(&events);
    assert!(said.ends_with(&format!("{known:?}")), "{said}");
}

#[tokio::test(start_paused = true)]
async fn c22_a_compaction_that_fails_in_a_run_loses_nothing_and_the_run_goes_on() {
    let mut opened = knowing_ten(&Bench::new(subject())).await;
    opened
        .prompt("compact \"in short\" fail full \"no room\"\nrecall")
        .await;
    let events = opened.read_to_stop().await;
    let failed = EngineEvent::CompactionFinished(Err(Failure {
        code: "full".to_owned(),
        details: "no room".to_owned(),
        retryable: false,
    }));
    assert!(events.contains(&failed), "{events:?}");
    let said = text_of(&events);
    assert!(said.contains("earlier text 4"), "{said}");
    assert!(!said.contains("\"in short\","), "{said}");
    assert_eq!(stopped(&events), Some(&StopReason::Completed));
}

#[tokio::test(start_paused = true)]
async fn c21_an_abort_in_the_middle_of_a_runs_compaction_loses_nothing() {
    let mut opened = knowing_ten(&Bench::new(subject())).await;
    opened.prompt("compact \"in short\" after 10m").await;
    let started = |event: &EngineEvent| *event == EngineEvent::CompactionStarted;
    opened.read_to(started).await;
    opened.abort().await;
    let events = opened.read_to_stop().await;
    assert_eq!(stopped(&events), Some(&StopReason::Aborted));
    assert_eq!(events.len(), 1, "a summary was told: {events:?}");
    opened.prompt("/recall").await;
    let said = text_of(&opened.read_to_stop().await);
    assert!(said.contains("earlier text 5"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn c22_instructions_are_played_and_what_is_said_is_the_summary() {
    assert_eq!(summary_of(None).await, "summary up to entry 10");
    let asked = summary_of(Some("the plans")).await;
    assert_eq!(asked, "summary up to entry 10: the plans");
    let said = summary_of(Some(
        "think \"hm\"\nsay \"a \"\nmessage\nsay-words 2\nsettings",
    ))
    .await;
    assert_eq!(said, "a w1 w2 model=scripted level=none");
    let cut = summary_of(Some("say \"a\"\nstop\nsay \"b\"")).await;
    assert_eq!(cut, "a");
    let kept = compacted(Some("compact \"short\" kept 3")).await;
    let kept = kept.expect("it lives").expect("a summary");
    assert_eq!(kept.summary, "short");
    assert_eq!(kept.first_kept, Some(entry(8)));
    let big = summary_of(Some("big 64MiB")).await;
    assert_eq!(big.len(), 2 * 1024 * 1024, "more than anybody keeps");
}

#[tokio::test(start_paused = true)]
async fn c22_a_compaction_takes_its_time_and_tells_nothing_on_its_way() {
    let bench = Bench::new(subject());
    let mut opened = knowing_ten(&bench).await;
    let before = bench.clock.now();
    opened
        .compact(Some("say \"a\"\nwait 3s\nslow 1s\nsay \"b\""))
        .await;
    let first = opened.next().await;
    assert!(
        matches!(first, Some(EngineEvent::CompactionFinished(Ok(_)))),
        "{first:?}"
    );
    let took = bench.clock.now().since(before);
    assert!(took >= Duration::from_secs(4), "{took:?}");
    // From here on the summary stands for all of it.
    opened.prompt("recall").await;
    let said = text_of(&opened.read_to_stop().await);
    assert!(said.ends_with("[\"ab\", \"recall\"]"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn c22_instructions_that_cannot_be_played_fail_and_name_what_is_wrong() {
    for (instructions, expected) in [
        ("say \"a\"\nsing", "line 2: `sing` is not a verb"),
        (
            "say \"a\"\ntool x",
            "calls no tool, ends no turn and asks nobody",
        ),
        ("ask q confirm \"?\"", "asks nobody"),
    ] {
        let result = compacted(Some(instructions)).await.expect("it lives");
        let failure = result.expect_err(instructions);
        assert_eq!(failure.code, "bad_scenario");
        assert!(failure.details.contains(expected), "{failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c23_it_says_with_what_it_was_opened() {
    let bench = Bench::new(subject());
    let settings = RunSettings::default();
    let mut opened = bench.open_with(session(1), Vec::new(), settings).await;
    opened.prompt("settings").await;
    let events = opened.read_to_stop().await;
    assert_eq!(messages(&events), ["model=none level=none"]);
}

#[tokio::test(start_paused = true)]
async fn c26_the_command_that_it_lists_does_what_it_says() {
    let bench = Bench::new(subject());
    let commands = &bench.engine.describe().commands;
    let names: Vec<&str> = commands.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["recall"]);
    let mut opened = knowing_ten(&bench).await;
    opened.prompt(" /recall\n").await;
    let said = text_of(&opened.read_to_stop().await);
    assert!(said.starts_with("opened at entry 10"), "{said}");
    opened.prompt("/recalls").await;
    let said = text_of(&opened.read_to_stop().await);
    assert_eq!(said, "/recalls", "what it does not know it says back");
}
