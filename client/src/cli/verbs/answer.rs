//! `sessionctl answer`: answers a question, whoever it was asked before; or lists what is open.

use std::path::PathBuf;

use sessionplane_core::contract::{Agent as _, CallOptions, DispatchRequest, SessionState};
use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::ids::{InteractionId, SessionRef};
use sessionplane_core::domain::interaction::{Interaction, InteractionAnswer, Question};

use super::dispatch;
use crate::cli::answering::{Addressee, any_kind, from_text, from_words};
use crate::cli::args::{AnswerArgs, TextSource};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::program::PROGRAM;
use crate::cli::render::{Desk, called, question_lines, which};
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: AnswerArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let (mut words, target) = (args.answer, args.target);
    let mut word = None;
    if let Addressee::Session(_) = target
        && let Some(first) = words.first().and_then(|first| Named::parse(first))
    {
        word = Some((first, words.remove(0)));
    }
    let given = match args.text_file {
        Some(_) if !words.is_empty() => {
            let told = "the answer is given twice: in --text-file, and on the command line";
            return Err(Stop::usage(told));
        }
        Some(path) => Some(Given::Text(read(path, context).await?)),
        None if words.is_empty() => None,
        None => Some(Given::Words(words)),
    };
    let (session, named) = match (target, &word) {
        (Addressee::Question(id), _) => (asker(id, context, screen).await?, Some(id)),
        // One that another session asks is not answered in the name of this one.
        (Addressee::Session(session), Some((Named::Id(id), _))) => (session, Some(*id)),
        (Addressee::Session(session), _) => (session, None),
    };
    let state = context.state(&session, screen).await?;
    let (given, named) = match word {
        Some((Named::Ordinal(ordinal), word)) => {
            by_ordinal(ordinal, &word, given, &state, &session)?
        }
        _ => (given, named),
    };
    let Some(given) = given else {
        if let Some(id) = named {
            listed(id, &state).ok_or_else(|| not_open(id, &called(&state.view)))?;
        }
        return list(named, &state, context, screen);
    };
    let question = match named {
        Some(id) => match listed(id, &state) {
            Some(question) => question,
            None => return unlisted((id, &state), &given, session, context, screen).await,
        },
        None => meant(&state, &session, context)?,
    };
    let answer = given.answer(&question.question).map_err(|problem| {
        let desk = Desk::Shell(called(&state.view));
        let lines = question_lines(question, &desk).join("\n  ");
        Stop::usage(format!("{problem}\n  {lines}"))
    })?;
    let words = format!("answered {}", question.id);
    let request = response(question.id, answer, session.clone());
    let repeat = hint::repeat(&session, &request.command, &context.request_id);
    let answered = dispatch::give_and_say(request, context, screen, Some(words)).await;
    answered.map_err(|stop| match (stop, named) {
        // By then the session may ask something else.
        (Stop::Failed { exit, words, error }, None)
            if error
                .as_ref()
                .is_some_and(|it| it.outcome != Outcome::Refused) =>
        {
            let words = format!("{words}\n  of this question: {repeat}");
            Stop::Failed { exit, words, error }
        }
        (stop, _) => stop,
    })
}

fn response(
    interaction: InteractionId,
    answer: InteractionAnswer,
    session: SessionRef,
) -> DispatchRequest {
    let command = Command::Respond {
        interaction,
        answer,
    };
    dispatch::between_runs(session, command)
}

/// C3: a question that is not listed is not open. Was it answered under this command's id, the
/// server knows, whatever has become of the question; the id is all that it asks for, beside the
/// same answer. What kind of answer that was nobody tells any more: each kind is tried, of which
/// none can answer anything anew.
async fn unlisted(
    (id, state): (InteractionId, &SessionState),
    given: &Given,
    session: SessionRef,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    if context.globals.request_id.is_none() {
        return Err(not_open(id, &called(&state.view)));
    }
    let words = format!("answered {id}");
    for answer in given.any_kind() {
        let request = response(id, answer, session.clone());
        let answered = dispatch::give_and_say(request, context, screen, Some(words.clone())).await;
        match answered {
            Err(Stop::Failed {
                error: Some(error), ..
            }) if error.reason == Reason::RequestIdReused => {}
            answered => return answered,
        }
    }
    let words = format!(
        "--request-id {} was taken for a command; whether for this answer is not known\n  \
         question {id} is open no more; what is: {PROGRAM} answer {}",
        context.request_id,
        hint::word(&session)
    );
    Err(Stop::failed(Exit::Unknown, words))
}

/// How a word before the answer names a question of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Named {
    /// By its id.
    Id(InteractionId),
    /// By its number, as where the session is attached to.
    Ordinal(u32),
}

impl Named {
    fn parse(word: &str) -> Option<Self> {
        if let Ok(id) = word.parse() {
            return Some(Self::Id(id));
        }
        let ordinal = word.strip_prefix('q')?.parse().ok()?;
        (word == format!("q{ordinal}")).then_some(Self::Ordinal(ordinal))
    }
}

/// The answer, and the question that a number names: an open one of the session. The number may be
/// the answer itself, where it is a choice of the only open question.
fn by_ordinal(
    ordinal: u32,
    word: &str,
    given: Option<Given>,
    state: &SessionState,
    session: &SessionRef,
) -> Result<(Option<Given>, Option<InteractionId>), Stop> {
    if given.is_none()
        && let Ok(question) = only(state, session)
        && let words = vec![word.to_owned()]
        && let Ok(InteractionAnswer::Choice(_)) = from_words(&question.question, &words)
    {
        return Ok((Some(Given::Words(words)), Some(question.id)));
    }
    let mut all = state.view.interactions.values().rev();
    if let Some(asked) = all.find(|asked| asked.id.ordinal == ordinal) {
        return Ok((given, Some(asked.id)));
    }
    let told = format!("session \"{session}\" has asked no question {word}");
    Err(Stop::failed(Exit::NotFound, several(told, state, session)))
}

/// What is said, and the ways to answer each question that is open.
fn several(said: String, state: &SessionState, session: &SessionRef) -> String {
    state.view.open_interactions().fold(said, |said, question| {
        let (id, title) = (question.id, &question.question.title);
        let which = which(session, id);
        format!("{said}\n  {PROGRAM} answer {which} ...   {title}")
    })
}

/// An answer, as it was written.
enum Given {
    Words(Vec<String>),
    Text(String),
}

impl Given {
    fn answer(&self, question: &Question) -> Result<InteractionAnswer, String> {
        match self {
            Self::Words(words) => from_words(question, words),
            Self::Text(text) => from_text(question, text),
        }
    }

    /// The same as an answer to a question of any kind that it can be one to.
    fn any_kind(&self) -> Vec<InteractionAnswer> {
        let text = match self {
            Self::Words(words) => words.join(" "),
            Self::Text(text) => text.clone(),
        };
        any_kind(&text)
    }
}

async fn read(path: PathBuf, context: &Context) -> Result<String, Stop> {
    let source = TextSource {
        text: None,
        text_file: Some(path),
    };
    context.text(source).await
}

/// The session whose run asks.
async fn asker(
    id: InteractionId,
    context: &Context,
    screen: &mut Screen,
) -> Result<SessionRef, Stop> {
    let call = context.client.get_run(id.run, CallOptions::default());
    let run = context.patiently(screen, Effect::Reads, call).await?;
    let run = run.map_err(|error| context.stop(error, id.run, Effect::Reads))?;
    Ok(SessionRef::Id(run.session))
}

/// The question of that id. Also one that has ended: whether its answer was this very one, only
/// the server knows.
fn listed(id: InteractionId, state: &SessionState) -> Option<&Interaction> {
    state.view.interactions.get(&id)
}

fn not_open(id: InteractionId, session: &SessionRef) -> Stop {
    let word = hint::word(session);
    let words = format!(
        "no question {id} is open in session \"{session}\": it was answered, or its run went on\n  \
         what is open: {PROGRAM} answer {word}"
    );
    Stop::failed(Exit::Failed, words)
}

/// The question that is meant where only the session is named: that which was answered under this
/// command's id, if this is a repeat, else the only open one.
fn meant<'s>(
    state: &'s SessionState,
    session: &SessionRef,
    context: &Context,
) -> Result<&'s Interaction, Stop> {
    let Some(repeated) = &context.globals.request_id else {
        return only(state, session);
    };
    let answered = state.view.interactions.values().find(|question| {
        let resolution = question.resolution.as_ref();
        let origin = resolution.and_then(|resolution| resolution.origin.as_ref());
        origin.and_then(|origin| origin.request_id.as_ref()) == Some(repeated)
    });
    if let Some(question) = answered {
        return Ok(question);
    }
    if state.view.open_interactions().next().is_none() {
        let words = format!(
            "no question is open in session \"{session}\"; whether one was answered under \
             --request-id {repeated} is not known\n  \
             find out, with the question's id: {PROGRAM} answer QUESTION --request-id {repeated} \
             ..."
        );
        return Err(Stop::failed(Exit::Unknown, words));
    }
    only(state, session)
}

/// The only open question.
fn only<'s>(state: &'s SessionState, session: &SessionRef) -> Result<&'s Interaction, Stop> {
    let mut open = state.view.open_interactions();
    match (open.next(), open.next()) {
        (Some(question), None) => Ok(question),
        (None, _) => {
            let words = format!("no question is open in session \"{session}\"");
            Err(Stop::failed(Exit::Failed, words))
        }
        (Some(_), Some(_)) => {
            let words = "several questions are open; say which one is answered".to_owned();
            let words = several(words, state, session);
            Err(Stop::failed(Exit::NotFound, words))
        }
    }
}

/// Shows one question, or all that are open.
fn list(
    named: Option<InteractionId>,
    state: &SessionState,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let all = state.view.interactions.values();
    let shown = all.filter(|asked| match named {
        Some(id) => asked.id == id,
        None => asked.resolution.is_none(),
    });
    let mut any = false;
    let desk = Desk::Shell(called(&state.view));
    for question in shown {
        any = true;
        if context.globals.json {
            screen.json(&json::interaction(question))?;
        } else {
            screen.line(&question.id.to_string())?;
            screen.line(&question_lines(question, &desk).join("\n"))?;
        }
    }
    if !any {
        screen.aside("no question is open")?;
    }
    Ok(Exit::Done)
}
