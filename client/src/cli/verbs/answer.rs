//! `sessionctl answer`: answers what a session asks.

use crate::cli::answering::Addressee;
use crate::cli::args::{AnswerArgs, RespondArgs};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::screen::Screen;

use super::respond;

pub(super) async fn run(
    args: AnswerArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let (mut answer, session) = (args.answer, args.session.session);
    // Nothing that is answered has the shape of a question's id.
    let id = answer.first().and_then(|word| word.parse().ok());
    let target = if let Some(id) = id {
        answer.remove(0);
        Addressee::QuestionOf(session, id)
    } else {
        Addressee::Session(session)
    };
    if answer.is_empty() && args.text_file.is_none() {
        return Err(Stop::usage("the answer is missing after the question's id"));
    }
    let args = RespondArgs {
        target,
        answer,
        text_file: args.text_file,
    };
    respond::run_or(Exit::NotFound, args, context, screen).await
}
