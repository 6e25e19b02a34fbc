//! C2, C9, C10, C11, C13, C39: what is told while a commit is on its way to the disk, and when it
//! never arrives.

use std::sync::Arc;
use std::time::Duration;

use futures_util::poll;
use sessionplane_core::contract::{CallOptions, DispatchRequest, InvokeRequest, OnDisconnect};
use sessionplane_core::domain::command::{Command, RejectionCode};
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::view::Status;
use sessionplane_core::ports::repository::Repository as _;
use sessionplane_server::adapters::memory::CommitStep;

use crate::gate::{accepts_input, admits, only, settles};
use crate::house::House;
use crate::suite::desk::{Ask, Desk, follow_up, steer, with_id, within};
use crate::suite::run::code;
use crate::suite::watch::settled;
use crate::suite::world::{World as _, quick};

const STEPS: [CommitStep; 2] = [CommitStep::BeforeSync, CommitStep::AfterSync];

fn desk(house: &Arc<House>, name: &str) -> Desk {
    Desk::new(&house.world(), name)
}

#[tokio::test(flavor = "multi_thread")]
async fn c39_while_an_admission_is_written_nobody_is_told() {
    for step in STEPS {
        let house = House::new(quick());
        let desk = desk(&house, "held");
        desk.run("say \"x\"").await;
        let (state, entries) = (desk.state().await, desk.entries().await);
        let mut held = house.gate.hold(only(step, admits));
        let call = tokio::spawn({
            let desk = desk.clone();
            async move { desk.invoke("say \"y\"").await }
        });
        held.reached().await;
        assert_eq!(desk.state().await, state, "no event was published");
        assert_eq!(desk.entries().await, entries, "no entry is shown");
        let watch = desk.watch().await;
        assert_eq!((watch.backfill, watch.snapshot), (entries.clone(), state));
        assert!(!call.is_finished(), "no answer");
        held.release();
        let run = call.await.expect("no panic");
        assert_eq!(code(&run.finish().await), "completed");
        assert_eq!(desk.entries().await.len(), entries.len() + 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c11_a_second_call_with_one_id_waits_for_the_first_ones_admission_and_joins_it() {
    let house = House::new(quick());
    let desk = desk(&house, "twice");
    desk.run("say \"x\"").await;
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, admits));
    let ask = || Ask::new("say \"y\"").id("once");
    let first = tokio::spawn({
        let (desk, ask) = (desk.clone(), ask());
        async move { desk.invoke(ask).await }
    });
    held.reached().await;
    let mut second = Box::pin(desk.invoke(ask()));
    // Far enough for one that does not wait to have been handed to the session.
    for _ in 0..100 {
        assert!(poll!(&mut second).is_pending(), "nothing is bound yet");
        tokio::task::yield_now().await;
    }
    held.release();
    let (first, second) = (first.await.expect("no panic"), second.await);
    assert_eq!((first.joined, second.joined), (false, true));
    assert_eq!(first.id, second.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn c39_a_session_is_unknown_until_its_creation_is_durable() {
    let house = House::new(quick());
    let desk = desk(&house, "unborn");
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, admits));
    let call = tokio::spawn({
        let desk = desk.clone();
        async move { desk.run("say \"y\"").await }
    });
    held.reached().await;
    let error = desk.try_state(None).await.expect_err("unknown");
    assert_eq!(error, CallError::no_such_session());
    held.release();
    call.await.expect("no panic");
    assert_eq!(desk.state().await.view.status(), Status::Idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn c39_c20_an_input_is_neither_told_nor_handed_over_before_it_is_durable() {
    for step in STEPS {
        let house = House::new(quick());
        let desk = desk(&house, "input");
        let run = desk.invoke("wait-steer\nsay \"x\"").await;
        let mut watch = desk.watch_from(Some(run.position), None).await;
        while watch.position.seq < run.position.seq + 4 && watch.missed.len() < 4 {
            watch.event().await;
        }
        let before = desk.state().await;
        let mut held = house.gate.hold(only(step, accepts_input));
        let call = tokio::spawn({
            let desk = desk.clone();
            async move { desk.steer("say \"y\"").await }
        });
        held.reached().await;
        assert_eq!(
            desk.state().await,
            before,
            "nothing was queued, handed over or shown"
        );
        assert!(!call.is_finished(), "no answer");
        held.release();
        let input = call.await.expect("no panic");
        let events = run.finish().await;
        assert_eq!(code(&events), "completed");
        assert_eq!(desk.record(input.run).await.undelivered, []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c39_c34_live_text_goes_on_while_an_entry_is_written() {
    let house = House::new(quick());
    let desk = desk(&house, "live");
    let mut held = house.gate.hold(only(CommitStep::AfterSync, |_, commit| {
        commit
            .entries
            .iter()
            .any(|entry| entry.body.kind() == "assistant")
    }));
    let mut run = desk
        .invoke("say \"a\"\nmessage\nsay \"b\"\nsay \"c\"\nmessage\nhang")
        .await;
    held.reached().await;
    for _ in 0..3 {
        run.until_text().await;
    }
    assert_eq!(desk.entries().await.len(), 1, "only the prompt is told");
    let watch = desk.watch().await;
    assert_eq!(watch.backfill.len(), 1);
    held.release();
    let mut watch = watch;
    watch.until_type("entry_appended").await;
    assert!(desk.entries().await.len() >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn c10_while_the_settlement_is_written_joins_are_rejected_and_the_state_is_running() {
    for step in STEPS {
        let house = House::new(quick());
        let desk = desk(&house, "settling");
        let mut held = house.gate.hold(only(step, settles));
        let run = desk.invoke(Ask::new("say \"x\"").id("one")).await;
        let id = run.id;
        held.reached().await;
        let late = RejectionCode::RunCommandFailed;
        for command in [steer("x"), follow_up("x"), Command::Abort] {
            assert_eq!(
                desk.rejected(command).await,
                late,
                "the run raced to settlement"
            );
        }
        let state = desk.state().await;
        assert_eq!(
            (state.view.active_run, state.view.last_run),
            (Some(id), None)
        );
        assert_eq!(state.view.pending.len(), 0);
        let joiner = desk.invoke(Ask::new("say \"x\"").id("one")).await;
        assert!(joiner.joined);
        held.release();
        assert_eq!(code(&run.finish().await), "completed");
        assert_eq!(code(&joiner.finish().await), "completed");
        assert_eq!(desk.rejected(steer("x")).await, RejectionCode::NoActiveRun);
        assert_eq!(code(&desk.run("say \"next\"").await), "completed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c09_an_accepted_abort_is_an_abort_also_after_a_crash() {
    let house = House::new(quick());
    let desk = desk(&house, "abort");
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, settles));
    let ask = || Ask::new("hang").id("one");
    let run = desk.invoke(ask()).await;
    desk.abort().await;
    held.reached().await;
    house.restart().await;
    held.release();
    let record = desk.record(run.id).await;
    assert_eq!(
        record.settled.map(|settled| settled.outcome),
        Some(RunOutcome::Aborted)
    );
    assert_eq!(code(&desk.run(ask()).await), "aborted");
    let last = desk.state().await.view.last_run.expect("a last run");
    assert_eq!(last.outcome, RunOutcome::Aborted);
}

/// C2 C11: the disk failed under the admission, before or after it was kept. The caller does not
/// know, is told so, and the same request id finds out.
#[tokio::test(flavor = "multi_thread")]
async fn c02_a_lost_commit_is_unknown_and_the_same_id_finds_out() {
    for step in STEPS {
        let house = House::new(quick());
        let desk = desk(&house, "lost");
        desk.run("say \"x\"").await;
        let mut held = house.gate.hold(only(step, admits));
        let call = tokio::spawn({
            let desk = desk.clone();
            async move { desk.open(Ask::new("say \"y\"").id("one")).await.err() }
        });
        held.reached().await;
        held.fail("the disk is gone");
        let error = call.await.expect("no panic").expect("no answer");
        assert_eq!(error.outcome, Outcome::Unknown, "{error:?}");
        house.gate.open();
        house.restart().await;
        let run = desk.invoke(Ask::new("say \"y\"").id("one")).await;
        assert_eq!(run.joined, step == CommitStep::AfterSync);
        let expected = if run.joined {
            "interrupted"
        } else {
            "completed"
        };
        assert_eq!(code(&run.finish().await), expected);
        let prompts = desk.entries().await;
        let prompts = prompts.iter().filter(|entry| entry.body.kind() == "user");
        assert_eq!(prompts.count(), 2, "it is there once");
    }
}

/// C2 C62: the deadline passed while the call was being written. The caller does not know, is told so,
/// and the same request id finds out.
#[tokio::test(flavor = "multi_thread")]
async fn c02_c62_a_deadline_behind_a_held_commit_is_unknown_and_the_same_id_finds_out() {
    let house = House::new(quick());
    let desk = desk(&house, "deadline");
    desk.run("say \"x\"").await;
    let soon = |id| CallOptions {
        deadline: Some(Duration::from_millis(20)),
        ..with_id(Some(id))
    };
    let late = |error: CallError| (error.reason, error.outcome);
    let unknown = (Reason::DeadlineExceeded, Outcome::Unknown);

    let mut held = house.gate.hold(only(CommitStep::BeforeSync, admits));
    let request = InvokeRequest {
        session: desk.session.clone(),
        prompt: "hang".to_owned(),
        given: Given::default(),
        agent: None,
        parent: None,
        must_exist: true,
        on_disconnect: OnDisconnect::Detach,
    };
    let answer = within("invoke", desk.caller().invoke(request, soon("run"))).await;
    assert_eq!(answer.err().map(late), Some(unknown));
    held.reached().await;
    held.release();
    let run = desk.invoke(Ask::new("hang").id("run").must_exist()).await;
    assert!(run.joined, "it was admitted all the same");

    let mut held = house.gate.hold(only(CommitStep::BeforeSync, accepts_input));
    let request = DispatchRequest {
        session: desk.session.clone(),
        command: follow_up("stop"),
        expected_run: None,
    };
    let answer = within("dispatch", desk.caller().dispatch(request, soon("input"))).await;
    assert_eq!(answer.err().map(late), Some(unknown));
    held.reached().await;
    held.release();
    let again = desk.dispatch(follow_up("stop"), Some("input")).await;
    assert_eq!(again.run, Some(run.id));
    assert_eq!(
        desk.state().await.view.pending.len(),
        1,
        "it is queued once"
    );
}

/// C3: a repeat that comes while the first attempt is being written waits for it and gets its
/// answer.
#[tokio::test(flavor = "multi_thread")]
async fn c03_a_repeat_meets_the_attempt_that_is_being_written() {
    for step in STEPS {
        let house = House::new(quick());
        let desk = desk(&house, "repeat");
        let run = desk.invoke("wait-steer").await;
        let mut held = house.gate.hold(only(step, accepts_input));
        let send = || {
            let desk = desk.clone();
            tokio::spawn(async move { desk.dispatch(follow_up("stop"), Some("one")).await })
        };
        let first = send();
        held.reached().await;
        let repeats = [send(), send()];
        // Whoever comes later is not held up by them.
        assert_eq!(desk.state().await.view.pending.len(), 0);
        assert!(!repeats.iter().any(tokio::task::JoinHandle::is_finished));
        held.release();
        let first = first.await.expect("no panic");
        for repeat in repeats {
            assert_eq!(repeat.await.expect("no panic"), first);
        }
        assert_eq!(desk.state().await.view.pending.len(), 1);
        desk.steer("stop").await;
        run.finish().await;
    }
}

/// C13: a caller that leaves while its invoke waits behind a commit is a caller that left.
#[tokio::test(flavor = "multi_thread")]
async fn c13_a_caller_that_leaves_before_its_admission_is_stepped_cancels_its_run() {
    let house = House::new(quick());
    let desk = desk(&house, "impatient");
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, settles));
    let first = desk.invoke("say \"x\"").await;
    let (session, first_id) = (first.session, first.id);
    held.reached().await;
    let ask = Ask {
        on_disconnect: OnDisconnect::Cancel,
        ..Ask::new("hang")
    };
    let mut call = Box::pin(desk.open(ask));
    for _ in 0..100 {
        assert!(poll!(&mut call).is_pending());
        tokio::task::yield_now().await;
    }
    // The session's task has read the invoke once it has answered what came after it.
    assert_eq!(
        desk.rejected(Command::Abort).await,
        RejectionCode::RunCommandFailed
    );
    drop(call);
    assert_eq!(
        desk.rejected(Command::Abort).await,
        RejectionCode::RunCommandFailed
    );
    held.release();
    first.finish().await;
    let ended = async {
        loop {
            let state = desk.state().await;
            let runs = house.store().runs_of(session).expect("runs");
            match (runs.len(), state.view.active_run) {
                (2, None) => return runs,
                (2, Some(run)) => drop(desk.settled(run).await),
                _ => tokio::task::yield_now().await,
            }
        }
    };
    let runs = within("the run of a caller that left ends", ended).await;
    let second = runs.iter().find(|run| **run != first_id);
    let run = house
        .store()
        .run(*second.expect("a second run"))
        .await
        .expect("a read")
        .expect("a run");
    assert_eq!(
        run.settled.map(|settled| settled.outcome),
        Some(RunOutcome::Aborted)
    );
}

/// C21: the engine is told of an abort at once; only the answer waits for the disk.
#[tokio::test(flavor = "multi_thread")]
async fn c21_an_abort_reaches_the_engine_while_a_commit_is_written() {
    let house = House::new(quick());
    let desk = desk(&house, "at-once");
    let mut run = desk.invoke("say-words 100000 every 2ms").await;
    run.until_text().await;
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, accepts_input));
    let input = tokio::spawn({
        let desk = desk.clone();
        async move { desk.try_dispatch(follow_up("x"), None, None).await }
    });
    held.reached().await;
    let abort = tokio::spawn({
        let desk = desk.clone();
        async move { desk.abort().await }
    });
    // The text ends although nothing can be written.
    let quiet = async {
        loop {
            let before = desk.state().await.position;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            if desk.state().await.position == before {
                return;
            }
        }
    };
    within("the text ends", quiet).await;
    assert!(!abort.is_finished(), "its answer waits");
    let mut watch = desk.watch().await;
    held.release();
    abort.await.expect("no panic");
    input.await.expect("no panic").expect("an answer");
    let events = watch.until_settled().await;
    let record = settled(&events).remove(0);
    assert_eq!(
        record.undelivered.len(),
        1,
        "it was accepted first, and ended"
    );
    assert_eq!(code(&run.finish().await), "aborted");
}
