//! Names, labels, priority and pause: compared with and counted in a revision of their own.

use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::UpdateSession;
use sessionplane_core::domain::access::{Action, Decision, PolicyContext};
use sessionplane_core::domain::binding::Method;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::fleet::metadata::{Metadata, MetadataChange};
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{SessionName, SessionRef};
use sessionplane_core::domain::provenance::Digest;

use super::answers::{Judged, done};
use super::{check_name, digests};
use crate::app::caller::AppCaller;
use crate::app::dispatch::check_same;
use crate::app::permission::Subject;
use crate::app::session_mail::Chore;

/// A change of metadata, and what it is called.
struct Wanted {
    method: Method,
    action: Action,
    session: SessionRef,
    change: MetadataChange,
    etag: Option<u64>,
    digest: Digest,
}

impl AppCaller {
    pub(super) async fn update(
        &self,
        request: UpdateSession,
        options: &CallOptions,
    ) -> Result<SessionSummary, CallError> {
        let digest = digests::of_update(&request);
        let UpdateSession {
            session,
            change,
            etag,
        } = request;
        let wanted = Wanted {
            method: Method::UpdateSession,
            action: Action::Update,
            session,
            change,
            etag,
            digest,
        };
        self.changed(wanted, options).await
    }

    /// C15: from here on nothing begins in the session, or may again.
    pub(super) async fn pause(
        &self,
        session: SessionRef,
        paused: bool,
        options: &CallOptions,
    ) -> Result<SessionSummary, CallError> {
        let method = if paused {
            Method::PauseSession
        } else {
            Method::ResumeSession
        };
        let wanted = Wanted {
            method,
            action: Action::Pause,
            digest: digests::of_pause(&session, paused),
            session,
            change: MetadataChange {
                paused: Some(paused),
                ..MetadataChange::default()
            },
            etag: None,
        };
        self.changed(wanted, options).await
    }

    async fn changed(
        &self,
        wanted: Wanted,
        options: &CallOptions,
    ) -> Result<SessionSummary, CallError> {
        let Wanted {
            method,
            action,
            session,
            change,
            etag,
            digest,
        } = wanted;
        let mut bound = self.bound(method, options).await?;
        if let Some(binding) = bound.binding.take() {
            let subject = self.subject(&SessionRef::Id(binding.session)).await?;
            let subject = subject.unwrap_or(Subject::Bare(binding.session));
            self.may_change(&subject, action, &change).await?;
            check_same(&binding, digest)?;
            return Ok(self.repeated(binding).await?.session);
        }
        let subject = self.subject(&session).await?;
        let subject = subject.ok_or_else(CallError::no_such_session)?;
        let decision = self.may_change(&subject, action, &change).await?;
        let id = subject.id();
        if action == Action::Update && change.paused.is_some() {
            return Err(CallError::invalid(
                "update_mask",
                "a pause is changed by PauseSession and ResumeSession",
            ));
        }
        let name = change.name.iter().flatten().next().cloned();
        check_name("name", name.as_ref())?;
        let flight = bound.flight.take();
        let chore = Chore::Change {
            call: Box::new(self.facts(&bound, digest, decision)),
            action,
            change: Box::new(change),
            etag,
        };
        match self.have_done(id, None, chore, flight).await? {
            Judged::Taken => Err(self.name_taken(&subject, name.as_ref()).await),
            judged => done(judged),
        }
    }

    async fn may_change(
        &self,
        subject: &Subject,
        action: Action,
        change: &MetadataChange,
    ) -> Result<Decision, CallError> {
        let facts = subject.facts(&self.principal().tenant);
        let has = facts.map(|facts| facts.labels.clone()).unwrap_or_default();
        let now = self.context.ports.clock.now();
        let present = Metadata {
            labels: has,
            ..Metadata::first(None, now)
        };
        // More labels than there may be are refused later, whatever they are.
        let changed = present.changed(change, now).unwrap_or(present);
        let context = PolicyContext {
            name: change.name.iter().flatten().next(),
            labels: Some(&changed.labels),
            ..PolicyContext::default()
        };
        self.authorize_subject(subject, action, &context).await
    }

    /// C4: only who may create such a session in the tenant learns that a name is taken.
    async fn name_taken(&self, subject: &Subject, name: Option<&SessionName>) -> CallError {
        let facts = subject.facts(&self.principal().tenant);
        let context = PolicyContext {
            agent: facts.map(|facts| facts.agent),
            labels: facts.map(|facts| facts.labels),
            place: facts.and_then(|facts| facts.place),
            name,
            ..PolicyContext::default()
        };
        let may = self.authorize_tenant_for(Action::Create, &context).await;
        may.err().unwrap_or_else(|| name_taken("name"))
    }
}

/// What who may create is told.
pub(super) fn name_taken(field: &str) -> CallError {
    let message = format!("another session has this {field}; choose another one");
    CallError::refused(Reason::NameTaken, message).about_field(field)
}
