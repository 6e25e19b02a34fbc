//! `sessionctl respond`: answers a question, whoever it was asked before; or lists what is open.

use std::path::PathBuf;

use sessionplane_core::contract::{
    Agent as _, CallOptions, DispatchRequest, SessionControl as _, SessionState,
};
use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::ids::{InteractionId, SessionRef};
use sessionplane_core::domain::interaction::{Interaction, InteractionAnswer};

use super::dispatch;
use crate::cli::answering::{Addressee, from_text, from_words};
use crate::cli::args::{RespondArgs, TextSource};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::render::{Desk, question_lines};
use crate::cli::screen::Screen;

pub(super) async fn run(
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
    };
    let state = state(&session, context, screen).await?;
    let question = match (named, &given) {
        (Some(id), _) => Some(listed(id, &state, &session)?),
        (None, Some(_)) => Some(only(&state, &session)?),
        (None, None) => None,
    };
    let Some((question, given)) = question.zip(given) else {
        return list(named, &state, context, screen);
    };
    let answer = given.answer(question).map_err(|problem| {
        let lines = question_lines(question, Desk::Shell).join("\n  ");
        Stop::usage(format!("{problem}\n  {lines}"))
    })?;
    let request = DispatchRequest {
        session,
        command: Command::Respond {
            interaction: question.id,
            answer,
        },
        expected_run: None,
    };
    let words = format!("answered {}", question.id);
    dispatch::give_and_say(request, context, screen, Some(words)).await
}

/// An answer, as it was written.
enum Given {
    Words(Vec<String>),
    Text(String),
}

impl Given {
    fn answer(&self, question: &Interaction) -> Result<InteractionAnswer, String> {
        match self {
            Self::Words(words) => from_words(&question.question, words),
            Self::Text(text) => from_text(&question.question, text),
        }
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

async fn state(
    session: &SessionRef,
    context: &Context,
    screen: &mut Screen,
) -> Result<SessionState, Stop> {
    let call = context
        .client
        .get_state(session.clone(), None, CallOptions::default());
    let state = context.patiently(screen, Effect::Reads, call).await?;
    state.map_err(|error| context.stop(error, Some(session), Effect::Reads))
}

/// The question of that id. Also one that has ended: whether its answer was this very one, only
/// the server knows.
fn listed<'s>(
    id: InteractionId,
    state: &'s SessionState,
    session: &SessionRef,
) -> Result<&'s Interaction, Stop> {
    state.view.interactions.get(&id).ok_or_else(|| {
        let word = hint::word(session);
        let words = format!(
            "no question {id} is open: it was answered, or its run went on\n  \
             what is open: sessionctl respond {word}"
        );
        Stop::failed(Exit::Failed, words)
    })
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
        (Some(first), Some(second)) => {
            let ways = [first, second].into_iter().chain(open).map(|question| {
                let title = &question.question.title;
                format!("\n  sessionctl respond {} ...   {title}", question.id)
            });
            let words = "several questions are open; say which one is answered".to_owned();
            Err(Stop::usage(ways.fold(words, |words, way| words + &way)))
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
