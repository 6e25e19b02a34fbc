//! The verbs, one file each, and the one place that tells them apart.

mod abort;
mod agents;
mod alone;
mod answer;
mod attach;
mod audit;
mod capabilities;
mod catch_up;
mod cd;
mod changed;
mod commands;
mod compact;
mod compaction;
mod dispatch;
mod entries;
mod events;
mod follow_up;
mod invoke;
mod label;
mod navigate;
mod new;
mod pause;
mod priority;
mod questions;
mod rename;
mod resume;
mod rm;
mod run;
mod runs;
mod set_model;
mod set_thinking;
mod show;
mod state;
mod steer;
mod top;
mod wait;
mod watch;

pub(crate) use agents::bare;
pub(crate) use alone::run as alone;

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
        Verb::Runs(args) => runs::run(args, context, screen).await,
        Verb::Run(args) => run::run(args, context, screen).await,
        Verb::Wait(args) => wait::run(args, context, screen).await,
        Verb::Steer(args) => steer::run(args, context, screen).await,
        Verb::FollowUp(args) => follow_up::run(args, context, screen).await,
        Verb::Abort(args) => abort::run(args, context, screen).await,
        Verb::Compact(args) => compact::run(args, context, screen).await,
        Verb::SetModel(args) => set_model::run(args, context, screen).await,
        Verb::SetThinking(args) => set_thinking::run(args, context, screen).await,
        Verb::Navigate(args) => navigate::run(args, context, screen).await,
        Verb::Top(args) => top::run(args, context, screen).await,
        Verb::Agents(args) => agents::run(args, context, screen).await,
        Verb::New(args) => new::run(args, context, screen).await,
        Verb::Show(args) => show::run(args, context, screen).await,
        Verb::Questions(args) => questions::run(args, context, screen).await,
        Verb::Answer(args) => answer::run(args, context, screen).await,
        Verb::Watch(args) => watch::run(args, context, screen).await,
        Verb::Rename(args) => rename::run(args, context, screen).await,
        Verb::Label(args) => label::run(args, context, screen).await,
        Verb::Priority(args) => priority::run(args, context, screen).await,
        Verb::Pause(args) => pause::run(args, context, screen).await,
        Verb::Resume(args) => resume::run(args, context, screen).await,
        Verb::Cd(args) => cd::run(args, context, screen).await,
        Verb::Rm(args) => rm::run(args, context, screen).await,
        Verb::Capabilities(args) => capabilities::run(args, context, screen).await,
        Verb::Commands(args) => commands::run(args, context, screen).await,
        Verb::Audit(args) => audit::run(args, context, screen).await,
        alone @ (Verb::Completions(_) | Verb::Man(_) | Verb::Version) => {
            alone::run(&alone, context.globals.json, screen).unwrap_or(Ok(Exit::Done))
        }
    }
}
