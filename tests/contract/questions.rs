//! C25, C39, C16: questions over hours of virtual time, answers that wait for their sync, and waits
//! for a run that its server lost.

use std::time::Duration;

use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::interaction::{Interaction, InteractionAnswer, ResolutionCause};
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_server::adapters::memory::CommitStep;

use crate::gate::only;
use crate::house::House;
use crate::suite::desk::Desk;
use crate::suite::disconnects::outcome;
use crate::suite::hands::respond;
use crate::suite::run::{code, said};
use crate::suite::watch::Watch;
use crate::suite::world::quick;

/// A desk whose run asks, and an observer that has seen the question.
async fn asked(desk: &Desk, questions: usize) -> (Watch, Vec<Interaction>) {
    let mut watch = desk.watch().await;
    let mut view = watch.snapshot.view.clone();
    while view.interactions.len() < questions {
        view.apply(&watch.event().await.event);
    }
    (watch, view.interactions.into_values().collect())
}

/// C25: deadlines pass when they say, to the moment, with the default and without.
#[tokio::test(start_paused = true)]
async fn c25_deadlines_pass_when_they_say() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "deadlines");
    let prompt = "ask a approval \"A?\" within 20s default deny\n\
                  ask b input \"B?\" within 45s\nwait-answers";
    let run = desk.invoke(prompt).await;
    let (mut watch, open) = asked(&desk, 2).await;
    for (question, seconds) in open.iter().zip([20, 45]) {
        let deadline = question.asked_at.after(Duration::from_secs(seconds));
        assert_eq!(question.deadline, Some(deadline));
        let (id, resolution) = watch.resolved().await;
        assert_eq!(
            (id, resolution.cause),
            (question.id, ResolutionCause::Expired)
        );
        let late = resolution.at.since(deadline);
        assert!(resolution.at >= deadline, "too early");
        assert!(late < Duration::from_secs(1), "{late:?} too late");
    }
    let heard = said(&run.finish().await, OutputChannel::Text);
    assert_eq!(heard, "a: denyb: nobody");
}

/// C25: a question without a deadline stays open for as long as it takes.
#[tokio::test(start_paused = true)]
async fn c25_without_a_deadline_a_question_waits_for_days() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "patient");
    let run = desk.invoke("ask q confirm \"Q?\"\nwait-answers").await;
    let (watch, open) = asked(&desk, 1).await;
    drop(watch);
    tokio::time::advance(Duration::from_hours(72)).await;
    assert_eq!(desk.questions().await, open);
    let answer = InteractionAnswer::Confirmed(true);
    desk.dispatch(respond(open[0].id, answer), None).await;
    assert_eq!(code(&run.finish().await), "completed");
}

fn asks(_: CommitStep, commit: &Commit) -> bool {
    commit.interactions.iter().any(|it| it.resolution.is_none())
}

fn answers(_: CommitStep, commit: &Commit) -> bool {
    commit.interactions.iter().any(|it| it.resolution.is_some())
}

/// C25 C39: neither a question nor its answer is shown or heard before it is durable, and while an
/// answer is written no other one is taken.
#[tokio::test(flavor = "multi_thread")]
async fn c25_c39_questions_and_answers_are_durable_before_they_are_seen() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "durable");
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, asks));
    let run = desk.invoke("ask q input \"Q?\"\nwait-answers").await;
    held.reached().await;
    assert_eq!(desk.view().await.interactions.len(), 0, "not asked yet");
    held.release();
    let (mut watch, open) = asked(&desk, 1).await;
    let id = open[0].id;
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, answers));
    let answering = |text: &str| {
        let (desk, text) = (desk.clone(), text.to_owned());
        tokio::spawn(async move {
            let command = respond(id, InteractionAnswer::Text(text.clone()));
            desk.try_dispatch(command, Some(&text), None).await
        })
    };
    let first = answering("first");
    held.reached().await;
    assert_eq!(desk.questions().await, open, "not answered yet");
    let second = answering("second");
    assert_eq!(desk.questions().await, open, "and nobody else answers");
    assert!(!first.is_finished(), "nothing is acknowledged");
    assert!(!second.is_finished(), "the first may still come to nothing");
    held.release();
    let second = format!("{:?}", second.await.expect("no panic"));
    assert!(second.contains("NoSuchInteraction"), "{second}");
    let first = format!("{:?}", first.await.expect("no panic"));
    assert!(first.contains("Accepted"), "{first}");
    assert_eq!(watch.resolved().await.0, id);
    let heard = said(&run.finish().await, OutputChannel::Text);
    assert_eq!(heard, "q: first");
}

/// C16 C36: whoever waits for a run that its server loses is told to ask again, and then its end.
#[tokio::test(flavor = "multi_thread")]
async fn c16_c36_a_wait_for_a_lost_run_is_told_to_ask_again() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "lost");
    let run = desk.invoke("wait-steer\nsay \"x\"").await;
    let id = run.id;
    let waiting = (0..4).map(|_| {
        let desk = desk.clone();
        tokio::spawn(async move { desk.wait_run(id, None).await })
    });
    let waiting: Vec<_> = waiting.collect();
    house.store().revoke(run.session).await.expect("revoked");
    let steered = crate::suite::desk::steer("say \"y\"");
    let refused = desk.try_dispatch(steered, None, None).await;
    refused.expect_err("its commit was refused");
    for waited in waiting {
        match waited.await.expect("no panic") {
            Ok(record) => assert_eq!(outcome(&record).code(), Some("interrupted")),
            Err(error) => assert_eq!(
                (error.reason, error.outcome),
                (Reason::ServingLost, Outcome::Unknown)
            ),
        }
    }
    // Until its settlement is written, who asks again may be told the same again.
    let record = loop {
        match desk.wait_run(id, None).await {
            Ok(record) => break record,
            Err(error) => assert_eq!(error.reason, Reason::ServingLost),
        }
    };
    assert_eq!(outcome(&record).code(), Some("interrupted"));
    run.error().await;
}
