//! Rust SDK of Sessionplane, and the rooms of the command line client `sessionctl`.
//!
//! A [`Client`] implements the contract's three traits, [`contract::Agent`],
//! [`contract::SessionControl`] and [`contract::fleet::Fleet`], over gRPC: what a program writes
//! against them runs unchanged inside the server and outside of it. Besides them it offers what only
//! a remote caller needs: [`Client::invoke_to_end`], which rejoins a run whose stream was lost,
//! [`Client::watch`], which observes a session across broken connections and restarts, and
//! [`Client::watch_fleet`], which does the same for all sessions.
//!
//! Every type is the core's. No type of prost or tonic is part of the public API.
//!
//! ```no_run
//! use futures_util::StreamExt as _;
//! use sessionplane_client::{Client, ClientOptions, WatchOptions};
//! use sessionplane_client::domain::ids::{SessionName, SessionRef};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect(ClientOptions::from_env()?)?;
//! let session = SessionRef::Name(SessionName::parse("docs")?);
//! let mut watch = client.watch(session, WatchOptions::default());
//! while let Some(item) = watch.next().await {
//!     println!("{:?}", item?);
//! }
//! # Ok(())
//! # }
//! ```

mod agent;
mod audit;
mod backoff;
pub mod cli;
mod clock;
mod connection;
mod control;
mod convert;
mod fleet;
mod fleet_watch;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod opening;
mod options;
mod outcome;
mod reconnect;
mod rejoin;
mod retry;
mod target;
mod tls;
mod token;
mod waiting;
mod watch;

pub use sessionplane_core::{contract, domain};

pub use backoff::Backoff;
pub use clock::mint_request_id;
pub use connection::Client;
pub use fleet_watch::{FleetWatch, FleetWatchItem, FleetWatchOptions};
pub use options::{ClientOptions, ConnectError};
pub use rejoin::{RunItem, RunStream, detached};
pub use target::{DEFAULT_ADDRESS, Target, TargetError};
pub use tls::{TlsFileError, TlsOptions};
pub use token::{Token, TokenError};
pub use watch::{Watch, WatchItem, WatchOptions};
