//! C5, C10, C20, C25, C36 under engines that break every habit: whatever they do, each run settles once,
//! each input and each question ends once, and the session is idle afterwards.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sessionplane_core::domain::command::{Command, DispatchAnswer};
use sessionplane_core::domain::event::{EventBody, EventEnvelope};
use sessionplane_core::domain::ids::RunId;
use sessionplane_core::domain::interaction::{
    FieldKind, FormField, Interaction, InteractionAnswer, Shape,
};
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::view::Status;

use crate::house::{HOSTILE, House};
use crate::suite::desk::{Ask, Desk, follow_up, within};
use crate::suite::fates::{agree, told};
use crate::suite::hands::{choice, respond};
use crate::suite::watch::{settled, started};
use crate::suite::world::quick;

/// The first answer that fits.
fn answer_to(question: &Interaction) -> Command {
    let all = |fields: &[FormField]| {
        let answer = |field: &FormField| match &field.kind {
            FieldKind::Text => "x".to_owned(),
            FieldKind::Number => "1".to_owned(),
            FieldKind::Boolean => "true".to_owned(),
            FieldKind::Select(choices) => choices[0].id.clone(),
        };
        let pairs = fields.iter().map(|it| (it.name.clone(), answer(it)));
        pairs.collect()
    };
    let answer = match &question.question.shape {
        Shape::Approval(choices) | Shape::Select(choices) => choice(&choices[0].id),
        Shape::Confirm => InteractionAnswer::Confirmed(true),
        Shape::Input { .. } => InteractionAnswer::Text("x".to_owned()),
        Shape::Form(fields) => InteractionAnswer::Fields(all(fields)),
    };
    respond(question.id, answer)
}

/// C25: what was asked has ended once, before its run, and nothing else ended.
fn each_question_ends_once(events: &[EventEnvelope]) {
    let mut open = BTreeSet::new();
    for event in events {
        match &event.event.body {
            EventBody::InteractionRequested { interaction } => {
                assert!(open.insert(interaction.id), "asked twice");
            }
            EventBody::InteractionResolved { id, .. } => {
                assert!(open.remove(id), "{id} ended, and was not open");
            }
            EventBody::RunSettled { .. } => assert_eq!(open, BTreeSet::new()),
            _ => {}
        }
    }
}

/// Runs one hostile agent a few times, with follow-ups and aborts at random.
async fn bout(house: Arc<House>, seed: u64) {
    let world = house.world();
    let desk = Desk::new(&world, &format!("hostile-{seed}"));
    let agent: &'static str = Box::leak(format!("hostile-{seed}").into_boxed_str());
    let mut chance = StdRng::seed_from_u64(seed);
    let (mut runs, mut inputs, mut events) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..2 {
        let run = desk.invoke(Ask::new("anything").agent(agent)).await;
        let mut watch = desk.watch_from(Some(run.position), None).await;
        events.append(&mut watch.missed);
        for _ in 0..chance.random_range(0..4) {
            for _ in 0..chance.random_range(0..200) {
                tokio::task::yield_now().await;
            }
            let command = match chance.random_range(0..4) {
                0 => Command::Abort,
                1 => match desk.questions().await.pop() {
                    Some(question) => answer_to(&question),
                    None => follow_up("more"),
                },
                _ => follow_up("more"),
            };
            let answer = desk
                .try_dispatch(command, None, None)
                .await
                .expect("an answer");
            if let DispatchAnswer::Accepted(accepted) = answer {
                inputs.extend(accepted.input.map(|input| input.id));
            }
        }
        runs.push(run.id);
        if settled(&events).last().map(|settled| settled.id) != Some(run.id) {
            events.extend(watch.until_settled().await);
        }
        run.finish().await;
        let view = desk.state().await.view;
        assert_eq!((view.status(), view.pending.len()), (Status::Idle, 0));
        assert_eq!(view.open_interactions().count(), 0, "a question was left");
    }
    each_question_ends_once(&events);
    let records = settled(&events);
    let of = |records: &[RunRecord]| records.iter().map(|run| run.id).collect::<Vec<RunId>>();
    assert_eq!(of(&records), runs, "each settles once");
    assert_eq!(started(&events), runs);
    agree(&inputs, &told(&events), &records, &desk.entries().await);
    for (run, told) in runs.iter().zip(&records) {
        let mut asked = desk.record(*run).await;
        // Only who asks for the record is given the texts.
        for input in &mut asked.undelivered {
            assert!(input.text.take().is_some());
        }
        // Usage is compared as text: what a hostile engine reports may be no number.
        assert_eq!(format!("{asked:?}"), format!("{told:?}"));
        assert!(
            told.usage
                .cost_usd
                .is_none_or(|cost| cost.is_finite() && cost >= 0.0)
        );
    }
    assert!(
        desk.state()
            .await
            .view
            .usage
            .cost_usd
            .is_none_or(f64::is_finite)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn c36_200_hostile_agents_settle_every_run_once_and_every_input() {
    let house = House::new(quick());
    let bouts = (0..HOSTILE).map(|seed| (seed, tokio::spawn(bout(house.clone(), seed))));
    for (seed, bout) in bouts.collect::<Vec<_>>() {
        let ended = within("a bout", bout).await;
        ended.unwrap_or_else(|error| panic!("hostile-{seed}: {error}"));
    }
}
