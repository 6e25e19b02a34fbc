//! The process: wires adapters, application and face, and starts and stops them in order.
//!
//! What must never enter: a decision about a session or a call.

mod backup;
mod banner;
pub mod config_tool;
mod contents;
mod data_dir;
pub mod date;
mod descriptors;
mod ending;
mod error;
mod grounds;
pub mod health;
mod identity;
pub mod login;
mod notify;
pub mod policy_tool;
mod preflight;
pub mod store_tools;
pub mod token;
mod wiring;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Notify;

use self::banner::Ready;
pub use self::ending::end;
use self::ending::{Ending, Rest};
pub use self::error::ProcessError;
use self::preflight::Places;
use self::wiring::Parts;

use crate::adapters::artifacts::FolderArtifacts;
use crate::adapters::authn::Identities;
use crate::adapters::authz::{CedarAuthorizer, PolicyFiles};
use crate::adapters::boundary::Grounds;
use crate::adapters::checkpoints::Checkpoints;
use crate::adapters::clock::{OsEntropy, TokioClock, TokioSpawner};
use crate::adapters::engine::demo::DemoEngine;
use crate::adapters::process_host::{Bounds, Edition, ProcessHost, Where};
use crate::adapters::secret;
use crate::adapters::sled::{SledStore, StoreOptions};
use crate::adapters::tls_files::TlsFiles;
use crate::adapters::workspaces::HostWorkspaces;
use crate::app::digest::DigestKey;
use crate::app::recovery;
use crate::app::{App, Ports};
use crate::config::{self, ConfigError, Settings, Sources, default_data_dir};
use crate::failpoint;
use crate::grpc::events::Metrics;
use crate::grpc::listener::{Address, BindError, Listener};
use crate::grpc::server::{Config as FaceConfig, Server};
use sessionplane_core::ports::clock::Entropy;

/// What the command line asks for.
#[derive(Debug, Default)]
pub struct Options {
    /// Where the settings come from.
    pub sources: Sources,
    /// Overrides the root of the built-in agents' workspace.
    pub workspace: Option<PathBuf>,
    /// A file to write once the server takes calls: one line of JSON. One that is there is removed
    /// first, and the server's own when it stops.
    pub ready_file: Option<PathBuf>,
    /// Asks a running server to look at its files at once.
    pub reload: Arc<Notify>,
}

/// Reads the configuration.
///
/// # Errors
/// When the file cannot be read, or anything in file, environment or flags is wrong.
pub fn configuration(options: &Options) -> Result<Settings, ConfigError> {
    failpoint::reach("process::beginning");
    config::load(&options.sources)
}

/// Threads for what blocks: as many as all that may block at once, each kind with a bound of its own,
/// so that none of them waits behind another that hangs.
#[must_use]
pub fn threads(config: &Settings) -> usize {
    /// The files of TLS and of policies, the modes of the data directory, and the store while it is
    /// opened or closed.
    const OTHERS: usize = 4;
    let demos = match config
        .agents
        .values()
        .filter(|agent| agent.reads_a_workspace())
    {
        _ if config.agents.is_empty() => 1,
        demos => demos.count(),
    };
    config.blocking_threads
        + FolderArtifacts::AT_ONCE
        + backup::AT_ONCE
        + demos * DemoEngine::JOBS
        + ProcessHost::AT_ONCE
        + config.workspaces.len().max(1) * HostWorkspaces::AT_ONCE
        + OTHERS
}

/// Where the data lives: configured, or the default.
///
/// # Errors
/// When there is no default, or no present directory that a relative path starts from.
pub fn data_directory(config: &Settings) -> Result<PathBuf, ProcessError> {
    match &config.data_dir {
        Some(path) => absolute(path),
        None => absolute(&default_data_dir()?),
    }
}

/// Starts, serves until `shutdown` completes, and stops: face first, then sessions, then the store.
/// A start is given up when `shutdown` completes before it is done. All steps of a stop together
/// have a bound, at which the process is ended from a thread of its own if it is still there: status 0,
/// and the next start finds what a crash would have left.
///
/// # Errors
/// See [`ProcessError`]. After a start the store's failure is the only one.
pub async fn run(
    config: Settings,
    options: &Options,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ProcessError> {
    // First of all: a file that is there says that a server takes calls.
    let ready = options.ready_file.as_deref().map(Ready::at).transpose()?;
    let data_dir = data_directory(&config)?;
    let address: Address = config.listen.parse()?;
    let probes = probes_address(&config)?;
    let places = Places {
        config: &config,
        options,
        data_dir: &data_dir,
        address: &address,
        probes: probes.as_ref(),
    };
    preflight::look(&places).await?;
    data_dir::prepare(&data_dir)?;
    let ending = Ending::new(&config);
    let shutdown = async {
        shutdown.await;
        // Before anything that can hang, the log included.
        ending.begin();
        tracing::info!("stopping; a second signal ends the process at once");
    };
    let mut shutdown = std::pin::pin!(shutdown);
    let store = tokio::select! {
        store = open_store(&data_dir, &config) => store,
        () = &mut shutdown => return given_up(),
    };
    let store = match store {
        Ok(store) => store,
        Err(error) => return Err(preflight::besides(error, &places).await),
    };
    let start = Start {
        config: &config,
        options,
        data_dir: &data_dir,
        address,
        probes,
        ready,
    };
    let served = serve(start, store.clone(), &ending, shutdown).await;
    close(store, ending.rest()).await;
    served
}

fn artifacts(data_dir: &Path) -> Result<Arc<FolderArtifacts>, ProcessError> {
    let path = data_dir.join(contents::ARTIFACTS);
    let opened = FolderArtifacts::open(&path);
    let failed = |error| ProcessError::Directory { path, error };
    opened.map(Arc::new).map_err(failed)
}

/// What a start goes by.
struct Start<'a> {
    config: &'a Settings,
    options: &'a Options,
    data_dir: &'a Path,
    address: Address,
    probes: Option<Address>,
    ready: Option<Ready>,
}

impl<'a> Start<'a> {
    fn parts(&self, ports: &'a Ports, grounds: &'a Grounds, host: &'a ProcessHost) -> Parts<'a> {
        Parts {
            config: self.config,
            data_dir: self.data_dir,
            ports,
            grounds,
            host,
        }
    }

    async fn listen_for_probes(&self) -> Result<Option<Listener>, BindError> {
        match &self.probes {
            Some(address) => Listener::for_probes(address).await.map(Some),
            None => Ok(None),
        }
    }
}

fn face(app: &App, authenticator: Arc<Identities>, config: &Settings) -> Server<App> {
    Server {
        faces: Arc::new(app.clone()),
        authenticator,
        metrics: Arc::new(Metrics::default()),
        config: face_config(config),
    }
}

async fn serve(
    start: Start<'_>,
    store: Arc<SledStore>,
    ending: &Ending,
    mut shutdown: impl Future<Output = ()> + Send + Unpin,
) -> Result<(), ProcessError> {
    let (config, data_dir) = (start.config, start.data_dir);
    let artifacts = artifacts(data_dir)?;
    let served = wiring::served(config, start.options)?;
    let grounds = grounds::open(config, &served, data_dir)?;
    let (policies, authorizer) = identity::policies(config, Arc::new(TokioClock::start()))?;
    let ports = ports(&store, authorizer, artifacts.clone(), &grounds, data_dir)?;
    let (identities, registered) =
        identity::identities(config, (data_dir, &start.address), &ports.clock)?;
    let tls = identity::tls_files(config, ports.clock.clone())?;
    let mut checkpoints = wiring::checkpoints(&store, config, data_dir)?;
    let host = process_host(data_dir)?;
    let parts = start.parts(&ports, &grounds, &host);
    let (agents, lines) = parts.agents(served)?;
    let identities = Arc::new(identities.with_local_trust(wiring::local_trust(&agents)));
    let cut = tokio::select! {
        cut = recover(&host, &ports) => cut?,
        () = &mut shutdown => return given_up(),
    };
    let app = App::new(ports, agents, config.app);
    failpoint::reach("process::before-listen");
    // Listeners are bound last: whoever can connect is served, and finds every run settled.
    let guard = identity::guard(tls.as_ref(), &registered);
    let listener = Listener::guarded(&start.address, guard).await?;
    let bound =
        banner::Place::of(&listener).named(tls.as_ref().map_or_else(Vec::new, TlsFiles::names));
    let probes = start.listen_for_probes().await?;
    let probed = probes.as_ref().map(banner::Place::of);
    let listening = wiring::listen_for_backups(data_dir);
    let ready = start
        .ready
        .map(|ready| ready.write(&bound, probed.as_ref(), data_dir))
        .transpose()?;
    let (places, owner) = ((&bound, probed.as_ref()), identities.owner());
    let token = (owner.path(), owner.is_new());
    banner::print(places, data_dir, token, &lines, cut);
    notify::ready();
    let server = face(&app, identities.clone(), config);
    let mut fatal = store.fatal();
    let sweeper = app.forget_bindings();
    let reload = start.options.reload.clone();
    let followed = follow(&identities, (tls, policies), reload, data_dir);
    tokio::pin!(sweeper, followed);
    let ended = {
        let asked = async {
            shutdown.await;
            notify::stopping();
            // Whoever looks for a server finds none from here on.
            drop(ready);
            tell_what_is_waited_for(&app, config);
        };
        let face = server.serve_with_probes(listener, probes, asked);
        tokio::pin!(face);
        tokio::select! {
            stopped = &mut face => stopped.map(|stopped| {
                tracing::info!(connections_cut = stopped.dropped_connections, "no longer serving");
            }).map_err(ProcessError::from),
            reason = fatal.wait_for(Option::is_some) => Err(store_failed(reason.ok().and_then(|reason| reason.clone()))),
            () = &mut sweeper => Ok(()),
            () = &mut followed => Ok(()),
            () = wiring::backups(listening, &store, &artifacts) => Ok(()),
            () = wiring::write_checkpoints(&mut checkpoints, &app, config.checkpoint_every) => Ok(()),
        }
    };
    let rest = ending.rest();
    // Beside each other: no step that is needed more loses time to the uses.
    tokio::join!(end_sessions(&app, rest), settle_uses(&identities, rest));
    end_trail(&mut checkpoints, &app, rest).await;
    end_programs(&host, data_dir, ending).await;
    ended
}

/// Signs what the trail ends with, after its last record.
async fn end_trail(checkpoints: &mut Checkpoints, app: &App, rest: Rest) {
    let last = wiring::write_checkpoint(checkpoints, app);
    if rest.step(5, last).await.is_none() {
        tracing::warn!("the last checkpoint of the audit trail was not written in time");
    }
}

async fn end_programs(host: &ProcessHost, data_dir: &Path, ending: &Ending) {
    if ending.rest().step(5, host.close()).await.is_none() {
        tracing::error!("agents' processes are still there; they are killed once this one is gone");
    }
    // Nobody is left who would open it again, and the next start refuses what is open.
    let closed = data_dir::close_again(data_dir, false);
    if ending.rest().step(5, closed).await.is_none() {
        tracing::warn!("it was not looked in time whether others may read the tokens");
    }
}

async fn settle_uses(identities: &Identities, rest: Rest) {
    if rest.step(5, identities.settle()).await.is_none() {
        tracing::warn!("when tokens were used last was not written down in time");
    }
}

fn process_host(data_dir: &Path) -> Result<ProcessHost, ProcessError> {
    let mut place = Where::of_this_server(data_dir);
    if let Some(edition) = failpoint::told("process_host::edition") {
        place.edition = Edition::at_most(edition.parse().unwrap_or_default());
    }
    let opened = ProcessHost::open(place, Bounds::default(), Arc::new(OsEntropy));
    opened.map_err(|error| ProcessError::Directory {
        path: data_dir.to_owned(),
        error,
    })
}

/// What a crash has left: first its processes, which may still be at work, then its runs.
async fn recover(host: &ProcessHost, ports: &Ports) -> Result<usize, ProcessError> {
    let ended = host.end_leftovers().await?;
    if ended > 0 {
        tracing::info!(ended, "processes of an earlier server were killed");
    }
    failpoint::reach("process::leftovers-ended");
    Ok(recovery::recover(ports).await?)
}

fn tell_what_is_waited_for(app: &App, config: &Settings) {
    let (at_work, face) = (app.at_work(), &config.face);
    let seconds = (face.lame_duck + face.drain_within).as_secs();
    if at_work > 0 {
        tracing::info!(
            at_work,
            seconds,
            "sessions are at work: they have this long to settle; a second signal ends at once"
        );
    }
}

/// Stops what is left of the sessions' work, and settles it as interrupted.
async fn end_sessions(app: &App, rest: Rest) {
    failpoint::reach("process::ending");
    if rest.step(4, app.stop()).await.is_none() {
        tracing::error!("sessions did not stop in time; what they acknowledged is kept");
    }
    match rest.step(5, app.interrupt()).await {
        Some(Ok(0)) => tracing::info!("stopped: what was acknowledged is kept"),
        Some(Ok(cut)) => tracing::info!(
            cut,
            "stopped: runs that were still active are settled as interrupted"
        ),
        Some(Err(error)) => {
            tracing::error!(%error, "a run that was cut is settled at the next start");
        }
        None => tracing::error!("runs that were cut are settled at the next start"),
    }
}

fn probes_address(config: &Settings) -> Result<Option<Address>, ProcessError> {
    let address = config.health_listen.as_deref().map(str::parse);
    address.transpose().map_err(ProcessError::HealthAddress)
}

/// Follows the files that may change while the server runs, for as long as it is polled.
async fn follow(
    identities: &Identities,
    (tls, policies): (Option<TlsFiles>, PolicyFiles),
    reload: Arc<Notify>,
    data_dir: &Path,
) {
    let (of_tls, of_policies) = (Arc::<Notify>::default(), Arc::<Notify>::default());
    let told = async {
        loop {
            reload.notified().await;
            of_tls.notify_one();
            of_policies.notify_one();
        }
    };
    let tls = async {
        match tls {
            Some(files) => files.follow(of_tls.clone()).await,
            None => std::future::pending().await,
        }
    };
    let policies = policies.follow(of_policies.clone());
    let closed = data_dir::keep_closed(data_dir);
    tokio::join!(identities.follow(), told, tls, policies, closed);
}

fn ports(
    store: &Arc<SledStore>,
    authorizer: Arc<CedarAuthorizer>,
    artifacts: Arc<FolderArtifacts>,
    grounds: &Grounds,
    data_dir: &Path,
) -> Result<Ports, ProcessError> {
    Ok(Ports {
        repository: store.clone(),
        leases: store.clone(),
        trail: store.clone(),
        authorizer,
        artifacts,
        clock: Arc::new(TokioClock::start()),
        entropy: Arc::new(OsEntropy),
        spawner: Arc::new(TokioSpawner::current()),
        workspaces: Some(Arc::new(HostWorkspaces::new(grounds.clone()))),
        digest_key: DigestKey::new(secret::open(data_dir)?),
    })
}

#[allow(
    clippy::unnecessary_wraps,
    reason = "it is how a start ends: without an error"
)]
fn given_up() -> Result<(), ProcessError> {
    tracing::info!("stopped before the start was done; the next start does the rest");
    Ok(())
}

/// Closes the store. One that hangs is left behind: dropping it would wait for the very thread that
/// does not end.
async fn close(store: Arc<SledStore>, rest: Rest) {
    if rest.step(10, store.close()).await.is_none() {
        tracing::error!("the store did not close in time; what it acknowledged is kept");
        std::mem::forget(store);
    }
}

/// A path that means the same to whoever reads it elsewhere.
fn absolute(path: &Path) -> Result<PathBuf, ProcessError> {
    std::path::absolute(path).map_err(|error| ProcessError::Directory {
        path: path.to_owned(),
        error,
    })
}

fn face_config(settings: &Settings) -> FaceConfig {
    let mut config = settings.face.clone();
    // What is left is for the sessions and the store.
    config.stop_within = settings.close_within * 3 / 10;
    match descriptors::raise() {
        Some(limit) => config.within_descriptors(limit),
        None => config,
    }
}

fn store_failed(reason: Option<Arc<str>>) -> ProcessError {
    ProcessError::StoreFailed(reason.map_or_else(
        || "its committer ended".to_owned(),
        |reason| reason.to_string(),
    ))
}

async fn open_store(directory: &Path, config: &Settings) -> Result<Arc<SledStore>, ProcessError> {
    let path = directory.join(data_dir::STORE);
    let mut options = StoreOptions::new(OsEntropy.random());
    options.cache_bytes = config.cache_bytes;
    options.reads = config.blocking_threads;
    let opened = tokio::task::spawn_blocking(move || SledStore::open(path, &options)).await;
    match opened {
        Ok(store) => Ok(Arc::new(store?)),
        Err(error) => Err(ProcessError::StoreFailed(error.to_string())),
    }
}
