//! C53: a session works elsewhere from its next run on.

use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::{ChangeDirectory, ChangeDirectoryAnswer};
use sessionplane_core::domain::access::{Action, Decision, PolicyContext};
use sessionplane_core::domain::binding::Method;
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::ids::WorkspaceName;
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::PlaceFacts;
use sessionplane_core::domain::place::Place;
use sessionplane_core::domain::provenance::Digest;

use super::answers::{Judged, Repeated, done};
use super::digests;
use super::ground::{allowed, refused};
use crate::app::caller::{AppCaller, Bound};
use crate::app::dispatch::check_same;
use crate::app::permission::Subject;
use crate::app::session_mail::Chore;

/// How often a move looks again after another one.
const ATTEMPTS: usize = 4;

impl AppCaller {
    pub(super) async fn change_place(
        &self,
        request: ChangeDirectory,
        options: &CallOptions,
    ) -> Result<ChangeDirectoryAnswer, CallError> {
        let (action, digest) = (Action::ChangeDirectory, digests::of_move(&request));
        for _ in 0..ATTEMPTS {
            let mut bound = self.bound(Method::ChangeDirectory, options).await?;
            if let Some(binding) = bound.binding.take() {
                let wanted = wanted(&request, request.workspace.as_ref());
                let context = PolicyContext {
                    place: wanted.as_ref(),
                    ..PolicyContext::default()
                };
                self.authorize_session_for(binding.session, action, &context)
                    .await?;
                check_same(&binding, digest)?;
                let Repeated { session, sandbox } = self.repeated(binding).await?;
                let session = Box::new(session);
                let sandbox = sandbox.unwrap_or(SandboxLevel::None);
                return Ok(ChangeDirectoryAnswer::Moved { session, sandbox });
            }
            if let Some(answer) = self.move_to(&request, bound, digest).await? {
                return Ok(answer);
            }
        }
        let message =
            "the session kept being moved to other workspaces; name the one that is meant";
        Err(CallError::refused(Reason::Overloaded, message))
    }

    /// Nothing if no workspace is named, and the session was moved to another one meanwhile.
    async fn move_to(
        &self,
        request: &ChangeDirectory,
        mut bound: Bound,
        digest: Digest,
    ) -> Result<Option<ChangeDirectoryAnswer>, CallError> {
        let subject = self.subject(&request.session).await?;
        let subject = subject.ok_or_else(CallError::no_such_session)?;
        let id = subject.id();
        let works = subject.facts(&self.principal().tenant);
        let works = works.and_then(|facts| facts.place).map(|it| &it.workspace);
        // Before anything is looked up there.
        let asked = wanted(request, request.workspace.as_ref().or(works));
        self.may_move(&subject, asked.as_ref()).await?;
        let present = self.present(id).await?;
        let agent = self.context.agents.facts(&present.agent)?.clone();
        let within = match request.workspace {
            Some(_) => None,
            None => present.place.map(|it| it.workspace),
        };
        let workspace = request.workspace.clone().or_else(|| within.clone());
        let workspace = workspace.ok_or_else(|| {
            let told = "is needed: the session works in none yet";
            CallError::invalid("workspace", told)
        })?;
        allowed(&agent, &workspace)?;
        let place = Place {
            workspace,
            directory: request.directory.clone(),
        };
        if self.context.ports.workspaces.is_none() {
            let told = "cannot be looked up: this server has no workspaces";
            return Err(CallError::invalid("workspace", told));
        }
        let found = self.context.ground(Some(place)).await.map_err(refused)?;
        // Of the place that it really is.
        let decision = self.may_move(&subject, found.place.as_ref()).await?;
        let flight = bound.flight.take();
        let chore = Chore::Move(Box::new(PlaceFacts {
            call: self.facts(&bound, digest, decision),
            token: LeaseToken(0),
            place: found.place,
            within,
            checkout: found.checkout,
            sandbox: agent.capabilities.sandbox,
        }));
        match self.have_done(id, None, chore, flight).await? {
            Judged::Elsewhere => Ok(None),
            Judged::Rejected(no) => Ok(Some(ChangeDirectoryAnswer::Rejected(no))),
            // How far what runs there is held in is the word of the agent's engine, wherever that is.
            judged => Ok(Some(ChangeDirectoryAnswer::Moved {
                session: Box::new(done(judged)?),
                sandbox: agent.capabilities.sandbox,
            })),
        }
    }

    async fn may_move(
        &self,
        subject: &Subject,
        place: Option<&Place>,
    ) -> Result<Decision, CallError> {
        let action = Action::ChangeDirectory;
        let shared = match place {
            Some(place) => self.is_shared(action, place, Some(subject.id())).await?,
            None => None,
        };
        let context = PolicyContext {
            place,
            shared,
            ..PolicyContext::default()
        };
        self.authorize_subject(subject, action, &context).await
    }
}

/// The place that a request names.
fn wanted(request: &ChangeDirectory, workspace: Option<&WorkspaceName>) -> Option<Place> {
    Some(Place {
        workspace: workspace?.clone(),
        directory: request.directory.clone(),
    })
}
