//! C25, B31, B33: a question is answered once, by whoever comes first, or told to have no answer.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use sessionplane_core::contract::InvokeEvent;
use sessionplane_core::domain::command::{Command, DispatchAnswer, RejectionCode};
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::InteractionId;
use sessionplane_core::domain::interaction::{
    Interaction, InteractionAnswer, InteractionKind, ResolutionCause,
};
use sessionplane_core::domain::provenance::Channel;
use sessionplane_core::domain::view::SessionView;

use super::desk::{Ask, Desk, follow_up, steer};
use super::hands::{choice, respond};
use super::run::{Run, code, said};
use super::watch::{Watch, types};
use super::world::{Worlds, quick};

pub(super) fn text(text: &str) -> InteractionAnswer {
    InteractionAnswer::Text(text.to_owned())
}
pub(super) fn fields(pairs: &[(&str, &str)]) -> InteractionAnswer {
    let pairs = pairs
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    InteractionAnswer::Fields(pairs.collect::<BTreeMap<_, _>>())
}
/// A run that asks, and an observer that has seen as many questions.
pub(super) async fn asking(
    desk: &Desk,
    prompt: &str,
    questions: usize,
) -> (Run, Watch, Vec<Interaction>) {
    let run = desk.invoke(prompt).await;
    let (watch, open) = asked(desk, questions).await;
    (run, watch, open)
}
/// An observer that has seen so many questions of the active run.
pub(super) async fn asked(desk: &Desk, questions: usize) -> (Watch, Vec<Interaction>) {
    let mut watch = desk.watch().await;
    let mut view = watch.snapshot.view.clone();
    while view.interactions.len() < questions {
        view.apply(&watch.event().await.event);
    }
    (watch, view.interactions.into_values().collect())
}
pub(super) async fn gone(desk: &Desk, id: InteractionId, answer: InteractionAnswer) {
    let rejection = desk.rejection(respond(id, answer)).await;
    let told = (rejection.code, rejection.retryable);
    assert_eq!(told, (RejectionCode::NoSuchInteraction, false));
}
/// How the questions of a session ended, as state lists them.
pub(super) fn causes(view: &SessionView) -> Vec<Option<ResolutionCause>> {
    let cause = |it: &Interaction| it.resolution.as_ref().map(|resolution| resolution.cause);
    view.interactions.values().map(cause).collect()
}
/// A line of each kind, the kind, an answer, and how the agent says it.
fn each_kind() -> [(
    &'static str,
    InteractionKind,
    InteractionAnswer,
    &'static str,
); 5] {
    [
        (
            "ask q approval \"Deploy?\" details \"make deploy\"",
            InteractionKind::Approval,
            choice("deny"),
            "q: deny",
        ),
        (
            "ask q select \"Which?\" choices a=A b=\"The second\"",
            InteractionKind::Select,
            choice("b"),
            "q: b",
        ),
        (
            "ask q confirm \"Sure?\"",
            InteractionKind::Confirm,
            InteractionAnswer::Confirmed(true),
            "q: yes",
        ),
        (
            "ask q input \"Name?\"",
            InteractionKind::Input,
            text("yes, no \u{e9}\n"),
            "q: yes, no \u{e9}\n",
        ),
        (
            "ask q form \"Where?\" field zone:north/south required field copies:number field dry:boolean",
            InteractionKind::Form,
            fields(&[("copies", "-2.5"), ("zone", "south")]),
            "q: copies=-2.5 zone=south",
        ),
    ]
}
/// C25 C8: each kind is asked, shown, answered, told and heard.
pub(crate) async fn c25_each_kind_is_asked_answered_and_heard(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "kinds");
    for (ask, kind, answer, heard) in each_kind() {
        let prompt = format!("{ask}\nwait-answers\nsay \"!\"");
        let (run, mut watch, open) = asking(&desk, &prompt, 1).await;
        let [question] = &open[..] else {
            panic!("{open:?}");
        };
        assert_eq!((question.question.kind(), question.id.run), (kind, run.id));
        assert_eq!((&question.resolution, question.deadline), (&None, None));
        assert_eq!(desk.questions().await, open, "the state lists it");
        let accepted = desk
            .dispatch(respond(question.id, answer.clone()), None)
            .await;
        assert_eq!((accepted.run, accepted.input), (Some(run.id), None));
        let (id, resolution) = watch.resolved().await;
        assert_eq!(
            (id, resolution.cause),
            (question.id, ResolutionCause::Answered)
        );
        assert_eq!(resolution.answer, Some(answer.clone()));
        let origin = resolution.origin.clone().expect("who answered");
        assert_eq!(origin.channel, Channel::Respond);
        let id = run.id;
        let events = run.finish().await;
        assert_eq!(code(&events), "completed");
        assert_eq!(said(&events, OutputChannel::Text), format!("{heard}!"));
        let told: Vec<_> = events
            .iter()
            .filter(|event| is_of_question(event))
            .collect();
        let wanted = [
            &InvokeEvent::InteractionRequested {
                interaction: Box::new(question.clone()),
            },
            &InvokeEvent::InteractionResolved {
                id: question.id,
                resolution: Box::new(resolution),
            },
        ];
        assert_eq!(told, wanted, "the invoke's stream tells both");
        gone(&desk, question.id, answer).await;
        let view = desk.view().await;
        assert_eq!(causes(&view), [Some(ResolutionCause::Answered)]);
        assert_eq!(view.last_run.map(|last| last.run), Some(id));
    }
}
fn is_of_question(event: &InvokeEvent) -> bool {
    matches!(
        event,
        InvokeEvent::InteractionRequested { .. } | InvokeEvent::InteractionResolved { .. }
    )
}
/// C25 C61: of a secret only the engine hears.
pub(crate) async fn c25_a_secret_answer_is_nowhere_to_be_read(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "secret");
    let prompt = "ask q input \"Token?\" secret\nwait-answers";
    let (run, mut watch, open) = asking(&desk, prompt, 1).await;
    desk.dispatch(respond(open[0].id, text("hunter2")), Some("one"))
        .await;
    let (_, resolution) = watch.resolved().await;
    assert_eq!(resolution.cause, ResolutionCause::Answered);
    assert_eq!(resolution.answer, None);
    let events = run.finish().await;
    assert_eq!(said(&events, OutputChannel::Text), "q: 7 bytes");
    for restarts in [false, true] {
        if restarts {
            world.restart().await;
        }
        let view = desk.view().await;
        let kept = view.interactions.values().next().expect("it stays listed");
        let resolution = kept.resolution.clone().expect("resolved");
        assert_eq!((resolution.answer, &kept.question.default), (None, &None));
        let all = format!("{:?}{events:?}", desk.all().await);
        assert!(!all.contains("hunter2"), "{all}");
    }
    desk.dispatch(respond(open[0].id, text("hunter2")), Some("one"))
        .await;
    let other = respond(open[0].id, text("hunter3"));
    let error = desk.try_dispatch(other, Some("one"), None).await;
    assert_eq!(error.expect_err("reused").reason, Reason::RequestIdReused);
}
pub(crate) async fn c25_several_wait_and_are_answered_in_any_order(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "several");
    let prompt = "ask a confirm \"A?\"\nask b input \"B?\"\nask c approval \"C?\"\nwait-answers";
    let (run, mut watch, open) = asking(&desk, prompt, 3).await;
    let titles: Vec<_> = open.iter().map(|it| &*it.question.title).collect();
    assert_eq!(titles, ["A?", "B?", "C?"]);
    let answers = [
        InteractionAnswer::Confirmed(false),
        text("x"),
        choice("allow"),
    ];
    for n in [2, 0, 1] {
        desk.dispatch(respond(open[n].id, answers[n].clone()), None)
            .await;
        assert_eq!(watch.resolved().await.0, open[n].id);
        gone(&desk, open[n].id, answers[n].clone()).await;
    }
    let heard = said(&run.finish().await, OutputChannel::Text);
    assert_eq!(heard, "c: allowa: nob: x");
}
/// C25: the one who asked for the run is gone; somebody else answers.
pub(crate) async fn c25_another_client_answers_when_the_first_is_gone(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "handed-over");
    let run = desk
        .invoke(Ask::new("ask q confirm \"Go on?\"\nwait-answers").id("one"))
        .await;
    let id = run.id;
    let (watch, _) = asked(&desk, 1).await;
    drop((run, watch));
    // Who comes later is shown the question, and told once how it ended.
    let (mut watch, open) = asked(&desk, 1).await;
    assert_eq!(desk.questions().await, open);
    let answer = InteractionAnswer::Confirmed(true);
    desk.dispatch(respond(open[0].id, answer), None).await;
    assert_eq!(watch.resolved().await.0, open[0].id);
    watch.until_settled().await;
    let again = desk
        .run(Ask::new("ask q confirm \"Go on?\"\nwait-answers").id("one"))
        .await;
    assert_eq!(code(&again), "completed");
    let entries = desk.entries().await;
    let heard = format!("{entries:?}");
    assert!(heard.contains("q: yes"), "{heard}");
    assert_eq!(entries.last().and_then(|entry| entry.run), Some(id));
}
/// C25: of answers that race exactly one is delivered.
pub(crate) async fn c25_of_16_racing_answers_one_is_delivered(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "race");
    for round in 0..8 {
        let (run, mut watch, open) = asking(&desk, "ask q input \"Which?\"\nwait-answers", 1).await;
        let id = open[0].id;
        let racing = (0..16).map(|n| {
            let desk = desk.clone();
            tokio::spawn(async move {
                let request = format!("{round}-{n}");
                let command = respond(id, text(&n.to_string()));
                let answer = desk.try_dispatch(command, Some(&request), None).await;
                (n, answer.expect("an answer"))
            })
        });
        let mut accepted = Vec::new();
        for answer in join_all(racing).await {
            match answer.expect("no panic") {
                (n, DispatchAnswer::Accepted(_)) => accepted.push(n),
                (_, DispatchAnswer::Rejected(rejection)) => {
                    assert_eq!(rejection.code, RejectionCode::NoSuchInteraction);
                }
            }
        }
        let [n] = accepted[..] else {
            panic!("{accepted:?} were all accepted");
        };
        let events = watch.until_settled().await;
        let ends = types(&events);
        let ends = ends.iter().filter(|it| **it == "interaction_resolved");
        assert_eq!(ends.count(), 1);
        let heard = said(&run.finish().await, OutputChannel::Text);
        assert_eq!(heard, format!("q: {n}"));
        // The one that was accepted is told so again; the others find nothing, as before.
        for other in [n, (n + 1) % 16] {
            let request = format!("{round}-{other}");
            let command = respond(id, text(&other.to_string()));
            let again = desk.try_dispatch(command, Some(&request), None).await;
            let yes = matches!(again, Ok(DispatchAnswer::Accepted(_)));
            assert_eq!(yes, other == n, "{again:?}");
        }
    }
}
pub(crate) async fn c25_an_answer_of_another_shape_leaves_it_open(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "shapes");
    let prompt = "ask a approval \"A?\"\nask c confirm \"C?\"\nask i input \"I?\"\n\
                  ask f form \"F?\" field n:number required field z:north/south\nwait-answers";
    let (run, _watch, open) = asking(&desk, prompt, 4).await;
    let before = desk.state().await;
    let yes = || InteractionAnswer::Confirmed(true);
    let wrong = [
        (0, vec![choice("perhaps"), choice(""), yes(), text("allow")]),
        (1, vec![choice("yes"), text("yes"), fields(&[])]),
        (2, vec![choice("x"), yes(), fields(&[("text", "x")])]),
        (
            3,
            vec![
                fields(&[]),
                fields(&[("n", "many")]),
                fields(&[("n", "1"), ("z", "west")]),
                fields(&[("n", "1"), ("other", "x")]),
                text("n=1"),
            ],
        ),
    ];
    for (n, answers) in wrong {
        for answer in answers {
            let rejection = desk.rejection(respond(open[n].id, answer)).await;
            let told = (rejection.code, rejection.retryable);
            assert_eq!(told, (RejectionCode::InvalidCommand, false), "{n}");
        }
    }
    let long = text(&"x".repeat(16 * 1024 + 1));
    let error = desk
        .try_dispatch(respond(open[2].id, long), None, None)
        .await;
    let error = error.expect_err("a limit");
    assert_eq!(error.reason, Reason::TooLarge);
    assert_eq!(error.violations[0].field, "respond.answer");
    assert_eq!(
        desk.state().await,
        before,
        "all are open, and nobody is told"
    );
    let right = [choice("allow"), yes(), text(""), fields(&[("n", "1")])];
    for (question, answer) in open.iter().zip(right) {
        desk.dispatch(respond(question.id, answer), None).await;
    }
    assert_eq!(code(&run.finish().await), "completed");
}
/// C25: text that waits in the queue never answers a question.
pub(crate) async fn c25_queued_text_never_answers(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "queued");
    let prompt = "ask q confirm \"Q?\"\nask i input \"I?\"\nwait-answers\nturn\nsay \"end\"";
    let (run, mut watch, open) = asking(&desk, prompt, 2).await;
    let words = ["yes", "allow", "q: yes", "true"];
    let mut inputs = Vec::new();
    for word in words {
        inputs.push(desk.steer(&format!("say \"{word}\"")).await);
        inputs.push(desk.follow_up(word).await);
    }
    let mut view = desk.view().await;
    assert_eq!(view.open_interactions().count(), 2);
    assert_eq!(view.pending.len(), inputs.len());
    for _ in 0..20 {
        tokio::task::yield_now().await;
        view = desk.view().await;
        assert_eq!(view.open_interactions().count(), 2, "nobody answered");
    }
    for (question, answer) in open
        .iter()
        .zip([InteractionAnswer::Confirmed(false), text("me")])
    {
        desk.dispatch(respond(question.id, answer), None).await;
        assert_eq!(watch.resolved().await.0, question.id);
    }
    let heard = said(&run.finish().await, OutputChannel::Text);
    assert!(heard.starts_with("q: noi: me"), "{heard}");
    let entries = desk.entries().await;
    let delivered = format!("{entries:?}");
    for word in words {
        assert!(
            delivered.contains(word),
            "{word} was delivered as what it is"
        );
    }
}
/// C25 C20: an answer is no input: it moves no queue, and a full queue is not in its way.
pub(crate) async fn c25_an_answer_needs_no_room_in_the_queue(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "full");
    let prompt = "ask q confirm \"Q?\"\nwait-answers\nstop";
    let (run, _watch, open) = asking(&desk, prompt, 1).await;
    for _ in 0..quick().limits.max_pending_inputs {
        desk.follow_up("stop").await;
    }
    let full = desk.try_dispatch(steer("x"), None, None).await;
    assert_eq!(full.expect_err("full").reason, Reason::LimitReached);
    let full = desk.try_dispatch(follow_up("x"), None, None).await;
    assert_eq!(full.expect_err("full").reason, Reason::LimitReached);
    desk.dispatch(
        respond(open[0].id, InteractionAnswer::Confirmed(true)),
        None,
    )
    .await;
    desk.wait_run(run.id, Some(Duration::from_secs(50)))
        .await
        .expect("it ended");
    assert_eq!(
        desk.rejected(Command::Abort).await,
        RejectionCode::NoActiveRun
    );
    run.finish().await;
}
