//! A session as the fleet shows it.

use std::collections::HashMap;
use std::sync::Arc;

use sessionplane::v1;
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue, Labels, Priority};
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::place::{Checkout, Directory, Place};
use sessionplane_core::domain::session::Lineage;
use sessionplane_core::domain::settings::SettingsOverride;
use sessionplane_core::domain::time::Timestamp;

use super::field::{Malformed, id, optional_id, required, time};
use super::{interaction, state, usage};

/// Sessions.
pub(crate) fn all(sessions: Vec<v1::Session>) -> Result<Vec<SessionSummary>, Malformed> {
    sessions.into_iter().map(read).collect()
}

/// A session that must be there.
pub(crate) fn required_read(session: Option<v1::Session>) -> Result<SessionSummary, Malformed> {
    read(required("session", session)?)
}

/// A session.
pub(crate) fn read(session: v1::Session) -> Result<SessionSummary, Malformed> {
    let phase = phase(&session);
    let mut questions = Vec::with_capacity(session.questions.len());
    for asked in session.questions {
        questions.extend(interaction::read(asked)?);
    }
    Ok(SessionSummary {
        id: id("session.id", &session.id)?,
        name: optional_id("session.name", &session.name)?,
        external_key: optional_id("session.external_key", &session.external_key)?,
        agent: id("session.agent", &session.agent)?,
        labels: labels(session.labels)?,
        priority: Priority::parse(session.priority.into())
            .map_err(|error| malformed("session.priority", error))?,
        paused: session.paused,
        place: session.place.map(place).transpose()?,
        checkout: session.checkout.map(checkout),
        lineage: lineage(&session.parent_session_id, &session.parent_entry_id)?,
        phase,
        since: optional_time("session.phase_since", session.phase_since)?,
        stalled_since: optional_time("session.stalled_since", session.stalled_since)?,
        active_run: optional_id("session.active_run_id", &session.active_run_id)?,
        last_run: session.last_run.as_ref().map(state::last_run).transpose()?,
        questions,
        queued: session.queued.into(),
        chosen: SettingsOverride {
            model: session.model_override,
            thinking_level: session.thinking_level_override,
        },
        usage: usage::read(session.usage),
        created_at: time("session.created_at", session.created_at)?,
        updated_at: time("session.updated_at", session.updated_at)?,
        metadata_revision: id("session.etag", &session.etag)?,
        revision: session.revision,
    })
}

fn malformed(field: &'static str, problem: impl ToString) -> Malformed {
    Malformed {
        field,
        problem: problem.to_string(),
    }
}

fn labels(labels: HashMap<String, String>) -> Result<Labels, Malformed> {
    const FIELD: &str = "session.labels";
    let labels = labels.iter().map(|(key, value)| {
        let key = LabelKey::parse(key).map_err(|error| malformed(FIELD, error))?;
        let value = LabelValue::parse(value).map_err(|error| malformed(FIELD, error))?;
        Ok((key, value))
    });
    let labels = labels.collect::<Result<Vec<_>, Malformed>>()?;
    Labels::of(labels).map_err(|error| malformed(FIELD, error))
}

fn place(place: v1::SessionPlace) -> Result<Place, Malformed> {
    Ok(Place {
        workspace: id("session.place.workspace", &place.workspace)?,
        directory: Directory::parse(&place.directory)
            .map_err(|error| malformed("session.place.directory", error))?,
    })
}

fn checkout(checkout: v1::SessionCheckout) -> Checkout {
    let text = |text: String| (!text.is_empty()).then(|| Arc::from(text));
    Checkout {
        branch: text(checkout.branch),
        commit: text(checkout.commit),
    }
}

fn lineage(parent: &str, entry: &str) -> Result<Option<Lineage>, Malformed> {
    let Some(parent) = optional_id("session.parent_session_id", parent)? else {
        return Ok(None);
    };
    let entry = optional_id("session.parent_entry_id", entry)?;
    Ok(Some(Lineage { parent, entry }))
}

fn optional_time(
    field: &'static str,
    at: Option<prost_types::Timestamp>,
) -> Result<Option<Timestamp>, Malformed> {
    at.map(|at| time(field, Some(at))).transpose()
}

/// A phase that this client does not know is told as what is nearest to it: something holds the
/// session, or nothing does.
fn phase(session: &v1::Session) -> Phase {
    match session.phase() {
        v1::SessionPhase::NeedsInput => Phase::NeedsInput,
        v1::SessionPhase::Working => Phase::Working,
        v1::SessionPhase::Compacting => Phase::Compacting,
        v1::SessionPhase::Queued => Phase::Queued,
        v1::SessionPhase::Ready => Phase::Ready,
        v1::SessionPhase::Paused => Phase::Paused,
        v1::SessionPhase::Dormant => Phase::Dormant,
        v1::SessionPhase::Unspecified if !session.active_run_id.is_empty() => Phase::Working,
        v1::SessionPhase::Unspecified if session.paused => Phase::Paused,
        v1::SessionPhase::Unspecified => Phase::Ready,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare() -> v1::Session {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        v1::Session {
            id: "01K00000000000000000000001".to_owned(),
            agent: "demo".to_owned(),
            phase: v1::SessionPhase::Dormant.into(),
            created_at: at(5),
            updated_at: at(6),
            etag: "3".to_owned(),
            revision: 9,
            ..Default::default()
        }
    }

    #[test]
    fn c45_what_is_not_told_of_a_session_is_nothing_and_not_a_default() {
        let session = read(bare()).unwrap();
        assert_eq!((session.metadata_revision, session.revision), (3, 9));
        assert!(session.name.is_none() && session.place.is_none());
        assert!(session.checkout.is_none() && session.last_run.is_none());
        assert_eq!(session.chosen, SettingsOverride::default());
        assert!(session.lineage.is_none() && session.since.is_none());
    }

    #[test]
    fn c64_a_phase_that_is_not_known_is_told_as_the_nearest() {
        let of = |run: &str, paused| {
            let session = v1::Session {
                phase: 99,
                active_run_id: run.to_owned(),
                paused,
                ..bare()
            };
            read(session).unwrap().phase
        };
        assert_eq!(of("01K00000000000000000000002", false), Phase::Working);
        assert_eq!(of("", true), Phase::Paused);
        assert_eq!(of("", false), Phase::Ready);
    }

    #[test]
    fn what_breaks_the_contract_is_told_by_field() {
        let with = |change: fn(&mut v1::Session)| {
            let mut session = bare();
            change(&mut session);
            read(session).unwrap_err().field
        };
        assert_eq!(with(|it| it.id.clear()), "session.id");
        assert_eq!(with(|it| it.etag = "x".to_owned()), "session.etag");
        assert_eq!(with(|it| it.created_at = None), "session.created_at");
        assert_eq!(with(|it| it.priority = 900), "session.priority");
        let bad = |it: &mut v1::Session| {
            it.place = Some(v1::SessionPlace {
                workspace: "home".to_owned(),
                directory: "/etc".to_owned(),
            });
        };
        assert_eq!(with(bad), "session.place.directory");
    }
}
