//! A session at rest: named, labelled and placed before its first run.

use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::CreateSession;
use sessionplane_core::domain::access::{Action, Decision, PolicyContext};
use sessionplane_core::domain::binding::Method;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{SessionId, SessionRef};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::{AgentFacts, PlaceFacts};
use sessionplane_core::domain::place::{Directory, MAX_BRANCH_BYTES, Place};
use sessionplane_core::domain::session::SessionRecord;
use sessionplane_core::ports::workspaces::PlaceError;

use super::answers::{Judged, done};
use super::ground::{self, Ground, allowed, refused};
use super::update::name_taken;
use super::{check_name, digests};
use crate::app::caller::AppCaller;
use crate::app::dispatch::check_same;
use crate::app::session_mail::Chore;

impl AppCaller {
    pub(super) async fn create(
        &self,
        request: CreateSession,
        options: &CallOptions,
    ) -> Result<SessionSummary, CallError> {
        let digest = digests::of_create(&request);
        let mut bound = self.bound(Method::CreateSession, options).await?;
        if let Some(binding) = bound.binding.take() {
            self.may_ask_for(&request).await?;
            check_same(&binding, digest)?;
            return Ok(self.repeated(binding).await?.session);
        }
        self.may_ask_for(&request).await?;
        let record = self.record(&request).await?;
        let agent = self.context.agents.facts(&record.agent)?.clone();
        check_name("name", request.name.as_ref())?;
        let place = place(&request, &agent)?;
        self.may_create(&record, place.as_ref()).await?;
        // Before a working tree is made for it. The commit judges it again.
        self.check_free(&request).await?;
        let ground = self.grounded(place, &request).await?;
        // Of the place that it really is.
        let decision = self.may_create(&record, ground.place.as_ref()).await?;
        let flight = bound.flight.take();
        let chore = Chore::Create(Box::new(PlaceFacts {
            call: self.facts(&bound, digest, decision),
            token: LeaseToken(0),
            place: ground.place,
            within: None,
            checkout: ground.checkout,
            sandbox: agent.capabilities.sandbox,
        }));
        match self
            .have_done(record.id, Some(&record), chore, flight)
            .await?
        {
            Judged::Taken => Err(self.taken(&request).await),
            judged => done(judged),
        }
    }

    /// Whether the caller may create what a request names, before anything of it is looked up.
    async fn may_ask_for(&self, request: &CreateSession) -> Result<Decision, CallError> {
        let agents = &self.context.agents;
        let agent = request.agent.as_ref();
        let agent = agent.unwrap_or_else(|| agents.default_agent());
        let facts = agents.facts(agent).ok();
        let place = facts.and_then(|facts| place(request, facts).ok().flatten());
        let context = PolicyContext {
            agent: Some(agent),
            name: request.name.as_ref(),
            labels: Some(&request.labels),
            place: place.as_ref(),
            ..PolicyContext::default()
        };
        self.authorize_tenant_for(Action::Create, &context).await
    }

    async fn record(&self, request: &CreateSession) -> Result<SessionRecord, CallError> {
        let parent = self.parent(request.parent.as_ref()).await?;
        let (lineage, parents_agent) = parent.unzip();
        let named = request.agent.clone().or(parents_agent);
        let agent = named.unwrap_or_else(|| self.context.agents.default_agent().clone());
        let ports = &self.context.ports;
        let now = ports.clock.now();
        Ok(SessionRecord {
            id: SessionId::mint(now, ports.entropy.random()),
            tenant: self.principal().tenant.clone(),
            external_key: request.external_key.clone(),
            agent,
            created_at: now,
            lineage,
            metadata: Metadata {
                labels: request.labels.clone(),
                priority: request.priority,
                paused: request.paused,
                ..Metadata::first(request.name.clone(), now)
            },
        })
    }

    async fn check_free(&self, request: &CreateSession) -> Result<(), CallError> {
        let name = request.name.clone().map(SessionRef::Name);
        let key = request.external_key.clone().map(SessionRef::ExternalKey);
        for session in name.into_iter().chain(key) {
            if self.resolve(&session).await?.is_some() {
                return Err(self.taken(request).await);
            }
        }
        Ok(())
    }

    /// Which of the two is taken, as far as that can still be told.
    async fn taken(&self, request: &CreateSession) -> CallError {
        let named = match request.name.clone().map(SessionRef::Name) {
            None => false,
            Some(name) => !matches!(self.resolve(&name).await, Ok(None)),
        };
        let named = named || request.external_key.is_none();
        name_taken(if named { "name" } else { "external_key" })
    }

    async fn grounded(
        &self,
        place: Option<Place>,
        request: &CreateSession,
    ) -> Result<Ground, CallError> {
        let found = self.context.ground(place).await.map_err(refused)?;
        let Some(branch) = &request.worktree_branch else {
            return Ok(found);
        };
        let (Some(place), Some(workspaces)) = (found.place, &self.context.ports.workspaces) else {
            let error = PlaceError::Worktree("the session works in no workspace".to_owned());
            return Err(refused(error));
        };
        let made = workspaces.add_worktree(&place, branch).await;
        let made = made.map_err(refused)?;
        self.context.ground(Some(made)).await.map_err(refused)
    }
}

/// Where the session is to work, by name.
fn place(request: &CreateSession, agent: &AgentFacts) -> Result<Option<Place>, CallError> {
    if let Some(branch) = &request.worktree_branch
        && (branch.is_empty() || branch.len() > MAX_BRANCH_BYTES)
    {
        let told = format!("must be 1-{MAX_BRANCH_BYTES} bytes, as the name of a branch");
        return Err(CallError::invalid("worktree_branch", told));
    }
    if let Some(workspace) = &request.workspace {
        allowed(agent, workspace)?;
    }
    let usual = ground::usual(agent);
    let workspace = request.workspace.clone();
    let workspace = workspace.or_else(|| usual.map(|usual| usual.workspace));
    match (workspace, &request.directory) {
        (Some(workspace), directory) => Ok(Some(Place {
            workspace,
            directory: directory.clone().unwrap_or_else(Directory::root),
        })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(CallError::invalid(
            "directory",
            "is given, and the session's agent works in no workspace; leave it out",
        )),
    }
}
