//! What can be asked at all: at each bound, and not one beyond it.

use sessionplane_core::domain::interaction::{
    Choice, FieldKind, FormField, InteractionAnswer, Question, Shape,
};

use super::words::confirm;

fn choice(id: String, label: String) -> Choice {
    Choice { id, label }
}

fn choices(count: usize) -> Vec<Choice> {
    let numbered = |number| choice(format!("c{number}"), String::new());
    (0..count).map(numbered).collect()
}

fn field(name: String, label: String, kind: FieldKind) -> FormField {
    FormField {
        name,
        label,
        kind,
        required: false,
    }
}

fn asks(shape: Shape) -> Question {
    Question {
        shape,
        ..confirm(None)
    }
}

/// A form of one field.
fn form(name: String, label: String, kind: FieldKind) -> Question {
    asks(Shape::Form(vec![field(name, label, kind)]))
}

fn of(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn judged(what: &str, question: &Question, sound: bool) {
    assert_eq!(question.is_sound(), sound, "{what}: {question:?}");
}

/// What is bounded, its most, and a question with so much of it.
type Bound<'q> = (&'q str, usize, &'q dyn Fn(usize) -> Question);

/// What has a most, in bytes or in number: one more cannot be asked.
#[test]
fn c60_a_question_can_be_asked_at_each_bound_and_not_one_beyond() {
    let name = || "name".to_owned();
    let shapes = [Shape::Approval, Shape::Select];
    let [approval, select] = shapes;
    let titled = |bytes| Question {
        title: of(bytes),
        ..confirm(None)
    };
    // The title and the details count together, and so does the shape.
    let whole = |bytes: usize| Question {
        title: of(4096),
        details: of(bytes - 4096 - 4),
        shape: approval(vec![choice(of(1), of(3))]),
        default: None,
    };
    let fielded = |count: usize| {
        let numbered = |n| field(format!("f{n}"), of(0), FieldKind::Text);
        asks(Shape::Form((0..count).map(numbered).collect()))
    };
    let kind = |choices| FieldKind::Select(choices);
    let table: [Bound<'_>; 11] = [
        ("bytes of the title", 4096, &titled),
        ("bytes in all", 24 * 1024, &whole),
        ("choices of an approval", 64, &|n| {
            asks(approval(choices(n)))
        }),
        ("choices of a select", 64, &|n| asks(select(choices(n)))),
        ("choices of a field", 64, &|n| {
            form(name(), name(), kind(choices(n)))
        }),
        ("bytes of a choice's id", 256, &|n| {
            asks(select(vec![choice(of(n), name())]))
        }),
        ("bytes of a choice's label", 256, &|n| {
            asks(approval(vec![choice(name(), of(n))]))
        }),
        ("bytes of a field's choice", 256, &|n| {
            form(name(), name(), kind(vec![choice(of(n), name())]))
        }),
        ("fields", 32, &fielded),
        ("bytes of a field's name", 256, &|n| {
            form(of(n), name(), FieldKind::Text)
        }),
        ("bytes of a field's label", 256, &|n| {
            form(name(), of(n), FieldKind::Number)
        }),
    ];
    for (what, most, question) in table {
        judged(what, &question(most), true);
        judged(what, &question(most + 1), false);
    }
}

/// What an answer could not name, and a default that would be no answer.
#[test]
fn c25_a_question_that_no_answer_can_fit_cannot_be_asked() {
    let name = || "name".to_owned();
    let twice = vec![choice(name(), of(1)), choice(name(), of(2))];
    let again = || field(name(), of(1), FieldKind::Text);
    let unsound = [
        ("no choice", asks(Shape::Select(Vec::new()))),
        ("no field", asks(Shape::Form(Vec::new()))),
        ("two of one id", asks(Shape::Approval(twice))),
        ("two of one name", asks(Shape::Form(vec![again(), again()]))),
        ("no id", asks(Shape::Select(vec![choice(of(0), of(1))]))),
        ("no name", form(of(0), of(1), FieldKind::Text)),
        (
            "a default of another shape",
            Question {
                default: Some(InteractionAnswer::Text(name())),
                ..confirm(None)
            },
        ),
    ];
    for (what, question) in unsound {
        judged(what, &question, false);
    }
    judged("a default that fits", &confirm(Some(true)), true);
}
