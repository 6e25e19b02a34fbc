//! Questions of every kind, and answers that fit them or do not.

use sessionplane_core::domain::interaction::{
    Choice, FieldKind, FormField, InteractionAnswer, Question, Shape,
};

use super::rng::Rng;

fn choices() -> Vec<Choice> {
    let choice = |id: &str| Choice {
        id: id.to_owned(),
        label: id.to_uppercase(),
    };
    vec![choice("allow"), choice("deny")]
}

fn field(name: &str, kind: FieldKind, required: bool) -> FormField {
    FormField {
        name: name.to_owned(),
        label: name.to_owned(),
        kind,
        required,
    }
}

/// One that can be asked, or, seldom, one that cannot.
pub(crate) fn some_question(rng: &mut Rng) -> Question {
    let shape = match rng.below(11) {
        0 | 1 => Shape::Approval(choices()),
        2 | 3 => Shape::Select(choices()),
        4 | 5 => Shape::Confirm,
        6 => Shape::Input { secret: false },
        7 => Shape::Input { secret: true },
        8 | 9 => Shape::Form(vec![
            field("port", FieldKind::Number, true),
            field("note", FieldKind::Text, false),
        ]),
        _ => Shape::Select(Vec::new()),
    };
    let question = Question {
        title: "Go on?".to_owned(),
        details: String::new(),
        shape,
        default: None,
    };
    let default = rng.one_in(2).then(|| fitting(&question));
    Question {
        default,
        ..question
    }
}

/// An answer that fits the question.
pub(crate) fn fitting(question: &Question) -> InteractionAnswer {
    match &question.shape {
        Shape::Approval(_) | Shape::Select(_) => InteractionAnswer::Choice("deny".to_owned()),
        Shape::Confirm => InteractionAnswer::Confirmed(true),
        Shape::Input { .. } => InteractionAnswer::Text("hunter2".to_owned()),
        Shape::Form(_) => {
            let port = ("port".to_owned(), "8080".to_owned());
            InteractionAnswer::Fields([port].into())
        }
    }
}

/// An answer that fits no question that [`some_question`] asks.
pub(crate) fn unfitting() -> InteractionAnswer {
    let port = ("port".to_owned(), "the usual".to_owned());
    InteractionAnswer::Fields([port].into())
}
