//! What a text becomes before anybody is asked to take it: its origin, and the data beside it, of which
//! what is too long for an entry is kept whole first.
//!
//! What must never enter: how it is rendered, or whether its session takes it.

use std::sync::Arc;

use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::data::{
    Content, Data, DataPart, INLINE_DATA_BYTES, MAX_DATA_BYTES, MAX_DATA_NAME_BYTES,
    MAX_DATA_PARTS, MAX_MEDIA_TYPE_BYTES, ends,
};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::given::{Given, GivenData};
use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::lifecycle::AgentFacts;
use sessionplane_core::domain::provenance::{Channel, Origin, Trust};
use sessionplane_core::ports::artifact_store::ArtifactError;

use super::caller::{AppCaller, Bound, check_text};
use super::digest;

/// What a text is called that a caller wants to be taken for data.
const TEXT_NAME: &str = "text";
/// What it is.
const TEXT_TYPE: &str = "text/plain; charset=utf-8";

/// A text with all that a session needs to take it.
pub(crate) struct Told {
    /// The instruction; empty if there is none.
    pub(crate) text: Arc<str>,
    /// Who sends it.
    pub(crate) origin: Origin,
    /// What goes with it.
    pub(crate) data: Option<Arc<Data>>,
}

/// Checks a text and what goes with it, of the field `of`: at least one of them must be there.
pub(crate) fn check(of: &str, text: &str, given: &Given) -> Result<(), CallError> {
    if given.data.is_empty() || !text.is_empty() {
        check_text(&format!("{of}.text"), text)?;
    }
    let field = format!("{of}.data");
    if given.data.len() > MAX_DATA_PARTS {
        let many = given.data.len();
        let description = format!(
            "has {many} parts; the limit is {MAX_DATA_PARTS}; put several into one, or send them one after \
             the other"
        );
        return Err(CallError::invalid(field, description));
    }
    let bytes = given.data.iter().map(|part| part.content.len()).sum();
    if bytes > MAX_DATA_BYTES {
        let way_out = "send the part that matters, or put it where the agent can read it";
        return Err(CallError::too_large(&field, bytes, MAX_DATA_BYTES, way_out));
    }
    let mut parts = given.data.iter().enumerate();
    parts.try_for_each(|(at, part)| check_part(&format!("{field}[{at}]"), part))
}

fn check_part(field: &str, part: &GivenData) -> Result<(), CallError> {
    let GivenData {
        name,
        media_type,
        content,
    } = part;
    let way_out = "it is for people; shorten it";
    if content.is_empty() {
        let description = "is empty; leave the part out";
        return Err(CallError::invalid(format!("{field}.content"), description));
    }
    if name.len() > MAX_DATA_NAME_BYTES {
        let (field, bytes) = (format!("{field}.name"), name.len());
        return Err(CallError::too_large(
            &field,
            bytes,
            MAX_DATA_NAME_BYTES,
            way_out,
        ));
    }
    if media_type.len() > MAX_MEDIA_TYPE_BYTES {
        let (field, bytes) = (format!("{field}.media_type"), media_type.len());
        return Err(CallError::too_large(
            &field,
            bytes,
            MAX_MEDIA_TYPE_BYTES,
            way_out,
        ));
    }
    let printable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if !media_type.bytes().all(printable) {
        let description = "is not printable ASCII; give a media type such as text/plain, or none";
        return Err(CallError::invalid(
            format!("{field}.media_type"),
            description,
        ));
    }
    Ok(())
}

impl AppCaller {
    /// Who sends a text, and how far it is trusted: what the credential allows, and never more than
    /// what is stated of it.
    pub(crate) fn origin(
        &self,
        channel: Channel,
        text: &str,
        given: &Given,
        bound: &Bound,
    ) -> Origin {
        let principal = self.principal();
        Origin {
            principal: principal.id.clone(),
            kind: principal.kind,
            channel,
            trust: self.trust(given),
            digest: digest::of_text(text),
            request_id: bound.key.as_ref().map(|key| key.request_id.clone()),
        }
    }

    /// A checked text as its session takes it. What of its data is too long for an entry is on stable
    /// storage by then: give it up with [`Self::forget`] if nobody takes it.
    pub(crate) async fn told(
        &self,
        channel: Channel,
        text: Arc<str>,
        given: &Given,
        agent: &AgentFacts,
        bound: &Bound,
    ) -> Result<Told, CallError> {
        let origin = self.origin(channel, &text, given, bound);
        let mut parts = Vec::from(&*given.data);
        let is_data = origin.trust == Trust::Untrusted && !text.is_empty();
        if is_data {
            let itself = GivenData {
                name: TEXT_NAME.into(),
                media_type: TEXT_TYPE.into(),
                content: text.as_bytes().into(),
            };
            parts.insert(0, itself);
        }
        let text = if is_data { Arc::default() } else { text };
        let on_file = text.is_empty().then(|| agent.on_file());
        let data = self.kept(parts, on_file).await?;
        Ok(Told { text, origin, data })
    }

    async fn kept(
        &self,
        parts: Vec<GivenData>,
        on_file: Option<Arc<str>>,
    ) -> Result<Option<Arc<Data>>, CallError> {
        if parts.is_empty() {
            return Ok(None);
        }
        let budget = INLINE_DATA_BYTES / parts.len();
        let mut kept = Vec::with_capacity(parts.len());
        for part in parts {
            match self.part(part, budget).await {
                Ok(part) => kept.push(part),
                Err(error) => {
                    let random = self.context.ports.entropy.random();
                    self.forget(Data::new(kept, None, random).as_ref()).await;
                    tracing::error!(%error, "data could not be kept");
                    let message = "data of the call could not be kept; the server's log says more";
                    return Err(CallError::refused(Reason::StoreFailed, message));
                }
            }
        }
        let random = self.context.ports.entropy.random();
        Ok(Data::new(kept, on_file, random).map(Arc::new))
    }

    async fn part(&self, part: GivenData, budget: usize) -> Result<DataPart, ArtifactError> {
        let GivenData {
            name,
            media_type,
            content,
        } = part;
        let (bytes, sha256) = (content.len() as u64, digest::of_bytes(&content));
        let content = match ends(&content, budget) {
            None => Content::Whole(content),
            Some((head, tail)) => {
                let ports = &self.context.ports;
                let id = ArtifactId::mint(ports.clock.now(), ports.entropy.random());
                let (head, tail) = (head.into(), tail.into());
                let sha256 = Some(ports.artifacts.put(id, content).await?);
                let artifact = ArtifactRef { id, bytes, sha256 };
                Content::Cut {
                    head,
                    tail,
                    artifact,
                }
            }
        };
        Ok(DataPart {
            name,
            media_type,
            bytes,
            sha256,
            content,
        })
    }

    /// Removes what was kept of data that nobody took.
    pub(crate) async fn forget(&self, data: Option<&Data>) {
        for artifact in data.into_iter().flat_map(Data::artifacts) {
            let removed = self.context.ports.artifacts.remove(artifact.id).await;
            if let Err(error) = removed {
                tracing::warn!(%error, "data that nobody took stays");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(content: &[u8]) -> GivenData {
        GivenData {
            name: "build.log".into(),
            media_type: "text/plain".into(),
            content: content.into(),
        }
    }

    fn refused(text: &str, parts: Vec<GivenData>) -> String {
        let given = Given {
            data: parts.into(),
            ..Given::default()
        };
        let error = check("steer", text, &given).expect_err("it is refused");
        error.violations[0].field.clone()
    }

    #[test]
    fn c60_each_limit_of_data_names_its_field() {
        let parts = vec![part(b"x"); MAX_DATA_PARTS + 1];
        assert_eq!(refused("go", parts), "steer.data");
        let half = vec![b'x'; MAX_DATA_BYTES / 2 + 1];
        assert_eq!(refused("go", vec![part(&half), part(&half)]), "steer.data");
        let second = |second| refused("go", vec![part(b"x"), second]);
        assert_eq!(second(part(b"")), "steer.data[1].content");
        let name = "n".repeat(MAX_DATA_NAME_BYTES + 1).into();
        assert_eq!(
            second(GivenData { name, ..part(b"x") }),
            "steer.data[1].name"
        );
        for media_type in ["t".repeat(MAX_MEDIA_TYPE_BYTES + 1), "a\nb".to_owned()] {
            let media_type = media_type.into();
            let part = GivenData {
                media_type,
                ..part(b"x")
            };
            assert_eq!(second(part), "steer.data[1].media_type");
        }
        assert_eq!(refused("", Vec::new()), "steer.text");
        let given = Given {
            data: [part(b"x")].into(),
            ..Given::default()
        };
        assert!(
            check("steer", "", &given).is_ok(),
            "data may stand for a text"
        );
    }
}
