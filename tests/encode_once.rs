//! The promise of the hot path, on the real application and the real face: an event is encoded once,
//! however many observe it.
#![cfg(test)]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sessionplane::v1 as wire;
use sessionplane::v1::events_response::Item;
use sessionplane::v1::invoke_client::InvokeClient;
use sessionplane::v1::session_control_client::SessionControlClient;
use sessionplane_core::domain::ids::{AgentName, PrincipalId, TenantId};
use sessionplane_server::adapters::artifacts::MemoryArtifacts;
use sessionplane_server::adapters::authn::{OWNER_ID, OWNER_TENANT, OwnerToken};
use sessionplane_server::adapters::authz::{CedarAuthorizer, PolicySource};
use sessionplane_server::adapters::clock::{OsEntropy, TokioClock, TokioSpawner};
use sessionplane_server::adapters::engine::scripted::ScriptedEngine;
use sessionplane_server::adapters::memory::MemoryStore;
use sessionplane_server::app::agents::AgentCatalog;
use sessionplane_server::app::config::AppConfig;
use sessionplane_server::app::digest::DigestKey;
use sessionplane_server::app::{App, Ports};
use sessionplane_server::grpc::events::Metrics;
use sessionplane_server::grpc::listener::Listener;
use sessionplane_server::grpc::server::{Config, Server};
use tokio::task::{JoinHandle, JoinSet};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Streaming};

const OBSERVERS: usize = 100;
const WORDS: u64 = 2_000;
const PATIENCE: Duration = Duration::from_secs(60);

struct Running {
    metrics: Arc<Metrics>,
    channel: Channel,
    token: String,
    server: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Running {
    async fn start() -> Self {
        let (store, name) = (Arc::new(MemoryStore::new()), AgentName::parse("scripted"));
        let (tenant, owner) = (TenantId::parse(OWNER_TENANT), PrincipalId::parse(OWNER_ID));
        let ports = Ports {
            repository: store.clone(),
            leases: store.clone(),
            trail: store,
            authorizer: Arc::new(
                CedarAuthorizer::open(
                    (tenant.unwrap(), owner.unwrap()),
                    &[PolicySource::default_set()],
                )
                .unwrap(),
            ),
            artifacts: Arc::new(MemoryArtifacts::default()),
            clock: Arc::new(TokioClock::start()),
            entropy: Arc::new(OsEntropy),
            workspaces: None,
            digest_key: DigestKey::new([7; 32]),
            spawner: Arc::new(TokioSpawner::current()),
        };
        let engine = ScriptedEngine::new(ports.clock.clone(), ports.spawner.clone());
        let name = name.unwrap();
        let agents = AgentCatalog::new(name.clone(), name, Arc::new(engine));
        let directory = tempfile::tempdir().unwrap();
        let owner = OwnerToken::open(directory.path()).unwrap();
        let token = std::fs::read_to_string(owner.path()).unwrap();
        let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap())
            .await
            .unwrap();
        let address = format!("http://{}", listener.address());
        let metrics = Arc::new(Metrics::default());
        let server = Server {
            faces: Arc::new(App::new(ports, agents, AppConfig::default())),
            authenticator: Arc::new(owner),
            metrics: metrics.clone(),
            config: Config::default(),
        };
        let server = tokio::spawn(async move {
            server
                .serve(listener, std::future::pending())
                .await
                .unwrap();
        });
        let endpoint = Endpoint::from_shared(address).unwrap();
        Self {
            metrics,
            channel: endpoint.connect().await.unwrap(),
            token: format!("Bearer {}", token.trim()),
            server,
        }
    }

    fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        let token = self.token.parse().unwrap();
        request.metadata_mut().insert("authorization", token);
        request
    }

    async fn invoke(&self, scenario: &str) {
        let request = self.request(wire::InvokeRequest {
            session: session(),
            prompt: Some(wire::Prompt {
                text: scenario.to_owned(),
                ..Default::default()
            }),
            on_disconnect: wire::OnDisconnect::Detach.into(),
            ..Default::default()
        });
        let mut client = InvokeClient::new(self.channel.clone());
        let mut run = client.invoke(request).await.unwrap().into_inner();
        assert!(run.message().await.unwrap().is_some(), "accepted");
    }

    async fn observe(&self) -> Streaming<wire::EventsResponse> {
        let request = self.request(wire::EventsRequest {
            session: session(),
            ..Default::default()
        });
        let mut client = SessionControlClient::new(self.channel.clone());
        client.events(request).await.unwrap().into_inner()
    }

    async fn steer(&self, text: &str) {
        let steer = wire::Steer {
            text: text.to_owned(),
            ..Default::default()
        };
        let request = self.request(wire::DispatchRequest {
            session: session(),
            command: Some(wire::dispatch_request::Command::Steer(steer)),
            ..Default::default()
        });
        let mut client = SessionControlClient::new(self.channel.clone());
        client.dispatch(request).await.unwrap();
    }
}

#[allow(clippy::unnecessary_wraps, reason = "requests hold it so")]
fn session() -> Option<wire::SessionRef> {
    let name = wire::session_ref::Ref::Name("watched".to_owned());
    Some(wire::SessionRef { r#ref: Some(name) })
}

/// Reads until the run settles: where the events begin, and the number of the last one.
async fn read(mut stream: Streaming<wire::EventsResponse>, snapshot: u64) -> (u64, u64) {
    let mut last = snapshot;
    while let Some(item) = stream.message().await.unwrap() {
        let Some(Item::Event(event)) = item.item else {
            continue;
        };
        assert_eq!(event.seq, last + 1, "nothing is lost or reordered");
        last = event.seq;
        if event.event.unwrap().r#type == "run_settled" {
            return (snapshot, last);
        }
    }
    panic!("the stream ended before the run");
}

async fn snapshot(stream: &mut Streaming<wire::EventsResponse>) -> u64 {
    loop {
        let item = stream.message().await.unwrap().unwrap().item;
        if let Some(Item::Snapshot(snapshot)) = item {
            return snapshot.position.unwrap().seq;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c30_every_event_is_encoded_once_for_a_hundred_observers() {
    let told = async {
        let server = Running::start().await;
        server
            .invoke(&format!("wait-steer\nsay-words {WORDS} every 1ms by 16"))
            .await;
        let mut observers = JoinSet::new();
        let mut begins = Vec::new();
        for _ in 0..OBSERVERS {
            let mut stream = server.observe().await;
            let at = snapshot(&mut stream).await;
            begins.push(at);
            observers.spawn(read(stream, at));
        }
        server.steer("say \"go\"").await;
        let ends: Vec<_> = observers.join_all().await;
        let first = begins.iter().min().unwrap();
        let (_, last) = ends[0];
        assert!(
            ends.iter().all(|(_, end)| *end == last),
            "all saw the same end"
        );
        let appended = last - first;
        assert!(appended > WORDS);
        let encoded = server.metrics.events_encoded.load(Ordering::Relaxed);
        assert_eq!(encoded, appended, "events_encoded_total is events appended");
    };
    tokio::time::timeout(PATIENCE, told).await.expect("in time");
}
