//! SHA-256 over decoded fields, each with its length, so that no two requests share a text.

use sessionplane_core::contract::{DispatchRequest, InvokeRequest, Parent};
use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::interaction::InteractionAnswer;
use sessionplane_core::domain::provenance::Digest;
use sha2::{Digest as _, Sha256};

/// The digest of a text's UTF-8 bytes.
#[must_use]
pub fn of_text(text: &str) -> Digest {
    Digest(Sha256::digest(text.as_bytes()).into())
}

/// The digest of an invoke: every decoded field but `on_disconnect`.
#[must_use]
pub fn of_invoke(request: &InvokeRequest) -> Digest {
    let InvokeRequest {
        session,
        prompt,
        agent,
        parent,
        must_exist,
        on_disconnect: _,
    } = request;
    let mut fields = Fields::new("Invoke");
    fields.session(session);
    fields.text(prompt);
    fields.text(agent.as_ref().map_or("", |agent| agent.as_str()));
    fields.text(if *must_exist { "1" } else { "0" });
    if let Some(Parent { session, entry }) = parent {
        fields.session(session);
        fields.text(&entry.map(|id| id.to_string()).unwrap_or_default());
    }
    fields.finish()
}

/// The digest of a dispatch.
#[must_use]
pub fn of_dispatch(request: &DispatchRequest) -> Digest {
    let DispatchRequest {
        session,
        command,
        expected_run,
    } = request;
    let mut fields = Fields::new("Dispatch");
    fields.session(session);
    fields.text(command.kind().as_str());
    match command {
        Command::Steer { text } | Command::FollowUp { text } => fields.text(text),
        Command::Abort => fields.text(""),
        Command::Compact { instructions } => fields.optional(instructions.as_deref()),
        Command::SetModel { model } => fields.optional(model.as_deref()),
        Command::SetThinking { level } => fields.optional(level.as_deref()),
        Command::Navigate { entry } => fields.text(&entry.to_string()),
        Command::Respond {
            interaction,
            answer,
        } => {
            fields.text(&interaction.to_string());
            fields.answer(answer);
        }
    }
    fields.text(&expected_run.map(|run| run.to_string()).unwrap_or_default());
    fields.finish()
}

struct Fields(Sha256);

impl Fields {
    fn new(method: &str) -> Self {
        let mut fields = Self(Sha256::new());
        fields.text(method);
        fields
    }
    fn text(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_be_bytes());
        self.0.update(text.as_bytes());
    }
    /// A text that may be absent: not the same as an empty one.
    fn optional(&mut self, text: Option<&str>) {
        self.text(if text.is_some() { "1" } else { "0" });
        self.text(text.unwrap_or_default());
    }
    fn answer(&mut self, answer: &InteractionAnswer) {
        match answer {
            InteractionAnswer::Choice(id) => {
                self.text("choice");
                self.text(id);
            }
            InteractionAnswer::Confirmed(yes) => {
                self.text("confirmed");
                self.text(if *yes { "1" } else { "0" });
            }
            InteractionAnswer::Text(text) => {
                self.text("text");
                self.text(text);
            }
            InteractionAnswer::Fields(fields) => {
                self.text("fields");
                for (name, text) in fields {
                    self.text(name);
                    self.text(text);
                }
            }
        }
    }
    fn session(&mut self, session: &SessionRef) {
        let (kind, text) = match session {
            SessionRef::Id(id) => ("id", id.to_string()),
            SessionRef::Name(name) => ("name", name.to_string()),
            SessionRef::ExternalKey(key) => ("external_key", key.to_string()),
        };
        self.text(kind);
        self.text(&text);
    }
    fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}
