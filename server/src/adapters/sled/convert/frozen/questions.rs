//! The stored forms of interactions: every shape, open and resolved, every answer and cause.

use std::collections::BTreeMap;

use sessionplane_core::domain::ids::InteractionId;
use sessionplane_core::domain::interaction::{
    Choice, FieldKind, FormField, Interaction, InteractionAnswer, Question, Resolution,
    ResolutionCause, Shape,
};

use super::{at, check, origin, run};

fn choices() -> Vec<Choice> {
    let choice = |id: &str, label: &str| Choice {
        id: id.to_owned(),
        label: label.to_owned(),
    };
    vec![choice("once", "Just this once"), choice("deny", "")]
}

fn fields() -> Vec<FormField> {
    let kinds = [
        ("text", FieldKind::Text),
        ("number", FieldKind::Number),
        ("boolean", FieldKind::Boolean),
        ("select", FieldKind::Select(choices())),
    ];
    kinds
        .into_iter()
        .map(|(name, kind)| FormField {
            name: name.to_owned(),
            label: "A field".to_owned(),
            required: name == "text",
            kind,
        })
        .collect()
}

fn filled() -> InteractionAnswer {
    let pairs = [("text", "grün"), ("number", "1.5")];
    let pairs = pairs.map(|(name, text)| (name.to_owned(), text.to_owned()));
    InteractionAnswer::Fields(BTreeMap::from(pairs))
}

/// A name, a question's shape and default, and how it ended.
type Asked = (
    &'static str,
    Shape,
    Option<InteractionAnswer>,
    ResolutionCause,
    Option<InteractionAnswer>,
);

fn every_shape() -> [Asked; 6] {
    let choice = |id: &str| Some(InteractionAnswer::Choice(id.to_owned()));
    [
        (
            "approval",
            Shape::Approval(choices()),
            choice("deny"),
            ResolutionCause::Answered,
            choice("once"),
        ),
        (
            "select",
            Shape::Select(choices()),
            None,
            ResolutionCause::Aborted,
            None,
        ),
        (
            "confirm",
            Shape::Confirm,
            Some(InteractionAnswer::Confirmed(false)),
            ResolutionCause::Expired,
            Some(InteractionAnswer::Confirmed(false)),
        ),
        (
            "input",
            Shape::Input { secret: false },
            Some(InteractionAnswer::Text("main".to_owned())),
            ResolutionCause::EngineGone,
            None,
        ),
        (
            "secret",
            Shape::Input { secret: true },
            None,
            ResolutionCause::Answered,
            None,
        ),
        (
            "form",
            Shape::Form(fields()),
            None,
            ResolutionCause::Answered,
            Some(filled()),
        ),
    ]
}

pub(super) fn all(seen: &mut String) {
    for (name, shape, default, cause, answer) in every_shape() {
        let open = Interaction {
            id: InteractionId {
                run: run(),
                ordinal: 3,
            },
            question: Question {
                title: "May I?".to_owned(),
                details: "make deploy".to_owned(),
                shape,
                default,
            },
            asked_at: at(4),
            deadline: (name != "secret").then(|| at(5)),
            resolution: None,
        };
        check(&format!("interaction-{name}-open"), &open, seen);
        let resolved = Interaction {
            resolution: Some(Resolution {
                at: at(6),
                cause,
                answer,
                origin: (cause == ResolutionCause::Answered).then(origin),
            }),
            ..open
        };
        check(&format!("interaction-{name}"), &resolved, seen);
    }
}
