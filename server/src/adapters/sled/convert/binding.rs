//! Request bindings.

use sessionplane::store::v1 as form;
use sessionplane_core::domain::binding::{
    Binding, BindingKey, BoundAnswer, Method, Placed, SessionAnswer,
};
use sessionplane_core::domain::ids::{PrincipalId, RequestId, TenantId};
use sessionplane_core::domain::time::Timestamp;

use super::audit::{sandbox, sandbox_form};
use super::provenance::digest;
use super::{Stored, Unreadable, maybe, maybe_run, run_form, run_id, session_id, unknown};

const METHODS: [Method; 8] = [
    Method::Invoke,
    Method::Dispatch,
    Method::CreateSession,
    Method::UpdateSession,
    Method::DeleteSession,
    Method::ChangeDirectory,
    Method::PauseSession,
    Method::ResumeSession,
];

fn method(method: Method) -> form::Method {
    match method {
        Method::Invoke => form::Method::Invoke,
        Method::Dispatch => form::Method::Dispatch,
        Method::CreateSession => form::Method::CreateSession,
        Method::UpdateSession => form::Method::UpdateSession,
        Method::DeleteSession => form::Method::DeleteSession,
        Method::ChangeDirectory => form::Method::ChangeDirectory,
        Method::PauseSession => form::Method::PauseSession,
        Method::ResumeSession => form::Method::ResumeSession,
    }
}

impl Stored for Binding {
    type Form = form::BindingRecord;
    fn form(&self) -> Self::Form {
        let input = match self.answer {
            BoundAnswer::Run(_) | BoundAnswer::Session(_) => None,
            BoundAnswer::Dispatched { input, .. } => input,
        };
        let answer = match self.answer {
            BoundAnswer::Run(_) => form::Method::Invoke,
            BoundAnswer::Dispatched { .. } => form::Method::Dispatch,
            // Which of them does not matter. What was decided is a record of its own, see
            // `SessionAnswer`: it is erased with its session, and this one is not.
            BoundAnswer::Session(_) => form::Method::UpdateSession,
        };
        form::BindingRecord {
            tenant: self.key.tenant.to_string(),
            principal: self.key.principal.to_string(),
            method: method(self.key.method).into(),
            request_id: self.key.request_id.to_string(),
            session: self.session.to_bytes().to_vec(),
            digest: self.digest.0.to_vec(),
            run: run_form(self.answer.run()),
            input: input.map(|id| id.form()),
            answer: answer.into(),
            at_ms: self.at.as_millis(),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let answer = match form.answer() {
            form::Method::Invoke => BoundAnswer::Run(run_id(&form.run)?),
            form::Method::Dispatch => BoundAnswer::Dispatched {
                run: maybe_run(&form.run)?,
                input: maybe(form.input.clone())?,
            },
            form::Method::UpdateSession => BoundAnswer::Session(None),
            _ => return Err(unknown("answer")),
        };
        let of_form = |it: &Method| method(*it) == form.method();
        let method = METHODS.into_iter().find(of_form);
        let method = method.ok_or_else(|| unknown("method"))?;
        Ok(Self {
            key: BindingKey {
                tenant: TenantId::parse(&form.tenant)?,
                principal: PrincipalId::parse(&form.principal)?,
                method,
                request_id: RequestId::parse(&form.request_id)?,
            },
            session: session_id(&form.session)?,
            digest: digest(&form.digest)?,
            answer,
            at: Timestamp::from_millis(form.at_ms),
        })
    }
}

impl Stored for SessionAnswer {
    type Form = form::SessionAnswer;
    fn form(&self) -> Self::Form {
        form::SessionAnswer {
            metadata: self.metadata.as_ref().map(Stored::form),
            placed: self.placed.as_ref().map(Stored::form),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            metadata: maybe(form.metadata)?,
            placed: maybe(form.placed)?,
        })
    }
}

impl Stored for Placed {
    type Form = form::Placed;
    fn form(&self) -> Self::Form {
        form::Placed {
            place: self.place.as_ref().map(Stored::form),
            checkout: self.checkout.as_ref().map(Stored::form),
            sandbox: sandbox_form(self.sandbox).into(),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            place: maybe(form.place)?,
            checkout: maybe(form.checkout)?,
            sandbox: sandbox(form.sandbox)?,
        })
    }
}
