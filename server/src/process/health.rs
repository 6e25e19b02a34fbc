//! `sessiond health`: asks a server over `grpc.health.v1` whether it takes calls, for probes that
//! can run a command (compose, systemd, scripts).
//!
//! What must never enter: a credential. Health is answered to whoever asks.

use std::error::Error as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::grpc::listener::{Address, AddressError};

/// The flags of `sessiond health`.
#[allow(clippy::doc_markdown, reason = "these comments are the help text")]
#[derive(Debug, Clone, clap::Args)]
pub struct Question {
    /// IP:PORT, localhost:PORT or unix:/PATH. Default: where a server with the same flags and
    /// environment tells of its health, so --health-listen before --listen.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// What to ask for: the name of a service, or `liveness`, which is serving for as long as the
    /// process runs. Default: the server as a whole.
    #[arg(long, value_name = "NAME", default_value = "")]
    service: String,
    /// Until the answer counts as no, for example 3s, 500ms or 1m, which is the most. Connecting is
    /// part of it.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = patience)]
    timeout: Duration,
}

/// The longest time that an answer is waited for.
const LONGEST: Duration = Duration::from_secs(60);

/// Reads a time as `sessionctl` does: a number and `ms`, `s` or `m`; a bare number is seconds.
fn patience(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let millis = match unit {
        "ms" => Some(1),
        "" | "s" => Some(1000),
        "m" => Some(60_000),
        _ => None,
    };
    let time = number.parse::<u64>().ok().zip(millis);
    let time = time.and_then(|(number, millis)| number.checked_mul(millis));
    match time.map(Duration::from_millis) {
        Some(time) if !time.is_zero() && time <= LONGEST => Ok(time),
        _ => Err("must be a number and ms, s or m, at most a minute, like 3s".to_owned()),
    }
}

/// Why the answer is no.
#[derive(Debug, thiserror::Error)]
pub enum Unhealthy {
    /// The address is not one.
    #[error("address: {0}")]
    Address(#[from] AddressError),
    /// Nobody takes the connection.
    #[error("{address} cannot be reached: {problem}")]
    Unreachable {
        /// Where the server was looked for.
        address: Address,
        /// What the system said.
        problem: String,
    },
    /// No answer came in time.
    #[error("{address} did not answer within {waited:?}")]
    Silent {
        /// Where the server was asked.
        address: Address,
        /// How long the answer was waited for.
        waited: Duration,
    },
    /// The server speaks TLS, and probes do not.
    #[error(
        "{address} speaks TLS, and this asks in plain text: have the server tell of its health on an \
         address of its own (health_listen, or --health-listen), and ask there"
    )]
    Tls {
        /// Where the server was asked.
        address: Address,
    },
    /// The server knows nothing of it, or is something else.
    #[error("{address} does not tell: {problem}")]
    Unknown {
        /// Where the server was asked.
        address: Address,
        /// What it said.
        problem: String,
    },
    /// The server answered, and not with yes.
    #[error("{address} is {}", .status.as_str_name())]
    Not {
        /// Where the server was asked.
        address: Address,
        /// What it said.
        status: ServingStatus,
    },
}

impl Question {
    /// Whether the command line says which server is asked.
    #[must_use]
    pub fn names_address(&self) -> bool {
        self.address.is_some()
    }

    /// Asks the server of the flag, else the one at `configured`. The answer, or its absence, comes
    /// within the timeout.
    ///
    /// # Errors
    /// Unless the server says that it is serving.
    pub async fn ask(&self, configured: &str) -> Result<Address, Unhealthy> {
        let named = self.address.as_deref().unwrap_or(configured);
        let address = dialled(named.parse()?);
        let answer = timeout(self.timeout, self.status(&address)).await;
        let status = answer.map_err(|_late| Unhealthy::Silent {
            address: address.clone(),
            waited: self.timeout,
        })??;
        match status {
            ServingStatus::Serving => Ok(address),
            status => Err(Unhealthy::Not { address, status }),
        }
    }

    async fn status(&self, address: &Address) -> Result<ServingStatus, Unhealthy> {
        let unreachable = |error: &dyn std::error::Error| Unhealthy::Unreachable {
            address: address.clone(),
            problem: innermost(error),
        };
        let channel = connect(address)
            .await
            .map_err(|error| unreachable(&error))?;
        let request = HealthCheckRequest {
            service: self.service.clone(),
        };
        let answer = HealthClient::new(channel).check(request).await;
        let answer = answer.map_err(|status| told(address, &status))?;
        Ok(answer.into_inner().status())
    }
}

async fn connect(address: &Address) -> Result<Channel, tonic::transport::Error> {
    let uri = match address {
        Address::Tcp(address) => format!("http://{address}"),
        Address::Unix(path) => format!("unix:{}", path.display()),
    };
    Endpoint::from_shared(uri)?.connect().await
}

/// Where to connect to reach who listens on an address: on all of them means also on loopback.
fn dialled(address: Address) -> Address {
    match address {
        Address::Tcp(tcp) if tcp.ip().is_unspecified() => {
            let ip: IpAddr = match tcp.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            };
            Address::Tcp(SocketAddr::new(ip, tcp.port()))
        }
        other => other,
    }
}

/// What an answer means that is none. The transport makes a refusal out of `INADEQUATE_SECURITY`, the
/// word of a server that speaks TLS; about health nobody is refused.
fn told(address: &Address, status: &Status) -> Unhealthy {
    let address = address.clone();
    if status.code() == Code::PermissionDenied && status.source().is_some() {
        return Unhealthy::Tls { address };
    }
    let problem = format!("{:?}: {}", status.code(), status.message());
    Unhealthy::Unknown { address, problem }
}

/// What the system said, below the words of the transport.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_sessionctl_takes_it() {
        for (text, millis) in [("3s", 3000), ("3", 3000), ("500ms", 500), ("1m", 60_000)] {
            assert_eq!(patience(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "s",
            "0s",
            "61s",
            "2m",
            "1h",
            "-1s",
            "1.5s",
            "99999999999999999999s",
        ] {
            assert!(patience(text).unwrap_err().contains("like 3s"), "{text}");
        }
    }
}
