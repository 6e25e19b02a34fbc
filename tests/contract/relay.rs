//! A byte relay between a client and a server, whose connections a test cuts or lets fall silent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// A relay to one server at a time.
pub(crate) struct Relay {
    address: SocketAddr,
    target: Arc<Mutex<SocketAddr>>,
    connections: Arc<Mutex<JoinSet<()>>>,
    silent: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Relay {
    pub(crate) async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let target = Arc::new(Mutex::new(target));
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let silent = watch::Sender::new(false);
        let (aim, open, hush) = (target.clone(), connections.clone(), silent.clone());
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = *aim.lock().unwrap_or_else(PoisonError::into_inner);
                let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
                open.spawn(carry(near, far, hush.subscribe()));
            }
        });
        Self {
            address,
            target,
            connections,
            silent,
            task,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// New connections go to another server.
    pub(crate) fn retarget(&self, target: SocketAddr) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }

    /// Breaks every connection.
    pub(crate) fn cut(&self) {
        let mut open = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        open.abort_all();
    }

    /// Carries nothing any more and closes nothing: both ends believe in the other.
    pub(crate) fn fall_silent(&self) {
        self.silent.send_replace(true);
    }
}

async fn carry(mut near: TcpStream, far: SocketAddr, mut hush: watch::Receiver<bool>) {
    let Ok(mut far) = TcpStream::connect(far).await else {
        return;
    };
    let silent = tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => false,
        _ = hush.wait_for(|silent| *silent) => true,
    };
    if silent {
        std::future::pending::<()>().await;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
        self.cut();
    }
}
