//! What a decision costs, and what it costs to list and watch the fleet where policies hide half of it.
//!
//! In this process: a decision is a computation, and what it is measured against is the same list for who
//! may see all of it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::{
    CreateSession, Fleet as _, ListSessions, SessionOrder, SessionWatchItem, WatchSessions,
};
use sessionplane_core::domain::access::{
    Action, PolicyContext, Principal, PrincipalKind, Resource, SessionFacts,
};
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue, Labels};
use sessionplane_core::domain::ids::{AgentName, PrincipalId, SessionId, TenantId};
use sessionplane_core::domain::provenance::Trust;
use sessionplane_server::adapters::artifacts::MemoryArtifacts;
use sessionplane_server::adapters::authz::{CedarAuthorizer, PolicySource};
use sessionplane_server::adapters::clock::{OsEntropy, TokioClock, TokioSpawner};
use sessionplane_server::adapters::engine::scripted::ScriptedEngine;
use sessionplane_server::adapters::memory::MemoryStore;
use sessionplane_server::app::agents::AgentCatalog;
use sessionplane_server::app::config::AppConfig;
use sessionplane_server::app::digest::DigestKey;
use sessionplane_server::app::face::{Caller, Faces as _, ServerEnds};
use sessionplane_server::app::{App, AppCaller, Ports};

use crate::Outcome;
use crate::load::now;
use crate::report::{Goal, Line, Report};
use crate::settings::Settings;

/// Most time of a decision among at most [`SLICED`] candidates.
const DECISION_US: f64 = 50.0;
const SLICED: usize = 20;
const UNSLICED: usize = 100;
/// Sessions of the fleet.
const SESSIONS: usize = 1000;
/// Most time of a filtered list or snapshot, in those of who sees all.
const FILTERED: f64 = 3.0;

/// Measures the rows.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    for (candidates, goal) in [(SLICED, Goal::AtMost(DECISION_US)), (UNSLICED, Goal::None)] {
        let took = decisions(candidates, settings.round)?;
        let name = format!("a decision among {candidates} candidates: mean");
        report.add(Line::alone(name, took, "us", goal));
    }
    let app = fleet(settings.size(SESSIONS, 100)).await?;
    let (all, half) = (caller(&app, "operator")?, caller(&app, "half")?);
    let (mut listed, mut watched) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for _ in 0..settings.rounds {
        for (at, caller) in [&all, &half].into_iter().enumerate() {
            listed[at].push(rounds(settings.round, async || list(caller).await).await?);
            watched[at].push(rounds(settings.round, async || watch(caller).await).await?);
        }
    }
    let goal = Goal::AtMost(FILTERED);
    for (what, [unfiltered, filtered]) in [("ListSessions", listed), ("WatchSessions", watched)] {
        let name = format!("{what} of half of a fleet, to all of it");
        report.add(Line::paired(name, &unfiltered, &filtered, "us", goal));
    }
    Ok(())
}

fn principal(group: &str) -> Outcome<Principal> {
    Ok(Principal {
        tenant: TenantId::parse("team")?,
        id: PrincipalId::parse("ada")?,
        kind: PrincipalKind::Human,
        groups: [group.to_owned()].into(),
        ceiling: Trust::Relayed,
        credential: "bench".into(),
    })
}

fn policies(text: String) -> Outcome<CedarAuthorizer> {
    let owner = (TenantId::parse("default")?, PrincipalId::parse("owner")?);
    let own = PolicySource {
        name: "bench.cedar".to_owned(),
        text,
    };
    Ok(CedarAuthorizer::open(
        owner,
        &[PolicySource::default_set(), own],
    )?)
}

/// The mean time of a decision, in microseconds. Three of the default set are candidates, too.
fn decisions(candidates: usize, round: Duration) -> Outcome<f64> {
    let own = (0..candidates - 3).map(|number| {
        format!(
            "@id(\"p{number}\") permit (principal in Group::\"g{number}\", \
             action == Action::\"Invoke\", resource is Session) \
             when {{ resource.labels.contains(\"team=t{number}\") && context.size < 1000 }};\n"
        )
    });
    let authorizer = policies(own.collect())?;
    let (who, agent) = (principal("g7")?, AgentName::parse("coder")?);
    let label = (LabelKey::parse("team")?, LabelValue::parse("t7")?);
    let labels = Labels::of([label])?;
    let resource = Resource::Session(SessionFacts {
        tenant: &who.tenant,
        id: SessionId::from_bytes([1; 16]),
        name: None,
        external_key: None,
        agent: &agent,
        labels: &labels,
        place: None,
        paused: false,
        parent: None,
    });
    let context = PolicyContext {
        size: Some(100),
        ..PolicyContext::default()
    };
    let (began, mut count) = (now(), 0_u32);
    while began.elapsed() < round {
        for _ in 0..100 {
            let decision = authorizer.decide_anew((&who, Action::Invoke), &resource, &context);
            if !decision.allowed {
                return Err("the decision is another one".into());
            }
        }
        count += 100;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(count))
}

/// A fleet of which the group `half` sees half.
async fn fleet(sessions: usize) -> Outcome<App> {
    let half = "@id(\"half\") permit (principal in Group::\"half\", action in Action::\"Look\", \
                resource is Session) when { resource.labels.contains(\"half=yes\") };";
    let store = Arc::new(MemoryStore::new());
    let ports = Ports {
        repository: store.clone(),
        leases: store.clone(),
        trail: store,
        authorizer: Arc::new(policies(half.to_owned())?),
        artifacts: Arc::new(MemoryArtifacts::default()),
        clock: Arc::new(TokioClock::start()),
        entropy: Arc::new(OsEntropy),
        spawner: Arc::new(TokioSpawner::current()),
        workspaces: None,
        digest_key: DigestKey::new([7; 32]),
    };
    let engine = ScriptedEngine::new(ports.clock.clone(), ports.spawner.clone());
    let name = AgentName::parse("scripted")?;
    let agents = AgentCatalog::new(name.clone(), name, Arc::new(engine));
    let app = App::new(ports, agents, AppConfig::default());
    let operator = caller(&app, "operator")?;
    for number in 0..sessions {
        let half = (number % 2 == 0).then_some("yes");
        let label = LabelKey::parse("half")?;
        let labels = half.map(LabelValue::parse).transpose()?;
        let request = CreateSession {
            labels: Labels::of(labels.map(|value| (label, value)))?,
            ..CreateSession::default()
        };
        operator
            .create_session(request, CallOptions::default())
            .await?;
    }
    Ok(app)
}

fn caller(app: &App, group: &str) -> Outcome<AppCaller> {
    Ok(app.as_caller(Caller {
        principal: principal(group)?,
        trace_id: None,
        via: None,
        server_ends: ServerEnds::default(),
    }))
}

/// The mean time of something, in microseconds.
async fn rounds(round: Duration, what: impl AsyncFn() -> Outcome<()>) -> Outcome<f64> {
    let (began, mut count) = (now(), 0_u32);
    while began.elapsed() < round {
        what().await?;
        count += 1;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(count))
}

/// All pages of the fleet that a caller may see.
async fn list(caller: &AppCaller) -> Outcome<()> {
    let mut request = ListSessions {
        order: SessionOrder::Id,
        ..ListSessions::default()
    };
    loop {
        let page = caller.list_sessions(request.clone(), CallOptions::default());
        match page.await?.next {
            None => return Ok(()),
            next => request.page_token = next,
        }
    }
}

/// A watch to the end of its snapshot.
async fn watch(caller: &AppCaller) -> Outcome<()> {
    let watch = caller.watch_sessions(WatchSessions::default(), CallOptions::default());
    let mut watch = watch.await?;
    while let Some(item) = watch.next().await {
        if let SessionWatchItem::Bookmark(_) = item? {
            return Ok(());
        }
    }
    Err("the watch ended".into())
}
