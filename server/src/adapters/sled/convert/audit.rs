//! Audit records.

use sessionplane::store::v1 as form;
use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::audit::{AuditAction, AuditActor, AuditRecord, Via};
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::ids::{EntryId, PrincipalId, RequestId, TenantId};
use sessionplane_core::domain::time::Timestamp;

use super::provenance::digest;
use super::{Stored, Unreadable, maybe, optional, run_id, session_id, unknown};

impl Stored for AuditRecord {
    type Form = form::AuditRecord;
    fn form(&self) -> Self::Form {
        form::AuditRecord {
            session: self.session.to_bytes().to_vec(),
            ordinal: self.ordinal,
            tenant: self.tenant.to_string(),
            at_ms: self.at.as_millis(),
            actor: self.actor.as_ref().map(Stored::form),
            action: action_form(self.action).into(),
            request_digest: self.request_digest.map(|digest| digest.0.to_vec()),
            bytes: self.bytes,
            request_id: self.request_id.as_ref().map(ToString::to_string),
            run: self.run.map(|run| run.to_bytes().to_vec()),
            entries: self.entries.iter().map(|id| id.seq).collect(),
            outcome: self.outcome.to_owned(),
            sandbox: self.sandbox.map(|level| sandbox_form(level).into()),
            seq: None,
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let session = session_id(&form.session)?;
        let action = action(form.action())?;
        let outcome = Self::OUTCOMES
            .into_iter()
            .find(|word| *word == form.outcome)
            .ok_or_else(|| unknown("outcome"))?;
        Ok(Self {
            session,
            ordinal: form.ordinal,
            tenant: TenantId::parse(&form.tenant)?,
            at: Timestamp::from_millis(form.at_ms),
            action,
            actor: maybe(form.actor)?,
            request_digest: form.request_digest.as_deref().map(digest).transpose()?,
            bytes: form.bytes,
            request_id: optional(form.request_id.as_ref(), RequestId::parse)?,
            run: form.run.as_deref().map(run_id).transpose()?,
            entries: form
                .entries
                .into_iter()
                .map(|seq| EntryId { session, seq })
                .collect(),
            outcome,
            sandbox: form.sandbox.map(sandbox).transpose()?,
        })
    }
}

pub(super) fn sandbox_form(level: SandboxLevel) -> form::AuditSandbox {
    match level {
        SandboxLevel::None => form::AuditSandbox::None,
        SandboxLevel::Confined => form::AuditSandbox::Confined,
        SandboxLevel::Enforced => form::AuditSandbox::Enforced,
    }
}

pub(super) fn sandbox(form: i32) -> Result<SandboxLevel, Unreadable> {
    match form::AuditSandbox::try_from(form) {
        Ok(form::AuditSandbox::None) => Ok(SandboxLevel::None),
        Ok(form::AuditSandbox::Confined) => Ok(SandboxLevel::Confined),
        Ok(form::AuditSandbox::Enforced) => Ok(SandboxLevel::Enforced),
        Ok(form::AuditSandbox::Unspecified) | Err(_) => Err(unknown("sandbox")),
    }
}

impl Stored for AuditActor {
    type Form = form::AuditActor;
    fn form(&self) -> Self::Form {
        form::AuditActor {
            principal: self.principal.to_string(),
            credential: self.credential.to_string(),
            policies: self.policies.to_vec(),
            trace_id: self.trace_id.as_ref().map(ToString::to_string),
            via: self.via.map(|via| via.to_string()),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            principal: PrincipalId::parse(&form.principal)?,
            credential: form.credential.into(),
            policies: form.policies.into(),
            trace_id: form.trace_id.map(Into::into),
            via: via(form.via.as_deref())?,
        })
    }
}

/// How a call came.
fn via(form: Option<&str>) -> Result<Option<Via>, Unreadable> {
    form.map(|word| Via::parse(word).ok_or_else(|| unknown("via")))
        .transpose()
}

pub(super) fn action_form(action: AuditAction) -> form::AuditAction {
    match action {
        AuditAction::Call(Action::Observe) => form::AuditAction::Observe,
        AuditAction::Call(Action::ReadMetadata) => form::AuditAction::ReadMetadata,
        AuditAction::Call(Action::Create) => form::AuditAction::Create,
        AuditAction::Call(Action::Invoke) => form::AuditAction::Invoke,
        AuditAction::Call(Action::Steer) => form::AuditAction::Steer,
        AuditAction::Call(Action::FollowUp) => form::AuditAction::FollowUp,
        AuditAction::Call(Action::Abort) => form::AuditAction::Abort,
        AuditAction::Call(Action::Compact) => form::AuditAction::Compact,
        AuditAction::Call(Action::SetModel) => form::AuditAction::SetModel,
        AuditAction::Call(Action::SetThinking) => form::AuditAction::SetThinking,
        AuditAction::Call(Action::Navigate) => form::AuditAction::Navigate,
        AuditAction::Call(Action::Respond) => form::AuditAction::Respond,
        AuditAction::Call(Action::Update) => form::AuditAction::Update,
        AuditAction::Call(Action::Delete) => form::AuditAction::Delete,
        AuditAction::Call(Action::ChangeDirectory) => form::AuditAction::ChangeDirectory,
        AuditAction::Call(Action::Pause) => form::AuditAction::Pause,
        AuditAction::Call(Action::SendMessage) => form::AuditAction::SendMessage,
        AuditAction::Call(Action::ReadArtifact) => form::AuditAction::ReadArtifact,
        AuditAction::Call(Action::WriteArtifact) => form::AuditAction::WriteArtifact,
        AuditAction::Call(Action::ReadAudit) => form::AuditAction::ReadAudit,
        AuditAction::Call(Action::ManageTokens) => form::AuditAction::ManageTokens,
        AuditAction::Call(Action::Administer) => form::AuditAction::Administer,
        AuditAction::Checkout => form::AuditAction::Checkout,
        AuditAction::Expire => form::AuditAction::Expire,
        AuditAction::Compacted => form::AuditAction::Compacted,
        AuditAction::EngineOutput => form::AuditAction::EngineOutput,
        AuditAction::Disconnect => form::AuditAction::Disconnect,
        AuditAction::Settle => form::AuditAction::Settle,
        AuditAction::Recover => form::AuditAction::Recover,
    }
}

pub(super) fn action(form: form::AuditAction) -> Result<AuditAction, Unreadable> {
    Ok(match form {
        form::AuditAction::Observe => AuditAction::Call(Action::Observe),
        form::AuditAction::ReadMetadata => AuditAction::Call(Action::ReadMetadata),
        form::AuditAction::Create => AuditAction::Call(Action::Create),
        form::AuditAction::Invoke => AuditAction::Call(Action::Invoke),
        form::AuditAction::Steer => AuditAction::Call(Action::Steer),
        form::AuditAction::FollowUp => AuditAction::Call(Action::FollowUp),
        form::AuditAction::Abort => AuditAction::Call(Action::Abort),
        form::AuditAction::Compact => AuditAction::Call(Action::Compact),
        form::AuditAction::SetModel => AuditAction::Call(Action::SetModel),
        form::AuditAction::SetThinking => AuditAction::Call(Action::SetThinking),
        form::AuditAction::Navigate => AuditAction::Call(Action::Navigate),
        form::AuditAction::Respond => AuditAction::Call(Action::Respond),
        form::AuditAction::Update => AuditAction::Call(Action::Update),
        form::AuditAction::Delete => AuditAction::Call(Action::Delete),
        form::AuditAction::ChangeDirectory => AuditAction::Call(Action::ChangeDirectory),
        form::AuditAction::Pause => AuditAction::Call(Action::Pause),
        form::AuditAction::SendMessage => AuditAction::Call(Action::SendMessage),
        form::AuditAction::ReadArtifact => AuditAction::Call(Action::ReadArtifact),
        form::AuditAction::WriteArtifact => AuditAction::Call(Action::WriteArtifact),
        form::AuditAction::ReadAudit => AuditAction::Call(Action::ReadAudit),
        form::AuditAction::ManageTokens => AuditAction::Call(Action::ManageTokens),
        form::AuditAction::Administer => AuditAction::Call(Action::Administer),
        form::AuditAction::Checkout => AuditAction::Checkout,
        form::AuditAction::Expire => AuditAction::Expire,
        form::AuditAction::Compacted => AuditAction::Compacted,
        form::AuditAction::EngineOutput => AuditAction::EngineOutput,
        form::AuditAction::Disconnect => AuditAction::Disconnect,
        form::AuditAction::Settle => AuditAction::Settle,
        form::AuditAction::Recover => AuditAction::Recover,
        form::AuditAction::Unspecified => return Err(unknown("action")),
    })
}
