//! The listener and its connections: takes them, and lets go of them in bounded time.
//!
//! A stop goes in steps, each with its own bound: health says no while calls are still taken; nothing
//! new begins, and what is at work settles; what does not is cut; no new connections and streams;
//! streams end in words; connections are dropped. What must never enter: a signal handler, or what is served.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::ports::authenticator::Authenticator;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use super::admission::{self, Connections, Traffic};
use super::connection::{self, Closing, KEEPALIVE, Shared};
use super::events::Metrics;
use super::health::Health;
use super::listener::{Accepted, Listener};
use super::methods::Streaming;
use super::probes;
use super::reflection::Reflection;
use super::routes::Routes;
use super::web::Web;
use crate::app::face::Faces;

/// How long accepting rests after the system refused it, for example for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long streams that have nothing more to tell may take to be read to their end.
const STREAMS_END_WITHIN: Duration = Duration::from_millis(500);
/// How long calls may take to notice that their connection is gone.
const CALLS_END_WITHIN: Duration = Duration::from_secs(1);

/// What the store, the agents' processes and the log may open beside the connections.
const RESERVED_DESCRIPTORS: u64 = 256;

/// How the face behaves.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Most connections at a time. A further one takes the place of the oldest that never called,
    /// then of the one that has rested longest, or is closed at once.
    pub max_connections: usize,
    /// A connection without an open call for as long as this rests: it closes quickly when asked
    /// to, and at the limit it makes room.
    pub rest_after: Duration,
    /// A TLS handshake that is not done by then is given up.
    pub handshake_within: Duration,
    /// A connection on which no request has arrived by then is closed.
    pub first_request_within: Duration,
    /// A request message that has not arrived whole by then is given up.
    pub message_within: Duration,
    /// A stream of which the transport could hand on nothing for so long, though there was
    /// something, is ended; at the latest after twice as long. Its caller resumes or rejoins.
    pub unread_within: Duration,
    /// Most calls at a time on one connection.
    pub max_streams_per_connection: u32,
    /// Largest request message, in bytes, after decompression.
    pub max_request_bytes: usize,
    /// All headers of a request together, in bytes as HTTP/2 counts them.
    pub max_header_bytes: usize,
    /// Calls at a time that are not answered yet, of one principal three quarters of that. A further
    /// one is refused: OVERLOADED. Not health, and not waits.
    pub max_calls: usize,
    /// Calls at a time of one principal that wait for a run. A further one is refused: OVERLOADED.
    pub max_waits: usize,
    /// Where pages are from that may call: `http://host`, `https://host:port`, or `:*` for any port.
    pub web_origins: Vec<String>,
    /// How often a silent peer is asked whether it is there.
    pub keepalive_interval: Duration,
    /// How long it may take to answer before it counts as gone.
    pub keepalive_timeout: Duration,
    /// When a connection is closed for its age, give or take a tenth. `None`: never.
    pub max_connection_age: Option<Duration>,
    /// How long the streams of such a connection may go on.
    pub max_connection_age_grace: Duration,
    /// Whether reflection answers callers that are not known.
    pub open_reflection: bool,
    /// On a stop: how long calls are still taken while health says no already, so that load
    /// balancers notice.
    pub lame_duck: Duration,
    /// On a stop, after that: how long runs may go on, and with them the streams of who watches.
    pub drain_within: Duration,
    /// On a stop, after that: how long connections may take to close before they are dropped. A
    /// call that has no answer after half of it is told so.
    pub stop_within: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            rest_after: Duration::from_secs(5),
            handshake_within: Duration::from_secs(5),
            first_request_within: Duration::from_secs(10),
            message_within: Duration::from_secs(30),
            unread_within: Duration::from_secs(300),
            max_streams_per_connection: 1024,
            max_request_bytes: 4 * 1024 * 1024,
            max_header_bytes: 16 * 1024,
            max_calls: 1024,
            max_waits: 4096,
            web_origins: ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"]
                .map(str::to_owned)
                .to_vec(),
            keepalive_interval: KEEPALIVE.0,
            keepalive_timeout: KEEPALIVE.1,
            max_connection_age: None,
            max_connection_age_grace: Duration::from_secs(30),
            open_reflection: false,
            lame_duck: Duration::ZERO,
            drain_within: Duration::from_secs(20),
            stop_within: Duration::from_secs(5),
        }
    }
}

impl Config {
    /// Takes no more connections than `descriptors` allow, with some left for everything else.
    #[must_use]
    pub fn within_descriptors(mut self, descriptors: u64) -> Self {
        let reserve = RESERVED_DESCRIPTORS.min(descriptors / 2);
        let room = usize::try_from(descriptors - reserve).unwrap_or(usize::MAX);
        self.max_connections = self.max_connections.min(room).max(1);
        self
    }
}

/// Why the face does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The descriptors that were compiled in cannot be read.
    #[error("reflection cannot be offered: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The descriptors that were compiled in cannot be read.
    #[error("the methods are not known: {0}")]
    Methods(#[from] prost::DecodeError),
}

/// How a server stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped {
    /// Connections that did not close in time and were dropped.
    pub dropped_connections: usize,
    /// Calls that had not noticed it when the server returned.
    pub calls_left: usize,
}

/// What a server serves and how.
pub struct Server<F> {
    /// The application layer.
    pub faces: Arc<F>,
    /// Tells who calls.
    pub authenticator: Arc<dyn Authenticator>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// How it behaves.
    pub config: Config,
}

impl<F: Faces> Server<F> {
    /// Serves until `shutdown` completes, and then at most for the sum of the configuration's
    /// bounds and a second. No task of the face outlives this future for longer than its own
    /// clean-up takes, whether it returns or is dropped.
    pub async fn serve(
        self,
        listener: Listener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<Stopped, ServeError> {
        self.serve_with_probes(listener, None, shutdown).await
    }

    /// Serves, and answers probes on a listener of their own until the server has stopped.
    pub async fn serve_with_probes(
        self,
        listener: Listener,
        probes: Option<Listener>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<Stopped, ServeError> {
        let health = Health::serving().await;
        let probed = probes::serve(probes, health.service());
        let served = self.serve_calls(health, listener, shutdown);
        tokio::select! {
            served = served => served,
            never = probed => match never {},
        }
    }

    async fn serve_calls(
        self,
        health: Health,
        listener: Listener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<Stopped, ServeError> {
        let (config, closing) = (self.config, Closing::new());
        let faces = self.faces.clone();
        let routes = Routes::new(
            self.faces,
            self.authenticator,
            self.metrics,
            &health,
            Reflection::new()?,
            Streaming::read()?,
            &config,
        );
        let calls = TaskTracker::new();
        let shared = Arc::new(Shared {
            routes,
            web: Web::new(&config.web_origins),
            config,
            closing,
            calls,
        });
        let mut connections =
            Connections::new(shared.config.max_connections, shared.config.rest_after);

        accept_until(&shared, &listener, &mut connections, shutdown).await;
        health.stopping().await;
        let lame_duck = sleep(shared.config.lame_duck);
        accept_until(&shared, &listener, &mut connections, lame_duck).await;
        // C63: who watches a run, or steers it, may still come.
        let drained = timeout(shared.config.drain_within, faces.drain());
        let drained = async { drop(drained.await) };
        accept_until(&shared, &listener, &mut connections, drained).await;
        drop(listener);
        // Before the streams are told: tens of thousands that go at once take the runtime's time, and
        // what was cut must not wait behind them.
        let mut cut = pin!(faces.cut());
        let in_time = timeout(shared.config.stop_within / 2, &mut cut).await;
        let rest_of_cut = async {
            if in_time.is_err() {
                cut.await;
            }
            std::future::pending().await
        };
        tokio::select! {
            stopped = stop(&shared, connections.tasks) => Ok(stopped),
            never = rest_of_cut => never,
        }
    }
}

async fn accept_until<F: Faces>(
    shared: &Arc<Shared<F>>,
    listener: &Listener,
    connections: &mut Connections,
    end: impl Future<Output = ()>,
) {
    let mut end = pin!(end);
    loop {
        tokio::select! {
            biased;
            () = &mut end => return,
            Some(ended) = connections.tasks.join_next() => admission::failed(ended),
            accepted = listener.accept() => {
                // A phase ends in time, whoever waits for room: that one is closed.
                tokio::select! {
                    biased;
                    () = &mut end => return,
                    () = taken(shared, connections, accepted) => {}
                }
            }
        }
    }
}

async fn taken<F: Faces>(
    shared: &Arc<Shared<F>>,
    connections: &mut Connections,
    accepted: io::Result<Accepted>,
) {
    match accepted {
        Ok(accepted) => admit(shared, connections, accepted).await,
        Err(error) => {
            let tell = |times| tracing::warn!(times, %error, "connections could not be accepted");
            connections.refused.tell(tell);
            sleep(ACCEPT_PAUSE).await;
        }
    }
}

/// Serves a connection, or drops it where there is no room.
async fn admit<F: Faces>(
    shared: &Arc<Shared<F>>,
    connections: &mut Connections,
    accepted: Accepted,
) {
    if !connections.make_room().await {
        return;
    }
    let (shared, traffic) = (shared.clone(), Arc::new(Traffic::new()));
    let known = traffic.clone();
    match accepted {
        Accepted::Tcp(stream) => {
            connections.serve(known, connection::serve(shared, traffic, stream));
        }
        Accepted::Tls(stream, tls) => {
            let served = connection::serve_tls(shared, traffic, (stream, tls));
            connections.serve(known, Box::pin(served));
        }
        Accepted::Unix(stream) => {
            connections.serve(known, connection::serve(shared, traffic, stream));
        }
    }
}

async fn stop<F: Faces>(shared: &Shared<F>, mut connections: JoinSet<()>) -> Stopped {
    let Shared {
        config,
        closing,
        calls,
        ..
    } = shared;
    closing.draining.cancel();
    // Streams whose run has settled end by themselves, once their last event was read.
    let ending = STREAMS_END_WITHIN.min(config.stop_within);
    all_ended(&mut connections, ending).await;
    closing.closing.cancel();
    all_ended(&mut connections, config.stop_within).await;

    let dropped_connections = connections.len();
    calls.close();
    let noticing = CALLS_END_WITHIN.min(config.stop_within / 2);
    connections.abort_all();
    // One with many streams takes its time to be dropped: nothing waits for that.
    let noticed = async {
        while connections.join_next().await.is_some() {}
        calls.wait().await;
    };
    let in_time = timeout(noticing, noticed).await.is_ok();
    let calls_left = if in_time { 0 } else { calls.len() };
    Stopped {
        dropped_connections,
        calls_left,
    }
}

async fn all_ended(connections: &mut JoinSet<()>, within: Duration) {
    let all = async { while connections.join_next().await.is_some() {} };
    // Who is late is dropped by the caller: there is nothing else to do about it here.
    let _late = timeout(within, all).await;
}
