//! What the line promises whatever the engine at its end does.

use sessionplane_core::domain::time::Timestamp;

use super::*;
use crate::adapters::clock::{TokioClock, TokioSpawner};

/// Both ends of a line, without an engine.
async fn line() -> (EngineConnection, Link) {
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

const ABORTED: EngineEvent = EngineEvent::Stopped(StopReason::Aborted);

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
