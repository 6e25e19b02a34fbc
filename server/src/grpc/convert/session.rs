//! How sessions are named, and their state.

use sessionplane::v1 as wire;
use sessionplane_core::contract::SessionState;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::ids::{ExternalKey, SessionRef};
use sessionplane_core::domain::view::Status;
use wire::session_ref::Ref;

use super::{capabilities, field, input, interaction, position, run, usage};

/// A session's address, in the request field `session`.
pub(crate) fn reference(session: Option<wire::SessionRef>) -> Result<SessionRef, CallError> {
    reference_at("session", session)
}

/// A session's address, in the request field `path`.
pub(crate) fn reference_at(
    path: &str,
    session: Option<wire::SessionRef>,
) -> Result<SessionRef, CallError> {
    let Some(address) = session.and_then(|session| session.r#ref) else {
        return Err(CallError::invalid(
            path,
            "exactly one of `id`, `name` and `external_key` must be set",
        ));
    };
    match address {
        Ref::Id(id) => field::id(&format!("{path}.id"), &id).map(SessionRef::Id),
        Ref::Name(name) => field::id(&format!("{path}.name"), &name).map(SessionRef::Name),
        Ref::ExternalKey(key) => {
            external_key(&format!("{path}.external_key"), &key).map(SessionRef::ExternalKey)
        }
    }
}

fn external_key(path: &str, key: &str) -> Result<ExternalKey, CallError> {
    if key.len() > ExternalKey::MAX_BYTES {
        let way_out = "use a shorter key, for example a digest of it";
        return Err(CallError::too_large(
            path,
            key.len(),
            ExternalKey::MAX_BYTES,
            way_out,
        ));
    }
    field::id(path, key)
}

/// A host's own key that may be absent: the empty text is none.
pub(crate) fn optional_key(path: &str, key: &str) -> Result<Option<ExternalKey>, CallError> {
    if key.is_empty() {
        return Ok(None);
    }
    external_key(path, key).map(Some)
}

/// A session's state at a position.
pub(crate) fn state(state: &SessionState) -> wire::SessionState {
    let view = &state.view;
    let (record, settings) = (&view.session, &view.resolved.settings);
    wire::SessionState {
        session_id: record.id.to_string(),
        name: record
            .name
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        external_key: record
            .external_key
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        agent: record.agent.to_string(),
        status: status(view.status()).into(),
        active_run_id: view.active_run.map(|id| id.to_string()).unwrap_or_default(),
        last_run: view.last_run.as_ref().map(run::last),
        model: settings.model.clone().unwrap_or_default(),
        thinking_level: settings.thinking_level.clone().unwrap_or_default(),
        available_thinking_levels: view.resolved.available_levels.clone(),
        model_override: view.chosen.model.clone(),
        thinking_level_override: view.chosen.thinking_level.clone(),
        interactions: view
            .interactions
            .values()
            .map(interaction::to_wire)
            .collect(),
        pending: view.pending.values().map(input::pending).collect(),
        usage: Some(usage::to_wire(view.usage)),
        leaf_entry_id: view.leaf.map(|id| id.to_string()).unwrap_or_default(),
        entry_count: view.entries,
        sandbox: capabilities::sandbox(state.sandbox).into(),
        position: Some(position::to_wire(state.position)),
    }
}

fn status(status: Status) -> wire::SessionStatus {
    match status {
        Status::Idle => wire::SessionStatus::Idle,
        Status::Running => wire::SessionStatus::Running,
        Status::Compacting => wire::SessionStatus::Compacting,
    }
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::error::Reason;

    use super::*;

    fn parse(address: Ref) -> Result<SessionRef, CallError> {
        reference(Some(wire::SessionRef {
            r#ref: Some(address),
        }))
    }

    #[test]
    fn a_session_must_be_named_in_one_of_three_ways() {
        for unset in [None, Some(wire::SessionRef { r#ref: None })] {
            let error = reference(unset).unwrap_err();
            assert_eq!(error.violations[0].field, "session");
            assert!(error.message.contains("external_key"), "{}", error.message);
        }
        assert!(parse(Ref::Id("01ARZ3NDEKTSV4RRFFQ69G5FAV".into())).is_ok());
        assert!(parse(Ref::Name("fix-tests".into())).is_ok());
        assert!(parse(Ref::ExternalKey("any text, even ä".into())).is_ok());
    }

    #[test]
    fn a_malformed_address_is_a_refusal_that_names_its_field() {
        for (address, field, reason) in [
            (Ref::Id("abc".into()), "session.id", Reason::InvalidArgument),
            (
                Ref::Id(String::new()),
                "session.id",
                Reason::InvalidArgument,
            ),
            (
                Ref::Name("Not A Name".into()),
                "session.name",
                Reason::InvalidArgument,
            ),
            (
                Ref::ExternalKey(String::new()),
                "session.external_key",
                Reason::InvalidArgument,
            ),
            (
                Ref::ExternalKey("k".repeat(257)),
                "session.external_key",
                Reason::TooLarge,
            ),
        ] {
            let error = parse(address).unwrap_err();
            assert_eq!(
                (error.violations[0].field.as_str(), error.reason),
                (field, reason)
            );
        }
    }
}
