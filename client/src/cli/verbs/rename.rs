//! `sessionctl rename`.

use sessionplane_core::contract::fleet::{Fleet as _, UpdateSession};
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::fleet::metadata::MetadataChange;
use sessionplane_core::domain::ids::SessionRef;

use crate::cli::args::RenameArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::Effect;
use crate::cli::json;
use crate::cli::render::named;
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: RenameArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.session;
    let wanted = SessionRef::Name(args.name.clone());
    let request = UpdateSession {
        session: session.clone(),
        change: MetadataChange {
            name: Some(Some(args.name)),
            ..MetadataChange::default()
        },
        etag: None,
    };
    let call = context.client.update_session(request, context.call());
    let renamed = context.patiently(screen, Effect::Writes, call).await?;
    let renamed = renamed.map_err(|error| {
        // Who has the name is told, not who wanted it.
        let taken = error.reason == Reason::NameTaken;
        let about = if taken { &wanted } else { &session };
        context.stop(error, Some(about), Effect::Writes)
    })?;
    if context.globals.json {
        screen.json(&json::session(&renamed))?;
    } else {
        screen.line(&format!("{session} is {} now", named(&renamed)))?;
    }
    Ok(Exit::Done)
}
