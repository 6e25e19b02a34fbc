//! What may be changed of a session outside of any run: labels, priority, and the mask that says
//! which of it is meant.

use std::collections::{BTreeMap, HashMap};

use sessionplane::v1 as wire;
use sessionplane_core::contract::fleet::UpdateSession;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::fleet::labels::{
    LabelKey, LabelValue, Labels, MAX_LABELS, Priority,
};
use sessionplane_core::domain::fleet::metadata::{LabelsChange, MetadataChange};
use sessionplane_core::domain::text::head;

use super::{field, session};

const MASK: &str = "update_mask";
/// What a mask may name.
const CHANGEABLE: &str = "`name`, `labels`, `labels.KEY` and `priority`";
/// Paths in a mask at most: every label that there is taken away, and as many set.
const MAX_PATHS: usize = 2 * MAX_LABELS + 2;
/// As much of a caller's text is told back.
const QUOTED_BYTES: usize = 64;

/// Labels, in the request field `labels`.
pub(crate) fn all(labels: HashMap<String, String>) -> Result<Labels, CallError> {
    if labels.len() > MAX_LABELS {
        return Err(too_many(labels.len()));
    }
    // By key, so that of several faults the same one is told each time.
    let labels: BTreeMap<String, String> = labels.into_iter().collect();
    let labels = labels.iter().map(|(name, text)| {
        let name = key("labels", name)?;
        let value = value(&name, text)?;
        Ok((name, value))
    });
    let labels = labels.collect::<Result<Vec<_>, CallError>>()?;
    Labels::of(labels).map_err(|many| too_many(many.given))
}

fn too_many(given: usize) -> CallError {
    let problem = format!("has {given} labels; the limit is {MAX_LABELS}; leave some out");
    CallError::invalid("labels", problem)
}

fn key(path: &str, name: &str) -> Result<LabelKey, CallError> {
    LabelKey::parse(name).map_err(|error| {
        let name = head(name, QUOTED_BYTES);
        CallError::invalid(path, format!("{name:?}: {error}"))
    })
}

fn value(key: &LabelKey, text: &str) -> Result<LabelValue, CallError> {
    LabelValue::parse(text).map_err(|error| {
        let problem = format!("has {} bytes: {error}", text.len());
        CallError::invalid(format!("labels.{}", key.as_str()), problem)
    })
}

/// A priority, in the request field `priority`.
pub(crate) fn priority(number: i32) -> Result<Priority, CallError> {
    Priority::parse(number.into())
        .map_err(|error| CallError::invalid("priority", format!("is {number}: {error}")))
}

/// A request for other metadata.
pub(crate) fn update(request: wire::UpdateSessionRequest) -> Result<UpdateSession, CallError> {
    let named = session::reference(request.session.clone())?;
    let etag = field::etag(&request.etag)?;
    Ok(UpdateSession {
        session: named,
        change: change(request)?,
        etag,
    })
}

fn change(request: wire::UpdateSessionRequest) -> Result<MetadataChange, CallError> {
    let paths = request
        .update_mask
        .map(|mask| mask.paths)
        .unwrap_or_default();
    if paths.is_empty() {
        let problem = format!("is empty; name what is to change: {CHANGEABLE}");
        return Err(CallError::invalid(MASK, problem));
    }
    if paths.len() > MAX_PATHS {
        let problem = format!(
            "names {} paths; the limit is {MAX_PATHS}; change less at a time",
            paths.len()
        );
        return Err(CallError::invalid(MASK, problem));
    }
    let (mut change, mut merged) = (MetadataChange::default(), BTreeMap::new());
    for path in &paths {
        match path.as_str() {
            "name" => change.name = Some(field::optional_id("name", &request.name)?),
            "labels" => {
                change.labels = Some(LabelsChange::Replace(all(request.labels.clone())?));
            }
            "priority" => change.priority = Some(priority(request.priority)?),
            other => match other.strip_prefix("labels.") {
                Some(name) => {
                    let key = key(MASK, name)?;
                    let text = request.labels.get(name);
                    let set = text.map(|text| value(&key, text)).transpose()?;
                    merged.insert(key, set);
                }
                None => return Err(unchangeable(other)),
            },
        }
    }
    if merged.is_empty() {
        return Ok(change);
    }
    if change.labels.is_some() {
        let problem = "names `labels` and single ones; name all of them, or those that change";
        return Err(CallError::invalid(MASK, problem));
    }
    change.labels = Some(LabelsChange::Merge(merged.into_iter().collect()));
    Ok(change)
}

/// What a run or a command decides, and what to call for it.
fn command_of(path: &str) -> Option<&'static str> {
    Some(match path {
        "model" | "model_override" => "SessionControl.Dispatch with `set_model`",
        "thinking_level" | "thinking_level_override" => {
            "SessionControl.Dispatch with `set_thinking`"
        }
        "place" | "place.workspace" | "place.directory" | "workspace" | "directory" => {
            "Fleet.ChangeDirectory"
        }
        "checkout" | "checkout.branch" | "checkout.commit" | "branch" | "commit" => {
            "version control in the session's directory"
        }
        "paused" => "Fleet.PauseSession or Fleet.ResumeSession",
        "questions" => "SessionControl.Dispatch with `respond`",
        "active_run_id" => "SessionControl.Dispatch with `abort`",
        _ => return None,
    })
}

fn unchangeable(path: &str) -> CallError {
    if let Some(command) = command_of(path) {
        let problem = format!("`{path}` is not changed by an update; use {command}");
        return CallError::refused(Reason::UseCommand, problem).about_field(MASK);
    }
    let path = head(path, QUOTED_BYTES);
    let problem = format!("names {path:?}, which nobody can change; it may name {CHANGEABLE}");
    CallError::invalid(MASK, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(paths: &[&str]) -> wire::UpdateSessionRequest {
        let name = wire::session_ref::Ref::Name("docs".to_owned());
        wire::UpdateSessionRequest {
            session: Some(wire::SessionRef { r#ref: Some(name) }),
            update_mask: Some(prost_types::FieldMask {
                paths: paths.iter().map(ToString::to_string).collect(),
            }),
            name: "guide".to_owned(),
            labels: HashMap::from([
                ("team".to_owned(), "net".to_owned()),
                ("k8s.io/x".to_owned(), String::new()),
            ]),
            priority: 7,
            ..Default::default()
        }
    }

    #[test]
    fn c40_a_mask_says_what_changes_and_nothing_else_does() {
        let name = update(request(&["name"])).unwrap().change;
        assert_eq!(name.name, Some(Some("guide".parse().unwrap())));
        assert_eq!(
            (name.labels, name.priority, name.paused),
            (None, None, None)
        );
        let taken = wire::UpdateSessionRequest {
            name: String::new(),
            ..request(&["name"])
        };
        assert_eq!(update(taken).unwrap().change.name, Some(None));
        let priority = update(request(&["priority"])).unwrap().change;
        assert_eq!(priority.priority.map(Priority::get), Some(7));
        let labels = update(request(&["labels"])).unwrap().change.labels;
        let Some(LabelsChange::Replace(labels)) = labels else {
            panic!("not all of them: {labels:?}");
        };
        assert_eq!(labels.iter().count(), 2);
    }

    #[test]
    fn c40_single_labels_are_set_and_those_that_are_missing_are_taken_away() {
        let paths = ["labels.k8s.io/x", "labels.gone", "labels.gone"];
        let labels = update(request(&paths)).unwrap().change.labels;
        let Some(LabelsChange::Merge(labels)) = labels else {
            panic!("not single ones: {labels:?}");
        };
        let told: Vec<_> = labels
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_ref().map(LabelValue::as_str)))
            .collect();
        assert_eq!(told, [("gone", None), ("k8s.io/x", Some(""))]);
    }

    #[test]
    fn c40_what_a_command_changes_is_refused_with_that_command() {
        for (path, command) in [
            ("model_override", "`set_model`"),
            ("thinking_level_override", "`set_thinking`"),
            ("place", "Fleet.ChangeDirectory"),
            ("place.directory", "Fleet.ChangeDirectory"),
            ("checkout.branch", "version control"),
            ("paused", "Fleet.PauseSession"),
            ("questions", "`respond`"),
        ] {
            let error = update(request(&["name", path])).unwrap_err();
            assert_eq!(error.reason, Reason::UseCommand, "{path}");
            assert!(error.message.contains(command), "{}", error.message);
            assert!(error.message.contains(path), "{}", error.message);
            assert_eq!(error.violations[0].field, MASK);
        }
    }

    #[test]
    fn c40_a_mask_that_means_nothing_is_refused_with_what_it_may_name() {
        let long = "x".repeat(10_000);
        let many = vec!["labels.a"; MAX_PATHS + 1];
        for paths in [
            &[][..],
            &["id"],
            &["*"],
            &["Name"],
            &["labels."],
            &["labels.Team"],
            &["labels", "labels.team"],
            &[long.as_str()],
            &many,
        ] {
            let error = update(request(paths)).unwrap_err();
            assert_eq!(error.reason, Reason::InvalidArgument, "{paths:?}");
            assert_eq!(error.violations[0].field, MASK, "{paths:?}");
            assert!(error.message.len() < 400, "{}", error.message);
        }
        let unset = wire::UpdateSessionRequest {
            update_mask: None,
            ..request(&[])
        };
        let error = update(unset).unwrap_err();
        assert!(error.message.contains(CHANGEABLE), "{}", error.message);
    }

    #[test]
    fn c60_labels_beyond_their_limits_are_refused_by_field() {
        let one = |key: &str, value: &str| {
            all(HashMap::from([(key.to_owned(), value.to_owned())])).unwrap_err()
        };
        let error = one("Team", "x");
        assert_eq!(error.violations[0].field, "labels");
        assert!(error.message.contains("\"Team\""), "{}", error.message);
        let error = one(&"k".repeat(100_000), "x");
        assert!(error.message.len() < 300, "{}", error.message);
        let error = one("team", &"x".repeat(129));
        assert_eq!(error.violations[0].field, "labels.team");
        assert!(error.message.contains("129"), "{}", error.message);
        let many = (0..33).map(|number| (format!("l{number}"), String::new()));
        let error = all(many.collect()).unwrap_err();
        assert_eq!(error.violations[0].field, "labels");
        assert!(
            error.message.contains("the limit is 32"),
            "{}",
            error.message
        );
    }

    #[test]
    fn a_priority_out_of_range_is_refused_by_field() {
        for bad in [-101, 101, i32::MIN, i32::MAX] {
            let error = priority(bad).unwrap_err();
            assert_eq!(error.violations[0].field, "priority");
            assert!(
                error.message.contains(&bad.to_string()),
                "{}",
                error.message
            );
        }
        assert!(priority(-100).is_ok() && priority(100).is_ok());
    }
}
