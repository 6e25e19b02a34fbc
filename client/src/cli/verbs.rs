//! The verbs, one file each, and the one place that tells them apart.

mod abort;
mod attach;

mod capabilities;
mod catch_up;
mod dispatch;
mod entries;
mod events;
mod follow_up;
mod invoke;
mod run;
mod state;
mod steer;
mod version;

pub(crate) use version::run as version;

use super::args::Verb;
use super::context::Context;
use super::exit::{Exit, Stop};
use super::screen::Screen;

/// Runs a verb to its end.
pub(crate) async fn run(verb: Verb, context: &Context, screen: &mut Screen) -> Result<Exit, Stop> {
    match verb {
        Verb::Invoke(args) => invoke::run(args, context, screen).await,
        Verb::Attach(args) => attach::run(args, context, screen).await,
        Verb::State(args) => state::run(args, context, screen).await,
        Verb::Entries(args) => entries::run(args, context, screen).await,
        Verb::Events(args) => events::run(args, context, screen).await,
        Verb::Run(args) => run::run(args, context, screen).await,
        Verb::Steer(args) => steer::run(args, context, screen).await,
        Verb::FollowUp(args) => follow_up::run(args, context, screen).await,
        Verb::Abort(args) => abort::run(args, context, screen).await,
        Verb::Capabilities(args) => capabilities::run(args, context, screen).await,
        Verb::Version => version::run(context.globals.json, screen),
    }
}
