//! `sessionctl label`: sets labels and takes them away; without a change it shows them.

use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::{Fleet as _, UpdateSession};
use sessionplane_core::domain::fleet::metadata::{LabelsChange, MetadataChange};
use sessionplane_core::domain::fleet::summary::SessionSummary;

use super::changed::change;
use crate::cli::args::LabelArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::Effect;
use crate::cli::json;
use crate::cli::render::named;
use crate::cli::screen::Screen;

pub(super) async fn run(
    args: LabelArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.session;
    if args.changes.is_empty() {
        let call = context
            .client
            .get_session(session.clone(), CallOptions::default());
        let found = context.patiently(screen, Effect::Reads, call).await?;
        let found = found.map_err(|error| context.stop(error, Some(&session), Effect::Reads))?;
        if context.globals.json {
            screen.json(&json::session(&found))?;
        } else {
            screen.line(&words(&found))?;
        }
        return Ok(Exit::Done);
    }
    let request = UpdateSession {
        session: session.clone(),
        change: MetadataChange {
            labels: Some(LabelsChange::Merge(args.changes)),
            ..MetadataChange::default()
        },
        etag: None,
    };
    let call = context.client.update_session(request, context.call());
    change(&session, call, words, context, screen).await
}

fn words(session: &SessionSummary) -> String {
    let labels = session.labels.iter();
    let labels: Vec<_> = labels
        .map(|(key, value)| format!("{}={}", key.as_str(), value.as_str()))
        .collect();
    let labels = if labels.is_empty() {
        "no labels".to_owned()
    } else {
        labels.join(" ")
    };
    format!("{}: {labels}", named(session))
}
