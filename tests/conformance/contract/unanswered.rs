//! C21, C25, B31, B33: questions that end without an answer, or were answered long ago.

use sessionplane_core::domain::command::{DispatchAnswer, RejectionCode};
use sessionplane_core::domain::event::{EventEnvelope, OutputChannel};
use sessionplane_core::domain::ids::{InteractionId, RunId};
use sessionplane_core::domain::interaction::{InteractionAnswer, ResolutionCause};
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::view::SessionView;

use super::desk::Desk;
use super::hands::{choice, fold, respond};
use super::interactions::{asking, causes, gone, text};
use super::run::{code, said};
use super::watch::types;
use super::world::{Worlds, quick};
/// C25: a deadline that passes tells the default, or that nobody answered.
pub(crate) async fn c25_a_deadline_passes_with_its_default_or_without(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "expired");
    let prompt = "ask a approval \"A?\" within 80ms default deny\n\
                  ask b input \"B?\" within 120ms\n\
                  ask c confirm \"C?\" within 1m default yes\nwait-answers";
    let (run, mut watch, open) = asking(&desk, prompt, 3).await;
    for question in &open {
        let deadline = question.deadline.expect("a deadline");
        assert!(deadline > question.asked_at);
    }
    for (n, told) in [(0, Some(choice("deny"))), (1, None)] {
        let (id, resolution) = watch.resolved().await;
        assert_eq!(
            (id, resolution.cause),
            (open[n].id, ResolutionCause::Expired)
        );
        assert_eq!((resolution.answer, resolution.origin), (told, None));
        gone(&desk, id, choice("allow")).await;
    }
    // In time, it is not the default that counts.
    desk.dispatch(
        respond(open[2].id, InteractionAnswer::Confirmed(false)),
        None,
    )
    .await;
    let heard = said(&run.finish().await, OutputChannel::Text);
    assert_eq!(heard, "a: denyb: nobodyc: no");
}
/// C25 B31: what is not open cannot be answered: unknown, of another run, or after its run.
pub(crate) async fn c25_b31_what_is_not_open_is_no_such_interaction(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "unknown");
    desk.run("say \"x\"").await;
    let never = InteractionId {
        run: RunId::from_bytes([7; 16]),
        ordinal: 1,
    };
    let yes = || InteractionAnswer::Confirmed(true);
    gone(&desk, never, yes()).await;
    // Withdrawn at the end of its run, and by the engine before it.
    let prompt = "ask q confirm \"Q?\"\nask r confirm \"R?\"\nwithdraw r\nwait-steer";
    let (run, mut watch, open) = asking(&desk, prompt, 2).await;
    if desk.questions().await.len() == 2 {
        watch.resolved().await;
    }
    gone(&desk, open[1].id, yes()).await;
    for id in [
        never,
        InteractionId {
            ordinal: 3,
            ..open[0].id
        },
        InteractionId {
            run: never.run,
            ..open[0].id
        },
    ] {
        gone(&desk, id, yes()).await;
    }
    desk.steer("say \"x\"").await;
    assert_eq!(code(&run.finish().await), "completed");
    gone(&desk, open[0].id, yes()).await;
    let gone_both = [Some(ResolutionCause::EngineGone); 2];
    assert_eq!(causes(&desk.view().await), gone_both);
    // A later run knows only its own.
    let (run, _watch, later) = asking(&desk, "ask q confirm \"Q?\"\nwait-answers", 1).await;
    assert_eq!(desk.questions().await, later);
    gone(&desk, open[0].id, yes()).await;
    let elsewhere = Desk::new(&world, "elsewhere");
    elsewhere.run("say \"x\"").await;
    gone(&elsewhere, later[0].id, yes()).await;
    // A guard against a later run counts here too.
    let guarded = desk
        .try_dispatch(respond(later[0].id, yes()), None, Some(never.run))
        .await;
    assert!(
        matches!(&guarded, Ok(DispatchAnswer::Rejected(no)) if no.code == RejectionCode::NoActiveRun),
        "{guarded:?}"
    );
    desk.dispatch(respond(later[0].id, yes()), None).await;
    run.finish().await;
}
/// C21 C25: an abort closes what is open, and tells it before the run's end.
pub(crate) async fn c21_c25_an_abort_closes_open_questions(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "aborted");
    let prompt = "ask a confirm \"A?\" within 1m\nask b input \"B?\"\nwait-answers";
    let (run, mut watch, open) = asking(&desk, prompt, 2).await;
    desk.abort().await;
    let events = watch.until_settled().await;
    let ends = ["interaction_resolved", "interaction_resolved"];
    assert!(types(&events).starts_with(&ends), "{:?}", types(&events));
    assert_eq!(code(&run.finish().await), "aborted");
    let view = desk.view().await;
    assert_eq!(causes(&view), [Some(ResolutionCause::Aborted); 2]);
    gone(&desk, open[0].id, InteractionAnswer::Confirmed(true)).await;
}
pub(crate) async fn c25_an_engine_that_dies_leaves_its_questions_unanswered(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "died");
    for (end, ending) in [("crash", "engine_gone"), ("fail broken \"x\"", "broken")] {
        let prompt = format!("ask a confirm \"A?\"\nask b input \"B?\"\nwait-steer\n{end}");
        let (run, _watch, open) = asking(&desk, &prompt, 2).await;
        desk.dispatch(
            respond(open[0].id, InteractionAnswer::Confirmed(true)),
            None,
        )
        .await;
        desk.steer("say \"x\"").await;
        assert_eq!(code(&run.finish().await), ending);
        let view = desk.view().await;
        let both = [
            Some(ResolutionCause::Answered),
            Some(ResolutionCause::EngineGone),
        ];
        assert_eq!(causes(&view), both);
        gone(&desk, open[1].id, text("x")).await;
    }
}
/// C25 B31: a question that was open in a crash is listed as ended, and takes no answer.
pub(crate) async fn c25_b31_a_restart_ends_open_questions_and_lists_them(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "restarted");
    let prompt = "ask a confirm \"A?\"\nask b input \"B?\" within 1m\nwait-answers";
    let (run, _watch, open) = asking(&desk, prompt, 2).await;
    let yes = || InteractionAnswer::Confirmed(true);
    desk.dispatch(respond(open[0].id, yes()), Some("one")).await;
    world.restart().await;
    for _ in 0..2 {
        let view = desk.view().await;
        let both = [
            Some(ResolutionCause::Answered),
            Some(ResolutionCause::EngineGone),
        ];
        assert_eq!(causes(&view), both);
        let ids: Vec<_> = view.interactions.keys().copied().collect();
        assert_eq!(ids, [open[0].id, open[1].id]);
        assert_eq!(view.interactions[&open[1].id].question, open[1].question);
        gone(&desk, open[1].id, text("x")).await;
        // What was accepted stays accepted under its id, and moves nothing.
        desk.dispatch(respond(open[0].id, yes()), Some("one")).await;
        let watch = desk.watch().await;
        assert_eq!(watch.snapshot.view, view, "a later observer");
        world.restart().await;
    }
    drop(run);
    desk.run("say \"next\"").await;
    assert_eq!(desk.view().await.interactions.len(), 0, "of an earlier run");
}
/// How many are open after these events, by the events alone.
fn open_after(snapshot: &SessionView, events: &[EventEnvelope]) -> usize {
    fold(snapshot.clone(), events).open_interactions().count()
}
/// C25 B33: whoever rebuilds from the stream ends with no question of the past open.
pub(crate) async fn c25_b33_after_50_answered_questions_none_is_open_for_anybody(
    worlds: &dyn Worlds,
) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "replayed");
    desk.run("say \"x\"").await;
    let mut first = desk.watch().await;
    let (early, start): (SessionView, Position) = (first.snapshot.view.clone(), first.position);
    let prompt = "ask q confirm \"Q?\"\nwait-answers\n".replace("q ", "qN ");
    let steps: String = (0..25)
        .map(|n| prompt.replace("qN", &format!("q{n}")))
        .collect();
    let mut events = Vec::new();
    for _ in 0..2 {
        let run = desk.invoke(&*steps).await;
        let mut answered = 0;
        while answered < 25 {
            let event = first.event().await;
            let asked = match &event.event.body {
                sessionplane_core::domain::event::EventBody::InteractionRequested {
                    interaction,
                } => Some(interaction.id),
                _ => None,
            };
            events.push(event);
            if let Some(id) = asked {
                assert_eq!(open_after(&early, &events), 1);
                desk.dispatch(respond(id, InteractionAnswer::Confirmed(true)), None)
                    .await;
                answered += 1;
            }
        }
        events.extend(first.until_settled().await);
        assert_eq!(code(&run.finish().await), "completed");
    }
    let told = types(&events);
    let count = |wanted: &str| told.iter().filter(|it| **it == wanted).count();
    assert_eq!(count("interaction_requested"), 50);
    assert_eq!(count("interaction_resolved"), 50);
    assert_eq!(open_after(&early, &events), 0);
    assert_eq!(desk.questions().await, []);
    // From the very beginning of what is retained, from a place in its middle, and from nothing.
    let middle = Position {
        seq: start.seq + 100,
        ..start
    };
    for from in [start, middle] {
        let watch = desk.watch_from(Some(from), None).await;
        assert!(watch.resumed);
        let open = fold(early.clone(), &watch.missed);
        assert_eq!(open.open_interactions().count(), 0);
        assert_eq!(watch.snapshot.view.open_interactions().count(), 0);
    }
    world.restart().await;
    let watch = desk.watch_from(Some(start), None).await;
    assert_eq!(watch.snapshot.view.open_interactions().count(), 0);
    assert_eq!(
        watch.snapshot.view.interactions.len(),
        25,
        "of the newest run"
    );
}
