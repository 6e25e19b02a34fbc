//! A running server over the fake, and a caller that sees every byte of it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use sessionplane_core::ports::authenticator::Authenticator;
use sessionplane_server::adapters::authn::{OWNER_FILE, OwnerToken};
use sessionplane_server::grpc::events::Metrics;
use sessionplane_server::grpc::listener::{Address, Listener};
use sessionplane_server::grpc::server::{Config, Server, Stopped};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::{Code, Status};
use tonic_types::{ErrorInfo, StatusExt};

use crate::fake::Fake;

/// The body of a request.
pub(crate) type Outgoing = UnsyncBoxBody<Bytes, Infallible>;

/// No step of a test waits longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits, but not for ever.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what)
        .await
        .expect("it happens in time")
}

/// A server that runs until the test stops it.
pub(crate) struct Running {
    pub(crate) fake: Fake,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) token: String,
    pub(crate) directory: TempDir,
    pub(crate) address: Address,
    /// Where it answers probes, for a server that does so.
    pub(crate) probes: Option<Address>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Stopped>,
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::with(Config::default()).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self::at(&"127.0.0.1:0".parse().unwrap(), directory, config).await
    }

    /// A server that answers probes on a listener of their own, open to everybody.
    pub(crate) async fn probed(config: Config) -> Self {
        let (directory, address) = (tempfile::tempdir().unwrap(), "127.0.0.1:0".parse().unwrap());
        let probes = Listener::for_probes(&"0.0.0.0:0".parse().unwrap()).await;
        let owner = Arc::new(OwnerToken::open(directory.path()).unwrap());
        let listener = Listener::bind(&address).await.unwrap();
        Self::beside(listener, Some(probes.unwrap()), directory, config, owner)
    }

    pub(crate) async fn at(address: &Address, directory: TempDir, config: Config) -> Self {
        let owner = Arc::new(OwnerToken::open(directory.path()).unwrap());
        let listener = Listener::bind(address).await.unwrap();
        Self::on(listener, directory, config, owner)
    }

    /// Over a listener, for whom an authenticator knows. The owner's token is in the directory.
    pub(crate) fn on(
        listener: Listener,
        directory: TempDir,
        config: Config,
        authenticator: Arc<dyn Authenticator>,
    ) -> Self {
        Self::beside(listener, None, directory, config, authenticator)
    }

    fn beside(
        listener: Listener,
        probes: Option<Listener>,
        directory: TempDir,
        config: Config,
        authenticator: Arc<dyn Authenticator>,
    ) -> Self {
        let token = std::fs::read_to_string(directory.path().join(OWNER_FILE)).unwrap();
        let token = token.trim_end().to_owned();
        let address = listener.address().clone();
        let probed = probes.as_ref().map(|probes| probes.address().clone());
        let (fake, metrics) = (Fake::new(), Arc::new(Metrics::default()));
        let server = Server {
            faces: Arc::new(fake.clone()),
            authenticator,
            metrics: metrics.clone(),
            config,
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let asked_to_stop = async { stopped.await.unwrap_or(()) };
            let served = server.serve_with_probes(listener, probes, asked_to_stop);
            served.await.unwrap()
        });
        Self {
            fake,
            metrics,
            token,
            directory,
            address,
            probes: probed,
            stop: Some(stop),
            task,
        }
    }

    /// Asks the server to stop.
    pub(crate) fn stop(&mut self) {
        self.stop.take().expect("stopped once").send(()).unwrap();
    }

    /// Waits until it has.
    pub(crate) async fn stopped(self) -> Stopped {
        soon(self.task).await.unwrap()
    }

    /// A caller with the owner's token.
    pub(crate) async fn owner(&self) -> Caller {
        Caller {
            token: Some(self.token.clone()),
            ..self.stranger().await
        }
    }

    /// A caller with this token.
    pub(crate) async fn holder(&self, token: &str) -> Caller {
        Caller {
            token: Some(token.to_owned()),
            ..self.stranger().await
        }
    }

    /// A connection on which nothing was said.
    pub(crate) async fn silent(&self) -> TcpStream {
        let Address::Tcp(address) = &self.address else {
            panic!("only over TCP");
        };
        TcpStream::connect(address).await.unwrap()
    }

    /// A caller without a token.
    pub(crate) async fn stranger(&self) -> Caller {
        Caller::to(&self.address).await
    }
}

impl Caller {
    /// A caller without a token, on a connection of its own.
    pub(crate) async fn to(address: &Address) -> Self {
        let send = match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address).await.unwrap();
                stream.set_nodelay(true).unwrap();
                connect(stream).await
            }
            Address::Unix(path) => connect(UnixStream::connect(path).await.unwrap()).await,
        };
        Caller {
            send,
            token: None,
            headers: HeaderMap::new(),
        }
    }
}

pub(crate) async fn connect<S>(stream: S) -> SendRequest<Outgoing>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .initial_stream_window_size(65_535)
        .initial_connection_window_size(65_535);
    let (send, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    send
}

impl Caller {
    /// A caller without a token, over a connection that a test made.
    pub(crate) fn silent_over(send: SendRequest<Outgoing>) -> Self {
        Self {
            send,
            token: None,
            headers: HeaderMap::new(),
        }
    }

    /// A caller over a connection that a test made.
    pub(crate) fn over(send: SendRequest<Outgoing>, token: &str) -> Self {
        Self {
            send,
            token: Some(token.to_owned()),
            headers: HeaderMap::new(),
        }
    }
}

/// A connection to the server.
#[derive(Clone)]
pub(crate) struct Caller {
    send: SendRequest<Outgoing>,
    token: Option<String>,
    headers: HeaderMap,
}

impl Caller {
    /// The same caller, sending another header.
    pub(crate) fn header(&self, name: &'static str, value: &str) -> Self {
        let mut other = self.clone();
        other.headers.insert(name, value.parse().unwrap());
        other
    }

    /// Waits until the connection takes no more calls.
    pub(crate) async fn closed(&self) {
        let mut send = self.send.clone();
        while send.ready().await.is_ok() && !send.is_closed() {
            tokio::task::yield_now().await;
        }
    }

    /// Calls a method with the bytes of its message.
    pub(crate) async fn call(&self, path: &str, message: &[u8]) -> Answer {
        self.call_framed(path, framed(0, message)).await
    }

    /// Calls a method with a message.
    pub(crate) async fn ask(&self, path: &str, message: &impl Message) -> Answer {
        self.call(path, &message.encode_to_vec()).await
    }

    /// Calls a method with a whole body.
    pub(crate) async fn call_framed(&self, path: &str, body: Bytes) -> Answer {
        self.send(path, Full::new(body).boxed_unsync()).await
    }

    /// Calls a method with the beginning of a body that never ends.
    pub(crate) async fn call_unfinished(&self, path: &str, beginning: Bytes) -> Answer {
        let beginning = stream::iter([Ok(Frame::data(beginning))]);
        let body = StreamBody::new(beginning.chain(stream::pending()));
        self.send(path, body.boxed_unsync()).await
    }

    /// Whether its connection was taken: an empty request has an answer of any kind.
    pub(crate) async fn is_served(&self) -> bool {
        let request = Request::post("http://server/").body(Full::default().boxed_unsync());
        let mut send = self.send.clone();
        soon(send.send_request(request.unwrap())).await.is_ok()
    }

    /// Sends an empty request of any kind, and tells the code of HTTP.
    pub(crate) async fn speak(&self, method: &str, kind: &str, path: &str) -> u16 {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://server{path}"))
            .header("content-type", kind);
        let request = request.body(Full::default().boxed_unsync()).unwrap();
        let mut send = self.send.clone();
        let response = soon(send.send_request(request)).await.unwrap();
        response.status().as_u16()
    }

    async fn send(&self, path: &str, body: Outgoing) -> Answer {
        let mut request = Request::post(format!("http://server{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut request = request.body(body).unwrap();
        request.headers_mut().extend(self.headers.clone());
        let mut send = self.send.clone();
        soon(send.ready()).await.unwrap();
        let response = soon(send.send_request(request)).await.unwrap();
        Answer {
            response,
            buffer: BytesMut::new(),
            trailers: None,
            compressed: false,
        }
    }
}

/// A message as it stands in a gRPC body.
pub(crate) fn framed(compressed: u8, message: &[u8]) -> Bytes {
    let mut body = BytesMut::new();
    body.put_u8(compressed);
    body.put_u32(u32::try_from(message.len()).unwrap());
    body.put_slice(message);
    body.freeze()
}

/// A response, message by message.
pub(crate) struct Answer {
    response: Response<Incoming>,
    buffer: BytesMut,
    trailers: Option<HeaderMap>,
    /// The last message was compressed.
    pub(crate) compressed: bool,
}

impl Answer {
    /// The next message's bytes; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(length) = self.buffer.get(1..5) {
                let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
                if self.buffer.len() >= 5 + length {
                    self.compressed = self.buffer[0] == 1;
                    return Some(self.buffer.split_to(5 + length).split_off(5).freeze());
                }
            }
            let frame = soon(self.response.frame())
                .await?
                .expect("the response is not cut");
            match frame.into_data() {
                Ok(data) => self.buffer.put(data),
                Err(frame) => self.trailers = frame.into_trailers().ok(),
            }
        }
    }

    /// The next message.
    pub(crate) async fn message<M: Message + Default>(&mut self) -> M {
        let bytes = self.next().await.expect("one more message");
        M::decode(bytes).unwrap()
    }

    /// A header of the response.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let value = self.response.headers().get(name)?;
        Some(value.to_str().unwrap())
    }

    /// The status, past all messages.
    pub(crate) async fn status(mut self) -> Status {
        while self.next().await.is_some() {}
        let trailers = self.trailers.as_ref().unwrap_or(self.response.headers());
        Status::from_header_map(trailers).expect("a response ends with a status")
    }

    /// The only message of a call that succeeds.
    pub(crate) async fn ok<M: Message + Default>(mut self) -> M {
        let message = if self.response.headers().contains_key("grpc-status") {
            None
        } else {
            self.next().await
        };
        let status = self.status().await;
        assert_eq!(status.code(), Code::Ok, "{status:?}");
        M::decode(message.expect("a message")).unwrap()
    }
}

/// Our details in a status.
pub(crate) fn info(status: &Status) -> ErrorInfo {
    let info = status.get_details_error_info();
    info.unwrap_or_else(|| panic!("a status of ours has ErrorInfo: {status:?}"))
}

/// The reason and the outcome in a status.
pub(crate) fn told(status: &Status) -> (String, String) {
    let info = info(status);
    assert_eq!(info.domain, "sessionplane");
    (
        info.reason,
        info.metadata.get("outcome").cloned().unwrap_or_default(),
    )
}
