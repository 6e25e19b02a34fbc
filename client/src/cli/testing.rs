//! Sessions as a server could tell them, for the tests of whoever shows or watches them.

use sessionplane_core::domain::fleet::labels::{Labels, Priority};
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{InteractionId, RunId, SessionId};
use sessionplane_core::domain::interaction::{Choice, Interaction, Question, Shape};
use sessionplane_core::domain::settings::SettingsOverride;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;

/// When all of it is looked at.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// A time so many seconds before [`NOW`].
pub(crate) fn ago(seconds: u64) -> Timestamp {
    Timestamp::from_millis(NOW.as_millis() - seconds * 1000)
}

/// A dormant session without anything, one for each number.
pub(crate) fn session(number: u128) -> SessionSummary {
    SessionSummary {
        id: SessionId::mint(Timestamp::from_millis(1_767_000_000_000), number),
        name: None,
        external_key: None,
        agent: "demo".parse().unwrap(),
        labels: Labels::default(),
        priority: Priority::default(),
        paused: false,
        place: None,
        checkout: None,
        lineage: None,
        phase: Phase::Dormant,
        since: None,
        stalled_since: None,
        active_run: None,
        last_run: None,
        questions: Vec::new(),
        queued: 0,
        chosen: SettingsOverride::default(),
        usage: Usage::default(),
        created_at: ago(9 * 86_400),
        updated_at: ago(9 * 86_400),
        metadata_revision: 1,
        revision: 1,
    }
}

/// A session whose run asks questions of these numbers.
pub(crate) fn asking(number: u128, questions: &[u32]) -> SessionSummary {
    let run = RunId::mint(ago(600), number);
    let asked = |ordinal: &u32| {
        approval(
            InteractionId {
                run,
                ordinal: *ordinal,
            },
            "run `cargo test -p net`",
        )
    };
    SessionSummary {
        phase: Phase::NeedsInput,
        since: Some(ago(120)),
        active_run: Some(run),
        questions: questions.iter().map(asked).collect(),
        ..session(number)
    }
}

fn approval(id: InteractionId, title: &str) -> Interaction {
    let choice = |id: &str, label: &str| Choice {
        id: id.to_owned(),
        label: label.to_owned(),
    };
    Interaction {
        id,
        question: Question {
            title: title.to_owned(),
            details: String::new(),
            shape: Shape::Approval(vec![choice("allow", "Allow"), choice("deny", "Deny")]),
            default: None,
        },
        asked_at: ago(120),
        deadline: None,
        resolution: None,
    }
}
