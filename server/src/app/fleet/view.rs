//! Sessions as one caller may see them.

use std::sync::Arc;

use sessionplane_core::domain::access::{Action, PolicyContext, Principal, Resource, SessionFacts};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{SessionId, SessionRef};
use sessionplane_core::ports::repository::FoundSession;

use crate::app::caller::{AppCaller, store};
use crate::app::channels::{Judged, Ticket};
use crate::app::context::Context;
use crate::app::permission::Subject;

/// How often a session is read again that changed between two looks. Each time something was written or
/// a table was swept: that ends.
const ATTEMPTS: usize = 64;

/// What was read of a session says of it.
enum Seen {
    /// What it shows; nothing where it is not there.
    Shown(Option<Arc<SessionSummary>>),
    /// It has to be read again, or its run settled first.
    Unsettled,
}

/// Looks at sessions on behalf of a caller.
#[derive(Clone)]
pub(super) struct Viewer {
    pub(super) context: Arc<Context>,
    pub(super) principal: Principal,
}

impl AppCaller {
    /// The session behind a reference as it is now. One that is at rest takes one read of the store: a
    /// read waits for a thread to make it, and that is most of what it costs.
    pub(super) async fn shown(&self, session: SessionRef) -> Result<SessionSummary, CallError> {
        let viewer = self.viewer();
        let ticket = viewer.ticket().await?;
        let repository = &self.context.ports.repository;
        let at_rest = match session {
            SessionRef::Id(id) => self.context.channels.get(id).is_none(),
            _ => true,
        };
        if at_rest
            // What is damaged is told below, and only to who may see the session.
            && let Ok(found) = repository
                .look_up(&self.principal().tenant, &session)
                .await
        {
            let found = found.ok_or_else(CallError::no_such_session)?;
            let subject = Subject::Stored(found.session.clone());
            let nothing = PolicyContext::default();
            self.authorize_subject(&subject, Action::ReadMetadata, &nothing)
                .await?;
            let shown = viewer.looked_up(found, ticket).await?;
            let shown = shown.ok_or_else(CallError::no_such_session)?;
            return Ok(Arc::unwrap_or_clone(shown));
        }
        let (id, _) = self.session(&session, Action::ReadMetadata).await?;
        self.present(id).await
    }
}

impl Viewer {
    /// Whether the caller may see what the fleet shows of a session of its tenant.
    pub(super) async fn may_read(&self, session: &SessionSummary) -> bool {
        self.may(session, Action::ReadMetadata).await
    }

    pub(super) async fn may(&self, session: &SessionSummary, action: Action) -> bool {
        let tenant = &self.principal.tenant;
        let resource = Resource::Session(SessionFacts::of_summary(tenant, session));
        let (authorizer, nothing) = (&self.context.ports.authorizer, PolicyContext::default());
        let decided = authorizer.authorize(&self.principal, action, &resource, &nothing);
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
        if let Seen::Shown(shown) = self.judged(&found, ticket) {
            return Ok(shown);
        }
        let (id, context) = (found.session.record.id, &self.context);
        if found.leased {
            // It may be a run that a crash cut. One that cannot be settled keeps nobody from finding the
            // others, as one whose record is damaged does not.
            if context.settled(id).await.is_err() {
                return Ok(None);
            }
        }
        self.summary(id).await
    }

    /// The same of one session that was asked for: if its run was cut and cannot be settled, that is
    /// the answer.
    pub(super) async fn looked_up(
        &self,
        found: FoundSession,
        ticket: Ticket,
    ) -> Result<Option<Arc<SessionSummary>>, CallError> {
        match self.judged(&found, ticket) {
            Seen::Shown(shown) => Ok(shown),
            Seen::Unsettled => self.summary(found.session.record.id).await,
        }
    }

    /// What a session shows that was read after a ticket was taken.
    fn judged(&self, found: &FoundSession, ticket: Ticket) -> Seen {
        let stored = &found.session;
        match self.context.channels.judge(stored.record.id, ticket) {
            Judged::Channel(channel) => Seen::Shown(channel.shown()),
            Judged::Counts if !found.leased => {
                let summary = SessionSummary::dormant(stored, ticket.revision);
                Seen::Shown(Some(Arc::new(summary)))
            }
            Judged::Counts | Judged::Outdated => Seen::Unsettled,
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
