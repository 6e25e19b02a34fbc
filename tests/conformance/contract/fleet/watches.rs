//! Watches: a snapshot, a bookmark, changes.

use sessionplane_core::contract::fleet::{ListInteractions, SessionOrder};
use sessionplane_core::contract::{CallOptions, InvokeEvent};
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::ids::{InteractionId, SessionName};
use sessionplane_core::domain::interaction::InteractionAnswer;
use sessionplane_core::domain::time::Timestamp;

use super::super::desk::{named, within};
use super::super::hands::respond;
use super::FleetWorlds;
use super::crew::{Crew, Lookout, new, relabel, rename};

pub(crate) async fn c47_a_watch_tells_what_there_is_and_then_what_changes(
    worlds: &dyn FleetWorlds,
) {
    let crew = Crew::new(worlds).await;
    crew.create(new("one")).await;
    let two = crew.create(new("two")).await.id;
    let mut all = crew.watch("").await;
    let mut net = crew.watch("labels.team = net").await;
    assert_eq!(all.snapshot().await, ["one", "two"]);
    assert_eq!(net.snapshot().await, [""; 0]);
    crew.create(new("three")).await;
    all.until(|it| it.of("three").is_some()).await;
    crew.update("two", relabel("team=net")).await;
    net.until(|it| it.of("two").is_some()).await;
    crew.update("two", rename("zwei")).await;
    net.until(|it| it.of("zwei").is_some()).await;
    let run = crew.desk("zwei").invoke("say \"x\"\nhang").await;
    let works = |it: &Lookout| it.of("zwei").map(|it| it.phase) == Some(Phase::Working);
    all.until(works).await;
    net.until(works).await;
    crew.desk("zwei").abort().await;
    run.finish().await;
    all.until(|it| it.of("zwei").is_some_and(|it| it.last_run.is_some()))
        .await;
    // Who is not wanted any more is told gone, once, and to those alone who wanted it.
    crew.update("zwei", relabel("team=docs")).await;
    net.until(|it| it.seen.is_empty()).await;
    assert_eq!(net.gone, [two]);
    crew.try_delete(named("zwei"), false, None)
        .await
        .expect("deleted");
    all.until(|it| it.gone == [two]).await;
    assert_eq!(all.names(), ["one", "three"]);
    let listed = crew.list_by("", SessionOrder::Id, 0).await;
    let seen: Vec<_> = all.seen.values().cloned().collect();
    let names = |sessions: &[_]| super::crew::names(sessions);
    assert_eq!(names(&listed), names(&seen));
}

pub(crate) async fn c47_a_bookmark_goes_on_where_it_was_given(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    for name in ["one", "two", "three"] {
        crew.create(new(name)).await;
    }
    let mut first = crew.watch("").await;
    first.snapshot().await;
    crew.update("one", relabel("a=1")).await;
    first
        .until(|it| it.of("one").is_some_and(|it| !it.labels.is_empty()))
        .await;
    let bookmark = first.bookmark.clone();
    drop(first);
    crew.update("two", relabel("a=2")).await;
    crew.try_delete(named("three"), false, None)
        .await
        .expect("deleted");
    let mut second = crew.watch_from("", bookmark.clone()).await;
    second.until(|it| !it.gone.is_empty()).await;
    assert!(!second.expired);
    assert_eq!(second.names(), ["two"], "what was told is not told again");
    let other = crew.try_watch("paused = true", bookmark).await.err();
    let other = other.expect("a bookmark of another filter");
    assert_eq!(other.violations[0].field, "bookmark");
}

pub(crate) async fn c47_a_bookmark_of_another_start_begins_anew(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    crew.create(new("one")).await;
    let mut first = crew.watch("").await;
    first.snapshot().await;
    let (bookmark, revision) = (
        first.bookmark.clone(),
        first.of("one").map(|it| it.revision),
    );
    drop(first);
    crew.world.restart().await;
    crew.create(new("two")).await;
    let mut second = crew.watch_from("", bookmark).await;
    assert_eq!(second.snapshot().await, ["one", "two"]);
    assert!(second.expired, "it is said first");
    assert!(second.of("one").map(|it| it.revision) > revision);
}

pub(crate) async fn c46_b25_an_open_question_is_seen_by_everybody_at_once(
    worlds: &dyn FleetWorlds,
) {
    let crew = Crew::new(worlds).await;
    let desk = crew.desk("docs");
    let mut lookout = crew.watch("phase = NEEDS_INPUT").await;
    lookout.snapshot().await;
    let mut run = desk.invoke("ask q confirm \"Go on?\"\nwait-answers").await;
    let events = run
        .until(|event| matches!(event, InvokeEvent::InteractionRequested { .. }))
        .await;
    // From the event on, and not some time later.
    let got = crew.get("docs").await;
    assert_eq!((got.phase, got.questions.len()), (Phase::NeedsInput, 1));
    assert_eq!(crew.names("phase = NEEDS_INPUT").await, ["docs"]);
    assert_eq!(crew.names("phase = WORKING").await, [""; 0]);
    lookout.until(|it| it.of("docs").is_some()).await;
    assert_eq!(lookout.of("docs"), Some(&got), "one revision, one session");
    let fleet = crew.fleet();
    let open = || fleet.list_interactions(ListInteractions::default(), CallOptions::default());
    let page = within("questions", open()).await.expect("a page");
    assert_eq!(page.interactions.len(), 1);
    let asked = &page.interactions[0];
    assert_eq!(asked.session, got.id);
    assert_eq!(asked.interaction, got.questions[0]);
    let Some(InvokeEvent::InteractionRequested { interaction }) = events.last() else {
        panic!("{events:?}");
    };
    assert_eq!(**interaction, asked.interaction);
    let yes = InteractionAnswer::Confirmed(true);
    let mut watch = desk.watch().await;
    desk.dispatch(respond(interaction.id, yes), None).await;
    let resolved = |body: &EventBody| matches!(body, EventBody::InteractionResolved { .. });
    loop {
        let event = watch.next().await.expect("an event").expect("no error");
        if resolved(&event.event.body) {
            break;
        }
    }
    assert_ne!(crew.get("docs").await.phase, Phase::NeedsInput);
    run.finish().await;
    lookout.until(|it| it.seen.is_empty()).await;
    let page = within("questions", open()).await.expect("a page");
    assert_eq!(page.interactions, []);
    let wrong = ListInteractions {
        filter: "phase = SLEEPY".to_owned(),
        ..ListInteractions::default()
    };
    let wrong = fleet.list_interactions(wrong, CallOptions::default()).await;
    assert_eq!(
        wrong.expect_err("no filter").reason,
        Reason::InvalidArgument
    );
}

/// When it was asked, which it is, and whose.
type Asked = (Timestamp, InteractionId, String);

/// All pages of a size.
async fn all_asked(crew: &Crew, page_size: u32) -> Vec<Asked> {
    let (mut found, mut page_token) = (Vec::new(), None);
    loop {
        let request = ListInteractions {
            page_token,
            page_size,
            ..ListInteractions::default()
        };
        let page = crew.questions(request).await;
        assert!(page_size == 0 || page.interactions.len() <= page_size as usize);
        found.extend(page.interactions.into_iter().map(|it| {
            let name = it.name.expect("a name").to_string();
            (it.interaction.asked_at, it.interaction.id, name)
        }));
        page_token = page.next;
        if page_token.is_none() {
            return found;
        }
    }
}

pub(crate) async fn c25_c64_open_questions_are_paged_in_the_order_in_which_they_were_asked(
    worlds: &dyn FleetWorlds,
) {
    let crew = Crew::new(worlds).await;
    let (mut asked, mut runs) = (Vec::new(), Vec::new());
    for number in 0..3 {
        let name = format!("s-{number}");
        let desk = crew.desk(&name);
        let script = "ask a confirm \"A?\"\nask b confirm \"B?\"\nwait-answers";
        let mut run = desk.invoke(script).await;
        for _ in 0..2 {
            let events = run
                .until(|event| matches!(event, InvokeEvent::InteractionRequested { .. }))
                .await;
            let Some(InvokeEvent::InteractionRequested { interaction }) = events.last() else {
                panic!("{events:?}");
            };
            asked.push((interaction.asked_at, interaction.id, name.clone()));
        }
        runs.push((desk, run));
    }
    asked.sort();
    for page_size in [1, 2, 4, 5, 6, 7, 0] {
        assert_eq!(
            all_asked(&crew, page_size).await,
            asked,
            "pages of {page_size}"
        );
    }
    let of_one = ListInteractions {
        filter: "name = s-1".to_owned(),
        page_size: 1,
        ..ListInteractions::default()
    };
    let page = crew.questions(of_one.clone()).await;
    assert_eq!(page.interactions[0].name, asked_of("s-1"));
    let foreign = ListInteractions {
        filter: String::new(),
        page_token: page.next.clone(),
        ..of_one.clone()
    };
    let (fleet, options) = (crew.fleet(), CallOptions::default());
    let wrong = fleet.list_interactions(foreign, options).await;
    assert_eq!(
        wrong.expect_err("another filter's").violations[0].field,
        "page_token"
    );
    // What is answered between two pages is not listed any more, and moves nothing.
    let desk = &runs[1].0;
    for question in desk.questions().await {
        let yes = InteractionAnswer::Confirmed(true);
        desk.dispatch(respond(question.id, yes), None).await;
    }
    let next = ListInteractions {
        page_token: page.next,
        ..of_one
    };
    assert_eq!(crew.questions(next).await.interactions, []);
    for (desk, run) in runs {
        desk.abort_if_active().await;
        run.finish().await;
    }
}

fn asked_of(name: &str) -> Option<SessionName> {
    SessionName::parse(name).ok()
}
