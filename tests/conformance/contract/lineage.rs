//! C4: `parent_session` and `branch_hints`: a new session goes on from a place in another's
//! conversation. Read only when the session is created.

use sessionplane_core::contract::{InvokeRequest, OnDisconnect, Parent};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::{AgentName, EntryId, SessionId, SessionRef};

use super::desk::{Ask, Desk, named, with_id, within};
use super::hands::{compact, navigate, set_model};
use super::run::{Run, said};
use super::world::{Caller, Worlds, quick};

/// A recollection in a new session that goes on from a place in another.
pub(crate) fn branch(
    session: &SessionRef,
    parent: &SessionRef,
    entry: Option<EntryId>,
) -> InvokeRequest {
    InvokeRequest {
        session: session.clone(),
        prompt: "recall".to_owned(),
        given: Given::default(),
        agent: None,
        parent: Some(Parent {
            session: parent.clone(),
            entry,
        }),
        must_exist: false,
        on_disconnect: OnDisconnect::Detach,
    }
}

/// What the run of an invoke recalls.
async fn recalled(caller: &dyn Caller, request: InvokeRequest) -> Result<String, CallError> {
    recalled_by(caller, request, None).await
}

async fn recalled_by(
    caller: &dyn Caller,
    request: InvokeRequest,
    id: Option<&str>,
) -> Result<String, CallError> {
    let stream = within("invoke", caller.invoke(request, with_id(id))).await?;
    let events = Run::accepted(stream).await.finish().await;
    Ok(said(&events, OutputChannel::Text))
}

/// A parent with two runs of two entries each.
async fn parent(desk: &Desk) -> Vec<EntryId> {
    desk.run("say \"first\"").await;
    desk.run("say \"second\"").await;
    desk.entries().await.iter().map(|entry| entry.id).collect()
}

pub(crate) async fn c16_c24_a_branch_goes_on_from_its_parents_path(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "parent");
    let entries = parent(&desk).await;
    let before = desk.all().await;
    let id = SessionRef::Id(entries[0].session);
    for (n, (reference, entry, first, second)) in [
        (named("parent"), None, true, true),
        (id.clone(), Some(entries[3]), true, true),
        (named("parent"), Some(entries[1]), true, false),
        (id, Some(entries[0]), true, false),
    ]
    .into_iter()
    .enumerate()
    {
        let child = Desk::new(&world, &format!("child-{n}"));
        let request = branch(&child.session, &reference, entry);
        let told = recalled(&*world.caller(), request).await.expect("a run");
        assert_eq!(told.contains("first"), first, "{told}");
        assert_eq!(told.contains("second"), second, "{told}");
        // Its own record begins with its own prompt.
        let own = child.entries().await;
        assert_eq!((own.len(), own[0].parent), (2, None));
        assert_eq!(own[0].id.seq, 1);
        // It goes on from its own, also after a restart.
        world.restart().await;
        child.run("say \"third\"").await;
        let told = child.recall().await;
        assert_eq!(told.contains("first"), first, "{told}");
        assert!(told.contains("third"), "{told}");
    }
    assert_eq!(desk.all().await, before, "the parent is as it was");
}

/// What the parent does later is not the child's past, and the other way around.
pub(crate) async fn c24_a_branch_and_its_parent_go_their_own_ways(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "parent");
    let entries = parent(&desk).await;
    let child = Desk::new(&world, "child");
    let request = branch(&child.session, &desk.session, None);
    recalled(&*world.caller(), request).await.expect("a run");
    desk.run("say \"later\"").await;
    desk.dispatch(set_model(Some("scripted-thinking")), None)
        .await;
    desk.dispatch(compact("say \"summary\""), None).await;
    desk.watch_idle().await;
    desk.dispatch(navigate(entries[1]), None).await;
    let told = child.recall().await;
    assert!(told.contains("first") && told.contains("second"), "{told}");
    assert!(
        !told.contains("later") && !told.contains("summary"),
        "{told}"
    );
    let model = child.view().await.resolved.settings.model;
    assert_eq!(model.as_deref(), Some("scripted"));
    // Of a compacted parent the child is given the summary.
    let leaf = desk.entries().await.last().expect("entries").id;
    let grandchild = Desk::new(&world, "of-summary");
    let request = branch(&grandchild.session, &desk.session, Some(leaf));
    let told = recalled(&*world.caller(), request).await.expect("a run");
    assert!(
        told.contains("summary") && !told.contains("first"),
        "{told}"
    );
    // A branch of a branch has the whole past, and its own compaction ends there.
    let third = Desk::new(&world, "third");
    let request = branch(&third.session, &child.session, None);
    let told = recalled(&*world.caller(), request).await.expect("a run");
    assert!(told.contains("first") && told.contains("recall"), "{told}");
    third.dispatch(compact("say \"in short\""), None).await;
    third.watch_idle().await;
    let told = third.recall().await;
    assert!(
        told.contains("in short") && !told.contains("first"),
        "{told}"
    );
    // The root of its own part is as far as it can go back itself.
    let own = third.entries().await;
    third.dispatch(navigate(own[0].id), None).await;
    let told = third.recall().await;
    assert!(told.contains("first"), "{told}");
}

/// C14: without a name, a branch is served by whom its conversation was with.
pub(crate) async fn c14_a_branch_has_its_parents_agent(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "parent");
    desk.run(Ask::new("say \"first\"").agent("no-steering"))
        .await;
    let parent = SessionRef::Id(desk.entries().await[0].id.session);
    let caller = world.caller();
    let agent_of = async |name: &str, agent: Option<&str>| {
        let child = named(name);
        let request = InvokeRequest {
            agent: agent.map(|agent| AgentName::parse(agent).expect("a name")),
            ..branch(&child, &parent, None)
        };
        recalled(&*caller, request).await.expect("it runs");
        let state = caller.get_state(child, None, with_id(None)).await;
        state.expect("it is there").view.session.agent.to_string()
    };
    assert_eq!(agent_of("like-it", None).await, "no-steering");
    assert_eq!(agent_of("another", Some("scripted")).await, "scripted");
}

pub(crate) async fn c04_an_unknown_or_hidden_parent_is_no_such_session(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "parent");
    let entries = parent(&desk).await;
    let stranger = world.stranger().expect("another tenant");
    let child = named("child");
    let hidden = SessionRef::Id(entries[0].session);
    let never = SessionRef::Id(SessionId::from_bytes([9; 16]));
    for (caller, parent, entry) in [
        (world.caller(), named("nobody"), None),
        (world.caller(), never.clone(), Some(entries[0])),
        (stranger.clone(), hidden.clone(), None),
        (stranger.clone(), hidden, Some(entries[0])),
        (stranger, never, None),
    ] {
        let refused = recalled(&*caller, branch(&child, &parent, entry)).await;
        let of_parent = CallError::no_such_session().about_field("parent_session");
        assert_eq!(refused, Err(of_parent));
        let nothing = caller.get_state(child.clone(), None, with_id(None)).await;
        assert_eq!(nothing, Err(CallError::no_such_session()));
    }
}

pub(crate) async fn c01_an_entry_that_is_not_the_parents_is_refused(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let (desk, other) = (Desk::new(&world, "parent"), Desk::new(&world, "other"));
    let (entries, foreign) = (parent(&desk).await, parent(&other).await);
    let child = named("child");
    let caller = world.caller();
    for entry in [
        foreign[0],
        EntryId {
            seq: 5,
            ..entries[0]
        },
    ] {
        let request = branch(&child, &desk.session, Some(entry));
        let error = recalled(&*caller, request).await.expect_err("a refusal");
        assert_eq!(error.reason, Reason::InvalidArgument, "{error:?}");
        assert_eq!(error.violations[0].field, "branch_hints.from_entry_id");
    }
    let nothing = caller.get_state(child, None, with_id(None)).await;
    assert_eq!(nothing, Err(CallError::no_such_session()));
}

/// Read only at creation: a session that exists keeps its past, whatever is named.
pub(crate) async fn c14_a_parent_is_read_only_at_creation(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "parent");
    let entries = parent(&desk).await;
    let child = Desk::new(&world, "child");
    child.run("say \"mine\"").await;
    let foreign = EntryId {
        seq: 99,
        ..entries[0]
    };
    for (parent, entry) in [
        (desk.session.clone(), None),
        (desk.session.clone(), Some(foreign)),
        (named("nobody"), None),
    ] {
        let request = branch(&child.session, &parent, entry);
        let told = recalled(&*world.caller(), request).await.expect("a run");
        assert!(told.contains("mine") && !told.contains("first"), "{told}");
    }
    // It is part of what the call says: the same id with another parent is another call.
    let fresh = Desk::new(&world, "fresh");
    let request = branch(&fresh.session, &desk.session, Some(entries[1]));
    let caller = world.caller();
    recalled_by(&*caller, request.clone(), Some("one"))
        .await
        .expect("a run");
    recalled_by(&*caller, request.clone(), Some("one"))
        .await
        .expect("the same run");
    assert_eq!(fresh.runs(0).await.len(), 1);
    let other = branch(&fresh.session, &desk.session, None);
    let error = recalled_by(&*caller, other, Some("one")).await;
    assert_eq!(error.expect_err("reused").reason, Reason::RequestIdReused);
    let must = InvokeRequest {
        must_exist: true,
        session: named("unborn"),
        ..request
    };
    let refused = recalled(&*caller, must).await;
    assert_eq!(refused, Err(CallError::no_such_session()));
}
