//! `sessionctl new`.

use sessionplane_core::contract::Parent;
use sessionplane_core::contract::fleet::{CreateSession, Fleet as _};
use sessionplane_core::domain::fleet::labels::Labels;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionRef;

use crate::cli::args::NewArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, About, Effect};
use crate::cli::json;
use crate::cli::program::PROGRAM;
use crate::cli::render::named;
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: NewArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let parent = match args.parent {
        Some(session) => {
            let entry = match args.from {
                Some(place) => Some(place.id(&session, context, screen).await?),
                None => None,
            };
            Some(Parent { session, entry })
        }
        None => None,
    };
    let request = CreateSession {
        name: args.name.clone(),
        external_key: args.key.clone(),
        agent: args.agent,
        labels: Labels::of(args.label).map_err(|error| Stop::usage(error.to_string()))?,
        priority: args.priority.unwrap_or_default(),
        paused: args.paused,
        workspace: args.workspace,
        directory: args.dir,
        worktree_branch: args.worktree,
        parent,
    };
    let call = context.client.create_session(request, context.call());
    let created = context.patiently(screen, Effect::Writes, call).await?;
    let called = args.name.map(SessionRef::Name);
    let key = args.key.map(SessionRef::ExternalKey);
    let created = created.map_err(|error| {
        // Who has what is taken is told.
        let by_key = error.violations.iter().any(|it| it.field == "external_key");
        let taken = if by_key { &key } else { &called };
        let about = taken.as_ref().map_or(About::Nothing, About::Session);
        context.stop(error, about, Effect::Writes)
    })?;
    if context.globals.json {
        screen.json(&json::session(&created))?;
        return Ok(Exit::Done);
    }
    screen.line(&words(&created))?;
    let word = hint::word(&named(&created));
    let next = if created.paused {
        format!("let it go on: {PROGRAM} resume {word}")
    } else {
        format!("give it work: {PROGRAM} invoke {word} \"...\"")
    };
    screen.aside(&next)?;
    Ok(Exit::Done)
}

fn words(session: &SessionSummary) -> String {
    let mut words = vec![format!("created {}", named(session))];
    if session.name.is_some() || session.external_key.is_some() {
        words.push(session.id.to_string());
    }
    words.push(format!("agent {}", session.agent));
    if let Some(place) = &session.place {
        words.push(format!("in {}:{}", place.workspace, place.directory));
    }
    words.join(", ")
}
