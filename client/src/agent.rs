//! The data plane, called: `Agent` for a [`Client`].

use async_trait::async_trait;
use sessionplane::v1;
use sessionplane_core::contract::{
    Agent, CallOptions, InvokeEvent, InvokeRequest, ListRunsRequest, ResultStream, RunPage,
};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::ids::{RequestId, RunId};
use sessionplane_core::domain::run::RunRecord;

use crate::clock::mint_request_id;
use crate::connection::Client;
use crate::convert;
use crate::opening::{answered, messages, open, readable};
use crate::retry::{Effect, Patience, call};

#[async_trait]
impl Agent for Client {
    async fn invoke(
        &self,
        request: InvokeRequest,
        options: CallOptions,
    ) -> Result<ResultStream<InvokeEvent>, CallError> {
        let patience = self.patience(&options, Effect::Writes);
        let request_id = options.request_id.unwrap_or_else(mint_request_id);
        self.join(request, &request_id, patience).await
    }

    async fn list_runs(
        &self,
        request: ListRunsRequest,
        options: CallOptions,
    ) -> Result<RunPage, CallError> {
        let wire = convert::run::list_request(&request);
        let answer = call(self.patience(&options, Effect::Reads), || {
            let (mut stub, request) = (self.invoke_stub(), self.timed(wire.clone(), &options));
            async move { answered(stub.list_runs(request)).await }
        });
        readable(convert::run::page(answer.await?))
    }

    async fn wait_run(&self, run: RunId, options: CallOptions) -> Result<RunRecord, CallError> {
        self.wait_until_settled(run, options.deadline).await
    }

    async fn get_run(&self, run: RunId, options: CallOptions) -> Result<RunRecord, CallError> {
        let wire = v1::GetRunRequest {
            run_id: run.to_string(),
        };
        let answer = call(self.patience(&options, Effect::Reads), || {
            let (mut stub, request) = (self.invoke_stub(), self.timed(wire.clone(), &options));
            async move { answered(stub.get_run(request)).await }
        });
        readable(convert::run::answer(answer.await?))
    }
}

impl Client {
    /// Starts or joins the run of a request id.
    pub(crate) async fn join(
        &self,
        request: InvokeRequest,
        request_id: &RequestId,
        patience: Patience,
    ) -> Result<ResultStream<InvokeEvent>, CallError> {
        let wire = convert::invoke::request(request, request_id);
        let opened = call(patience, || {
            let (mut stub, request) = (self.invoke_stub(), self.request(wire.clone()));
            async move { open(stub.invoke(request)).await }
        })
        .await?;
        Ok(Box::pin(messages(
            opened,
            convert::invoke::event,
            InvokeEvent::is_terminal,
        )))
    }
}
