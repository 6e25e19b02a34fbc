//! A stream of pre-encoded messages, and the bursts that all its readers share.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, Bytes};
use futures_core::Stream;
use tokio::sync::broadcast;
use tokio::time::sleep;
use tokio_stream::wrappers::BroadcastStream;
use tonic::body::Body;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status};
use tower::{Service, service_fn};

use crate::settings::Pace;

/// The path of the floor's stream of bursts.
pub(crate) const PATH: &str = "/bench.Floor/Events";
/// The path of the floor's stream of single events.
pub(crate) const PACED: &str = "/bench.Floor/Paced";
/// Bursts that a reader may be behind.
const RETAINED: usize = 1024;

type Burst = Arc<[Bytes]>;

/// A publisher that sends a burst to everybody at a pace of the benchmark.
pub(crate) struct Bursts {
    event: Bytes,
    pace: Pace,
    publisher: OnceLock<broadcast::Sender<Burst>>,
}

impl Bursts {
    /// Bursts of this event.
    pub(crate) fn of(event: Bytes, pace: Pace) -> Self {
        Self {
            event,
            pace,
            publisher: OnceLock::new(),
        }
    }

    /// Reads from now on. The first reader starts the publisher, which ends with the runtime: the
    /// unary floors are not to pay for it.
    fn subscribe(&self) -> broadcast::Receiver<Burst> {
        let bursts = self.publisher.get_or_init(|| {
            let (bursts, _) = broadcast::channel(RETAINED);
            let (publisher, event, pace) = (bursts.clone(), self.event.clone(), self.pace);
            tokio::spawn(async move {
                loop {
                    sleep(pace.every).await;
                    // Nobody reads between the rounds.
                    let _ = publisher.send((0..pace.burst).map(|_| event.clone()).collect());
                }
            });
            bursts
        });
        bursts.subscribe()
    }
}

/// One reader: ready for as long as a burst lasts, so that tonic gathers it into one frame.
struct Reader {
    bursts: BroadcastStream<Burst>,
    burst: Burst,
    next: usize,
}

impl Stream for Reader {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.burst.get(self.next).cloned() {
                self.next += 1;
                return Poll::Ready(Some(Ok(event)));
            }
            match ready!(Pin::new(&mut self.bursts).poll_next(cx)) {
                Some(Ok(burst)) => (self.burst, self.next) = (burst, 0),
                Some(Err(error)) => {
                    return Poll::Ready(Some(Err(Status::aborted(error.to_string()))));
                }
                None => return Poll::Ready(None),
            }
        }
    }
}

/// The service with the streaming methods.
#[derive(Clone)]
pub(crate) struct BareStream {
    bursts: Arc<Bursts>,
    paced: Arc<Bursts>,
}

impl BareStream {
    /// A service that streams this event at both paces.
    pub(crate) fn new(event: &Bytes) -> Self {
        Self {
            bursts: Arc::new(Bursts::of(event.clone(), Pace::BURSTS)),
            paced: Arc::new(Bursts::of(event.clone(), Pace::SINGLE)),
        }
    }
}

impl NamedService for BareStream {
    const NAME: &'static str = "bench.Floor";
}

impl Service<http::Request<Body>> for BareStream {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let paced = request.uri().path() == PACED;
        let bursts = if paced { &self.paced } else { &self.bursts }.clone();
        Box::pin(async move {
            let handler = service_fn(move |_request: Request<Bytes>| {
                let reader = Reader {
                    bursts: BroadcastStream::new(bursts.subscribe()),
                    burst: Arc::new([]),
                    next: 0,
                };
                async move { Ok::<_, Status>(Response::new(reader)) }
            });
            let mut grpc = Grpc::new(BytesCodec);
            Ok(grpc.server_streaming(handler, request).await)
        })
    }
}

/// Messages as bytes, in both directions. As a server's encoder it is what `sessiond` uses.
#[derive(Clone, Copy, Default)]
pub(crate) struct BytesCodec;

impl Codec for BytesCodec {
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

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(item.len());
        buffer.put(item);
        Ok(())
    }
    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(1024, 32 * 1024)
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
