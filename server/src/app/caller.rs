//! The contract's traits on behalf of one authenticated caller, and the checks that every method
//! begins with, in the order of C4.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{Either, select};
use sessionplane_core::contract::{
    Agent, CallOptions, CapabilityReport, CapabilityTarget, DispatchRequest, EntryPage, EventItem,
    EventsRequest, InvokeEvent, InvokeRequest, ListEntriesRequest, ListRunsRequest, OfferedCommand,
    ResultStream, RunPage, SessionControl, SessionState,
};
use sessionplane_core::domain::access::{Decision, Principal};
use sessionplane_core::domain::audit::AuditActor;
use sessionplane_core::domain::binding::{Binding, BindingKey, Method};
use sessionplane_core::domain::command::DispatchAnswer;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::ids::{RunId, SessionId, SessionRef};
use sessionplane_core::domain::lifecycle::CallFacts;
use sessionplane_core::domain::limits::MAX_TEXT_BYTES;
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::provenance::Digest;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::ports::repository::ReadError;

use super::context::{App, Context, Life};
use super::face::{Caller, Face, Faces};
use super::observation::Observation;
use super::single_flight::Flight;

/// One caller's handle on the application.
pub struct AppCaller {
    pub(crate) context: Arc<Context>,
    pub(crate) caller: Caller,
    /// What is called lives as long as the call.
    #[allow(dead_code, reason = "held for its drop")]
    pub(crate) life: Arc<Life>,
}

/// A binding that was looked up while no other call decides it.
pub(crate) struct Bound {
    pub(crate) key: Option<BindingKey>,
    pub(crate) flight: Option<Flight>,
    pub(crate) binding: Option<Binding>,
}

impl AppCaller {
    pub(crate) fn principal(&self) -> &Principal {
        &self.caller.principal
    }

    /// Looks the request id up, alone with it: until the flight is dropped, no other call with the
    /// same id is past this point.
    pub(crate) async fn bound(
        &self,
        method: Method,
        options: &CallOptions,
    ) -> Result<Bound, CallError> {
        let Some(request_id) = options.request_id.clone() else {
            return Ok(Bound {
                key: None,
                flight: None,
                binding: None,
            });
        };
        let tenant = self.principal().tenant.clone();
        let key = BindingKey {
            tenant,
            principal: self.principal().id.clone(),
            method,
            request_id,
        };
        let flight = self.context.flights.enter(key.clone()).await;
        let binding = self
            .context
            .ports
            .repository
            .binding(&key)
            .await
            .map_err(store)?;
        Ok(Bound {
            key: Some(key),
            flight: Some(flight),
            binding,
        })
    }

    /// The session behind a reference, if it exists in the caller's tenant.
    pub(crate) async fn resolve(
        &self,
        session: &SessionRef,
    ) -> Result<Option<SessionId>, CallError> {
        if let SessionRef::Id(id) = session
            && let Some(channel) = self.context.channels.get(*id)
        {
            let mine = *channel.tenant() == self.principal().tenant;
            return Ok(mine.then_some(*id));
        }
        let tenant = &self.principal().tenant;
        self.context
            .ports
            .repository
            .resolve(tenant, session)
            .await
            .map_err(store)
    }

    /// What is known of an accepted call.
    pub(crate) fn facts(&self, bound: &Bound, digest: Digest, decision: Decision) -> CallFacts {
        let actor = AuditActor {
            principal: self.principal().id.clone(),
            credential: self.principal().credential.clone(),
            policies: decision.policies,
            trace_id: self.caller.trace_id.clone(),
            via: self.caller.via,
        };
        let request_id = bound.key.as_ref().map(|key| key.request_id.clone());
        CallFacts {
            actor,
            digest,
            request_id,
            binding: bound.key.clone(),
        }
    }

    /// Answers before the caller's deadline, or with the outcome that is then true.
    pub(crate) async fn within<T>(
        &self,
        deadline: Option<Duration>,
        call: impl Future<Output = Result<T, CallError>> + Send,
    ) -> Result<T, CallError> {
        let Some(deadline) = deadline else {
            return call.await;
        };
        let sleep = self.context.ports.clock.sleep(deadline);
        match select(Box::pin(call), sleep).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => Err(CallError::unknown(
                Reason::DeadlineExceeded,
                "the call's deadline passed before its answer",
            )),
        }
    }
}

/// A read that failed did nothing.
#[allow(
    clippy::needless_pass_by_value,
    reason = "it is an argument of map_err"
)]
pub(crate) fn store(error: ReadError) -> CallError {
    tracing::error!(%error, "a read failed");
    CallError::refused(
        Reason::StoreFailed,
        "the store could not be read; the server's log says more",
    )
}

/// Checks a text that is to be shown to a model.
pub(crate) fn check_text(field: &str, text: &str) -> Result<(), CallError> {
    if text.is_empty() {
        return Err(CallError::invalid(
            field,
            "is empty; give the text that the model is to read",
        ));
    }
    if text.len() > MAX_TEXT_BYTES {
        let way_out = "send the essential part, and put the rest where the agent can read it";
        return Err(CallError::too_large(
            field,
            text.len(),
            MAX_TEXT_BYTES,
            way_out,
        ));
    }
    Ok(())
}

impl Faces for App {
    type Handle = AppCaller;

    fn as_caller(&self, caller: Caller) -> AppCaller {
        AppCaller {
            context: self.context.clone(),
            caller,
            life: self.life.clone(),
        }
    }

    async fn drain(&self) {
        App::drain(self);
        self.at_rest().await;
    }

    async fn cut(&self) {
        self.context.ports.repository.make_way();
        self.stop_sessions().await;
        match self.interrupt().await {
            Ok(0) => {}
            Ok(cut) => tracing::info!(cut, "runs that were active are settled as interrupted"),
            Err(error) => {
                tracing::error!(%error, "a run that was cut is settled at the next start");
            }
        }
    }
}

#[async_trait]
impl Face for AppCaller {
    async fn observe(
        &self,
        request: EventsRequest,
        options: CallOptions,
    ) -> Result<Observation, CallError> {
        self.within(options.deadline, self.observe_session(request))
            .await
    }
}

#[async_trait]
impl Agent for AppCaller {
    async fn invoke(
        &self,
        request: InvokeRequest,
        options: CallOptions,
    ) -> Result<ResultStream<InvokeEvent>, CallError> {
        self.within(options.deadline, self.start_or_join(request, &options))
            .await
    }

    async fn list_runs(
        &self,
        request: ListRunsRequest,
        options: CallOptions,
    ) -> Result<RunPage, CallError> {
        self.within(options.deadline, self.run_page(request)).await
    }

    async fn wait_run(&self, run: RunId, options: CallOptions) -> Result<RunRecord, CallError> {
        self.within(options.deadline, self.settled_run(run)).await
    }

    async fn get_run(&self, run: RunId, options: CallOptions) -> Result<RunRecord, CallError> {
        self.within(options.deadline, self.run_record(run)).await
    }
}

#[async_trait]
impl SessionControl for AppCaller {
    async fn dispatch(
        &self,
        request: DispatchRequest,
        options: CallOptions,
    ) -> Result<DispatchAnswer, CallError> {
        self.within(options.deadline, self.dispatch_command(request, &options))
            .await
    }

    async fn get_capabilities(
        &self,
        target: CapabilityTarget,
        options: CallOptions,
    ) -> Result<CapabilityReport, CallError> {
        self.within(options.deadline, self.capabilities(target))
            .await
    }

    async fn list_commands(
        &self,
        target: CapabilityTarget,
        options: CallOptions,
    ) -> Result<Vec<OfferedCommand>, CallError> {
        self.within(options.deadline, self.offered(target)).await
    }

    async fn get_state(
        &self,
        session: SessionRef,
        min_position: Option<Position>,
        options: CallOptions,
    ) -> Result<SessionState, CallError> {
        self.within(options.deadline, self.state(session, min_position))
            .await
    }

    async fn list_entries(
        &self,
        request: ListEntriesRequest,
        options: CallOptions,
    ) -> Result<EntryPage, CallError> {
        self.within(options.deadline, self.entry_page(request))
            .await
    }

    async fn events(
        &self,
        request: EventsRequest,
        options: CallOptions,
    ) -> Result<ResultStream<EventItem>, CallError> {
        use futures_util::StreamExt;
        let observation = self.observe(request, options).await?;
        Ok(Box::pin(
            observation.map(|item| item.map(super::observer::to_item)),
        ))
    }
}
