//! Whether a caller may: every method asks here, with what the server knows of the session that it is
//! about, in the order of C4.
//!
//! What must never enter: what a policy says, and anything that a caller says of itself.

use std::sync::Arc;

use sessionplane_core::domain::access::{
    Action, Decision, PolicyContext, Principal, PrincipalKind, Resource, SessionFacts,
};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::fleet::filter::StoredTerm;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::{SessionId, SessionRef, TenantId};
use sessionplane_core::domain::place::Place;
use sessionplane_core::domain::provenance::{Channel, Trust};
use sessionplane_core::domain::session::{SessionRecord, StoredSession};
use sessionplane_core::ports::authorizer::Authorizer;
use sessionplane_core::ports::repository::{SessionPlace, SessionQuery};

use super::caller::{AppCaller, store};

/// Sessions of a workspace that are asked of the store at a time.
const SLICE: usize = 200;

/// A session of the caller's tenant that a call is about.
pub(crate) enum Subject {
    /// As its channel shows it.
    Shown(Arc<SessionSummary>),
    /// As its rows say.
    Stored(Arc<StoredSession>),
    /// Nothing is known of it: it was deleted, or its rows are damaged. Only who may do the same in the
    /// whole tenant may do it here, and is told what became of it.
    Bare(SessionId),
}

impl Subject {
    pub(crate) fn id(&self) -> SessionId {
        match self {
            Self::Shown(summary) => summary.id,
            Self::Stored(stored) => stored.record.id,
            Self::Bare(id) => *id,
        }
    }

    /// What policies may know of it; nothing of one of which nothing is known.
    pub(crate) fn facts<'a>(&'a self, tenant: &'a TenantId) -> Option<SessionFacts<'a>> {
        match self {
            Self::Shown(summary) => Some(SessionFacts::of_summary(tenant, summary)),
            Self::Stored(stored) => Some(SessionFacts::of_stored(stored)),
            Self::Bare(_) => None,
        }
    }

    fn resource<'a>(&'a self, tenant: &'a TenantId) -> Resource<'a> {
        let facts = self.facts(tenant);
        facts.map_or(Resource::Tenant(tenant), Resource::Session)
    }
}

impl AppCaller {
    /// The session behind a reference, if it exists in the caller's tenant.
    pub(crate) async fn subject(&self, session: &SessionRef) -> Result<Option<Subject>, CallError> {
        let (tenant, channels) = (&self.principal().tenant, &self.context.channels);
        if let SessionRef::Id(id) = session
            && let Some(channel) = channels.get(*id)
        {
            if channel.tenant() != tenant {
                return Ok(None);
            }
            if let Some(shown) = channel.shown() {
                return Ok(Some(Subject::Shown(shown)));
            }
        }
        let repository = &self.context.ports.repository;
        // One read, whether there is a session or not.
        match repository.look_up(tenant, session).await {
            Ok(None) => Ok(None),
            Ok(Some(found)) => {
                let channel = channels.get(found.session.record.id);
                let shown = channel.and_then(|channel| channel.shown());
                Ok(Some(
                    shown.map_or(Subject::Stored(found.session), Subject::Shown),
                ))
            }
            // What is damaged is told later, and only to who may see the session.
            Err(_) => {
                let id = repository.resolve(tenant, session).await.map_err(store)?;
                Ok(id.map(Subject::Bare))
            }
        }
    }

    /// Resolves and authorizes in one: unknown and hidden are the same refusal.
    pub(crate) async fn session(
        &self,
        session: &SessionRef,
        action: Action,
    ) -> Result<(SessionId, Decision), CallError> {
        let nothing = PolicyContext::default();
        self.session_for(session, action, &nothing).await
    }

    /// The same of what a call would do to the session.
    pub(crate) async fn session_for(
        &self,
        session: &SessionRef,
        action: Action,
        context: &PolicyContext<'_>,
    ) -> Result<(SessionId, Decision), CallError> {
        let subject = self.subject(session).await?;
        let subject = subject.ok_or_else(CallError::no_such_session)?;
        let decision = self.authorize_subject(&subject, action, context).await?;
        Ok((subject.id(), decision))
    }

    /// Asks the policy about a session of the caller's tenant.
    pub(crate) async fn authorize_session(
        &self,
        id: SessionId,
        action: Action,
    ) -> Result<Decision, CallError> {
        let nothing = PolicyContext::default();
        self.authorize_session_for(id, action, &nothing).await
    }

    /// The same of what a call would do to it.
    pub(crate) async fn authorize_session_for(
        &self,
        id: SessionId,
        action: Action,
        context: &PolicyContext<'_>,
    ) -> Result<Decision, CallError> {
        let subject = self.subject(&SessionRef::Id(id)).await?;
        let subject = subject.unwrap_or(Subject::Bare(id));
        self.authorize_subject(&subject, action, context).await
    }

    /// Asks the policy about a session. Who may neither observe it nor read its metadata gets the answer
    /// of one that does not exist.
    pub(crate) async fn authorize_subject(
        &self,
        subject: &Subject,
        action: Action,
        context: &PolicyContext<'_>,
    ) -> Result<Decision, CallError> {
        let authorizer = &*self.context.ports.authorizer;
        may(authorizer, self.principal(), subject, action, context).await
    }

    /// Whether the caller may know that there is such a session.
    pub(crate) async fn may_know(&self, subject: &Subject) -> bool {
        let resource = subject.resource(&self.principal().tenant);
        let nothing = PolicyContext::default();
        let decided = self.decide(Action::ReadMetadata, &resource, &nothing);
        decided.await.allowed
    }

    /// Asks the policy about the tenant.
    pub(crate) async fn authorize_tenant(&self, action: Action) -> Result<Decision, CallError> {
        let nothing = PolicyContext::default();
        self.authorize_tenant_for(action, &nothing).await
    }

    /// The same of what a call would do in it.
    pub(crate) async fn authorize_tenant_for(
        &self,
        action: Action,
        context: &PolicyContext<'_>,
    ) -> Result<Decision, CallError> {
        let resource = Resource::Tenant(&self.principal().tenant);
        let decision = self.decide(action, &resource, context).await;
        if decision.allowed {
            Ok(decision)
        } else {
            Err(denied(action, &decision))
        }
    }

    async fn decide(
        &self,
        action: Action,
        resource: &Resource<'_>,
        context: &PolicyContext<'_>,
    ) -> Decision {
        let authorizer = &self.context.ports.authorizer;
        let decided = authorizer.authorize(self.principal(), action, resource, context);
        decided.await
    }

    /// Whether the caller may start a run in a session that does not exist yet: nothing is hidden.
    pub(crate) async fn authorize_unborn(
        &self,
        session: &Resource<'_>,
        said: &PolicyContext<'_>,
    ) -> Result<Decision, CallError> {
        let decision = self.decide(Action::Invoke, session, said).await;
        if decision.allowed {
            Ok(decision)
        } else {
            Err(denied(Action::Invoke, &decision))
        }
    }

    /// Whether the caller may create the session of a record, to work there.
    pub(crate) async fn may_create(
        &self,
        record: &SessionRecord,
        place: Option<&Place>,
    ) -> Result<Decision, CallError> {
        let shared = match place {
            Some(place) => self.is_shared(Action::Create, place, None).await?,
            None => None,
        };
        let context = PolicyContext {
            agent: Some(&record.agent),
            name: record.metadata.name.as_ref(),
            labels: Some(&record.metadata.labels),
            place,
            shared,
            ..PolicyContext::default()
        };
        self.authorize_tenant_for(Action::Create, &context).await
    }

    /// What policies may know of a text and what is given beside it: the same as its origin will say.
    pub(crate) fn text_context(
        &self,
        channel: Channel,
        text: &str,
        given: &Given,
    ) -> PolicyContext<'static> {
        let data: usize = given.data.iter().map(|part| part.content.len()).sum();
        PolicyContext {
            channel: Some(channel),
            trust: Some(self.trust(given)),
            size: Some((text.len() + data) as u64),
            ..PolicyContext::default()
        }
    }

    /// How far a text is trusted: what the credential allows, and never more than what is stated of it.
    pub(crate) fn trust(&self, given: &Given) -> Trust {
        let principal = self.principal();
        given.trust(principal.ceiling, principal.kind == PrincipalKind::Human)
    }

    /// Whether another session works in a directory, if any policy about the action asks. None of the
    /// sessions is told: only that there is one.
    pub(crate) async fn is_shared(
        &self,
        action: Action,
        place: &Place,
        except: Option<SessionId>,
    ) -> Result<Option<bool>, CallError> {
        if !self.context.ports.authorizer.asks_of_sharing(action) {
            return Ok(None);
        }
        let mut after = None;
        loop {
            let query = SessionQuery {
                tenant: self.principal().tenant.clone(),
                term: StoredTerm::Workspace(place.workspace.clone()),
                after: after.take(),
                descending: false,
                max: SLICE,
            };
            let repository = &self.context.ports.repository;
            let found = repository.find(query).await.map_err(store)?;
            let others = found.iter().map(|found| &found.session);
            let mut others = others.filter(|other| Some(other.record.id) != except);
            if others.any(|other| other.head.place.as_ref() == Some(place)) {
                return Ok(Some(true));
            }
            match found.last() {
                Some(last) if found.len() == SLICE => {
                    after = Some(SessionPlace::Id(last.session.record.id));
                }
                _ => return Ok(Some(false)),
            }
        }
    }
}

/// Whether a principal may do something with a session. Who may neither observe it nor read its metadata
/// gets the answer of one that does not exist.
pub(crate) async fn may(
    authorizer: &dyn Authorizer,
    principal: &Principal,
    subject: &Subject,
    action: Action,
    context: &PolicyContext<'_>,
) -> Result<Decision, CallError> {
    let resource = subject.resource(&principal.tenant);
    let asked = authorizer.authorize(principal, action, &resource, context);
    let decision = asked.await;
    if decision.allowed {
        return Ok(decision);
    }
    let nothing = PolicyContext::default();
    for looking in [Action::ReadMetadata, Action::Observe] {
        if looking == action {
            continue;
        }
        let sees = authorizer.authorize(principal, looking, &resource, &nothing);
        if sees.await.allowed {
            return Err(denied(action, &decision));
        }
    }
    Err(CallError::no_such_session())
}

/// Whether a principal may do something in its tenant.
pub(crate) async fn may_in_tenant(
    authorizer: &dyn Authorizer,
    principal: &Principal,
    action: Action,
) -> Result<(), CallError> {
    let (tenant, nothing) = (
        Resource::Tenant(&principal.tenant),
        PolicyContext::default(),
    );
    let asked = authorizer.authorize(principal, action, &tenant, &nothing);
    let decision = asked.await;
    if decision.allowed {
        return Ok(());
    }
    Err(denied(action, &decision))
}

/// A refusal of somebody who knows that there is something. Which policies forbid it is for the record.
fn denied(action: Action, decision: &Decision) -> CallError {
    let by = match (&*decision.policies, &*decision.ways_in) {
        ([], []) => "nothing allows it".to_owned(),
        ([], ways_in) => format!("it takes {}", ways_in.join(" or ")),
        (forbidding, _) => {
            tracing::debug!(
                action = action.as_str(),
                ?forbidding,
                "a policy forbids a call"
            );
            "a policy forbids it".to_owned()
        }
    };
    CallError::refused(
        Reason::PermissionDenied,
        format!("you may not {} here: {by}", action.as_str()),
    )
}
