//! A server over a memory store whose policies a test changes, and callers that are whoever they say.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Buf as _, BufMut as _, Bytes};
use sessionplane::v1 as wire;
use sessionplane_core::domain::access::{Principal, PrincipalKind};
use sessionplane_core::domain::ids::{AgentName, PrincipalId, TenantId};
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::ports::authenticator::{Authenticator, Known, Presented, Unauthenticated};
use sessionplane_server::adapters::artifacts::MemoryArtifacts;
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
use tokio::task::JoinHandle;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};

/// No step of a test waits longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits, but not for ever.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, what).await;
    waited.expect("it happens in time")
}

/// Believes who says `TENANT/NAME/GROUPS`.
struct Believing;

#[async_trait]
impl Authenticator for Believing {
    async fn authenticate(&self, presented: Presented<'_>) -> Result<Known, Unauthenticated> {
        let nobody = || Unauthenticated("say who you are".to_owned());
        let said = presented.bearer.ok_or_else(nobody)?;
        let parts: Vec<&str> = said.split('/').collect();
        let [tenant, id, groups] = parts[..] else {
            return Err(nobody());
        };
        let groups = groups.split(',').filter(|group| !group.is_empty());
        Ok(Known::from(Principal {
            tenant: TenantId::parse(tenant).map_err(|_| nobody())?,
            id: PrincipalId::parse(id).map_err(|_| nobody())?,
            kind: PrincipalKind::Human,
            groups: groups.map(str::to_owned).collect(),
            ceiling: Trust::Relayed,
            credential: "believed".into(),
        }))
    }
}

/// The server.
pub(crate) struct World {
    pub(crate) policies: Arc<CedarAuthorizer>,
    channel: Channel,
    server: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Policies beside the default set.
pub(crate) fn beside_default(text: &str) -> Vec<PolicySource> {
    let own = PolicySource {
        name: "own.cedar".to_owned(),
        text: text.to_owned(),
    };
    vec![PolicySource::default_set(), own]
}

impl World {
    pub(crate) async fn new() -> Self {
        let owner = (TenantId::parse("default"), PrincipalId::parse("owner"));
        let owner = (owner.0.unwrap(), owner.1.unwrap());
        let policies = CedarAuthorizer::open(owner, &[PolicySource::default_set()]);
        let policies = Arc::new(policies.unwrap());
        let store = Arc::new(MemoryStore::new());
        let ports = Ports {
            repository: store.clone(),
            leases: store.clone(),
            trail: store,
            authorizer: policies.clone(),
            artifacts: Arc::new(MemoryArtifacts::default()),
            clock: Arc::new(TokioClock::start()),
            entropy: Arc::new(OsEntropy),
            workspaces: None,
            digest_key: DigestKey::new([7; 32]),
            spawner: Arc::new(TokioSpawner::current()),
        };
        let engine = ScriptedEngine::new(ports.clock.clone(), ports.spawner.clone());
        let name = AgentName::parse("scripted").unwrap();
        let agents = AgentCatalog::new(name.clone(), name, Arc::new(engine));
        let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).await;
        let listener = listener.unwrap();
        let address = format!("http://{}", listener.address());
        let server = Server {
            faces: Arc::new(App::new(ports, agents, AppConfig::default())),
            authenticator: Arc::new(Believing),
            metrics: Arc::new(Metrics::default()),
            config: Config::default(),
        };
        let server = tokio::spawn(async move {
            let served = server.serve(listener, std::future::pending()).await;
            served.unwrap();
        });
        let endpoint = Endpoint::from_shared(address).unwrap();
        Self {
            policies,
            channel: endpoint.connect().await.unwrap(),
            server,
        }
    }

    /// Other policies hold from now on, beside the default set.
    pub(crate) fn hold(&self, text: &str) {
        self.policies.replace(&beside_default(text)).unwrap();
    }

    /// Begins a call with the bytes of its message; nobody in particular calls without a word.
    pub(crate) async fn begin(
        &self,
        who: Option<&str>,
        path: &str,
        message: Bytes,
    ) -> Result<Streaming<Bytes>, Status> {
        let mut request = Request::new(message);
        if let Some(who) = who {
            let said = format!("Bearer {who}").parse().unwrap();
            request.metadata_mut().insert("authorization", said);
        }
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.unwrap();
        let path = path.parse().unwrap();
        let streaming = grpc.server_streaming(request, path, Raw);
        Ok(soon(streaming).await?.into_inner())
    }

    /// Calls, and tells the first message or the status.
    pub(crate) async fn call(
        &self,
        who: Option<&str>,
        path: &str,
        message: Bytes,
    ) -> Result<Bytes, Status> {
        let mut stream = self.begin(who, path, message).await?;
        let first = soon(stream.message()).await?;
        first.ok_or_else(|| Status::new(Code::Unknown, "the stream is empty"))
    }

    /// The same with messages.
    pub(crate) async fn ask<M: prost::Message + Default>(
        &self,
        who: &str,
        path: &str,
        message: &impl prost::Message,
    ) -> Result<M, Status> {
        let bytes = message.encode_to_vec().into();
        let told = self.call(Some(who), path, bytes).await?;
        Ok(M::decode(told).unwrap())
    }

    /// Creates a session; its id.
    pub(crate) async fn create(&self, who: &str, name: &str, labels: &[(&str, &str)]) -> String {
        let labels = labels.iter();
        let labels = labels.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let request = wire::CreateSessionRequest {
            name: name.to_owned(),
            labels: labels.collect(),
            ..Default::default()
        };
        let path = "/sessionplane.v1.Fleet/CreateSession";
        let created: wire::CreateSessionResponse = self.ask(who, path, &request).await.unwrap();
        created.session.unwrap().id
    }

    /// Gives a session these labels, and no others.
    pub(crate) async fn label(&self, who: &str, name: &str, labels: &[(&str, &str)]) {
        let labels = labels.iter();
        let labels = labels.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let request = wire::UpdateSessionRequest {
            session: named(name),
            update_mask: Some(prost_types::FieldMask {
                paths: vec!["labels".to_owned()],
            }),
            labels: labels.collect(),
            ..Default::default()
        };
        let path = "/sessionplane.v1.Fleet/UpdateSession";
        let updated: Result<wire::UpdateSessionResponse, Status> =
            self.ask(who, path, &request).await;
        updated.unwrap();
    }
}

/// A session by its name.
#[allow(clippy::unnecessary_wraps, reason = "requests hold it so")]
pub(crate) fn named(name: &str) -> Option<wire::SessionRef> {
    let name = wire::session_ref::Ref::Name(name.to_owned());
    Some(wire::SessionRef { r#ref: Some(name) })
}

/// A session by its id.
#[allow(clippy::unnecessary_wraps, reason = "requests hold it so")]
pub(crate) fn by_id(id: &str) -> Option<wire::SessionRef> {
    let id = wire::session_ref::Ref::Id(id.to_owned());
    Some(wire::SessionRef { r#ref: Some(id) })
}

/// An invoke of a session that exists.
pub(crate) fn invoke(name: &str, prompt: &str) -> wire::InvokeRequest {
    wire::InvokeRequest {
        session: named(name),
        prompt: Some(wire::Prompt {
            text: prompt.to_owned(),
            ..Default::default()
        }),
        must_exist: true,
        on_disconnect: wire::OnDisconnect::Detach.into(),
        ..Default::default()
    }
}

/// What an invoke tells.
pub(crate) fn event(message: Bytes) -> Option<wire::invoke_event::Event> {
    let response = <wire::InvokeResponse as prost::Message>::decode(message);
    response.unwrap().event.and_then(|event| event.event)
}

/// Messages as their bytes.
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;
    fn encoder(&mut self) -> Self {
        Self
    }
    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;
    fn encode(&mut self, item: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let length = from.remaining();
        Ok(Some(from.copy_to_bytes(length)))
    }
}
