//! Sessions as one caller may see them.

use std::sync::Arc;

use sessionplane_core::domain::access::{Action, Principal, Resource};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::ports::repository::FoundSession;

use crate::app::caller::store;
use crate::app::channels::{Judged, Ticket};
use crate::app::context::Context;

/// How often a session is read again that changed between two looks. Each time something was written or
/// a table was swept: that ends.
const ATTEMPTS: usize = 64;

/// Looks at sessions on behalf of a caller.
#[derive(Clone)]
pub(super) struct Viewer {
    pub(super) context: Arc<Context>,
    pub(super) principal: Principal,
}

impl Viewer {
    /// Whether the caller may see what the fleet shows of a session of its tenant.
    pub(super) async fn may_read(&self, id: SessionId) -> bool {
        self.may(id, Action::ReadMetadata).await
    }

    pub(super) async fn may(&self, id: SessionId, action: Action) -> bool {
        let tenant = self.principal.tenant.clone();
        let resource = Resource::Session { tenant, id };
        let authorizer = &self.context.ports.authorizer;
        let decided = authorizer.authorize(&self.principal, action, &resource);
        decided.await.allowed
    }

    /// A session of the caller's tenant: as its channel shows it, or what its rows say.
    pub(super) async fn summary(
        &self,
        id: SessionId,
    ) -> Result<Option<Arc<SessionSummary>>, CallError> {
        let context = &self.context;
        for _ in 0..ATTEMPTS {
            let ticket = self.ticket().await?;
            if context.channels.get(id).is_none() {
                // A session is never shown idle before a run that was cut is settled.
                context.settled(id).await?;
            }
            let stored = context.ports.repository.session(id).await.map_err(store)?;
            match context.channels.judge(id, ticket) {
                Judged::Channel(channel) => return Ok(channel.shown()),
                Judged::Counts => {
                    let summary = |stored| SessionSummary::dormant(&stored, ticket.revision);
                    return Ok(stored.map(|stored| Arc::new(summary(stored))));
                }
                Judged::Outdated => {}
            }
        }
        // Its channel says in any case what holds.
        let channel = context.channel(id).await?;
        Ok(channel.and_then(|channel| channel.shown()))
    }

    /// What was found of a session in an index, after a ticket was taken.
    pub(super) async fn found(
        &self,
        found: FoundSession,
        ticket: Ticket,
    ) -> Result<Option<Arc<SessionSummary>>, CallError> {
        let stored = &found.session;
        let (id, context) = (stored.record.id, &self.context);
        if let Some(channel) = context.channels.get(id) {
            return Ok(channel.shown());
        }
        if found.leased {
            // It may be a run that a crash cut. One that cannot be settled keeps nobody from finding the
            // others, as one whose record is damaged does not.
            if context.settled(id).await.is_err() {
                return Ok(None);
            }
            return self.summary(id).await;
        }
        match context.channels.judge(id, ticket) {
            Judged::Channel(channel) => Ok(channel.shown()),
            Judged::Counts => {
                let summary = SessionSummary::dormant(stored, ticket.revision);
                Ok(Some(Arc::new(summary)))
            }
            Judged::Outdated => self.summary(id).await,
        }
    }

    /// A ticket for what is read from here on. The first one of a process asks which start it is.
    pub(super) async fn ticket(&self) -> Result<Ticket, CallError> {
        let context = &self.context;
        if context.hub.first().is_none() {
            let token = context.ports.leases.mint().await.map_err(store)?;
            context.hub.begin(token.start());
        }
        Ok(context.channels.ticket())
    }
}
