//! What the line promises whatever the engine at its end does.

use sessionplane_core::domain::time::Timestamp;

use super::*;
use crate::adapters::clock::{TokioClock, TokioSpawner};

/// Both ends of a line, without an engine.
pub(in crate::adapters::engine) async fn line() -> (EngineConnection, Link) {
    let (give, take) = tokio::sync::oneshot::channel();
    let clock = Arc::new(TokioClock::start());
    let spawner = TokioSpawner::current();
    let connection = connect(&spawner, clock, Revalidation::Current, |link| async move {
        // Who waits for it is there.
        let _ = give.send(link);
    });
    (connection, take.await.expect("the engine's task runs"))
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
    }
}

fn steer(input: InputId) -> EngineCommand {
    let text = "steer".into();
    EngineCommand::Steer { input, text }
}

fn back(input: InputId) -> EngineEvent {
    EngineEvent::InputTakenBack { input }
}

const ABORTED: EngineEvent = EngineEvent::Stopped {
    prompt: 1,
    reason: StopReason::Aborted,
};

async fn send<const N: usize>(connection: &mut EngineConnection, commands: [EngineCommand; N]) {
    for command in commands {
        connection
            .commands
            .send(command)
            .await
            .expect("it is taken");
    }
}

/// A line whose engine plays a prompt and whose output nobody reads until it is full.
async fn unread(input: Option<InputId>) -> (EngineConnection, Link) {
    let (mut connection, mut link) = line().await;
    send(&mut connection, [prompt(input)]).await;
    link.next_prompt().await.expect("a prompt");
    for _ in 0..EVENTS {
        let emitted = link.emit(EngineEvent::TurnStarted).await;
        emitted.expect("there is room");
    }
    (connection, link)
}

/// All that is reported until the engine has done `work`, without what filled the line.
async fn heard<T>(
    connection: &mut EngineConnection,
    work: impl Future<Output = T>,
) -> (T, Vec<EngineEvent>) {
    let mut events = Vec::new();
    tokio::pin!(work);
    let done = loop {
        tokio::select! {
            biased;
            done = &mut work => break done,
            event = connection.output.next() => events.extend(event),
        }
    };
    while let Some(Some(event)) = futures_util::FutureExt::now_or_never(connection.output.next()) {
        events.push(event);
    }
    events.retain(|event| *event != EngineEvent::TurnStarted);
    (done, events)
}

/// C19: "first takes it back", also what was on its way to be shown.
#[tokio::test]
async fn c19_a_steer_whose_showing_waits_for_room_is_given_back() {
    let (mut connection, mut link) = unread(None).await;
    send(&mut connection, [steer(input(1))]).await;
    let taken = link.next_steer().expect("it runs").expect("a steer");
    let showing = link.emit(EngineEvent::InputShown { input: taken.input });
    let (shown, ()) = tokio::join!(showing, send(&mut connection, [EngineCommand::Abort]));
    assert_eq!(shown, Err(Halt::Aborted));
    let stopping = link.stop(StopReason::Aborted);
    let (stopped, events) = heard(&mut connection, stopping).await;
    assert_eq!(stopped, Ok(()));
    assert_eq!(events, [back(input(1)), ABORTED]);
}

#[tokio::test]
async fn c19_a_steer_that_is_there_with_an_abort_is_given_back() {
    let (mut connection, mut link) = unread(None).await;
    let waiting = link.wait_steer();
    let handing = send(&mut connection, [steer(input(1)), EngineCommand::Abort]);
    let (taken, ()) = tokio::join!(waiting, handing);
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
    send(&mut connection, [EngineCommand::Abort]).await;
    let shown = link.emit(EngineEvent::InputShown { input: input(1) }).await;
    assert_eq!(shown, Err(Halt::Aborted));
    let stopping = link.stop(StopReason::Aborted);
    let (_, events) = heard(&mut connection, stopping).await;
    assert_eq!(events, [back(input(1)), ABORTED]);
}

#[tokio::test]
async fn c20_what_was_shown_is_not_given_back() {
    let (mut connection, mut link) = line().await;
    let both = [prompt(Some(input(1))), steer(input(2))];
    send(&mut connection, both).await;
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
    send(&mut connection, [steer(input(1))]).await;
    link.next_steer().expect("it runs").expect("a steer");
    let stopping = link.stop(StopReason::Completed);
    tokio::pin!(stopping);
    let early = futures_util::FutureExt::now_or_never(&mut stopping);
    assert_eq!(early, None, "nobody reads");
    send(&mut connection, [EngineCommand::Abort]).await;
    let (stopped, events) = heard(&mut connection, stopping).await;
    assert_eq!(stopped, Ok(()));
    assert_eq!(events, [back(input(1)), ABORTED]);
}

/// C21: the abort is heard while a late steer is given back, when the prompt has not begun.
#[tokio::test]
async fn c21_an_abort_of_a_prompt_that_has_not_begun_is_not_swallowed() {
    let (mut connection, mut link) = line().await;
    let late = steer(input(1));
    let follow_up = prompt(Some(input(2)));
    send(&mut connection, [late, follow_up, EngineCommand::Abort]).await;
    let mut next = Box::pin(link.next_prompt());
    let early = futures_util::FutureExt::now_or_never(&mut next);
    assert!(early.is_none(), "an aborted prompt began");
    let ((), events) = heard(&mut connection, std::future::ready(())).await;
    assert_eq!(events, [back(input(1)), back(input(2)), ABORTED]);

    send(&mut connection, [prompt(None)]).await;
    let begun = next.await.expect("the next one begins");
    assert_eq!(begun.input, None);
}

/// C21: an abort that crossed with the engine's own end stops nothing that comes later.
#[tokio::test]
async fn c21_an_abort_at_rest_stops_nothing_later() {
    let (mut connection, mut link) = line().await;
    send(&mut connection, [EngineCommand::Abort, prompt(None)]).await;
    link.next_prompt().await.expect("it begins");
    let said = link.emit(EngineEvent::TurnFinished).await;
    assert_eq!(said, Ok(()));
}

/// B14: an engine whose output nobody reads still hears an abort, and without any read.
#[tokio::test]
async fn b14_an_engine_that_waits_for_a_reader_hears_an_abort() {
    let (mut connection, mut link) = unread(None).await;
    let saying = link.emit(EngineEvent::TurnFinished);
    tokio::pin!(saying);
    let early = futures_util::FutureExt::now_or_never(&mut saying);
    assert_eq!(early, None, "nobody reads");
    send(&mut connection, [EngineCommand::Abort]).await;
    let now = futures_util::FutureExt::now_or_never(&mut saying);
    assert_eq!(now, Some(Err(Halt::Aborted)));
}

/// C25: every open question may expire at one moment, when the engine does something else.
#[tokio::test]
async fn c25_what_became_of_every_question_reaches_a_busy_engine() {
    let (mut connection, mut link) = line().await;
    send(&mut connection, [prompt(None)]).await;
    link.next_prompt().await.expect("it begins");
    let asks: Vec<String> = (0..UNSETTLED).map(|number| format!("q{number}")).collect();
    for ask in &asks {
        let (ask, answer) = (ask.clone(), None);
        send(&mut connection, [EngineCommand::Answer { ask, answer }]).await;
    }
    send(&mut connection, [steer(input(1))]).await;
    for ask in &asks {
        assert_eq!(link.wait_answer().await, Ok((ask.clone(), None)));
    }
}

/// C25: an answer that crossed with the end of its run answers nothing of the next.
#[tokio::test]
async fn c25_a_late_answer_answers_nothing_of_the_next_prompt() {
    let (mut connection, mut link) = line().await;
    let late = EngineCommand::Answer {
        ask: "q".to_owned(),
        answer: Some(InteractionAnswer::Confirmed(true)),
    };
    send(&mut connection, [late, prompt(None)]).await;
    link.next_prompt().await.expect("it begins");
    let answered = futures_util::FutureExt::now_or_never(link.wait_answer());
    assert_eq!(answered, None);
}

/// C21: an abort ends a compaction that has not begun, and one that waits for room.
#[tokio::test]
async fn c21_an_aborted_compaction_ends_as_such() {
    let compact = || EngineCommand::Compact { instructions: None };
    let (mut connection, mut link) = line().await;
    let late = steer(input(1));
    send(&mut connection, [late, compact(), EngineCommand::Abort]).await;
    let early = futures_util::FutureExt::now_or_never(link.next_work());
    assert!(early.is_none(), "an aborted compaction began");
    assert_eq!(connection.output.next().await, Some(back(input(1))));
    let finished = connection.output.next().await;
    let aborted = EngineEvent::CompactionFinished(Err(cut()));
    assert_eq!(finished.as_ref(), Some(&aborted));

    send(&mut connection, [compact()]).await;
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
    send(&mut connection, [EngineCommand::Abort]).await;
    let (ended, events) = heard(&mut connection, ending).await;
    assert_eq!((ended, events), (Ok(false), vec![aborted]));
}
