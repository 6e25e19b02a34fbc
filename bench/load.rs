//! The load: the same callers and observers, whatever server they meet. All of it runs in this
//! process; nothing here knows whether the server is a floor or ours.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::uri::PathAndQuery;
use sessionplane::v1::session_control_client::SessionControlClient;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status, Streaming};

use crate::floor::stream::BytesCodec;
use crate::process::Server;
use crate::{Failure, Outcome};

/// How long a load runs before it is measured.
const WARM_UP: Duration = Duration::from_millis(300);

/// The time, for measuring.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Connections to a server.
#[derive(Clone)]
pub(crate) struct Target {
    channels: Vec<Channel>,
    token: MetadataValue<Ascii>,
}

impl Target {
    /// Connects so many times.
    pub(crate) async fn connect(server: &Server, connections: usize) -> Outcome<Self> {
        let mut channels = Vec::new();
        for _ in 0..connections {
            let mut endpoint = Endpoint::from_shared(server.address.clone())?.tcp_nodelay(true);
            if let Some(authority) = &server.authority {
                let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority));
                endpoint = endpoint.tls_config(tls)?;
            }
            channels.push(endpoint.connect().await?);
        }
        let token = format!("Bearer {}", server.token).parse()?;
        Ok(Self { channels, token })
    }

    /// The connection of a caller.
    pub(crate) fn channel(&self, caller: usize) -> Channel {
        self.channels[caller % self.channels.len()].clone()
    }

    /// A client on the connection of a caller.
    pub(crate) fn control(&self, caller: usize) -> SessionControlClient<Channel> {
        SessionControlClient::new(self.channel(caller))
    }

    /// A request as every caller sends it.
    pub(crate) fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        let token = self.token.clone();
        request.metadata_mut().insert("authorization", token);
        request
    }

    /// Calls for a stream; messages come as bytes.
    pub(crate) async fn observe(
        &self,
        observer: usize,
        path: &'static str,
        request: &impl prost::Message,
    ) -> Outcome<Streaming<Bytes>> {
        let mut grpc = Grpc::new(self.channel(observer));
        grpc.ready().await?;
        let request = self.request(Bytes::from(request.encode_to_vec()));
        let path = PathAndQuery::from_static(path);
        let stream = grpc.server_streaming(request, path, BytesCodec).await?;
        Ok(stream.into_inner())
    }
}

/// What one round measured.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// Operations, or deliveries.
    pub(crate) operations: f64,
    /// How long it was measured.
    pub(crate) seconds: f64,
    /// CPU time of the server.
    pub(crate) cpu_seconds: f64,
    /// The median latency in microseconds; 0 where there is none.
    pub(crate) p50_us: f64,
    /// What 99 of 100 operations took at most, in microseconds; 0 where there is no latency.
    pub(crate) p99_us: f64,
}

impl Sample {
    /// Operations a second.
    pub(crate) fn rate(&self) -> f64 {
        self.operations / self.seconds
    }

    /// The server's CPU time for one operation, in microseconds.
    pub(crate) fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.operations.max(1.0)
    }
}

/// Measures for a time what `count` counts, and what it costs the server, if there is one.
pub(crate) async fn measure(
    server: Option<&Server>,
    length: Duration,
    count: impl Fn() -> u64,
) -> Outcome<Sample> {
    let cpu = || server.map(Server::cpu).transpose();
    let (began, used, before) = (now(), cpu()?, count());
    sleep(length).await;
    let operations = count() - before;
    Ok(Sample {
        cpu_seconds: used
            .zip(cpu()?)
            .map_or(0.0, |(before, after)| after.since(&before)),
        seconds: began.elapsed().as_secs_f64(),
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        operations: operations as f64,
        p50_us: 0.0,
        p99_us: 0.0,
    })
}

/// Callers that each call again as soon as they are answered. Any error ends the benchmark.
pub(crate) async fn closed_loop<Call, Answer>(
    server: Option<&Server>,
    callers: usize,
    length: Duration,
    caller: impl Fn(usize) -> Call,
) -> Outcome<Sample>
where
    Call: FnMut() -> Answer + Send + 'static,
    Answer: Future<Output = Result<(), Status>> + Send,
{
    let done = Arc::new(AtomicU64::new(0));
    let mut loops: JoinSet<Result<Vec<u32>, Status>> = JoinSet::new();
    let deadline = now() + WARM_UP + length + WARM_UP;
    for index in 0..callers {
        let (mut call, done) = (caller(index), done.clone());
        loops.spawn(async move {
            let mut latencies = Vec::new();
            let mut began = now();
            while began < deadline {
                call().await?;
                done.fetch_add(1, Ordering::Relaxed);
                let ended = now();
                latencies.push(u32::try_from((ended - began).as_micros()).unwrap_or(u32::MAX));
                began = ended;
            }
            Ok(latencies)
        });
    }
    sleep(WARM_UP).await;
    let mut sample = measure(server, length, || done.load(Ordering::Relaxed)).await?;
    let mut latencies = Vec::new();
    while let Some(ended) = loops.join_next().await {
        latencies.extend(ended?.map_err(Failure::from)?);
    }
    latencies.sort_unstable();
    let at = |part: usize| latencies.get(latencies.len() * part / 100).copied();
    sample.p50_us = at(50).map_or(0.0, f64::from);
    sample.p99_us = at(99).map_or(0.0, f64::from);
    Ok(sample)
}
