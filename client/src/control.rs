//! The control and observation planes, called: `SessionControl` for a [`Client`].

use async_trait::async_trait;
use futures_util::{StreamExt as _, future};
use sessionplane_core::contract::{
    CallOptions, CapabilityReport, CapabilityTarget, DispatchRequest, EntryPage, EventItem,
    EventsRequest, ListEntriesRequest, OfferedCommand, ResultStream, SessionControl, SessionState,
};
use sessionplane_core::domain::command::DispatchAnswer;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::position::Position;

use crate::clock::mint_request_id;
use crate::connection::Client;
use crate::convert;
use crate::convert::observation::Received;
use crate::opening::{answered, messages, open, readable};
use crate::outcome::{Moment, unreadable};
use crate::retry::{Effect, Patience, call};

/// Most pages of commands that are read: no engine has nearly as many, and a server whose tokens go
/// in a circle is asked no longer.
const OFFER_PAGES: u32 = 1000;

#[async_trait]
impl SessionControl for Client {
    async fn dispatch(
        &self,
        request: DispatchRequest,
        options: CallOptions,
    ) -> Result<DispatchAnswer, CallError> {
        let request_id = options.request_id.clone().unwrap_or_else(mint_request_id);
        let wire = convert::command::request(request, &request_id);
        let answer = call(self.patience(&options, Effect::Writes), || {
            let (mut stub, request) = (self.control_stub(), self.timed(wire.clone(), &options));
            async move { answered(stub.dispatch(request)).await }
        });
        readable(convert::command::answer(answer.await?))
    }

    async fn get_capabilities(
        &self,
        target: CapabilityTarget,
        options: CallOptions,
    ) -> Result<CapabilityReport, CallError> {
        let wire = convert::capabilities::request(target);
        let answer = call(self.patience(&options, Effect::Reads), || {
            let (mut stub, request) = (self.control_stub(), self.timed(wire.clone(), &options));
            async move { answered(stub.get_capabilities(request)).await }
        });
        readable(convert::capabilities::answer(answer.await?))
    }

    async fn list_commands(
        &self,
        target: CapabilityTarget,
        options: CallOptions,
    ) -> Result<Vec<OfferedCommand>, CallError> {
        let mut offered = Vec::new();
        let mut token = String::new();
        for _ in 0..OFFER_PAGES {
            let wire = convert::capabilities::commands_request(target.clone(), token.clone());
            let answer = call(self.patience(&options, Effect::Reads), || {
                let (mut stub, request) = (self.control_stub(), self.timed(wire.clone(), &options));
                async move { answered(stub.list_commands(request)).await }
            });
            let page = answer.await?;
            offered.extend(convert::capabilities::offered(page.commands));
            let before = std::mem::replace(&mut token, page.next_page_token);
            if token.is_empty() {
                return Ok(offered);
            }
            if token == before {
                break;
            }
        }
        Err(unreadable(
            "the list of commands has no end",
            Moment::BeforeFirst,
        ))
    }

    async fn get_state(
        &self,
        session: SessionRef,
        min_position: Option<Position>,
        options: CallOptions,
    ) -> Result<SessionState, CallError> {
        let wire = convert::state::request(&session, min_position);
        let answer = call(self.patience(&options, Effect::Reads), || {
            let (mut stub, request) = (self.control_stub(), self.timed(wire.clone(), &options));
            async move { answered(stub.get_state(request)).await }
        });
        readable(convert::state::answer(answer.await?))
    }

    async fn list_entries(
        &self,
        request: ListEntriesRequest,
        options: CallOptions,
    ) -> Result<EntryPage, CallError> {
        let wire = convert::entry::request(request);
        let answer = call(self.patience(&options, Effect::Reads), || {
            let (mut stub, request) = (self.control_stub(), self.timed(wire.clone(), &options));
            async move { answered(stub.list_entries(request)).await }
        });
        readable(convert::entry::page(answer.await?))
    }

    async fn events(
        &self,
        request: EventsRequest,
        options: CallOptions,
    ) -> Result<ResultStream<EventItem>, CallError> {
        let patience = self.patience(&options, Effect::Reads);
        let received = self.receive(request, patience).await?;
        let known = received.filter_map(|item| {
            future::ready(match item {
                Ok(received) => received.item().map(Ok),
                Err(error) => Some(Err(error)),
            })
        });
        Ok(Box::pin(known))
    }
}

impl Client {
    /// An observation with what the contract's items cannot hold: see [`Received`].
    pub(crate) async fn receive(
        &self,
        request: EventsRequest,
        patience: Patience,
    ) -> Result<ResultStream<Received>, CallError> {
        let wire = convert::observation::request(request);
        let opened = call(patience, || {
            let (mut stub, request) = (self.control_stub(), self.request(wire.clone()));
            async move { open(stub.events(request)).await }
        })
        .await?;
        let never_last = |_: &Received| false;
        Ok(Box::pin(messages(
            opened,
            convert::observation::item,
            never_last,
        )))
    }
}
