//! The world over the wire: the application over a durable store, behind a real server on a loopback
//! port, reached through the Rust client.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sessionplane_client::{Client, ClientOptions, Token};
use sessionplane_core::contract::fleet::Fleet;
use sessionplane_core::domain::access::{Principal, PrincipalKind};
use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::ports::authenticator::{Authenticator, Known, Presented, Unauthenticated};
use sessionplane_server::adapters::sled::{SledStore, StoreOptions};
use sessionplane_server::app::App;
use sessionplane_server::app::config::AppConfig;
use sessionplane_server::grpc::events::Metrics;
use sessionplane_server::grpc::listener::{Address, Listener};
use sessionplane_server::grpc::server::{Config, Server};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::house::{agents, ports, settle_cut_runs};
use crate::suite::fleet::{FleetWorld, FleetWorlds};
use crate::suite::world::{Caller, World, Worlds};

const OWNER: &str = "sp_owner_0123456789";
const STRANGER: &str = "sp_stranger_0123456789";

/// Knows two principals of two tenants by their tokens.
struct TwoTenants;

#[async_trait]
impl Authenticator for TwoTenants {
    async fn authenticate(&self, presented: Presented<'_>) -> Result<Known, Unauthenticated> {
        let tenant = match presented.bearer {
            Some(OWNER) => "acme",
            Some(STRANGER) => "umbrella",
            _ => return Err(Unauthenticated("no token that this test knows".to_owned())),
        };
        Ok(Principal {
            tenant: TenantId::parse(tenant).expect("a tenant"),
            id: PrincipalId::parse("owner").expect("a principal"),
            kind: PrincipalKind::Human,
            groups: Arc::new([]),
            ceiling: Trust::Typed,
            credential: "test".into(),
        }
        .into())
    }
}

/// One start of the server.
pub(crate) struct Start {
    pub(crate) address: SocketAddr,
    store: Arc<SledStore>,
    life: CancellationToken,
    served: JoinHandle<()>,
    pub(crate) owner: Arc<Client>,
    stranger: Arc<Client>,
}

impl Start {
    /// Ends as a process that is killed.
    pub(crate) async fn kill(self) {
        // First the store: from here on the old tasks write nothing, as those of a dead process.
        self.store.close().await;
        self.life.cancel();
        self.served.await.expect("the server ended without a panic");
    }
}

/// The owner's client of what is at an address.
pub(crate) fn owner_at(address: SocketAddr) -> Arc<Client> {
    client(address, OWNER)
}

fn client(address: SocketAddr, token: &str) -> Arc<Client> {
    let target = format!("http://{address}").parse().expect("a target");
    let options = ClientOptions::new(target).token(Token::parse(token).expect("a token"));
    Arc::new(Client::connect(options).expect("a client"))
}

/// The world over the wire.
struct Remote {
    config: AppConfig,
    face: Config,
    directory: TempDir,
    start: Mutex<Option<Start>>,
}

/// Makes such worlds.
pub(crate) struct OverTheWire;

/// Makes such worlds with a face of their own.
pub(crate) struct WithFace(pub(crate) Config);

#[async_trait]
impl Worlds for OverTheWire {
    async fn make(&self, config: AppConfig) -> Arc<dyn World> {
        WithFace(Config::default()).make(config).await
    }
}

#[async_trait]
impl Worlds for WithFace {
    async fn make(&self, config: AppConfig) -> Arc<dyn World> {
        Arc::new(Remote::new(config, self.0.clone()).await)
    }
}

#[async_trait]
impl FleetWorlds for OverTheWire {
    async fn make_fleet(&self, config: AppConfig) -> Arc<dyn FleetWorld> {
        Arc::new(Remote::new(config, Config::default()).await)
    }
}

/// Starts a server on what a directory holds.
pub(crate) async fn start(directory: &TempDir, config: AppConfig, face: Config) -> Start {
    let path = directory.path().join("store");
    let opened = tokio::task::spawn_blocking(move || SledStore::open(path, &StoreOptions::new(7)));
    let store = Arc::new(opened.await.expect("no panic").expect("the store opens"));
    let (ports, life) = ports(store.clone(), store.clone());
    settle_cut_runs(&ports).await;
    let app = App::new(ports.clone(), agents(&ports), config);
    let loopback = Address::Tcp("127.0.0.1:0".parse().expect("an address"));
    let listener = Listener::bind(&loopback).await.expect("a free port");
    let Address::Tcp(address) = *listener.address() else {
        panic!("it listens on TCP");
    };
    let server = Server {
        faces: Arc::new(app),
        authenticator: Arc::new(TwoTenants),
        metrics: Arc::new(Metrics::default()),
        config: face,
    };
    let killed = life.clone();
    let task = tokio::spawn(async move {
        // Killed, it is dropped in the middle of whatever it does.
        let serving = server.serve(listener, std::future::pending());
        let _served = killed.run_until_cancelled(serving).await;
    });
    Start {
        address,
        store,
        life,
        served: task,
        owner: client(address, OWNER),
        stranger: client(address, STRANGER),
    }
}

impl Remote {
    async fn new(config: AppConfig, face: Config) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let start = start(&directory, config, face.clone()).await;
        Self {
            config,
            face,
            directory,
            start: Mutex::new(Some(start)),
        }
    }

    fn started(&self) -> MutexGuard<'_, Option<Start>> {
        self.start.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self, which: impl Fn(&Start) -> Arc<Client>) -> Arc<Client> {
        which(self.started().as_ref().expect("it is started"))
    }
}

#[async_trait]
impl World for Remote {
    fn caller(&self) -> Arc<dyn Caller> {
        self.client(|start| start.owner.clone())
    }

    fn stranger(&self) -> Option<Arc<dyn Caller>> {
        Some(self.client(|start| start.stranger.clone()))
    }

    async fn restart(&self) {
        let before = self.started().take().expect("it is started");
        before.kill().await;
        let start = start(&self.directory, self.config, self.face.clone()).await;
        *self.started() = Some(start);
    }
}

impl FleetWorld for Remote {
    fn fleet(&self) -> Arc<dyn Fleet> {
        self.client(|start| start.owner.clone())
    }

    fn strangers_fleet(&self) -> Option<Arc<dyn Fleet>> {
        Some(self.client(|start| start.stranger.clone()))
    }

    fn as_world(self: Arc<Self>) -> Arc<dyn World> {
        self
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let Some(start) = self.started().take() {
            start.life.cancel();
        }
    }
}
