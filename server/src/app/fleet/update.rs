//! Names, labels, priority and pause: compared with and counted in a revision of their own.

use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::UpdateSession;
use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::binding::Method;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::fleet::metadata::MetadataChange;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::provenance::Digest;

use super::answers::{Judged, done};
use super::{check_name, digests};
use crate::app::caller::AppCaller;
use crate::app::dispatch::check_same;
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
            self.authorize_session(binding.session, action).await?;
            check_same(&binding, digest)?;
            return Ok(self.repeated(binding).await?.session);
        }
        let (id, decision) = self.session(&session, action).await?;
        if action == Action::Update && change.paused.is_some() {
            return Err(CallError::invalid(
                "update_mask",
                "a pause is changed by PauseSession and ResumeSession",
            ));
        }
        check_name("name", change.name.iter().flatten().next())?;
        let flight = bound.flight.take();
        let chore = Chore::Change {
            call: Box::new(self.facts(&bound, digest, decision)),
            action,
            change: Box::new(change),
            etag,
        };
        match self.have_done(id, None, chore, flight).await? {
            Judged::Taken => Err(self.name_taken("name").await),
            judged => done(judged),
        }
    }

    /// C4: only who may create in the tenant learns that a name is taken.
    pub(super) async fn name_taken(&self, field: &str) -> CallError {
        if let Err(refused) = self.authorize_tenant(Action::Create).await {
            return refused;
        }
        let message = format!("another session has this {field}; choose another one");
        CallError::refused(Reason::NameTaken, message).about_field(field)
    }
}
