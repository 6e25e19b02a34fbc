//! Runs and the inputs that joined them.

use std::sync::Arc;

use sessionplane::store::v1 as form;
use sessionplane_core::domain::ids::{AgentName, RequestId};
use sessionplane_core::domain::input::{
    DiscardCause, InputFate, InputKind, InputRecord, UndeliveredInput,
};
use sessionplane_core::domain::run::{RunRecord, RunSettings};
use sessionplane_core::domain::time::Timestamp;

use super::{Stored, Unreadable, maybe, optional, part, run_id, session_id, unknown};

impl Stored for RunRecord {
    type Form = form::RunRecord;
    fn form(&self) -> Self::Form {
        form::RunRecord {
            id: self.id.to_bytes().to_vec(),
            session: self.session.to_bytes().to_vec(),
            agent: self.agent.to_string(),
            request_id: self.request_id.as_ref().map(ToString::to_string),
            origin: Some(self.origin.form()),
            started_at_ms: self.started_at.as_millis(),
            first_entry: Some(self.first_entry.form()),
            final_entry: self.final_entry.as_ref().map(Stored::form),
            usage: Some(self.usage.form()),
            undelivered: self.undelivered.iter().map(Stored::form).collect(),
            model: self.settings.model.clone(),
            thinking_level: self.settings.thinking_level.clone(),
            abort_requested: self.abort_requested,
            settled: self.settled.as_ref().map(Stored::form),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let undelivered = form.undelivered.into_iter().map(Stored::read);
        Ok(Self {
            id: run_id(&form.id)?,
            session: session_id(&form.session)?,
            agent: AgentName::parse(&form.agent)?,
            request_id: optional(form.request_id.as_ref(), RequestId::parse)?,
            origin: part(form.origin, "origin")?,
            started_at: Timestamp::from_millis(form.started_at_ms),
            first_entry: part(form.first_entry, "first_entry")?,
            final_entry: maybe(form.final_entry)?,
            usage: part(form.usage, "usage")?,
            undelivered: undelivered.collect::<Result<_, _>>()?,
            settings: RunSettings {
                model: form.model,
                thinking_level: form.thinking_level,
            },
            abort_requested: form.abort_requested,
            settled: maybe(form.settled)?,
        })
    }
}

impl Stored for InputRecord {
    type Form = form::InputRecord;
    fn form(&self) -> Self::Form {
        use form::input_record::Fate;
        let fate = match self.fate {
            InputFate::Pending => None,
            InputFate::Delivered(entry) => Some(Fate::Delivered(entry.form())),
            InputFate::Discarded(cause) => Some(Fate::Discarded(cause_form(cause).into())),
        };
        form::InputRecord {
            id: Some(self.id.form()),
            kind: kind_form(self.kind).into(),
            text: self.text.to_string(),
            origin: Some(self.origin.form()),
            accepted_at_ms: self.accepted_at.as_millis(),
            fate,
            data: self.data.as_ref().map(|data| data.form()),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        use form::input_record::Fate;
        let kind = kind(form.kind())?;
        let fate = match form.fate {
            None => InputFate::Pending,
            Some(Fate::Delivered(entry)) => InputFate::Delivered(Stored::read(entry)?),
            Some(Fate::Discarded(cause)) => {
                let form = form::DiscardCause::try_from(cause).map_err(|_| unknown("discarded"))?;
                InputFate::Discarded(self::cause(form)?)
            }
        };
        Ok(Self {
            id: part(form.id, "id")?,
            kind,
            text: form.text.into(),
            data: maybe(form.data)?.map(Arc::new),
            origin: part(form.origin, "origin")?,
            accepted_at: Timestamp::from_millis(form.accepted_at_ms),
            fate,
        })
    }
}

impl Stored for UndeliveredInput {
    type Form = form::UndeliveredInput;
    fn form(&self) -> Self::Form {
        form::UndeliveredInput {
            id: Some(self.id.form()),
            kind: kind_form(self.kind).into(),
            cause: cause_form(self.cause).into(),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            kind: kind(form.kind())?,
            cause: cause(form.cause())?,
            id: part(form.id, "id")?,
            text: None,
        })
    }
}

fn kind_form(kind: InputKind) -> form::InputKind {
    match kind {
        InputKind::Steer => form::InputKind::Steer,
        InputKind::FollowUp => form::InputKind::FollowUp,
    }
}

fn kind(form: form::InputKind) -> Result<InputKind, Unreadable> {
    match form {
        form::InputKind::Steer => Ok(InputKind::Steer),
        form::InputKind::FollowUp => Ok(InputKind::FollowUp),
        form::InputKind::Unspecified => Err(unknown("kind")),
    }
}

fn cause_form(cause: DiscardCause) -> form::DiscardCause {
    match cause {
        DiscardCause::Aborted => form::DiscardCause::Aborted,
        DiscardCause::Failed => form::DiscardCause::Failed,
        DiscardCause::Interrupted => form::DiscardCause::Interrupted,
        DiscardCause::Lost => form::DiscardCause::Lost,
    }
}

fn cause(form: form::DiscardCause) -> Result<DiscardCause, Unreadable> {
    match form {
        form::DiscardCause::Aborted => Ok(DiscardCause::Aborted),
        form::DiscardCause::Failed => Ok(DiscardCause::Failed),
        form::DiscardCause::Interrupted => Ok(DiscardCause::Interrupted),
        form::DiscardCause::Lost => Ok(DiscardCause::Lost),
        form::DiscardCause::Unspecified => Err(unknown("cause")),
    }
}
