//! `sessionctl respond`: answers a question, whoever it was asked before; or lists what is open.

use std::path::PathBuf;

use sessionplane_core::contract::{Agent as _, CallOptions, DispatchRequest, SessionState};
use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::ids::{InteractionId, SessionRef};
use sessionplane_core::domain::interaction::{Interaction, InteractionAnswer, Question};

use super::dispatch;
use crate::cli::answering::{Addressee, any_kind, from_text, from_words};
use crate::cli::args::{RespondArgs, TextSource};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::program::PROGRAM;
use crate::cli::render::{Desk, question_lines};
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: RespondArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    run_or(Exit::Usage, args, context, screen).await
}

/// The same; where several questions may be meant it ends with `ambiguous`.
pub(super) async fn run_or(
    ambiguous: Exit,
    args: RespondArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let given = match (args.text_file, args.answer) {
        (Some(path), _) => Some(Given::Text(read(path, context).await?)),
        (None, words) if words.is_empty() => None,
        (None, words) => Some(Given::Words(words)),
    };
    let (session, named) = match args.target {
        Addressee::Session(session) => (session, None),
        Addressee::Question(id) => (asker(id, context, screen).await?, Some(id)),
        Addressee::QuestionOf(session, id) => (session, Some(id)),
    };
    let state = context.state(&session, screen).await?;
    let Some(given) = given else {
        if let Some(id) = named {
            listed(id, &state).ok_or_else(|| not_open(id, &session))?;
        }
        return list(named, &state, context, screen);
    };
    let question = match named {
        Some(id) => match listed(id, &state) {
            Some(question) => question,
            None => return unlisted(id, &given, session, context, screen).await,
        },
        None => meant(&state, &session, ambiguous, context)?,
    };
    let answer = given.answer(&question.question).map_err(|problem| {
        let lines = question_lines(question, Desk::Shell).join("\n  ");
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
    id: InteractionId,
    given: &Given,
    session: SessionRef,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    if context.globals.request_id.is_none() {
        return Err(not_open(id, &session));
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
         question {id} is open no more; what is: {PROGRAM} respond {}",
        context.request_id,
        hint::word(&session)
    );
    Err(Stop::failed(Exit::Unknown, words))
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
         what is open: {PROGRAM} respond {word}"
    );
    Stop::failed(Exit::Failed, words)
}

/// The question that is meant where only the session is named: that which was answered under this
/// command's id, if this is a repeat, else the only open one.
fn meant<'s>(
    state: &'s SessionState,
    session: &SessionRef,
    ambiguous: Exit,
    context: &Context,
) -> Result<&'s Interaction, Stop> {
    let Some(repeated) = &context.globals.request_id else {
        return only(state, session, ambiguous);
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
             find out, with the question's id: {PROGRAM} respond QUESTION --request-id {repeated} \
             ..."
        );
        return Err(Stop::failed(Exit::Unknown, words));
    }
    only(state, session, ambiguous)
}

/// The only open question.
fn only<'s>(
    state: &'s SessionState,
    session: &SessionRef,
    ambiguous: Exit,
) -> Result<&'s Interaction, Stop> {
    let mut open = state.view.open_interactions();
    match (open.next(), open.next()) {
        (Some(question), None) => Ok(question),
        (None, _) => {
            let words = format!("no question is open in session \"{session}\"");
            Err(Stop::failed(Exit::Failed, words))
        }
        (Some(first), Some(second)) => {
            let ways = [first, second].into_iter().chain(open).map(|question| {
                let title = &question.question.title;
                format!("\n  {PROGRAM} respond {} ...   {title}", question.id)
            });
            let words = "several questions are open; say which one is answered".to_owned();
            let words = ways.fold(words, |words, way| words + &way);
            Err(Stop::failed(ambiguous, words))
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
    for question in shown {
        any = true;
        if context.globals.json {
            screen.json(&json::interaction(question))?;
        } else {
            screen.line(&question.id.to_string())?;
            screen.line(&question_lines(question, Desk::Shell).join("\n"))?;
        }
    }
    if !any {
        screen.aside("no question is open")?;
    }
    Ok(Exit::Done)
}
