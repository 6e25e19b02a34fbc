//! What the line promises whatever the engine at its end does.

use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::engine::EngineOutput as _;

use super::*;

/// Tokio's time, which a test may pause.
struct TokioTime;

impl Clock for TokioTime {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep(delay))
    }
}

/// The control plane's end of a line.
pub(in crate::adapters::engine) struct Other {
    commands: mpsc::Sender<EngineCommand>,
    output: Output,
}

/// Both ends of a line, without an engine.
pub(in crate::adapters::engine) fn line() -> (Other, Link) {
    let (link, commands, output) = super::line(Arc::new(TokioTime));
    (Other { commands, output }, link)
}

fn run() -> RunId {
    RunId::mint(Timestamp::default(), 1)
}

fn input(ordinal: u32) -> InputId {
    let run = run();
    InputId { run, ordinal }
}

fn prompt(input: Option<InputId>) -> EngineCommand {
    EngineCommand::Prompt {
        number: 1,
        run: run(),
        text: "prompt".into(),
        input,
        withheld: Withheld::Nothing,
    }
}

fn steer(input: InputId) -> EngineCommand {
    let text = "steer".into();
    EngineCommand::Steer {
        input,
        text,
        withheld: Withheld::Nothing,
    }
}

fn back(input: InputId) -> EngineEvent {
    EngineEvent::InputTakenBack { input }
}

const ABORTED: EngineEvent = EngineEvent::Stopped {
    prompt: 1,
    reason: StopReason::Aborted,
};

fn send<const N: usize>(other: &Other, commands: [EngineCommand; N]) {
    for command in commands {
        other.commands.try_send(command).expect("it is taken");
    }
}

/// A line whose engine plays a prompt and whose output nobody reads until it is full.
async fn unread(input: Option<InputId>) -> (Other, Link) {
    let (connection, mut link) = line();
    send(&connection, [prompt(input)]);
    link.next_prompt().await.expect("a prompt");
    for _ in 0..EVENTS {
        let emitted = link.emit(EngineEvent::TurnStarted).await;
        emitted.expect("there is room");
    }
    // What the runtime lets a task do at a time is used up; a test looks at single steps.
    tokio::task::yield_now().await;
    (connection, link)
}

/// All that is reported until the engine has done `work`, without what filled the line.
async fn heard<T>(connection: &mut Other, work: impl Future<Output = T>) -> (T, Vec<EngineEvent>) {
    let mut events = Vec::new();
    tokio::pin!(work);
    let done = loop {
        tokio::select! {
            biased;
            done = &mut work => break done,
            event = connection.output.next() => events.extend(event),
        }
    };
    while let Ok(unread) = connection.output.0.try_recv() {
        events.push(unread.event);
    }
    events.retain(|event| *event != EngineEvent::TurnStarted);
    (done, events)
}

/// C19: "first takes it back", also what was on its way to be shown.
#[tokio::test]
async fn c19_a_steer_whose_showing_waits_for_room_is_given_back() {
    let (mut connection, mut link) = unread(None).await;
    send(&connection, [steer(input(1))]);
    let taken = link.next_steer().expect("it runs").expect("a steer");
    let mut showing = Box::pin(link.emit(EngineEvent::InputShown { input: taken.input }));
    let early = futures_util::FutureExt::now_or_never(&mut showing);
    assert_eq!(early, None, "nobody reads");
    send(&connection, [EngineCommand::Abort]);
    assert_eq!(showing.await, Err(Halt::Aborted));
    let stopping = link.stop(StopReason::Aborted);
    let (stopped, events) = heard(&mut connection, stopping).await;
    assert_eq!(stopped, Ok(()));
    assert_eq!(events, [back(input(1)), ABORTED]);
}

#[tokio::test]
async fn c19_a_steer_that_is_there_with_an_abort_is_given_back() {
    let (mut connection, mut link) = unread(None).await;
    send(&connection, [steer(input(1)), EngineCommand::Abort]);
    let taken = link.wait_steer().await;
    let shown = link
        .emit(EngineEvent::InputShown {
            input: taken.expect("a steer").input,
        })
        .await;
    assert_eq!(shown, Err(Halt::Aborted));
    let stopping = link.stop(StopReason::Aborted);
    let (_, events) = heard(&mut connection, stopping).await;
    assert_eq!(events, [back(input(1)), ABORTED]);
}

#[tokio::test]
async fn c19_a_follow_up_that_is_not_shown_yet_is_given_back() {
    let (mut connection, mut link) = unread(Some(input(1))).await;
    send(&connection, [EngineCommand::Abort]);
    let shown = link.emit(EngineEvent::InputShown { input: input(1) }).await;
    assert_eq!(shown, Err(Halt::Aborted));
    let stopping = link.stop(StopReason::Aborted);
    let (_, events) = heard(&mut connection, stopping).await;
    assert_eq!(events, [back(input(1)), ABORTED]);
}

#[tokio::test]
async fn c20_what_was_shown_is_not_given_back() {
    let (mut connection, mut link) = line();
    let both = [prompt(Some(input(1))), steer(input(2))];
    send(&connection, both);
    link.next_prompt().await.expect("a prompt");
    for ordinal in [1, 2] {
        let shown = EngineEvent::InputShown {
            input: input(ordinal),
        };
        link.emit(shown).await.expect("there is room");
    }
    let stopping = link.stop(StopReason::Aborted);
    let (_, events) = heard(&mut connection, stopping).await;
    let shown = [1, 2].map(|ordinal| EngineEvent::InputShown {
        input: input(ordinal),
    });
    assert_eq!(events[..2], shown);
    assert_eq!(events[2..], [ABORTED]);
}

/// C19, C21: the engine's own end waits for room, and an abort comes: what it has not shown is
/// given back and not lost.
#[tokio::test]
async fn c19_c21_an_abort_overtakes_an_end_that_waits_for_room() {
    let (mut connection, mut link) = unread(None).await;
    send(&connection, [steer(input(1))]);
    link.next_steer().expect("it runs").expect("a steer");
    let stopping = link.stop(StopReason::Completed);
    tokio::pin!(stopping);
    let early = futures_util::FutureExt::now_or_never(&mut stopping);
    assert_eq!(early, None, "nobody reads");
    send(&connection, [EngineCommand::Abort]);
    let (stopped, events) = heard(&mut connection, stopping).await;
    assert_eq!(stopped, Ok(()));
    assert_eq!(events, [back(input(1)), ABORTED]);
}

/// C21: the abort is heard while a late steer is given back, when the prompt has not begun.
#[tokio::test]
async fn c21_an_abort_of_a_prompt_that_has_not_begun_is_not_swallowed() {
    let (mut connection, mut link) = line();
    let late = steer(input(1));
    let follow_up = prompt(Some(input(2)));
    send(&connection, [late, follow_up, EngineCommand::Abort]);
    let mut next = Box::pin(link.next_prompt());
    let early = futures_util::FutureExt::now_or_never(&mut next);
    assert!(early.is_none(), "an aborted prompt began");
    let ((), events) = heard(&mut connection, std::future::ready(())).await;
    assert_eq!(events, [back(input(1)), back(input(2)), ABORTED]);

    send(&connection, [prompt(None)]);
    let begun = next.await.expect("the next one begins");
    assert_eq!(begun.input, None);
}

/// C21: an abort that crossed with the engine's own end stops nothing that comes later.
#[tokio::test]
async fn c21_an_abort_at_rest_stops_nothing_later() {
    let (connection, mut link) = line();
    send(&connection, [EngineCommand::Abort, prompt(None)]);
    link.next_prompt().await.expect("it begins");
    let said = link.emit(EngineEvent::TurnFinished).await;
    assert_eq!(said, Ok(()));
}

/// B14: an engine whose output nobody reads still hears an abort, and without any read.
#[tokio::test]
async fn b14_an_engine_that_waits_for_a_reader_hears_an_abort() {
    let (connection, mut link) = unread(None).await;
    let saying = link.emit(EngineEvent::TurnFinished);
    tokio::pin!(saying);
    let early = futures_util::FutureExt::now_or_never(&mut saying);
    assert_eq!(early, None, "nobody reads");
    send(&connection, [EngineCommand::Abort]);
    let now = futures_util::FutureExt::now_or_never(&mut saying);
    assert_eq!(now, Some(Err(Halt::Aborted)));
}

fn output(bytes: usize) -> EngineEvent {
    EngineEvent::ToolFinished {
        call: String::new(),
        output: "x".repeat(bytes - 1) + "!",
        failed: false,
    }
}

#[tokio::test]
async fn what_is_too_long_is_cut_to_its_end_and_says_so() {
    let (mut connection, mut link) = line();
    for event in [
        output(MAX_REPORT_TEXT_BYTES),
        output(3 * MAX_REPORT_TEXT_BYTES),
    ] {
        link.emit(event).await.expect("there is room");
    }
    assert_eq!(
        connection.output.next().await,
        Some(output(MAX_REPORT_TEXT_BYTES)),
        "the largest that fits"
    );
    let Some(EngineEvent::ToolFinished { output, .. }) = connection.output.next().await else {
        panic!("nothing came");
    };
    let (note, kept) = output.split_once('\n').expect("a note");
    let left_out = 3 * MAX_REPORT_TEXT_BYTES - kept.len();
    assert_eq!(note, format!("[{left_out} bytes before this are left out]"));
    assert!(output.len() <= MAX_REPORT_TEXT_BYTES && kept.ends_with("x!"));
    let whole = EngineEvent::MessageFinished {
        message: "m".to_owned(),
        text: Some("x".repeat(MAX_REPORT_TEXT_BYTES + 1)),
        usage: sessionplane_core::domain::usage::Usage::default(),
    };
    link.emit(whole).await.expect("there is room");
    let told = connection.output.next().await;
    assert!(
        matches!(told, Some(EngineEvent::MessageFinished { text: None, .. })),
        "its deltas are it"
    );
}

#[tokio::test]
async fn unread_output_is_bounded_in_bytes() {
    let (mut connection, mut link) = line();
    for _ in 0..UNREAD_BYTES / MAX_REPORT_TEXT_BYTES {
        let emitted = link.emit(output(MAX_REPORT_TEXT_BYTES)).await;
        emitted.expect("there is room");
    }
    let mut saying = Box::pin(link.emit(output(1)));
    let early = futures_util::FutureExt::now_or_never(&mut saying);
    assert_eq!(early, None, "more than may wait is kept");
    connection.output.next().await.expect("one is read");
    assert_eq!(saying.await, Ok(()));
    // Nobody reads any more: it does not wait for the bytes of what is not read.
    let saying = link.emit(output(MAX_REPORT_TEXT_BYTES));
    drop(connection.output);
    assert_eq!(saying.await, Err(Halt::Gone));
}

/// C25: every open question may expire at one moment, when the engine does something else.
#[tokio::test]
async fn c25_what_became_of_every_question_reaches_a_busy_engine() {
    let (connection, mut link) = line();
    send(&connection, [prompt(None)]);
    link.next_prompt().await.expect("it begins");
    let asks: Vec<String> = (0..MAX_UNSETTLED_ASKS)
        .map(|number| format!("q{number}"))
        .collect();
    for ask in &asks {
        let (ask, answer) = (ask.clone(), None);
        send(&connection, [EngineCommand::Answer { ask, answer }]);
    }
    send(&connection, [steer(input(1))]);
    for ask in &asks {
        assert_eq!(link.wait_answer().await, Ok((ask.clone(), None)));
    }
}

/// C25: an answer that crossed with the end of its run answers nothing of the next.
#[tokio::test]
async fn c25_a_late_answer_answers_nothing_of_the_next_prompt() {
    let (connection, mut link) = line();
    let late = EngineCommand::Answer {
        ask: "q".to_owned(),
        answer: Some(InteractionAnswer::Confirmed(true)),
    };
    send(&connection, [late, prompt(None)]);
    link.next_prompt().await.expect("it begins");
    let answered = futures_util::FutureExt::now_or_never(link.wait_answer());
    assert_eq!(answered, None);
}

/// C25: likewise where both are taken while a late steer is given back.
#[tokio::test]
async fn c25_a_late_answer_behind_a_late_steer_answers_nothing_of_the_next_prompt() {
    let (mut connection, mut link) = line();
    let late = EngineCommand::Answer {
        ask: "q".to_owned(),
        answer: Some(InteractionAnswer::Confirmed(true)),
    };
    send(&connection, [steer(input(1)), late, prompt(None)]);
    link.next_prompt().await.expect("it begins");
    assert_eq!(connection.output.next().await, Some(back(input(1))));
    let answered = futures_util::FutureExt::now_or_never(link.wait_answer());
    assert_eq!(answered, None);
}

/// C25: an engine that takes no answers is given up; none is left out.
#[tokio::test]
async fn c25_an_engine_that_takes_no_answers_is_given_up() {
    let (connection, mut link) = line();
    send(&connection, [prompt(None)]);
    link.next_prompt().await.expect("it begins");
    for number in 0..=MAX_UNSETTLED_ASKS {
        let (ask, answer) = (format!("q{number}"), None);
        send(&connection, [EngineCommand::Answer { ask, answer }]);
    }
    assert_eq!(link.pause(Duration::ZERO).await, Err(Halt::Gone));
}

/// C21: an abort ends a compaction that has not begun, and one that waits for room.
#[tokio::test]
async fn c21_an_aborted_compaction_ends_as_such() {
    let compact = || EngineCommand::Compact { instructions: None };
    let (mut connection, mut link) = line();
    let late = steer(input(1));
    send(&connection, [late, compact(), EngineCommand::Abort]);
    let early = futures_util::FutureExt::now_or_never(link.next_work());
    assert!(early.is_none(), "an aborted compaction began");
    assert_eq!(connection.output.next().await, Some(back(input(1))));
    let finished = connection.output.next().await;
    let aborted = EngineEvent::CompactionFinished(Err(cut_short()));
    assert_eq!(finished.as_ref(), Some(&aborted));

    send(&connection, [compact()]);
    assert!(link.next_work().await.is_some());
    for _ in 0..EVENTS {
        let emitted = link.emit(EngineEvent::TurnStarted).await;
        emitted.expect("there is room");
    }
    let summary = Compacted {
        summary: "too late".to_owned(),
        first_kept: None,
        tokens_before: None,
        tokens_after: None,
    };
    let mut ending = Box::pin(link.compacted(Ok(summary)));
    let early = futures_util::FutureExt::now_or_never(&mut ending);
    assert_eq!(early, None, "nobody reads");
    send(&connection, [EngineCommand::Abort]);
    let (ended, events) = heard(&mut connection, ending).await;
    assert_eq!((ended, events), (Ok(false), vec![aborted]));
}
