//! Starts of the server, and how they end: killed, dropped or stopped. A start's connections end
//! with it.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sessionplane_core::domain::access::{Principal, PrincipalKind};
use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::domain::provenance::Trust;
use sessionplane_server::adapters::artifacts::MemoryArtifacts;
use sessionplane_server::adapters::authz::{CedarAuthorizer, PolicySource};
use sessionplane_server::adapters::clock::SeededEntropy;
use sessionplane_server::adapters::memory::MemoryStore;
use sessionplane_server::app::config::AppConfig;
use sessionplane_server::app::digest::DigestKey;
use sessionplane_server::app::face::{Caller, Faces as _, ServerEnds};
use sessionplane_server::app::recovery::recover;
use sessionplane_server::app::{App, AppCaller, Ports};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::books::Books;
use crate::chains;
use crate::disk::{Disk, SlowArtifacts};
use crate::engines::Wire;
use crate::executor::{Executor, Process, lock};
use crate::grounds::{self, Grounds};
use crate::log::Log;
use crate::rng::Rng;
use crate::store::SlowStore;

/// What a server is made of, whatever start.
pub(crate) struct Host {
    pub(crate) executor: Executor,
    pub(crate) log: Log,
    pub(crate) books: Books,
    pub(crate) wire: Wire,
    pub(crate) disk: Arc<Disk>,
    pub(crate) config: AppConfig,
    pub(crate) hostile: Vec<u64>,
    pub(crate) artifacts: MemoryArtifacts,
    entropy: Arc<SeededEntropy>,
    store: Mutex<Arc<MemoryStore>>,
    up: watch::Sender<Option<Arc<Start>>>,
    starts: AtomicU64,
    /// Starts whose tasks must have ended by now.
    ended: Mutex<Vec<Process>>,
}

/// One start.
pub(crate) struct Start {
    process: Process,
    app: Mutex<Option<App>>,
    pub(crate) gone: CancellationToken,
}

/// How a start ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// Its tasks stop where they stand.
    Killed,
    /// The application is dropped and cancels them.
    Dropped,
    /// The application is asked to stop.
    Stopped,
}

/// A client's connection to one start.
#[derive(Clone)]
pub(crate) struct Connection {
    start: Arc<Start>,
    caller: Arc<AppCaller>,
}

/// The connection broke: nobody knows what became of the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Broken;

impl Connection {
    pub(crate) fn caller(&self) -> Arc<AppCaller> {
        self.caller.clone()
    }

    /// What a call comes to, unless the server is gone first.
    pub(crate) async fn call<T>(&self, call: impl Future<Output = T>) -> Result<T, Broken> {
        tokio::select! {
            biased;
            () = self.start.gone.cancelled() => Err(Broken),
            answer = call => Ok(answer),
        }
    }
}

fn owner() -> Principal {
    Principal {
        tenant: TenantId::parse("acme").expect("a tenant"),
        id: PrincipalId::parse("owner").expect("a principal"),
        kind: PrincipalKind::Human,
        groups: Arc::new([]),
        ceiling: Trust::Typed,
        credential: "simulated".into(),
    }
}

impl Host {
    pub(crate) fn new(
        executor: &Executor,
        (log, books, wire, disk): (Log, Books, Wire, Arc<Disk>),
        config: AppConfig,
        hostile: Vec<u64>,
        rng: &mut Rng,
    ) -> Arc<Self> {
        Arc::new(Self {
            executor: executor.clone(),
            log,
            books,
            wire,
            store: Mutex::new(Arc::new(MemoryStore::gated(disk.clone()))),
            disk,
            config,
            hostile,
            artifacts: MemoryArtifacts::default(),
            entropy: Arc::new(SeededEntropy::new(rng.next())),
            up: watch::Sender::new(None),
            starts: AtomicU64::new(0),
            ended: Mutex::default(),
        })
    }

    /// How often it was started.
    pub(crate) fn starts(&self) -> u64 {
        self.starts.load(Ordering::SeqCst)
    }

    /// The store as the present start has it open.
    pub(crate) fn store(&self) -> Arc<MemoryStore> {
        lock(&self.store).clone()
    }

    /// Opens the store, recovers, and serves. A disk that fails meanwhile ends the attempt.
    pub(crate) async fn start(&self) {
        loop {
            let number = self.starts.fetch_add(1, Ordering::SeqCst) + 1;
            let process = Process(u32::try_from(number).expect("few starts"));
            let store = Arc::new(self.store().reopen());
            *lock(&self.store) = store.clone();
            self.books.reopened();
            chains::are_whole(&store).await;
            let slow = Arc::new(SlowStore {
                inner: store.clone(),
                disk: self.disk.clone(),
            });
            let ports = Ports {
                repository: slow.clone(),
                leases: slow,
                trail: store,
                authorizer: Arc::new(
                    CedarAuthorizer::open(
                        (owner().tenant, owner().id),
                        &[PolicySource::default_set()],
                    )
                    .expect("the default set"),
                ),
                artifacts: Arc::new(SlowArtifacts {
                    inner: self.artifacts.clone(),
                    disk: self.disk.clone(),
                }),
                clock: self.executor.clock(),
                entropy: self.entropy.clone(),
                workspaces: Some(Arc::new(Grounds(self.disk.clone()))),
                digest_key: DigestKey::new([7; 32]),
                spawner: self.executor.spawner(process),
            };
            let recovered = recover(&ports).await;
            let told = recovered.as_ref().map_err(ToString::to_string);
            self.log.tell("server", ("started", number, told));
            if recovered.is_err() {
                continue;
            }
            let agents = self.wire.agents(&self.executor, process, &self.hostile);
            let agents = grounds::open_to_all(agents);
            self.wire.declare(&agents);
            let app = App::new(ports, agents, self.config);
            let start = Arc::new(Start {
                process,
                app: Mutex::new(Some(app)),
                gone: CancellationToken::new(),
            });
            self.up.send_replace(Some(start));
            return;
        }
    }

    /// Ends the present start.
    pub(crate) async fn end(&self, ending: Ending) {
        let Some(start) = self.up.send_replace(None) else {
            return;
        };
        self.log.tell("server", ending);
        let app = lock(&start.app).take();
        if ending == Ending::Stopped
            && let Some(app) = &app
        {
            app.drain();
            let stopped = self.executor.within(Duration::from_secs(60), app.stop());
            self.log.ensure(stopped.await.is_some(), || {
                "C63: a stop takes longer than a minute".to_owned()
            });
        }
        // First the store: from here on nothing of this start is written.
        let store = Arc::new(self.store().reopen());
        *lock(&self.store) = store;
        if ending == Ending::Killed {
            self.executor.kill(start.process);
        }
        drop(app);
        start.gone.cancel();
        lock(&self.ended).push(start.process);
    }

    /// Starts that left tasks behind.
    pub(crate) fn leftovers(&self) -> Vec<(Process, usize)> {
        let ended = lock(&self.ended);
        let left = ended.iter().map(|it| (*it, self.executor.tasks_of(*it)));
        left.filter(|(_, tasks)| *tasks > 0).collect()
    }

    /// Ends with the reason once a commit of the present start has failed.
    pub(crate) async fn fatal(&self) {
        let mut fatal = self.store().fatal();
        // The store outlives the wait.
        let _ = fatal.wait_for(Option::is_some).await;
    }

    /// A connection, as soon as there is a server.
    pub(crate) async fn connect(&self) -> Connection {
        let mut up = self.up.subscribe();
        loop {
            let start = up.borrow_and_update().clone();
            let app = start.as_ref().and_then(|start| lock(&start.app).clone());
            if let (Some(start), Some(app)) = (start, app) {
                let caller = Arc::new(app.as_caller(Caller {
                    principal: owner(),
                    trace_id: None,
                    via: None,
                    server_ends: ServerEnds::default(),
                }));
                return Connection { start, caller };
            }
            // The sender lives as long as the host.
            let _ = up.changed().await;
        }
    }
}
