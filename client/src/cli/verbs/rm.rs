//! `sessionctl rm`: deletes a session, after a question where a person can be asked.

use std::io::{self, BufRead as _, IsTerminal as _};

use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::{DeleteAnswer, DeleteSession, Fleet as _};
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::place::Place;

use super::changed::Each;
use crate::cli::args::RmArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::program::PROGRAM;
use crate::cli::render::named;
use crate::cli::screen::{Piece, Screen};

pub(super) async fn run(
    args: RmArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let (abort, yes) = (args.abort, args.yes);
    let mut each = Each::of(args.sessions.sessions, context)?;
    while let Some((session, options)) = each.next() {
        let end = delete(session, abort, yes, options, context, screen).await;
        each.ended(end, context, screen).await?;
    }
    Ok(each.end())
}

async fn delete(
    session: SessionRef,
    abort: bool,
    yes: bool,
    options: CallOptions,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let meant = if yes {
        Some(session.clone())
    } else {
        meant(&session, abort, context, screen).await?
    };
    let Some(meant) = meant else {
        screen.aside("nothing was deleted")?;
        return Ok(Exit::Failed);
    };
    let request = DeleteSession {
        session: meant,
        etag: None,
        abort,
    };
    let call = context.client.delete_session(request, options);
    let answer = context.patiently(screen, Effect::Writes, call).await?;
    let answer = answer.map_err(|error| context.stop(error, Some(&session), Effect::Writes))?;
    if context.globals.json {
        screen.json(&json::deleted(&answer))?;
    }
    match answer {
        DeleteAnswer::Deleted => {
            if !context.globals.json {
                screen.line(&format!("deleted {session}"))?;
            }
            Ok(Exit::Done)
        }
        DeleteAnswer::Rejected(rejection) => {
            let word = hint::word(&session);
            let words = hint::held(&session, &rejection);
            let yes = if yes { " --yes" } else { "" };
            screen.error(&format!(
                "{words}\n  stop it and delete it: {PROGRAM} rm {word} --abort{yes}"
            ))?;
            Ok(Exit::Failed)
        }
    }
}

/// The session that a person says yes to, whoever has its name by then; none without a yes. Who deletes
/// in a script says so on its command line.
async fn meant(
    session: &SessionRef,
    abort: bool,
    context: &Context,
    screen: &mut Screen,
) -> Result<Option<SessionRef>, Stop> {
    if !io::stdin().is_terminal() || !screen.is_watched() {
        return Err(Stop::usage(format!(
            "{session} would be deleted with its conversation, and nobody can be asked whether that \
             is meant\n  say so: {PROGRAM} rm {}{} --yes",
            hint::word(session),
            if abort { " --abort" } else { "" }
        )));
    }
    let call = context
        .client
        .get_session(session.clone(), CallOptions::default());
    let found = context.patiently(screen, Effect::Reads, call).await?;
    let found = found.map_err(|error| context.stop(error, Some(session), Effect::Reads))?;
    let words = question(&named(&found), found.place.as_ref());
    screen.put(&Piece::Question(words))?;
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    let line = tokio::select! {
        () = context.interrupts.pressed() => return Err(hint::interrupted(Effect::Reads, context)),
        line = answer => line,
    };
    let line = line.ok().and_then(Result::ok).unwrap_or_default();
    let yes = matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    Ok(yes.then_some(SessionRef::Id(found.id)))
}

/// What is deleted, and what is not: there may be work in its directory that is nowhere else.
fn question(session: &SessionRef, place: Option<&Place>) -> String {
    let stays = place.map_or_else(String::new, |it| {
        format!(" (its directory {}:{} stays)", it.workspace, it.directory)
    });
    format!("delete {session} with its conversation, its runs and its artifacts{stays}? [y/N] ")
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::ids::{SessionName, WorkspaceName};
    use sessionplane_core::domain::place::Directory;

    use super::*;

    #[test]
    fn c45_who_deletes_a_session_is_told_that_its_directory_stays() {
        let place = Place {
            workspace: WorkspaceName::parse("tree").unwrap(),
            directory: Directory::parse(".worktrees/fix").unwrap(),
        };
        let session = SessionRef::Name(SessionName::parse("fix").unwrap());
        let asked = question(&session, Some(&place));
        assert!(
            asked.contains("directory tree:.worktrees/fix stays"),
            "{asked}"
        );
        assert!(!question(&session, None).contains("stays"));
    }
}
