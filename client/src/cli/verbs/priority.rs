//! `sessionctl priority`.

use sessionplane_core::contract::fleet::{Fleet as _, UpdateSession};
use sessionplane_core::domain::fleet::metadata::MetadataChange;

use super::changed::change;
use crate::cli::args::PriorityArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::render::named;
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: PriorityArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.session;
    let request = UpdateSession {
        session: session.clone(),
        change: MetadataChange {
            priority: Some(args.priority),
            ..MetadataChange::default()
        },
        etag: None,
    };
    let call = context.client.update_session(request, context.call());
    let words = |it: &sessionplane_core::domain::fleet::summary::SessionSummary| {
        format!("{} has priority {}", named(it), it.priority)
    };
    change(&session, call, words, context, screen).await
}
