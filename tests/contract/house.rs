//! The world in process: the application over a memory store, with hands inside it.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sessionplane_core::contract::fleet::Fleet;
use sessionplane_core::domain::access::{
    Action, Decision, PolicyContext, Principal, PrincipalKind, Resource,
};
use sessionplane_core::domain::capabilities::Capabilities;
use sessionplane_core::domain::ids::{AgentName, PrincipalId, TenantId};
use sessionplane_core::domain::interaction::InteractionKind;
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::ports::artifact_store::ArtifactStore;
use sessionplane_core::ports::audit_trail::AuditTrail;
use sessionplane_core::ports::authorizer::Authorizer;
use sessionplane_core::ports::clock::{BoxFuture, Clock, Spawner, TaskHandle};
use sessionplane_core::ports::engine::Engine;
use sessionplane_core::ports::lease_store::LeaseStore;
use sessionplane_core::ports::repository::Repository;
use sessionplane_server::adapters::artifacts::MemoryArtifacts;
use sessionplane_server::adapters::clock::{OsEntropy, TokioClock, TokioSpawner};
use sessionplane_server::adapters::engine::demo::DemoEngine;
use sessionplane_server::adapters::engine::hostile::{HostileEngine, HostileOptions};
use sessionplane_server::adapters::engine::scripted::ScriptedEngine;
use sessionplane_server::adapters::memory::MemoryStore;
use sessionplane_server::app::agents::AgentCatalog;
use sessionplane_server::app::config::AppConfig;
use sessionplane_server::app::digest::DigestKey;
use sessionplane_server::app::face::{self, Faces as _, ServerEnds};
use sessionplane_server::app::recovery::recover;
use sessionplane_server::app::{App, Ports};
use tokio_util::sync::CancellationToken;

use super::agents::{Absent, Deaf, Jammed, Lingering};
use super::gate::Gate;
use super::slow::{Refusal, Slow};
use super::workspaces::Folders;
use crate::suite::fleet::{FleetWorld, FleetWorlds};
use crate::suite::world::{Caller, World, Worlds};

/// Allows everything inside the principal's own tenant, nothing outside.
struct OwnTenant;

#[async_trait]
impl Authorizer for OwnTenant {
    async fn authorize(
        &self,
        principal: &Principal,
        _action: Action,
        resource: &Resource<'_>,
        _context: &PolicyContext<'_>,
    ) -> Decision {
        Decision {
            allowed: *resource.tenant() == principal.tenant,
            policies: Arc::new(["own-tenant".to_owned()]),
            ways_in: Arc::new([]),
        }
    }
}

/// Starts tasks that all end at once when the process is said to be killed.
struct Mortal {
    inner: TokioSpawner,
    life: CancellationToken,
    sessions: Arc<AtomicU64>,
}

impl Spawner for Mortal {
    fn spawn(&self, name: &'static str, task: BoxFuture<()>) -> Box<dyn TaskHandle> {
        if name == "session" {
            self.sessions.fetch_add(1, Ordering::SeqCst);
        }
        let life = self.life.clone();
        let task = async move {
            let _killed = life.run_until_cancelled(task).await;
        };
        self.inner.spawn(name, Box::pin(task))
    }
}

/// One start of the server.
struct Start {
    app: App,
    store: Arc<MemoryStore>,
    life: CancellationToken,
}

/// The world in process.
pub(crate) struct House {
    config: AppConfig,
    pub(crate) gate: Arc<Gate>,
    /// Whether runs that were cut can be settled.
    pub(crate) refusal: Arc<Refusal>,
    artifacts: Arc<dyn ArtifactStore>,
    /// Where its agents may work.
    pub(crate) folders: Arc<Folders>,
    sessions: Arc<AtomicU64>,
    start: Mutex<Start>,
}

/// The owner, as a face of the application knows it.
pub(crate) fn owner() -> face::Caller {
    caller("acme", "owner")
}

fn caller(tenant: &str, id: &str) -> face::Caller {
    let principal = Principal {
        tenant: TenantId::parse(tenant).expect("a tenant"),
        id: PrincipalId::parse(id).expect("a principal"),
        kind: PrincipalKind::Human,
        groups: Arc::new([]),
        ceiling: Trust::Typed,
        credential: "test".into(),
    };
    face::Caller {
        principal,
        trace_id: None,
        via: None,
        server_ends: ServerEnds::default(),
    }
}

/// Makes houses.
pub(crate) struct InProcess;

#[async_trait]
impl Worlds for InProcess {
    async fn make(&self, config: AppConfig) -> Arc<dyn World> {
        House::new(config)
    }
}

impl House {
    /// A fresh, empty house.
    pub(crate) fn new(config: AppConfig) -> Arc<Self> {
        Self::keeping(config, Arc::new(MemoryArtifacts::default()))
    }

    /// A fresh house whose artifacts lie there; they outlive its starts.
    pub(crate) fn keeping(config: AppConfig, artifacts: Arc<dyn ArtifactStore>) -> Arc<Self> {
        let gate = Arc::new(Gate::default());
        let store = Arc::new(MemoryStore::gated(gate.clone()));
        let refusal = Arc::new(Refusal::default());
        let slow = Slow(store.clone(), refusal.clone());
        let sessions = Arc::<AtomicU64>::default();
        let (mut ports, life) = counted_ports(
            Arc::new(slow),
            store.clone(),
            store.clone(),
            sessions.clone(),
        );
        ports.artifacts = artifacts.clone();
        let folders = Arc::<Folders>::default();
        ports.workspaces = Some(folders.clone());
        let app = App::new(ports.clone(), folders.agents(&ports), config);
        Arc::new(Self {
            folders,
            config,
            gate,
            refusal,
            artifacts,
            sessions,
            start: Mutex::new(Start { app, store, life }),
        })
    }

    /// As a world for the suite's helpers.
    pub(crate) fn world(self: &Arc<Self>) -> Arc<dyn World> {
        self.clone()
    }

    /// The store as the present start has it open.
    pub(crate) fn store(&self) -> Arc<MemoryStore> {
        self.start().store.clone()
    }

    /// The application as the present start has it.
    pub(crate) fn app(&self) -> App {
        self.start().app.clone()
    }

    /// How often a session was given a task, over all starts.
    pub(crate) fn sessions_started(&self) -> u64 {
        self.sessions.load(Ordering::SeqCst)
    }

    /// Another principal of the owner's tenant.
    pub(crate) fn colleague(&self) -> Arc<dyn Caller> {
        self.principal("acme", "colleague")
    }

    fn principal(&self, tenant: &str, id: &str) -> Arc<dyn Caller> {
        principal(&self.start().app, tenant, id)
    }

    /// Starts anew as after a kill, and serves before anything is recovered.
    pub(crate) fn reopen(&self) -> Ports {
        let (store, life) = {
            let start = self.start();
            (start.store.clone(), start.life.clone())
        };
        // First the store: from here on the old tasks write nothing, as those of a dead process.
        let store = Arc::new(store.reopen());
        life.cancel();
        let slow = Slow(store.clone(), self.refusal.clone());
        let sessions = self.sessions.clone();
        let (mut ports, life) =
            counted_ports(Arc::new(slow), store.clone(), store.clone(), sessions);
        ports.artifacts = self.artifacts.clone();
        ports.workspaces = Some(self.folders.clone());
        let app = App::new(ports.clone(), self.folders.agents(&ports), self.config);
        *self.start() = Start { app, store, life };
        ports
    }

    fn start(&self) -> MutexGuard<'_, Start> {
        self.start.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A principal's handle.
pub(crate) fn principal(app: &App, tenant: &str, id: &str) -> Arc<dyn Caller> {
    Arc::new(app.as_caller(caller(tenant, id)))
}

impl Drop for House {
    fn drop(&mut self) {
        self.start().life.cancel();
    }
}

#[async_trait]
impl World for House {
    fn caller(&self) -> Arc<dyn Caller> {
        self.principal("acme", "owner")
    }

    fn stranger(&self) -> Option<Arc<dyn Caller>> {
        Some(self.principal("umbrella", "owner"))
    }

    async fn restart(&self) {
        settle_cut_runs(&self.reopen()).await;
    }
}

impl FleetWorld for House {
    fn fleet(&self) -> Arc<dyn Fleet> {
        Arc::new(self.app().as_caller(owner()))
    }

    fn strangers_fleet(&self) -> Option<Arc<dyn Fleet>> {
        Some(Arc::new(self.app().as_caller(caller("umbrella", "owner"))))
    }

    fn as_world(self: Arc<Self>) -> Arc<dyn World> {
        self
    }
}

#[async_trait]
impl FleetWorlds for InProcess {
    async fn make_fleet(&self, config: AppConfig) -> Arc<dyn FleetWorld> {
        House::new(config)
    }
}

/// What a starting process does before it serves: afterwards no run is left to whoever asks first.
pub(crate) async fn settle_cut_runs(ports: &Ports) {
    recover(ports).await.expect("recovery");
    let orphaned = ports.leases.orphaned().await.expect("the index");
    assert_eq!(orphaned, [], "a start settles every run that was cut");
}

pub(crate) fn ports(
    repository: Arc<dyn Repository>,
    leases: Arc<dyn LeaseStore>,
) -> (Ports, CancellationToken) {
    // Nobody reads the trail of these.
    let trail = Arc::new(MemoryStore::new());
    counted_ports(repository, leases, trail, Arc::default())
}

/// Ports that count how many tasks of sessions were started.
fn counted_ports(
    repository: Arc<dyn Repository>,
    leases: Arc<dyn LeaseStore>,
    trail: Arc<dyn AuditTrail>,
    sessions: Arc<AtomicU64>,
) -> (Ports, CancellationToken) {
    let life = CancellationToken::new();
    let spawner = Mortal {
        inner: TokioSpawner::current(),
        life: life.clone(),
        sessions,
    };
    let ports = Ports {
        repository,
        leases,
        trail,
        authorizer: Arc::new(OwnTenant),
        artifacts: Arc::new(MemoryArtifacts::default()),
        clock: Arc::new(TokioClock::start()),
        entropy: Arc::new(OsEntropy),
        workspaces: None,
        digest_key: DigestKey::new([7; 32]),
        spawner: Arc::new(spawner),
    };
    (ports, life)
}

pub(crate) fn agents(ports: &Ports) -> AgentCatalog {
    let name = |name: &str| AgentName::parse(name).expect("an agent's name");
    let (clock, spawner) = (&ports.clock, &ports.spawner);
    let scripted = || ScriptedEngine::new(clock.clone(), spawner.clone());
    let unsteerable = scripted().claiming(Capabilities {
        usage: true,
        ..Capabilities::default()
    });
    let asks_little = scripted().claiming(Capabilities {
        interactions: [InteractionKind::Approval].into(),
        ..Capabilities::default()
    });
    let demo = DemoEngine::in_folder(Path::new(FOLDER), clock.clone(), spawner.clone());
    let catalog = AgentCatalog::new(name("scripted"), name("scripted"), Arc::new(scripted()))
        .with(name("no-steering"), Arc::new(unsteerable))
        .with(name("approvals-only"), Arc::new(asks_little))
        .with(name("demo"), Arc::new(demo.expect("a folder")))
        .with(name("deaf"), Arc::new(Deaf::new()))
        .with(name("absent"), Arc::new(Absent::new()))
        .with(name("jammed"), Arc::new(Jammed::new()))
        .with(name("lingering"), Arc::new(Lingering::new()));
    (0..HOSTILE).fold(catalog, |catalog, seed| {
        catalog.with(
            name(&format!("hostile-{seed}")),
            hostile(seed, clock, spawner),
        )
    })
}

/// What the demo agent reads.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");

/// How many hostile agents there are, by seed: `hostile-0` and so on.
pub(crate) const HOSTILE: u64 = 200;

fn hostile(seed: u64, clock: &Arc<dyn Clock>, spawner: &Arc<dyn Spawner>) -> Arc<dyn Engine> {
    let options = HostileOptions {
        between_runs: true,
        ..HostileOptions::wild(seed)
    };
    Arc::new(HostileEngine::new(options, clock.clone(), spawner.clone()))
}
