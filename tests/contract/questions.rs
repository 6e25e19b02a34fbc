//! C25, C39, C16: questions over hours of virtual time, answers that wait for their sync, and waits
//! for a run that its server lost.

use std::fmt::Write as _;
use std::time::Duration;

use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::interaction::{Interaction, InteractionAnswer, ResolutionCause};
use sessionplane_core::domain::limits::MAX_OPEN_INTERACTIONS;
use sessionplane_core::ports::engine::MAX_UNSETTLED_ASKS;
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_server::adapters::memory::CommitStep;

use crate::gate::{accepts_input, only};
use crate::house::House;
use crate::suite::desk::{Ask, Desk, follow_up, steer};
use crate::suite::disconnects::outcome;
use crate::suite::hands::respond;
use crate::suite::run::{code, said};
use crate::suite::watch::{Watch, settled};
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
    let steered = steer("say \"y\"");
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

/// C25 C26: a whole burst of questions that cannot be asked, more than a run may have open: the
/// agent is told of each, and the run goes on.
#[tokio::test]
async fn c25_c26_a_burst_of_questions_that_cannot_be_asked_is_refused_to_the_last() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "burst");
    let mut scenario = String::new();
    for number in 0..MAX_UNSETTLED_ASKS {
        writeln!(scenario, "ask q{number} confirm \"Q?\"").expect("a string");
    }
    scenario.push_str("wait-answers");
    let ask = Ask::new(&scenario).agent("approvals-only");
    let heard = said(&desk.invoke(ask).await.finish().await, OutputChannel::Text);
    assert_eq!(heard.matches("nobody").count(), MAX_UNSETTLED_ASKS);
}

/// C25 C19: every answer that a run may wait for and a steer become durable at once, and all of
/// them reach the agent.
#[tokio::test]
async fn c25_c19_sixteen_answers_and_a_steer_of_one_commit_all_reach_the_agent() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "crowd");
    let mut scenario = String::new();
    for number in 0..MAX_OPEN_INTERACTIONS {
        writeln!(scenario, "ask q{number} input \"Q?\"").expect("a string");
    }
    scenario.push_str("wait-answers");
    let run = desk.invoke(scenario.as_str()).await;
    let (mut watch, open) = asked(&desk, MAX_OPEN_INTERACTIONS).await;
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, accepts_input));
    let dispatching = |command: Command| {
        let desk = desk.clone();
        tokio::spawn(async move { desk.dispatch(command, None).await })
    };
    let mut accepted = vec![dispatching(follow_up("say \"later\""))];
    held.reached().await;
    for (number, question) in open.iter().enumerate() {
        let answer = InteractionAnswer::Text(format!("a{number}"));
        accepted.push(dispatching(respond(question.id, answer)));
    }
    accepted.push(dispatching(steer("say \"steered\"")));
    // One thread: each gets its turn, and waits behind the commit.
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    house.gate.open();
    held.release();
    for accepted in accepted {
        accepted.await.expect("no panic");
    }
    let settled = settled(&watch.until_settled().await);
    assert_eq!(settled[0].undelivered, [], "all were shown");
    let heard = said(&run.finish().await, OutputChannel::Text);
    for number in 0..MAX_OPEN_INTERACTIONS {
        let answer = format!("q{number}: a{number}");
        assert!(heard.contains(&answer), "{answer} in {heard}");
    }
    assert!(heard.contains("steered"), "{heard}");
}

/// C25 C36: an agent that leaves everything untaken is given up; nothing that it is told is left
/// out, so that it would wait for it for ever.
#[tokio::test]
async fn c25_c36_an_agent_that_takes_no_command_is_given_up_and_its_run_settles() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "jammed");
    let run = desk.invoke(Ask::new("anything").agent("jammed")).await;
    assert_eq!(code(&run.finish().await), "engine_gone");
    assert_eq!(desk.questions().await, []);
}
