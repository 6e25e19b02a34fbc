//! The seam between the application layer and its faces: who calls, and what a caller's handle can
//! do.
//!
//! What must never enter: a wire type, a transport, or how a caller was authenticated.

use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::contract::audit::AuditLog;
use sessionplane_core::contract::fleet::Fleet;
use sessionplane_core::contract::{Agent, CallOptions, EventsRequest, SessionControl};
use sessionplane_core::domain::access::Principal;
use sessionplane_core::domain::audit::Via;
use sessionplane_core::domain::error::CallError;
use tokio_util::sync::CancellationToken;

use super::observation::Observation;

/// Who calls, as the face authenticated it.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The authenticated principal.
    pub principal: Principal,
    /// The W3C trace id of the call, 32 lower-case hexadecimal digits, if it carried one.
    pub trace_id: Option<Arc<str>>,
    /// How the call came; `None` where nobody noted it.
    pub via: Option<Via>,
    /// Whether the server itself ends the call's stream.
    pub server_ends: ServerEnds,
}

/// Says that the server itself ends the stream of a call: its connection is closed for its age or
/// for a stop, or nobody reads it. A face sets it before it drops the stream, because a stream that
/// is dropped without it is a caller that left (C13). Clones are the same one; by default nothing
/// sets it.
#[derive(Clone, Default, Debug)]
pub struct ServerEnds(CancellationToken);

impl ServerEnds {
    /// One that is set as soon as `closing` is cancelled.
    #[must_use]
    pub fn with(closing: &CancellationToken) -> Self {
        Self(closing.child_token())
    }

    /// Says it. There is no way back.
    pub fn set(&self) {
        self.0.cancel();
    }

    /// Whether it was said.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// One caller's handle: the contract, plus the events as a face wants them.
#[async_trait]
pub trait Face: Agent + SessionControl + Fleet + AuditLog {
    /// The same stream as [`SessionControl::events`], with events shared between observers so that
    /// each is encoded at most once. Its items come in bursts: the stream is ready as long as
    /// there is something to send.
    async fn observe(
        &self,
        request: EventsRequest,
        options: CallOptions,
    ) -> Result<Observation, CallError>;
}

/// Gives each caller its handle. The application layer implements it.
pub trait Faces: Send + Sync + 'static {
    /// The handle.
    type Handle: Face + 'static;
    /// A handle that acts as `caller`. Cheap: it is made for every call.
    fn as_caller(&self, caller: Caller) -> Self::Handle;
    /// C63: the server stops. Nothing new begins from now on; completes when nothing is at work any
    /// more. Dropping it changes nothing of that.
    fn drain(&self) -> impl Future<Output = ()> + Send;
    /// C63: a drain had its time. What is still at work is cut, and settled as interrupted; completes
    /// when it is. Nobody who only watches or waits is woken for it.
    fn cut(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}
