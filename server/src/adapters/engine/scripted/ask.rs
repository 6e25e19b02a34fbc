//! Questions: how a scenario writes them, and how they are played.

use std::collections::BTreeMap;

use sessionplane_core::domain::interaction::{
    Choice, FieldKind, FormField, InteractionAnswer, Question, Shape,
};
use sessionplane_core::domain::limits::MAX_LABEL_BYTES;
use sessionplane_core::ports::engine::{EngineEvent, MAX_UNSETTLED_ASKS};

use super::lex::Line;
use super::scenario::AskStep;
use crate::adapters::engine::link::{Halt, Link};

/// What an approval offers unless the scenario says otherwise.
const APPROVAL: [(&str, &str); 2] = [("allow", "Allow"), ("deny", "Deny")];

/// Reads `NAME KIND "title"` and what may stand after it, in any order.
pub(super) fn parse(line: &mut Line) -> Result<AskStep, String> {
    let name = line.word("a name for the question")?;
    if name.len() > MAX_LABEL_BYTES {
        return Err(format!("`ask`: a name has at most {MAX_LABEL_BYTES} bytes"));
    }
    let kind = line.word("a kind of question")?;
    let shape = match kind.as_str() {
        "approval" => Shape::Approval(APPROVAL.map(|(id, label)| choice(id, label)).into()),
        "select" => Shape::Select(Vec::new()),
        "confirm" => Shape::Confirm,
        "input" => Shape::Input { secret: false },
        "form" => Shape::Form(Vec::new()),
        _ => {
            let kinds = "approval, select, confirm, input or form";
            return Err(format!("`ask` wants {kinds}, not `{kind}`"));
        }
    };
    let mut step = AskStep {
        name,
        question: Question {
            title: line.text("a title")?,
            details: String::new(),
            shape,
            default: None,
        },
        within: None,
    };
    while !line.is_empty() {
        option(line, &mut step)?;
    }
    check(&step.question)?;
    Ok(step)
}

fn option(line: &mut Line, step: &mut AskStep) -> Result<(), String> {
    let AskStep {
        question, within, ..
    } = step;
    if line.keyword("details") {
        question.details = line.text("details")?;
    } else if line.keyword("within") {
        *within = Some(line.delay()?);
    } else if line.keyword("default") {
        question.default = Some(answer(line, &question.shape)?);
    } else {
        match &mut question.shape {
            Shape::Approval(choices) | Shape::Select(choices) if line.keyword("choices") => {
                *choices = pairs(line).map(|(id, label)| choice(&id, &label)).collect();
            }
            Shape::Input { secret } if line.keyword("secret") => *secret = true,
            Shape::Form(fields) if line.keyword("field") => fields.push(field(line)?),
            _ => return Err(line.wrong(&options_of(&question.shape))),
        }
    }
    Ok(())
}

/// What may stand after the title.
fn options_of(shape: &Shape) -> String {
    let own = match shape {
        Shape::Approval(_) | Shape::Select(_) => "`choices ID=LABEL ...`, ",
        Shape::Confirm => "",
        Shape::Input { .. } => "`secret`, ",
        Shape::Form(_) => "`field NAME:KIND [required]`, ",
    };
    format!("{own}`details \"...\"`, `within DELAY` or `default ANSWER`")
}

fn choice(id: &str, label: &str) -> Choice {
    Choice {
        id: id.to_owned(),
        label: label.to_owned(),
    }
}

/// The pairs that stand next.
fn pairs(line: &mut Line) -> impl Iterator<Item = (String, String)> + '_ {
    std::iter::from_fn(|| line.next_pair())
}

/// An answer as it is written for a question of this shape.
fn answer(line: &mut Line, shape: &Shape) -> Result<InteractionAnswer, String> {
    Ok(match shape {
        Shape::Approval(_) | Shape::Select(_) => {
            InteractionAnswer::Choice(line.word("the id of a choice")?)
        }
        Shape::Confirm if line.keyword("yes") => InteractionAnswer::Confirmed(true),
        Shape::Confirm if line.keyword("no") => InteractionAnswer::Confirmed(false),
        Shape::Confirm => return Err(line.wrong("`yes` or `no`")),
        Shape::Input { .. } => InteractionAnswer::Text(line.text("an answer")?),
        Shape::Form(_) => InteractionAnswer::Fields(pairs(line).collect()),
    })
}

/// Reads `name:kind [required]`.
fn field(line: &mut Line) -> Result<FormField, String> {
    let wanted = "a field such as `count:number` or `where:here/there`";
    let word = line.word(wanted)?;
    let (name, kind) = word.split_once(':').unwrap_or((&word, ""));
    let kind = match kind {
        "text" => FieldKind::Text,
        "number" => FieldKind::Number,
        "boolean" => FieldKind::Boolean,
        ids if ids.contains('/') => {
            FieldKind::Select(ids.split('/').map(|id| choice(id, id)).collect())
        }
        _ => return Err(format!("`ask` wants {wanted}, not `{word}`")),
    };
    Ok(FormField {
        name: name.to_owned(),
        label: name.to_owned(),
        kind,
        required: line.keyword("required"),
    })
}

/// A question that could not be asked is a mistake of the scenario's.
fn check(question: &Question) -> Result<(), String> {
    match &question.shape {
        Shape::Select(choices) if choices.is_empty() => {
            return Err("`ask`: a select wants `choices ID=LABEL ...`".to_owned());
        }
        Shape::Form(fields) if fields.is_empty() => {
            return Err("`ask`: a form wants `field NAME:KIND`".to_owned());
        }
        _ => {}
    }
    if let Some(default) = &question.default {
        let fits = question.check(default);
        fits.map_err(|problem| format!("`ask`: the default: {problem}"))?;
    }
    if question.is_sound() {
        return Ok(());
    }
    Err("`ask`: a name is missing or stands twice, or there is too much of something".to_owned())
}

/// The questions that were asked and of which nothing was heard.
#[derive(Default)]
pub(super) struct Questions {
    open: Vec<Open>,
}

struct Open {
    name: String,
    /// The answer is not said, only its size.
    secret: bool,
}

impl Questions {
    /// Whether no more can be asked before something is heard.
    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= MAX_UNSETTLED_ASKS
    }

    /// Asks, and does not wait.
    pub(super) async fn ask(&mut self, link: &mut Link, step: AskStep) -> Result<(), Halt> {
        let AskStep {
            name,
            question,
            within,
        } = step;
        link.forget_answers(|ask| !self.is_open(ask));
        let secret = matches!(question.shape, Shape::Input { secret: true });
        link.emit(EngineEvent::Asked {
            ask: name.clone(),
            question,
            timeout: within,
        })
        .await?;
        if !self.is_open(&name) {
            self.open.push(Open { name, secret });
        }
        Ok(())
    }

    /// Takes one question back.
    pub(super) async fn withdraw(&mut self, link: &mut Link, name: String) -> Result<(), Halt> {
        self.open.retain(|open| open.name != name);
        link.emit(EngineEvent::AskWithdrawn { ask: name }).await
    }

    /// Takes back what nobody waits for any more.
    pub(super) async fn withdraw_all(&mut self, link: &mut Link) -> Result<(), Halt> {
        while let Some(open) = self.open.pop() {
            link.emit(EngineEvent::AskWithdrawn { ask: open.name })
                .await?;
        }
        Ok(())
    }

    /// Waits for what becomes of the next question, as it is said. `None`: none is open.
    pub(super) async fn next(&mut self, link: &mut Link) -> Result<Option<String>, Halt> {
        while !self.open.is_empty() {
            let (ask, answer) = link.wait_answer().await?;
            // What crossed with its withdrawal answers nothing.
            if let Some(at) = self.open.iter().position(|open| open.name == ask) {
                let Open { name, secret } = self.open.remove(at);
                let told = spell(answer.as_ref(), secret);
                return Ok(Some(format!("{name}: {told}")));
            }
        }
        Ok(None)
    }

    fn is_open(&self, name: &str) -> bool {
        self.open.iter().any(|open| open.name == name)
    }
}

/// An answer in words.
fn spell(answer: Option<&InteractionAnswer>, secret: bool) -> String {
    match answer {
        None => "nobody".to_owned(),
        Some(InteractionAnswer::Choice(id)) => id.clone(),
        Some(InteractionAnswer::Confirmed(true)) => "yes".to_owned(),
        Some(InteractionAnswer::Confirmed(false)) => "no".to_owned(),
        Some(InteractionAnswer::Text(text)) if secret => format!("{} bytes", text.len()),
        Some(InteractionAnswer::Text(text)) => text.clone(),
        Some(InteractionAnswer::Fields(fields)) => spell_fields(fields),
    }
}

fn spell_fields(fields: &BTreeMap<String, String>) -> String {
    let pairs = fields.iter().map(|(name, text)| format!("{name}={text}"));
    pairs.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(text: &str) -> Result<AskStep, String> {
        let mut line = Line::split(text)?;
        parse(&mut line)
    }

    fn good(text: &str) -> AskStep {
        read(text).unwrap_or_else(|problem| panic!("{text}: {problem}"))
    }

    #[test]
    fn c25_an_approval_offers_to_allow_and_to_deny_unless_told_otherwise() {
        let plain = good("ask go approval \"Deploy?\"");
        let expected = vec![choice("allow", "Allow"), choice("deny", "Deny")];
        assert_eq!(plain.name, "go");
        assert_eq!(plain.question.title, "Deploy?");
        assert_eq!(plain.question.shape, Shape::Approval(expected));
        assert_eq!((plain.question.default, plain.within), (None, None));
        let own = good(
            "ask go approval \"Deploy?\" choices once=\"Just this once\" no=No details \"rm -r\" \
             default no within 2s",
        );
        let expected = vec![choice("once", "Just this once"), choice("no", "No")];
        assert_eq!(own.question.shape, Shape::Approval(expected));
        assert_eq!(own.question.details, "rm -r");
        let no = InteractionAnswer::Choice("no".to_owned());
        assert_eq!(own.question.default, Some(no));
        assert_eq!(own.within, Some(Duration::from_secs(2)));
    }

    #[test]
    fn c25_each_kind_takes_what_belongs_to_it() {
        let select = good("ask s select \"Which?\" choices a=A b=B");
        let both = vec![choice("a", "A"), choice("b", "B")];
        assert_eq!(select.question.shape, Shape::Select(both));
        let confirm = good("ask c confirm \"Sure?\" default yes");
        let yes = InteractionAnswer::Confirmed(true);
        assert_eq!(confirm.question.default, Some(yes));
        let input = good("ask i input \"Token?\" secret default \"none at all\"");
        assert_eq!(input.question.shape, Shape::Input { secret: true });
        let text = InteractionAnswer::Text("none at all".to_owned());
        assert_eq!(input.question.default, Some(text));
    }

    #[test]
    fn c25_a_form_has_fields_of_four_kinds() {
        let form = good(
            "ask f form \"Where to?\" field host:text required field port:number \
             field tls:boolean field zone:north/south default host=\"a b\" zone=south",
        );
        let Shape::Form(fields) = &form.question.shape else {
            panic!("{form:?}");
        };
        let kinds: Vec<_> = fields
            .iter()
            .map(|it| (it.name.as_str(), &it.kind))
            .collect();
        let zones = FieldKind::Select(vec![choice("north", "north"), choice("south", "south")]);
        let expected = [
            ("host", &FieldKind::Text),
            ("port", &FieldKind::Number),
            ("tls", &FieldKind::Boolean),
            ("zone", &zones),
        ];
        assert_eq!(kinds, expected);
        let required: Vec<_> = fields.iter().map(|it| it.required).collect();
        assert_eq!(required, [true, false, false, false]);
        let default = [("host", "a b"), ("zone", "south")];
        let default = default.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let default = InteractionAnswer::Fields(default.into());
        assert_eq!(form.question.default, Some(default));
    }

    #[test]
    fn a_question_that_could_not_be_asked_is_a_mistake() {
        for (text, expected) in [
            ("ask", "a name for the question"),
            (
                "ask q riddle \"?\"",
                "approval, select, confirm, input or form",
            ),
            ("ask q confirm", "a title in double quotes"),
            ("ask q confirm \"?\" secret", "`within DELAY`"),
            ("ask q confirm \"?\" default maybe", "`yes` or `no`"),
            ("ask q select \"?\"", "a select wants `choices"),
            ("ask q form \"?\"", "a form wants `field"),
            ("ask q form \"?\" field x:date", "not `x:date`"),
            ("ask q select \"?\" choices a=A a=B", "stands twice"),
            (
                "ask q approval \"?\" default maybe",
                "the default: there is no such choice",
            ),
            (
                "ask q form \"?\" field x:number default x=many",
                "a decimal number",
            ),
            ("ask q select \"?\" choices a=\"A", "no closing quote"),
        ] {
            let problem = read(text).expect_err(text);
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn c25_a_secret_is_told_by_its_size() {
        let text = InteractionAnswer::Text("hunter2".to_owned());
        assert_eq!(spell(Some(&text), true), "7 bytes");
        assert_eq!(spell(Some(&text), false), "hunter2");
        assert_eq!(spell(None, true), "nobody");
    }
}
