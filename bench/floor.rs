//! The floor's process: a tonic server with nothing of ours but the bytes on the wire and, for
//! durable writes, the store.
//!
//! - [`unary`]: a handler that returns a prebuilt message, and one that commits to the store.
//! - [`stream`]: a broadcast of bursts of bytes that are encoded already.
//! - [`commit`]: the commits.
//!
//! What must never enter: authentication, parsing into domain types, a session's state.

pub(crate) mod commit;
pub(crate) mod stream;
pub(crate) mod unary;

use std::fs;
use std::path::Path;

use bytes::Bytes;
use prost::Message;
use sessionplane::v1 as wire;
use sessionplane::v1::session_control_server::SessionControlServer;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::Outcome;
use commit::Commits;
use stream::BareStream;
use unary::BareUnary;

/// Serves until it is killed. The one argument is a directory with the bytes to answer with.
pub(crate) fn main(arguments: &[String]) -> Outcome<()> {
    let directory = Path::new(arguments.first().ok_or("the floor wants a directory")?);
    // The same runtime as `sessiond` has.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(directory))
}

async fn serve(directory: &Path) -> Outcome<()> {
    let state = fs::read(directory.join("state"))?;
    let event = Bytes::from(fs::read(directory.join("event"))?);
    let unary = BareUnary {
        state: wire::GetStateResponse::decode(&*state)?,
        commits: Commits::open(&directory.join("store"))?,
    };
    let incoming = TcpIncoming::bind(([127, 0, 0, 1], 0).into())?.with_nodelay(Some(true));
    let address = incoming.local_addr()?;
    let staged = directory.join("ready.new");
    fs::write(&staged, format!("http://{address}\n"))?;
    fs::rename(&staged, directory.join("ready"))?;
    Server::builder()
        .add_service(SessionControlServer::new(unary))
        .add_service(BareStream::new(&event))
        .serve_with_incoming(incoming)
        .await?;
    Ok(())
}
