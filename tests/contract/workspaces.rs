//! Directories that are there as long as a test says so, an agent that works in them, and the rules about
//! where sessions work: C45, C53, B45.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::join;
use sessionplane_core::contract::fleet::{
    ChangeDirectory, ChangeDirectoryAnswer, CreateSession, Fleet as _,
};
use sessionplane_core::contract::{CallOptions, InvokeEvent};
use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::audit::AuditAction;
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::command::RejectionCode;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::ids::{AgentName, SessionId, WorkspaceName};
use sessionplane_core::domain::place::{Checkout, Directory, Place};
use sessionplane_core::ports::engine::{
    Engine, EngineConnection, EngineDescription, EngineError, OpenSession,
};
use sessionplane_core::ports::workspaces::{PlaceError, Workspaces};
use sessionplane_server::adapters::engine::scripted::ScriptedEngine;
use sessionplane_server::adapters::memory::CommitStep;
use sessionplane_server::app::Ports;
use sessionplane_server::app::agents::AgentCatalog;
use sessionplane_server::app::face::Faces as _;

use crate::house::{House, agents, owner};
use crate::suite::desk::{Ask, Desk, named, with_id, within};
use crate::suite::fleet::crew::{Crew, new, rename};
use crate::suite::hands::compact;
use crate::suite::run::Run;
use crate::suite::world::quick;

/// The agent that works in `repo` and `docs`.
const GROUNDED: &str = "grounded";

/// Directories by place, and where engines were opened.
#[derive(Default)]
pub(crate) struct Folders {
    known: Mutex<BTreeMap<Place, Checkout>>,
    /// Links, by place.
    links: Mutex<BTreeMap<Place, Place>>,
    opened: Arc<Mutex<Vec<Option<Place>>>>,
    /// From the next start on the agent may work in `docs` alone.
    narrowed: AtomicBool,
}

pub(crate) fn place(workspace: &str, directory: &str) -> Place {
    Place {
        workspace: WorkspaceName::parse(workspace).expect("a workspace"),
        directory: Directory::parse(directory).expect("a directory"),
    }
}

fn on(branch: &str) -> Checkout {
    Checkout {
        branch: Some(branch.into()),
        commit: None,
    }
}

impl Folders {
    /// A directory is there, with that branch checked out.
    fn put(&self, place: &Place, branch: &str) {
        let mut known = self.known.lock().expect("no panic");
        known.insert(place.clone(), on(branch));
    }

    fn take(&self, place: &Place) {
        self.known.lock().expect("no panic").remove(place);
    }

    /// What is looked up there is found elsewhere.
    fn link(&self, from: &Place, to: &Place) {
        let mut links = self.links.lock().expect("no panic");
        links.insert(from.clone(), to.clone());
    }

    fn opened(&self) -> Vec<Option<Place>> {
        std::mem::take(&mut *self.opened.lock().expect("no panic"))
    }

    /// The house's agents, and one that works in these directories.
    pub(crate) fn agents(&self, ports: &Ports) -> AgentCatalog {
        let name = AgentName::parse(GROUNDED).expect("a name");
        let engine = Noting {
            inner: ScriptedEngine::new(ports.clock.clone(), ports.spawner.clone()),
            opened: self.opened.clone(),
        };
        let workspaces: &[_] = if self.narrowed.load(Ordering::SeqCst) {
            &["docs"]
        } else {
            &["repo", "docs"]
        };
        let workspaces = workspaces.iter();
        let workspaces = workspaces.map(|it| WorkspaceName::parse(it).expect("a name"));
        agents(ports)
            .with(name.clone(), Arc::new(engine))
            .working_in(&name, workspaces.collect())
    }
}

#[async_trait]
impl Workspaces for Folders {
    async fn ground(&self, place: &Place) -> Result<Place, PlaceError> {
        if let Some(to) = self.links.lock().expect("no panic").get(place) {
            return Ok(to.clone());
        }
        if self.known.lock().expect("no panic").contains_key(place) {
            return Ok(place.clone());
        }
        Err(PlaceError::Unavailable {
            workspace: place.workspace.clone(),
            directory: place.directory.to_string(),
            problem: "is not there".to_owned(),
        })
    }

    async fn checkout(&self, place: &Place) -> Option<Checkout> {
        self.known.lock().expect("no panic").get(place).cloned()
    }

    async fn add_worktree(&self, of: &Place, branch: &str) -> Result<Place, PlaceError> {
        let made = place(of.workspace.as_str(), &format!("worktrees/{branch}"));
        self.put(&made, branch);
        Ok(made)
    }
}

/// An engine that notes where it is opened.
struct Noting {
    inner: ScriptedEngine,
    opened: Arc<Mutex<Vec<Option<Place>>>>,
}

#[async_trait]
impl Engine for Noting {
    fn describe(&self) -> &EngineDescription {
        self.inner.describe()
    }

    async fn open(&self, open: OpenSession) -> Result<EngineConnection, EngineError> {
        self.opened
            .lock()
            .expect("no panic")
            .push(open.place.clone());
        self.inner.open(open).await
    }
}

/// A house whose `repo` is there.
fn with_repo() -> (Arc<House>, Crew) {
    let house = House::new(quick());
    house.folders.put(&place("repo", "."), "main");
    let world = house.clone();
    (house, Crew { world })
}

fn grounded(name: &str) -> CreateSession {
    CreateSession {
        agent: AgentName::parse(GROUNDED).ok(),
        ..new(name)
    }
}

async fn go(
    house: &House,
    session: &str,
    to: &Place,
    id: Option<&str>,
) -> Result<ChangeDirectoryAnswer, CallError> {
    let request = ChangeDirectory {
        session: named(session),
        workspace: Some(to.workspace.clone()),
        directory: to.directory.clone(),
    };
    let caller = house.app().as_caller(owner());
    within("move", caller.change_directory(request, with_id(id))).await
}

/// Invokes where the session's directory is gone: the one event of the answer names it.
async fn nowhere(desk: &Desk, directory: &str) {
    let stream = desk.open(Ask::new("say \"x\"")).await;
    let mut stream = stream.unwrap_or_else(|error| panic!("invoke: {error:?}"));
    match Run::next_of(&mut stream).await {
        Some(Ok(InvokeEvent::Failed {
            code,
            details,
            run: None,
            ..
        })) => {
            assert_eq!(code, "directory_unavailable");
            assert!(details.contains(directory), "{details}");
        }
        other => panic!("not refused: {other:?}"),
    }
}

fn actions(house: &House, session: SessionId) -> Vec<AuditAction> {
    let audits = house.store().audits(session).expect("the trail");
    audits.into_iter().map(|audit| audit.action).collect()
}

#[tokio::test]
async fn c45_b45_a_session_goes_on_in_its_own_directory_or_says_that_it_is_gone() {
    let (house, crew) = with_repo();
    let sub = place("repo", "crates/net");
    house.folders.put(&sub, "main");
    let request = CreateSession {
        directory: Some(sub.directory.clone()),
        ..grounded("net")
    };
    let made = crew.create(request).await;
    assert_eq!(
        (made.place, made.checkout),
        (Some(sub.clone()), Some(on("main")))
    );
    let desk = crew.desk("net");
    desk.run("say \"x\"").await;
    crew.world.restart().await;
    desk.run("say \"y\"").await;
    assert_eq!(
        house.folders.opened(),
        [Some(sub.clone()), Some(sub.clone())]
    );
    house.folders.take(&sub);
    let before = desk.state().await;
    nowhere(&desk, "crates/net").await;
    assert_eq!(desk.state().await, before, "observers see nothing");
    assert_eq!(house.folders.opened(), [], "and nobody starts elsewhere");
    assert_eq!(crew.get("net").await.place, Some(sub.clone()));
    house.folders.put(&sub, "main");
    desk.run("say \"z\"").await;
    assert_eq!(house.folders.opened(), [Some(sub)]);
}

/// Who puts a link in the place of a directory moves nobody with it: that would be asked of nobody, and
/// noted nowhere.
#[tokio::test]
async fn c45_c53_b45_a_directory_that_became_a_link_is_followed_by_nobody_unasked() {
    let (house, crew) = with_repo();
    let (sub, other) = (place("repo", "sub"), place("repo", "other"));
    for there in [&sub, &other] {
        house.folders.put(there, "main");
    }
    let request = CreateSession {
        directory: Some(sub.directory.clone()),
        ..grounded("net")
    };
    let id = crew.create(request).await.id;
    let desk = crew.desk("net");
    house.folders.link(&sub, &other);
    nowhere(
        &desk,
        "\"sub\" of workspace repo is a link by now, to \"other\"; put it back, or move",
    )
    .await;
    assert_eq!(house.folders.opened(), [], "nobody starts elsewhere");
    assert_eq!(crew.get("net").await.place, Some(sub.clone()));
    // Who asks for it is led there, and it is noted.
    let moved = go(&house, "net", &sub, None).await;
    assert!(
        matches!(moved, Ok(ChangeDirectoryAnswer::Moved { .. })),
        "{moved:?}"
    );
    assert_eq!(crew.get("net").await.place, Some(other.clone()));
    let audits = house.store().audits(id).expect("the trail");
    let last = audits.last().expect("it is noted");
    assert_eq!(last.action, AuditAction::Call(Action::ChangeDirectory));
    assert_eq!(
        last.sandbox,
        Some(SandboxLevel::Confined),
        "and what keeps it there"
    );
    desk.run("say \"x\"").await;
    assert_eq!(house.folders.opened(), [Some(other)]);
}

/// The configuration says where an agent may work, also of sessions that are older than it.
#[tokio::test]
async fn c53_a_session_does_not_work_where_its_agent_may_not_any_more() {
    let (house, crew) = with_repo();
    house.folders.put(&place("docs", "."), "main");
    crew.create(grounded("net")).await;
    let desk = crew.desk("net");
    desk.run("say \"x\"").await;
    house.folders.opened();
    house.folders.narrowed.store(true, Ordering::SeqCst);
    crew.world.restart().await;
    nowhere(
        &desk,
        "workspace repo, where its agent may not work; it may in: docs",
    )
    .await;
    let no = desk.rejection(compact("what matters")).await;
    assert_eq!(no.code, RejectionCode::BoundaryCommandFailed);
    assert!(no.message.contains("ChangeDirectory"), "{no:?}");
    assert_eq!(house.folders.opened(), [], "no engine was opened there");
    go(&house, "net", &place("docs", "."), None)
        .await
        .expect("the way out");
    desk.run("say \"y\"").await;
    assert_eq!(house.folders.opened(), [Some(place("docs", "."))]);
}

#[tokio::test]
async fn c45_a_new_session_works_in_its_agent_s_first_workspace() {
    let (house, crew) = with_repo();
    let repo = place("repo", ".");
    crew.desk("one")
        .run(Ask::new("say \"x\"").agent(GROUNDED))
        .await;
    assert_eq!(crew.get("one").await.place, Some(repo.clone()));
    assert_eq!(crew.create(grounded("two")).await.place, Some(repo));
    assert_eq!(crew.create(new("nowhere")).await.place, None);
    let docs = place("docs", ".");
    let request = |workspace: &str| CreateSession {
        workspace: WorkspaceName::parse(workspace).ok(),
        ..grounded("three")
    };
    for (workspace, field) in [("docs", "directory"), ("etc", "workspace")] {
        let refused = crew.try_create(request(workspace), None).await;
        let refused = refused.expect_err("not there, or not allowed");
        assert_eq!(refused.violations[0].field, field, "{refused}");
    }
    house.folders.put(&docs, "main");
    assert_eq!(crew.create(request("docs")).await.place, Some(docs));
    let request = CreateSession {
        worktree_branch: Some("fix-7".to_owned()),
        ..grounded("four")
    };
    let four = crew.create(request).await;
    assert_eq!(four.place, Some(place("repo", "worktrees/fix-7")));
    assert_eq!(four.checkout, Some(on("fix-7")));
    house.folders.opened();
    crew.desk("four").run("say \"x\"").await;
    assert_eq!(house.folders.opened(), [four.place]);
}

#[tokio::test]
async fn c53_a_move_is_judged_audited_and_holds_from_the_next_run_on() {
    let (house, crew) = with_repo();
    let (repo, sub) = (place("repo", "."), place("repo", "sub"));
    let id = crew.create(grounded("net")).await.id;
    let desk = crew.desk("net");
    let missing = go(&house, "net", &sub, None).await.expect_err("not there");
    assert_eq!(missing.violations[0].field, "directory");
    let foreign = go(&house, "net", &place("etc", "."), None).await;
    assert_eq!(
        foreign.expect_err("not allowed").violations[0].field,
        "workspace"
    );
    house.folders.put(&sub, "side");
    let run = desk.invoke("say \"x\"\nhang").await;
    match go(&house, "net", &sub, Some("move")).await {
        Ok(ChangeDirectoryAnswer::Rejected(no)) => assert_eq!(no.code, RejectionCode::SessionBusy),
        other => panic!("{other:?}"),
    }
    desk.abort().await;
    run.finish().await;
    assert_eq!(
        crew.get("net").await.place,
        Some(repo.clone()),
        "nothing happened"
    );
    for _ in 0..2 {
        match go(&house, "net", &sub, Some("move")).await {
            Ok(ChangeDirectoryAnswer::Moved { session, .. }) => {
                assert_eq!(session.place, Some(sub.clone()));
                assert_eq!(session.checkout, Some(on("side")));
            }
            other => panic!("{other:?}"),
        }
        let moves = actions(&house, id).into_iter();
        let moves = moves.filter(|it| *it == AuditAction::Call(Action::ChangeDirectory));
        assert_eq!(moves.count(), 1, "a repeat moves nothing");
    }
    desk.run("say \"y\"").await;
    assert_eq!(house.folders.opened(), [Some(repo), Some(sub)]);
}

#[tokio::test]
async fn c45_what_version_control_says_is_noted_at_the_boundaries_of_runs() {
    let (house, crew) = with_repo();
    let repo = place("repo", ".");
    let id = crew.create(grounded("net")).await.id;
    let desk = crew.desk("net");
    let mut lookout = crew.watch("").await;
    lookout.snapshot().await;
    let run = desk.invoke("say \"x\"\nhang").await;
    // The agent changes the branch while it runs.
    house.folders.put(&repo, "topic");
    desk.abort().await;
    run.finish().await;
    let topic = Some(on("topic"));
    lookout
        .until(|it| it.of("net").is_some_and(|it| it.checkout == topic))
        .await;
    assert_eq!(actions(&house, id).last(), Some(&AuditAction::Checkout));
    let noted = actions(&house, id).len();
    // Where it is what it was, nothing is written.
    desk.run("say \"y\"").await;
    house.folders.put(&repo, "main");
    crew.world.restart().await;
    assert_eq!(
        crew.get("net").await.checkout,
        topic,
        "as it was at the boundary"
    );
    desk.run("say \"z\"").await;
    assert_eq!(crew.get("net").await.checkout, Some(on("main")));
    let notes = actions(&house, id).into_iter().skip(noted);
    assert_eq!(notes.filter(|it| *it == AuditAction::Checkout).count(), 0);
    let options = CallOptions::default();
    let caller = house.app().as_caller(owner());
    let got = caller.get_session(named("net"), options).await;
    assert_eq!(got, Ok(crew.get("net").await));
}

/// A directory alone is one of the workspace that the session works in when it is moved, not of the one
/// that it worked in when it was looked at.
#[tokio::test]
async fn c53_a_directory_alone_is_one_of_the_workspace_that_the_session_was_just_moved_to() {
    let (house, crew) = with_repo();
    for at in ["repo", "docs"] {
        house.folders.put(&place(at, "sub"), "main");
    }
    house.folders.put(&place("docs", "."), "main");
    crew.create(grounded("net")).await;
    let mut held = house.gate.hold(|step, _| step == CommitStep::BeforeSync);
    let docs = place("docs", ".");
    let mut first = Box::pin(go(&house, "net", &docs, None));
    tokio::select! {
        biased;
        moved = &mut first => panic!("it is held: {moved:?}"),
        () = held.reached() => {}
    }
    let request = ChangeDirectory {
        session: named("net"),
        workspace: None,
        directory: Directory::parse("sub").expect("a directory"),
    };
    let caller = house.app().as_caller(owner());
    let mut second = caller.change_directory(request, CallOptions::default());
    // It looks at the session, and waits behind the first.
    for _ in 0..100 {
        assert!(second.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    house.gate.open();
    held.release();
    let (first, second) = within("moved", join(first, second)).await;
    for moved in [first, second] {
        let moved = moved.expect("moved");
        assert!(matches!(moved, ChangeDirectoryAnswer::Moved { .. }));
    }
    assert_eq!(crew.get("net").await.place, Some(place("docs", "sub")));
}

/// A repeat tells where the call had the session go, and says that this is not all that is so now.
#[tokio::test]
async fn c03_c53_a_repeated_move_is_answered_as_the_first_one_after_another() {
    let (house, crew) = with_repo();
    let (docs, repo) = (place("docs", "."), place("repo", "."));
    house.folders.put(&docs, "main");
    crew.create(grounded("net")).await;
    let first = go(&house, "net", &docs, Some("there")).await;
    let Ok(ChangeDirectoryAnswer::Moved { session, sandbox }) = &first else {
        panic!("not moved: {first:?}");
    };
    assert_eq!(session.place, Some(docs.clone()));
    assert_eq!(go(&house, "net", &docs, Some("there")).await, first);
    let back = go(&house, "net", &repo, Some("back")).await;
    assert!(matches!(back, Ok(ChangeDirectoryAnswer::Moved { .. })));
    let named = crew.update("net", rename("web")).await;
    let again = go(&house, "net", &docs, Some("there")).await;
    let Ok(ChangeDirectoryAnswer::Moved {
        session: again,
        sandbox: held,
    }) = again
    else {
        panic!("not bound: {again:?}");
    };
    assert_eq!(
        (&again.place, &again.checkout),
        (&session.place, &session.checkout)
    );
    assert_eq!((held, again.revision), (*sandbox, 0));
    assert_eq!(again.name, named.name, "it was not about the name");
    assert_eq!(crew.get("web").await.place, Some(repo));
}
