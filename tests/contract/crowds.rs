//! C25: many questions at once. Whatever becomes of each reaches the agent, or the agent is taken
//! for gone; it never waits for nothing.

use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::interaction::InteractionAnswer;
use sessionplane_core::domain::limits::MAX_OPEN_INTERACTIONS;
use sessionplane_server::adapters::memory::CommitStep;
use tokio::task::JoinHandle;

use crate::gate::{accepts_input, only};
use crate::house::House;
use crate::suite::desk::{Ask, Desk, follow_up, steer, within};
use crate::suite::hands::respond;
use crate::suite::run::{code, said};
use crate::suite::world::quick;

/// C25 C26: as many questions as an engine may have, all refused in one step of one thread.
#[tokio::test]
async fn c25_c26_refusals_of_many_questions_at_once_all_arrive() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "refused");
    let ask = |number| format!("ask q{number} confirm \"?\"\n");
    let prompt: String = (0..2 * MAX_OPEN_INTERACTIONS).map(ask).collect();
    let prompt = Ask::new(format!("{prompt}wait-answers")).agent("approvals-only");
    let events = desk.invoke(prompt).await.finish().await;
    assert_eq!(code(&events), "completed");
    let heard = said(&events, OutputChannel::Text);
    assert_eq!(
        heard.matches("nobody").count(),
        2 * MAX_OPEN_INTERACTIONS,
        "{heard}"
    );
}

/// A command on its way.
fn sent(desk: &Desk, command: Command) -> JoinHandle<()> {
    let desk = desk.clone();
    tokio::spawn(async move {
        desk.dispatch(command, None).await;
    })
}

/// C25 C17: as many answers as there can be questions, and a steer, become durable together.
#[tokio::test]
async fn c25_c17_answers_and_a_steer_of_one_round_all_arrive() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "answered");
    let ask = |number| format!("ask q{number} confirm \"?\"\n");
    let prompt: String = (0..MAX_OPEN_INTERACTIONS).map(ask).collect();
    let run = desk
        .invoke(Ask::new(format!("{prompt}wait-answers\nwait-steer")))
        .await;
    let mut watch = desk.watch().await;
    let mut view = watch.snapshot.view.clone();
    while view.interactions.len() < MAX_OPEN_INTERACTIONS {
        view.apply(&watch.event().await.event);
    }
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, accepts_input));
    let mut given = vec![sent(&desk, follow_up("say \" followed\""))];
    held.reached().await;
    for id in view.interactions.into_keys() {
        given.push(sent(&desk, respond(id, InteractionAnswer::Confirmed(true))));
    }
    given.push(sent(&desk, steer("say \" steered\"")));
    // One thread: what was sent so far is with the session's task.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    held.release();
    for given in given {
        within("an answer", given).await.expect("accepted");
    }
    let events = run.finish().await;
    assert_eq!(code(&events), "completed");
    let heard = said(&events, OutputChannel::Text);
    assert_eq!(
        heard.matches(": yes").count(),
        MAX_OPEN_INTERACTIONS,
        "{heard}"
    );
    assert!(heard.ends_with(" steered followed"), "{heard}");
}

/// C25 C36: an agent that asks and asks and takes nothing of what it is told is taken for gone.
#[tokio::test]
async fn c25_c36_an_agent_that_takes_no_refusal_is_taken_for_gone() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "besieged");
    let run = desk.invoke(Ask::new("x").agent("besieging")).await;
    let events = run.finish().await;
    assert_eq!(code(&events), "engine_gone");
}
