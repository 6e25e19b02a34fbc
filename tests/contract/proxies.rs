//! B09 on real connections: a proxy between client and server that cuts what is idle, and one that
//! holds back what it carries.

use std::net::SocketAddr;
use std::time::Duration;

use sessionplane_client::{WatchItem, WatchOptions};
use sessionplane_core::contract::{CallOptions, SessionControl as _};
use sessionplane_core::domain::event::EventBody;
use sessionplane_server::app::config::AppConfig;
use sessionplane_server::grpc::server::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::cuts::{next, subscribed};
use crate::remote::{Start, owner_at, start};
use crate::suite::desk::{Desk, named, within};
use crate::suite::world::{Pinned, quick};

/// What a proxy does to a connection.
#[derive(Clone, Copy)]
enum Manner {
    /// Ends it once nothing has come from the server for so long.
    CutsIdle(Duration),
    /// Passes on what came only once nothing more has come for so long.
    Buffers(Duration),
}

/// A proxy before a server.
struct Proxy {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Proxy {
    async fn to(server: SocketAddr, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, server, manner));
            }
        });
        Self { address, task }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(near: TcpStream, server: SocketAddr, manner: Manner) {
    let Ok(far) = TcpStream::connect(server).await else {
        return;
    };
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    // The one that ends first ends both: the halves are dropped.
    tokio::select! {
        _ = pass(near_in, far_out, None) => {}
        _ = pass(far_in, near_out, Some(manner)) => {}
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    manner: Option<Manner>,
) -> std::io::Result<()> {
    let mut held = Vec::new();
    loop {
        let mut bytes = [0; 16 * 1024];
        let read = from.read(&mut bytes);
        let count = match manner {
            None => read.await?,
            Some(Manner::CutsIdle(idle)) => timeout(idle, read).await??,
            Some(Manner::Buffers(_)) if held.is_empty() => read.await?,
            Some(Manner::Buffers(quiet)) => {
                if let Ok(read) = timeout(quiet, read).await {
                    read?
                } else {
                    to.write_all(&std::mem::take(&mut held)).await?;
                    continue;
                }
            }
        };
        if count == 0 {
            return Ok(());
        }
        match manner {
            Some(Manner::Buffers(_)) => held.extend_from_slice(&bytes[..count]),
            _ => to.write_all(&bytes[..count]).await?,
        }
    }
}

/// A server, and one of its sessions without the proxy.
async fn served(config: AppConfig, name: &str) -> (tempfile::TempDir, Start, Desk) {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(&directory, config, Config::default()).await;
    let near = std::sync::Arc::new(Pinned(server.owner.clone()));
    let desk = Desk::new(&(near as _), name);
    desk.run("say \"first\"").await;
    (directory, server, desk)
}

/// B09 C33: the heartbeats of a quiet stream keep it from being idle.
#[tokio::test(flavor = "multi_thread")]
async fn c33_b09_a_quiet_watch_lives_through_a_proxy_that_cuts_what_is_idle() {
    let config = AppConfig {
        heartbeat: Duration::from_millis(100),
        ..quick()
    };
    let (_directory, server, _desk) = served(config, "quiet").await;
    let idle = Manner::CutsIdle(Duration::from_secs(2));
    let proxy = Proxy::to(server.address, idle).await;
    let mut watch = owner_at(proxy.address).watch(named("quiet"), WatchOptions::default());
    subscribed(&mut watch).await;
    for _ in 0..30 {
        let item = next(&mut watch).await;
        assert!(matches!(item, WatchItem::Heartbeat(_)), "{item:?}");
    }
}

/// B09 C32: where the proxy is less patient than that, the watch goes on each time, and its reader
/// has every event once.
#[tokio::test(flavor = "multi_thread")]
async fn c32_b09_a_watch_that_a_proxy_cuts_for_being_idle_has_no_hole() {
    let (_directory, server, desk) = served(quick(), "cut").await;
    let idle = Manner::CutsIdle(Duration::from_millis(150));
    let proxy = Proxy::to(server.address, idle).await;
    let mut watch = owner_at(proxy.address).watch(named("cut"), WatchOptions::default());
    let mut told = subscribed(&mut watch).await;
    let run = desk.invoke("say-words 8 every 300ms").await;
    told.until_settled(&mut watch).await;
    assert!(told.reconnected > 2, "{} times", told.reconnected);
    assert_eq!(told.gaps, 0);
    let numbers: Vec<u64> = told.events.iter().map(|event| event.seq).collect();
    let first = run.position.seq + 1;
    let all: Vec<u64> = (first..first + numbers.len() as u64).collect();
    assert_eq!(numbers, all, "no hole, nothing twice");
}

/// B09 C27 C29: a proxy that holds back what it carries delays a watch and loses nothing of it; who
/// polls the entries and the state instead ends with the same facts.
#[tokio::test(flavor = "multi_thread")]
async fn c27_c29_b09_a_poll_through_a_buffering_proxy_tells_what_the_stream_told() {
    let (_directory, server, desk) = served(quick(), "held").await;
    let buffers = Manner::Buffers(Duration::from_millis(50));
    let proxy = Proxy::to(server.address, buffers).await;
    let far = owner_at(proxy.address);
    let mut watch = far.watch(named("held"), WatchOptions::default());
    let mut told = subscribed(&mut watch).await;
    let run = desk
        .invoke("say \"a\"\nmessage\nsay-words 20 every 5ms")
        .await;
    told.until_settled(&mut watch).await;
    assert_eq!((told.reconnected, told.gaps), (0, 0));
    let polling = Desk::new(&(std::sync::Arc::new(Pinned(far.clone())) as _), "held");
    let entries = within("the entries", polling.pages_of(2)).await;
    let listed: Vec<_> = entries.iter().map(|entry| entry.id).collect();
    assert_eq!(told.entries, listed, "each entry once, none missing");
    let state = within("the state", polling.state()).await;
    let last = told.events.last().expect("an event");
    assert!(matches!(last.event.body, EventBody::RunSettled { .. }));
    assert_eq!(last.event.run, Some(run.id));
    assert_eq!(state.position.seq, last.seq, "as far as the stream");
    assert_eq!(state.view.active_run, None);
    assert_eq!(state.view.last_run.map(|last| last.run), Some(run.id));
    assert_eq!(state.view.leaf, listed.last().copied());
    let newest = far.get_state(named("held"), Some(state.position), CallOptions::default());
    let newest = within("the state at that place", newest).await;
    assert_eq!(newest.expect("a state").view.entries, listed.len() as u64);
}
