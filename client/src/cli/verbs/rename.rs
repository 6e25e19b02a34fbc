//! `sessionctl rename`.

use sessionplane_core::contract::fleet::{Fleet as _, UpdateSession};
use sessionplane_core::domain::fleet::metadata::MetadataChange;

use super::changed::change;
use crate::cli::args::RenameArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::render::named;
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: RenameArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.session;
    let request = UpdateSession {
        session: session.clone(),
        change: MetadataChange {
            name: Some(Some(args.name)),
            ..MetadataChange::default()
        },
        etag: None,
    };
    let call = context.client.update_session(request, context.call());
    let words = |renamed: &_| format!("{session} is {} now", named(renamed));
    change(&session, call, words, context, screen).await
}
