//! A byte relay between client and server whose connections a test can cut.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// A relay to one server at a time.
pub(crate) struct Relay {
    address: SocketAddr,
    target: Arc<Mutex<SocketAddr>>,
    connections: Arc<Mutex<JoinSet<()>>>,
    task: JoinHandle<()>,
}

impl Relay {
    pub(crate) async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let target = Arc::new(Mutex::new(target));
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let (aim, open) = (target.clone(), connections.clone());
        let task = tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let target = *aim.lock().unwrap();
                open.lock().unwrap().spawn(async move {
                    if let Ok(mut far) = TcpStream::connect(target).await {
                        let _ = copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        });
        Self {
            address,
            target,
            connections,
            task,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// New connections go to another server.
    pub(crate) fn retarget(&self, target: SocketAddr) {
        *self.target.lock().unwrap() = target;
    }

    /// Breaks every connection.
    pub(crate) fn cut(&self) {
        self.connections.lock().unwrap().abort_all();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}
