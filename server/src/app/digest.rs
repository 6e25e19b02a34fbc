//! SHA-256 over decoded fields, each with its length, so that no two requests share a text.
//!
//! What was answered to a question may be a short secret: its request's digest is keyed, and says
//! nothing to who reads a binding or an audit record without the key.

use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sessionplane_core::contract::{DispatchRequest, InvokeRequest, Parent};
use sessionplane_core::domain::command::{Command, CommandKind};
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::interaction::InteractionAnswer;
use sessionplane_core::domain::provenance::{Digest, Trust};
use sha2::{Digest as _, Sha256};

/// The key of what must not be guessed from its digest. The same as long as the bindings live that
/// were made with it: without it, a repeat of an answer is taken for another call.
#[derive(Clone)]
pub struct DigestKey(Arc<[u8; 32]>);

impl DigestKey {
    /// From 32 random bytes.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(Arc::new(random))
    }

    /// HMAC-SHA-256 of a digest.
    fn seal(&self, digest: Digest) -> Digest {
        // A key that is shorter than SHA-256's block is filled up with zeros (RFC 2104).
        let mut block = [0; 64];
        block[..32].copy_from_slice(&*self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(&digest.0);
        Digest(mac.finalize().into_bytes().into())
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DigestKey(..)")
    }
}

/// The digest of a text's UTF-8 bytes.
#[must_use]
pub fn of_text(text: &str) -> Digest {
    of_bytes(text.as_bytes())
}

/// The digest of a content.
#[must_use]
pub(crate) fn of_bytes(content: &[u8]) -> Digest {
    Digest(Sha256::digest(content).into())
}

/// The digest of an invoke: every decoded field but `on_disconnect`.
#[must_use]
pub fn of_invoke(request: &InvokeRequest) -> Digest {
    let InvokeRequest {
        session,
        prompt,
        given,
        agent,
        parent,
        must_exist,
        on_disconnect: _,
    } = request;
    let mut fields = Fields::new("Invoke");
    fields.session(session);
    fields.text(prompt);
    fields.given(given);
    fields.text(agent.as_ref().map_or("", |agent| agent.as_str()));
    fields.text(if *must_exist { "1" } else { "0" });
    if let Some(Parent { session, entry }) = parent {
        fields.session(session);
        fields.text(&entry.map(|id| id.to_string()).unwrap_or_default());
    }
    fields.finish()
}

/// The digest of a dispatch; keyed if it answers a question.
#[must_use]
pub fn of_dispatch(request: &DispatchRequest, key: &DigestKey) -> Digest {
    let DispatchRequest {
        session,
        command,
        expected_run,
    } = request;
    let mut fields = Fields::new("Dispatch");
    fields.session(session);
    fields.text(command.kind().as_str());
    match command {
        Command::Steer { text, given } | Command::FollowUp { text, given } => {
            fields.text(text);
            fields.given(given);
        }
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
    let digest = fields.finish();
    match command.kind() {
        CommandKind::Respond => key.seal(digest),
        _ => digest,
    }
}

/// Fields of a request, on the way to their digest.
pub(crate) struct Fields(Sha256);

impl Fields {
    pub(crate) fn new(method: &str) -> Self {
        let mut fields = Self(Sha256::new());
        fields.text(method);
        fields
    }
    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }
    /// A text that may be absent: not the same as an empty one.
    pub(crate) fn optional(&mut self, text: Option<&str>) {
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
    /// What came with a text. Nothing is added where nothing came, so that bindings of an earlier
    /// server still fit.
    fn given(&mut self, given: &Given) {
        let Given {
            typed,
            at_most,
            data,
        } = given;
        if *given == Given::default() {
            return;
        }
        self.text("given");
        self.text(if *typed { "typed" } else { "" });
        self.text(match at_most {
            None => "",
            Some(Trust::Typed) => "typed",
            Some(Trust::Relayed) => "relayed",
            Some(Trust::Untrusted) => "untrusted",
        });
        self.text(&data.len().to_string());
        for part in &**data {
            self.text(&part.name);
            self.text(&part.media_type);
            self.bytes(&part.content);
        }
    }
    pub(crate) fn session(&mut self, session: &SessionRef) {
        let (kind, text) = match session {
            SessionRef::Id(id) => ("id", id.to_string()),
            SessionRef::Name(name) => ("name", name.to_string()),
            SessionRef::ExternalKey(key) => ("external_key", key.to_string()),
        };
        self.text(kind);
        self.text(&text);
    }
    pub(crate) fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::ids::{InteractionId, RunId, SessionId};
    use sessionplane_core::domain::time::Timestamp;

    use super::*;

    fn dispatch(command: Command) -> DispatchRequest {
        let at = Timestamp::from_millis(1);
        DispatchRequest {
            session: SessionRef::Id(SessionId::mint(at, 1)),
            command,
            expected_run: None,
        }
    }

    fn answers(text: &str) -> DispatchRequest {
        let run = RunId::mint(Timestamp::from_millis(1), 2);
        dispatch(Command::Respond {
            interaction: InteractionId { run, ordinal: 1 },
            answer: InteractionAnswer::Text(text.to_owned()),
        })
    }

    #[test]
    fn c61_the_digest_of_an_answer_says_nothing_without_the_key() {
        let (key, other) = (DigestKey::new([1; 32]), DigestKey::new([2; 32]));
        let digest = of_dispatch(&answers("1234"), &key);
        assert_eq!(digest, of_dispatch(&answers("1234"), &key.clone()));
        assert_ne!(digest, of_dispatch(&answers("1235"), &key));
        assert_ne!(digest, of_dispatch(&answers("1234"), &other));
        assert!(!format!("{key:?}").contains('1'));
    }

    /// They are in bindings and audit records of stores that an earlier server wrote.
    #[test]
    fn c03_what_is_no_answer_keeps_its_plain_digest() {
        let (key, other) = (DigestKey::new([1; 32]), DigestKey::new([2; 32]));
        let text = || "go on".into();
        for command in [
            Command::Steer {
                text: text(),
                given: Given::default(),
            },
            Command::Abort,
            Command::Compact {
                instructions: Some(text()),
            },
        ] {
            let request = dispatch(command);
            assert_eq!(of_dispatch(&request, &key), of_dispatch(&request, &other));
        }
    }

    /// Computed with another implementation.
    #[test]
    fn the_keyed_digest_is_hmac_sha_256() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let sealed = DigestKey::new(key).seal(of_text("what do ya want for nothing?"));
        let expected = "5e95b0cc691c2c2f741553fae6bb3bcf9d11b6c41dae93c2a775002ff1dbfcca";
        assert_eq!(sealed.to_string(), expected);
    }
}
