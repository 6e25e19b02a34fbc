//! C14: who creates a session, and who does not.

use futures_util::future::join_all;
use sessionplane_core::contract::{CallOptions, EventFilter, EventsRequest, OnDisconnect};
use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::ids::{ExternalKey, SessionId, SessionRef};
use sessionplane_core::domain::time::Timestamp;

use super::desk::{Ask, Desk, steer};
use super::run::{Run, record};
use super::world::{Worlds, quick};

pub(crate) async fn c14_an_invoke_creates_by_name_and_by_key(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let key = "Ticket #42 / ünïcode \u{1F980}";
    let key = SessionRef::ExternalKey(ExternalKey::parse(key).expect("a key"));
    for desk in [Desk::new(&world, "by-name"), Desk::at(&world, key)] {
        let run = desk.invoke("say \"x\"").await;
        let session = run.session;
        run.finish().await;
        let view = desk.state().await.view;
        assert_eq!(view.session.id, session);
        assert_eq!(view.session.agent.as_str(), "scripted", "the default agent");
        // By its id it is the same session, also for must_exist and whatever agent is named.
        let by_id = Desk::at(&world, SessionRef::Id(session));
        let ask = Ask::new("say \"y\"").must_exist().agent("no-steering");
        let run = record(&by_id.run(ask).await);
        assert_eq!((run.session, run.agent.as_str()), (session, "scripted"));
    }
    let named = Desk::new(&world, "by-name").state().await.view.session;
    assert_eq!(
        named.name.map(|name| name.to_string()),
        Some("by-name".to_owned())
    );
    assert_eq!(named.external_key, None);
}

pub(crate) async fn c14_must_exist_and_ids_create_nothing(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "typo");
    let error = desk
        .open(Ask::new("x").must_exist())
        .await
        .err()
        .expect("refused");
    assert_eq!(error.reason, Reason::NoSuchSession);
    let id = SessionRef::Id(SessionId::mint(Timestamp::from_millis(1), 1));
    let by_id = Desk::at(&world, id);
    let error = by_id.open("x").await.err().expect("refused");
    assert_eq!(error.reason, Reason::NoSuchSession);
    for desk in [desk, by_id] {
        let error = desk.try_state(None).await.expect_err("nothing was created");
        assert_eq!(error.reason, Reason::NoSuchSession);
    }
}

pub(crate) async fn c14_nothing_but_an_invoke_creates(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "nobody");
    let no_session = Some(Reason::NoSuchSession);
    for _ in 0..2 {
        for command in [steer("x"), Command::Abort] {
            let answer = desk.try_dispatch(command, Some("id"), None).await;
            assert_eq!(answer.err().map(|error| error.reason), no_session);
        }
        let answer = desk.page(None, 0).await;
        assert_eq!(answer.err().map(|error| error.reason), no_session);
        let answer = desk.try_state(None).await;
        assert_eq!(answer.err().map(|error| error.reason), no_session);
        let request = EventsRequest {
            session: desk.session.clone(),
            resume: None,
            filter: EventFilter::default(),
            entries_since: None,
        };
        let answer = desk.caller().events(request, CallOptions::default()).await;
        assert_eq!(answer.err().map(|error| error.reason), no_session);
    }
}

pub(crate) async fn c14_an_unknown_agent_creates_nothing(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "agentless");
    let error = desk
        .open(Ask::new("x").agent("nobody"))
        .await
        .err()
        .expect("refused");
    assert_eq!(error.reason, Reason::NoSuchAgent);
    assert!(error.message.contains("scripted"), "{}", error.message);
    assert!(desk.try_state(None).await.is_err());
}

pub(crate) async fn c14_concurrent_creations_of_a_name_make_one_session(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    for round in 0..20 {
        let desk = Desk::new(&world, &format!("race-{round}"));
        let calls = (0..8).map(|caller| {
            let desk = desk.clone();
            tokio::spawn(async move {
                let ask = Ask {
                    on_disconnect: OnDisconnect::Detach,
                    ..Ask::new(format!("say \"{caller}\"\nhang")).id(format!("{round}-{caller}"))
                };
                let mut stream = desk.open(ask).await.expect("an answer");
                let first = Run::next_of(&mut stream).await.expect("an event");
                super::desk::is_busy(&first.expect("an answer"))
            })
        });
        let busy = join_all(calls).await;
        let busy = busy
            .into_iter()
            .filter(|busy| *busy.as_ref().expect("a call"))
            .count();
        assert_eq!(busy, 7, "one of them created the session and runs");
        let prompts = desk.entries().await;
        assert_eq!(
            prompts.iter().filter(|e| e.body.kind() == "user").count(),
            1
        );
        desk.abort().await;
    }
}
