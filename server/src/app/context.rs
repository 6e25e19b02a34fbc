//! The application: its ports, its configuration and what it holds in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use sessionplane_core::contract::SessionState;
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::view::SessionView;
use sessionplane_core::ports::artifact_store::ArtifactStore;
use sessionplane_core::ports::audit_trail::AuditTrail;
use sessionplane_core::ports::authorizer::Authorizer;
use sessionplane_core::ports::clock::{Clock, Entropy, Spawner, TaskHandle};
use sessionplane_core::ports::lease_store::LeaseStore;
use sessionplane_core::ports::repository::{ReadError, Repository};
use sessionplane_core::ports::workspaces::Workspaces;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::agents::AgentCatalog;
use super::caller::store;
use super::channel::Channel;
use super::channels::Channels;
use super::config::AppConfig;
use super::digest::DigestKey;
use super::fleet::hub::Hub;
use super::fleet::seats::Seats;
use super::fleet::{eraser, stalls};
use super::recovery::{self, RecoveryError};
use super::residents::Residents;
use super::single_flight::SingleFlight;
use super::work::Work;

/// The adapters that the application stands on.
#[derive(Clone)]
pub struct Ports {
    /// The durable store.
    pub repository: Arc<dyn Repository>,
    /// The store's leases.
    pub leases: Arc<dyn LeaseStore>,
    /// The store's chains of audit records.
    pub trail: Arc<dyn AuditTrail>,
    /// Decides who may do what.
    pub authorizer: Arc<dyn Authorizer>,
    /// Keeps contents that are too large for an entry.
    pub artifacts: Arc<dyn ArtifactStore>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Concurrency.
    pub spawner: Arc<dyn Spawner>,
    /// The directory trees that sessions work in; none where there are none.
    pub workspaces: Option<Arc<dyn Workspaces>>,
    /// Keeps answers from being guessed from what is stored of them; it lives as long as the store.
    pub digest_key: DigestKey,
}

/// Everything that the application's tasks share.
pub(crate) struct Context {
    pub(crate) ports: Ports,
    pub(crate) config: AppConfig,
    pub(crate) agents: AgentCatalog,
    pub(crate) channels: Channels,
    /// What watchers of the fleet read.
    pub(crate) hub: Arc<Hub>,
    /// Who watches the fleet.
    pub(crate) seats: Arc<Seats>,
    /// Wakes who erases what deleted sessions held.
    pub(crate) deleted: Notify,
    pub(crate) residents: Residents,
    pub(crate) flights: SingleFlight,
    pub(crate) work: Work,
    /// No run begins any more, and who watches a session that has none is sent away. A stream that
    /// ends from here on was ended by the server.
    pub(crate) draining: CancellationToken,
    /// Sessions' tasks end.
    pub(crate) stopping: CancellationToken,
    /// Who waits for a run waits no longer. After the sessions: there may be many more of these.
    pub(crate) waiting_is_over: CancellationToken,
    next_stream: AtomicU64,
}

impl Context {
    /// A session's state, with what keeps its agent in: the word of the agent's engine (C53).
    pub(crate) fn state(&self, (view, position): (SessionView, Position)) -> SessionState {
        let agent = self.agents.facts(&view.session.agent);
        let sandbox = agent.map_or(SandboxLevel::None, |agent| agent.capabilities.sandbox);
        SessionState {
            view,
            sandbox,
            position,
        }
    }

    /// A number that no other invoke stream of this process has.
    pub(crate) fn next_stream(&self) -> u64 {
        self.next_stream.fetch_add(1, Ordering::Relaxed)
    }

    /// The channel of a stored session. Where it has to be made from the rows, a run that was cut is
    /// settled first: a session is never shown idle before that.
    pub(crate) async fn channel(
        &self,
        session: SessionId,
    ) -> Result<Option<Arc<Channel>>, CallError> {
        if let Some(channel) = self.channels.get(session) {
            return Ok(Some(channel));
        }
        self.settled(session).await?;
        self.open_channel(session).await.map_err(store)
    }

    /// The same, for who has settled it already.
    pub(crate) async fn open_channel(
        &self,
        session: SessionId,
    ) -> Result<Option<Arc<Channel>>, ReadError> {
        let (repository, leases) = (&*self.ports.repository, &*self.ports.leases);
        self.channels
            .open(session, repository, leases, &self.agents)
            .await
    }

    /// Settles the session's run if it was cut, or refuses the session by name.
    pub(crate) async fn settled(&self, session: SessionId) -> Result<(), CallError> {
        let cut = self.ports.leases.cut(session).await.map_err(store)?;
        if cut.is_none() {
            return Ok(());
        }
        let _settling = self.channels.settling();
        let settled = recovery::settle_if_cut(&self.ports, session).await;
        settled.map(|_| ()).map_err(|error| {
            tracing::error!(%error, "a run that was cut cannot be settled; its session is refused");
            let message = format!(
                "session {session} has a run that was cut and cannot be settled; the server's log \
                 says more"
            );
            CallError::refused(Reason::StoreFailed, message)
        })
    }
}

/// Owns the sessions' tasks, which share the context with it and would keep it alive for ever. When
/// the last handle on the application is dropped they are cancelled, as if the process had ended, and
/// whoever still reads a stream is told so.
pub(crate) struct Life {
    context: Arc<Context>,
    /// What looks after the fleet: they share the context, too, and dropping them ends them.
    keepers: Mutex<Vec<Box<dyn TaskHandle>>>,
}

impl Life {
    fn new(context: Arc<Context>) -> Self {
        let spawner = &context.ports.spawner;
        let stalls = spawner.spawn("stalls", Box::pin(stalls::mark(context.clone())));
        let eraser = spawner.spawn("eraser", Box::pin(eraser::erase(context.clone())));
        Self {
            keepers: Mutex::new(vec![stalls, eraser]),
            context,
        }
    }

    /// Waits until they have ended, once they were told to.
    async fn ended(&self) {
        let keepers = std::mem::take(&mut *self.lock());
        for keeper in keepers {
            keeper.join().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Box<dyn TaskHandle>>> {
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.context.residents.cancel();
        self.context.channels.close(self.context.ports.clock.now());
        self.context.hub.close();
    }
}

/// The application. Clones share everything. Runs go on until [`App::stop`], or until the last clone
/// and the last caller's handle are dropped.
#[derive(Clone)]
pub struct App {
    pub(crate) context: Arc<Context>,
    pub(crate) life: Arc<Life>,
}

impl App {
    /// Builds the application. Call [`super::recovery::recover`] before anybody is served.
    #[must_use]
    pub fn new(ports: Ports, agents: AgentCatalog, config: AppConfig) -> Self {
        let hub = Arc::new(Hub::keeping(config.fleet_changes));
        let context = Context {
            channels: Channels::new(config, hub.clone()),
            hub,
            seats: Arc::new(Seats::new(
                config.max_watches,
                config.max_watches_per_principal,
            )),
            deleted: Notify::new(),
            residents: Residents::default(),
            flights: SingleFlight::default(),
            work: Work::default(),
            draining: CancellationToken::new(),
            stopping: CancellationToken::new(),
            waiting_is_over: CancellationToken::new(),
            next_stream: AtomicU64::new(1),
            ports,
            config,
            agents,
        };
        let context = Arc::new(context);
        Self {
            life: Arc::new(Life::new(context.clone())),
            context,
        }
    }

    /// The agents that the configuration defines.
    #[must_use]
    pub fn agents(&self) -> &AgentCatalog {
        &self.context.agents
    }

    /// The time, by the application's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.context.ports.clock.now()
    }

    /// Waits, by the application's clock.
    pub async fn sleep(&self, delay: Duration) {
        self.context.ports.clock.sleep(delay).await;
    }

    /// Forgets request bindings that are older than the retention and whose run has settled, at
    /// most `max`. Returns how many.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn sweep_bindings(&self, max: usize) -> Result<usize, ReadError> {
        let ports = &self.context.ports;
        let retention =
            u64::try_from(self.context.config.binding_retention.as_millis()).unwrap_or(u64::MAX);
        let before =
            Timestamp::from_millis(ports.clock.now().as_millis().saturating_sub(retention));
        ports.repository.sweep_bindings(before, max).await
    }

    /// C63: no run begins any more, and who watches a session that has none is sent away. What is
    /// under way goes on. A stream that ends from here on is no cancellation of its run (C13).
    pub fn drain(&self) {
        self.context.draining.cancel();
    }

    /// Completes when no session is at work: after [`App::drain`] none begins to be.
    pub async fn at_rest(&self) {
        self.context.work.over().await;
    }

    /// How many sessions are at work.
    #[must_use]
    pub fn at_work(&self) -> usize {
        self.context.work.count()
    }

    /// Settles as interrupted what [`App::stop`] has cut; returns how much. The next start would do
    /// the same, and does it for what is not reached here.
    ///
    /// # Errors
    /// When the store refuses one; those before it are settled.
    pub async fn interrupt(&self) -> Result<usize, RecoveryError> {
        let (work, ports) = (&self.context.work, &self.context.ports);
        // Each is taken when its turn has come: what a stop without time does not get to is left to
        // whoever asks next.
        let mut settled = stream::iter(std::iter::from_fn(|| work.take_cut()))
            .map(|session| recovery::abandon(ports, session))
            .buffer_unordered(recovery::CONCURRENT);
        let mut count = 0;
        while let Some(settled) = settled.next().await {
            // A session that was told to stop after its last word has nothing left to settle.
            count += usize::from(settled?);
        }
        Ok(count)
    }

    /// Stops every session's task and waits until all have left. Runs that are still active stay
    /// unsettled in the store: [`App::interrupt`] settles them, or the next start.
    pub async fn stop(&self) {
        self.context.waiting_is_over.cancel();
        self.stop_sessions().await;
    }

    /// As [`App::stop`], but wakes nobody who only waits or watches.
    pub(crate) async fn stop_sessions(&self) {
        self.context.draining.cancel();
        self.context.stopping.cancel();
        self.context.residents.drained().await;
        self.life.ended().await;
    }
}
