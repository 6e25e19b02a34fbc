//! A connection to a server: what every call of the SDK starts from. Knows no method by name.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sessionplane::v1::audit_client::AuditClient;
use sessionplane::v1::fleet_client::FleetClient;
use sessionplane::v1::invoke_client::InvokeClient;
use sessionplane::v1::session_control_client::SessionControlClient;
use sessionplane_core::contract::CallOptions;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};

use crate::backoff::Backoff;
use crate::clock::bounded;
use crate::options::{ClientOptions, ConnectError};
use crate::retry::{Effect, Patience};
use crate::target::Target;
use crate::token::TokenError;

/// What the client calls itself.
const USER_AGENT: &str = concat!("sessionplane-rust/", env!("CARGO_PKG_VERSION"));
/// Largest message that is read, in bytes: a page of entries with one full entry in it fits.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// What a server may send ahead of the reader of one stream, in bytes.
const STREAM_WINDOW: u32 = 256 * 1024;
/// What it may send ahead on all streams together, in bytes: as much as HTTP/2 can say, so that
/// only streams bound each other's data by their own windows, and streams that nobody reads do not
/// keep the answers of other calls away.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// A caller's handle on a server. Cheap to clone; all clones share one connection, which is made
/// at the first call and made anew when it breaks.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    channel: Channel,
    bearer: Option<MetadataValue<Ascii>>,
    options: ClientOptions,
}

impl Client {
    /// Makes a client. Connects at the first call, not here; must be called within a Tokio
    /// runtime, which drives the connection.
    ///
    /// # Errors
    /// When the options cannot be used: an address the transport does not take, or a token that
    /// would leave the machine unencrypted.
    pub fn connect(options: ClientOptions) -> Result<Self, ConnectError> {
        let options = options.bounded();
        let bearer = match options.sendable_token()? {
            Some(token) => {
                let value = MetadataValue::try_from(token.bearer());
                let mut value = value.map_err(|_| TokenError::Malformed)?;
                value.set_sensitive(true);
                Some(value)
            }
            None => None,
        };
        let channel = endpoint(&options)?.connect_lazy();
        let inner = Inner {
            channel,
            bearer,
            options,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The server that this client calls.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.inner.options.target
    }

    /// The data plane's generated stub.
    pub(crate) fn invoke_stub(&self) -> InvokeClient<Channel> {
        InvokeClient::new(self.inner.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// The control plane's generated stub.
    pub(crate) fn control_stub(&self) -> SessionControlClient<Channel> {
        SessionControlClient::new(self.inner.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// The audit trail's generated stub.
    pub(crate) fn audit_stub(&self) -> AuditClient<Channel> {
        AuditClient::new(self.inner.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// The fleet's generated stub.
    pub(crate) fn fleet_stub(&self) -> FleetClient<Channel> {
        FleetClient::new(self.inner.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// A message with the caller's credential.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(bearer) = &self.inner.bearer {
            request
                .metadata_mut()
                .insert("authorization", bearer.clone());
        }
        request
    }

    /// A unary message with the caller's credential and deadline.
    pub(crate) fn timed<T>(&self, message: T, options: &CallOptions) -> Request<T> {
        let mut request = self.request(message);
        request.set_timeout(self.deadline(options));
        request
    }

    /// Longest time for a call's answer.
    fn deadline(&self, options: &CallOptions) -> Duration {
        options
            .deadline
            .map_or(self.inner.options.deadline, bounded)
    }

    /// How a call is repeated.
    pub(crate) fn backoff(&self) -> Backoff {
        self.inner.options.retry
    }

    /// How patient a call is.
    pub(crate) fn patience(&self, options: &CallOptions, effect: Effect) -> Patience {
        Patience {
            deadline: self.deadline(options),
            backoff: self.inner.options.retry,
            effect,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}

fn endpoint(options: &ClientOptions) -> Result<Endpoint, ConnectError> {
    let refused = |error: tonic::transport::Error| ConnectError::Transport {
        target: options.target.clone(),
        problem: error.to_string(),
    };
    let endpoint = Endpoint::from_shared(options.target.to_string())
        .map_err(refused)?
        .user_agent(USER_AGENT)
        .map_err(refused)?
        .connect_timeout(options.connect_timeout)
        .http2_keep_alive_interval(options.keepalive_interval)
        .keep_alive_timeout(options.keepalive_timeout)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        // Servers with default settings answer probes of an idle connection with
        // ENHANCE_YOUR_CALM.
        .keep_alive_while_idle(false);
    if !options.target.is_tls() {
        return Ok(endpoint);
    }
    // A machine may have no authorities of its own.
    let secured = endpoint.clone().tls_config(options.tls.config(false));
    let secured = secured.or_else(|_none| endpoint.tls_config(options.tls.config(true)));
    secured.map_err(refused)
}
