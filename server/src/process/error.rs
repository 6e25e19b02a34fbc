//! Why a server does not start, each with its way out.

use std::path::PathBuf;

use sessionplane_core::domain::ids::IdError;

use crate::adapters::authn::{BookError, OwnerTokenError};
use crate::adapters::authz::PolicyError;
use crate::adapters::checkpoints::KeyError;
use crate::adapters::process_host::HostError;
use crate::adapters::secret::SecretError;
use crate::adapters::sled::OpenError;
use crate::adapters::tls_files::TlsError;
use crate::app::recovery::RecoveryError;
use crate::config::ConfigError;
use crate::grpc::listener::{AddressError, BindError};
use crate::grpc::server::ServeError;

/// Why the server does not start, or did not stop well.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The configuration is unusable.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The address is not one.
    #[error("listen: {0}")]
    Address(#[from] AddressError),
    /// The address for probes is not one.
    #[error("health_listen: {0}")]
    HealthAddress(AddressError),
    /// A directory cannot be made or read.
    #[error("cannot use {path}: {error}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The data directory is somebody else's.
    #[error(
        "{} holds other files and is open to other users; name a new or an empty directory with \
         --data-dir, or close this one yourself (chmod 700)", .path.display()
    )]
    ForeignDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// What is made in the data directory would be of no use to whom it belongs to.
    #[error(
        "the data directory {} belongs to user {owner}, and this is user {us}; do it as the server's \
         user: sudo -u '#{owner}' {command} ...", .path.display()
    )]
    OfAnotherUser {
        /// The directory.
        path: PathBuf,
        /// The id of the user it belongs to.
        owner: u32,
        /// The id of this process's user.
        us: u32,
        /// What is to be done.
        command: &'static str,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The owner token cannot be used.
    #[error(transparent)]
    Token(#[from] OwnerTokenError),
    /// The tokens of other principals cannot be used.
    #[error(transparent)]
    Tokens(#[from] BookError),
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The policies cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The key of digests cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Checkpoints of the audit trail cannot be signed.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A built-in name is malformed.
    #[error("a built-in name is malformed: {0}")]
    Name(#[from] IdError),
    /// Runs that a crash cut cannot be settled.
    #[error("recovery failed: {0}")]
    Recovery(#[from] RecoveryError),
    /// An agent cannot be made.
    #[error("agent {agent}: {problem}")]
    Agent {
        /// The agent.
        agent: String,
        /// What is wrong, and the way out.
        problem: String,
    },
    /// A workspace cannot be opened.
    #[error("workspace {workspace}: {problem}")]
    Workspace {
        /// The workspace.
        workspace: String,
        /// What is wrong, and the way out.
        problem: String,
    },
    /// Processes of an earlier server are there, or may be.
    #[error("{0}; end it, or restart the machine, and start again")]
    Leftover(#[from] HostError),
    /// The address cannot be listened on.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The face cannot serve.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Several things keep the server from starting.
    #[error("several things keep this server from starting:\n{}", lines(.0))]
    Several(Vec<ProcessError>),
    /// The store failed while serving: what the last round wrote is unknown until the next start.
    #[error("the store failed: {0}; start again: what was acknowledged is kept")]
    StoreFailed(String),
}

fn lines(wrong: &[ProcessError]) -> String {
    let lines: Vec<String> = wrong.iter().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}
