//! `sessionctl cd`: moves a session.

use sessionplane_core::contract::fleet::{ChangeDirectory, ChangeDirectoryAnswer, Fleet as _};
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::place::Directory;

use crate::cli::args::CdArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::program::PROGRAM;
use crate::cli::render::named;
use crate::cli::screen::Screen;
use crate::cli::session::shell_word;

pub(super) async fn run(
    args: CdArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.session;
    let (directory, by_default) = (args.dir.clone(), args.workspace.is_none());
    let request = ChangeDirectory {
        session: session.clone(),
        workspace: args.workspace,
        directory: args.dir,
    };
    let call = context.client.change_directory(request, context.call());
    let answer = context.patiently(screen, Effect::Writes, call).await?;
    let answer = answer.map_err(|error| {
        let mut fields = error.violations.iter();
        let elsewhere = by_default && fields.any(|violation| violation.field == "workspace");
        let stop = context.stop(error, Some(&session), Effect::Writes);
        if elsewhere {
            return with_workspace(stop, &session, &directory);
        }
        stop
    })?;
    if context.globals.json {
        screen.json(&json::moved(&answer))?;
    }
    match answer {
        ChangeDirectoryAnswer::Moved { session, sandbox } => {
            if !context.globals.json {
                screen.line(&words(&session, sandbox))?;
            }
            Ok(Exit::Done)
        }
        ChangeDirectoryAnswer::Rejected(rejection) => {
            screen.error(&hint::held(&session, &rejection))?;
            Ok(Exit::Failed)
        }
    }
}

/// The workspace that the session has is none any more, and no other was named.
fn with_workspace(stop: Stop, session: &SessionRef, directory: &Directory) -> Stop {
    let (word, directory) = (hint::word(session), shell_word(directory.as_str()));
    match stop {
        Stop::Failed { exit, words, error } => Stop::Failed {
            exit,
            words: format!(
                "{words}\n  name another: {PROGRAM} cd {word} {directory} --workspace WORKSPACE"
            ),
            error,
        },
        Stop::Unread => Stop::Unread,
    }
}

fn words(session: &SessionSummary, sandbox: SandboxLevel) -> String {
    let held = match sandbox {
        SandboxLevel::None => "; nothing but its own good will holds its engine there",
        SandboxLevel::Confined | SandboxLevel::Enforced => "",
    };
    let place = session.place.as_ref();
    let place = place.map_or_else(
        || "nowhere".to_owned(),
        |place| format!("{}:{}", place.workspace, place.directory),
    );
    format!("the next run of {} starts in {place}{held}", named(session))
}
