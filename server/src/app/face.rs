//! The seam between the application layer and its faces: who calls, and what a caller's handle can
//! do.
//!
//! What must never enter: a wire type, a transport, or how a caller was authenticated.

use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::contract::{Agent, CallOptions, EventsRequest, SessionControl};
use sessionplane_core::domain::access::Principal;
use sessionplane_core::domain::error::CallError;

use super::observation::Observation;

/// Who calls, as the face authenticated it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The authenticated principal.
    pub principal: Principal,
    /// The W3C trace id of the call, 32 lower-case hexadecimal digits, if it carried one.
    pub trace_id: Option<Arc<str>>,
}

/// One caller's handle: the contract, plus the events as a face wants them.
#[async_trait]
pub trait Face: Agent + SessionControl {
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
}
