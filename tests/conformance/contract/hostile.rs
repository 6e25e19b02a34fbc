//! C5, C10, C20, C22, C24, C25, C36 under engines that break every habit: whatever they do, each run settles once,
//! each input and each question ends once, and the session is idle afterwards.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sessionplane_core::domain::command::{Command, DispatchAnswer, RejectionCode};
use sessionplane_core::domain::compaction::CompactionOutcome;
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::event::{EventBody, EventEnvelope};
use sessionplane_core::domain::ids::{EntryId, RunId};
use sessionplane_core::domain::interaction::{
    FieldKind, FormField, Interaction, InteractionAnswer, Shape,
};
use sessionplane_core::domain::limits::MAX_ENTRY_TEXT_BYTES;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::view::Status;

use super::desk::{Ask, Desk, follow_up, within};
use super::fates::{agree, told};
use super::hands::{choice, compact, navigate, respond, set_model, set_thinking};
use super::watch::{settled, started};
use super::world::{World, Worlds, quick};

/// How many hostile agents are tried in every world.
const FEW: u64 = 12;

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

/// C22: whatever an agent makes of a compaction, it ends once, with one summary or as if nothing had
/// been.
async fn compacts(desk: &Desk, chance: &mut StdRng) {
    let before = desk.entries().await;
    let mut watch = desk.watch().await;
    let answer = desk.try_dispatch(compact("the names"), None, None).await;
    if let DispatchAnswer::Rejected(rejection) = answer.expect("an answer") {
        return assert_eq!(rejection.code, RejectionCode::NothingToCompact);
    }
    if chance.random_ratio(1, 3) {
        for _ in 0..chance.random_range(0..200) {
            tokio::task::yield_now().await;
        }
        desk.abort_if_active().await;
    }
    let told = watch.until_type("compaction_finished").await;
    let outcome = told.into_iter().last().map(|event| event.event.body);
    let mut after = desk.entries().await;
    if let Some(EventBody::CompactionFinished {
        outcome: CompactionOutcome::Completed(id),
    }) = outcome
    {
        let entry = after.pop().expect("the summary");
        assert_eq!(entry.id, id);
        let EntryBody::Compaction {
            summary,
            first_kept,
            ..
        } = entry.body
        else {
            panic!("no summary: {entry:?}");
        };
        assert!(!summary.text.is_empty() && summary.text.len() <= MAX_ENTRY_TEXT_BYTES);
        let known = |kept: EntryId| before.iter().any(|entry| entry.id == kept);
        assert!(first_kept.is_none_or(known), "{first_kept:?} is not there");
    }
    assert_eq!(after, before, "nothing else is written");
    assert_eq!(desk.view().await.status(), Status::Idle);
}

/// What people do between runs, some of it.
async fn between_runs(desk: &Desk, chance: &mut StdRng) {
    for _ in 0..chance.random_range(1..4) {
        let models = [None, Some("blunt"), Some("devious")];
        let levels = [None, Some("low"), Some("high")];
        let command = match chance.random_range(0..5) {
            0 => set_model(models[chance.random_range(0..models.len())]),
            1 => set_thinking(levels[chance.random_range(0..levels.len())]),
            2 => {
                let entries = desk.entries().await;
                navigate(entries[chance.random_range(0..entries.len())].id)
            }
            _ => {
                compacts(desk, chance).await;
                continue;
            }
        };
        let told = format!("{command:?}");
        let answer = desk.try_dispatch(command, None, None).await;
        if let DispatchAnswer::Rejected(rejection) = answer.expect("an answer") {
            // A level that the model does not have.
            assert_eq!(rejection.code, RejectionCode::InvalidCommand, "{told}");
        }
    }
}

/// Runs one hostile agent a few times, with follow-ups, answers and aborts at random, and what is
/// done between runs.
async fn bout(world: Arc<dyn World>, seed: u64) {
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
        between_runs(&desk, &mut chance).await;
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

/// Everything of each of these agents, all at once.
pub(crate) async fn bouts(world: &Arc<dyn World>, seeds: std::ops::Range<u64>) {
    let bouts = seeds.map(|seed| (seed, tokio::spawn(bout(world.clone(), seed))));
    for (seed, bout) in bouts.collect::<Vec<_>>() {
        let ended = within("a bout", bout).await;
        ended.unwrap_or_else(|error| panic!("hostile-{seed}: {error}"));
    }
}

pub(crate) async fn c36_c22_hostile_agents_break_nothing(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    bouts(&world, 0..FEW).await;
}
