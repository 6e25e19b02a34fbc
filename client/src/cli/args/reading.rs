//! What the reading commands take.

use clap::Args;
use sessionplane_core::domain::ids::{AgentName, RunId, SessionRef};

use super::SessionArgs;
use super::value::{EventType, count_from_one};
use crate::cli::completing::names;
use crate::cli::place::Place;
use crate::cli::session;

pub(super) const RUNS_EXAMPLES: &str = "\
Examples:
  sessionctl runs docs --limit 5 --prompts
  sessionctl --json runs docs --all | jq -r 'select(.outcome==\"failed\").run_id'";

pub(super) const WAIT_EXAMPLES: &str = "\
Examples:
  sessionctl wait docs && notify-send \"docs is done\"
  sessionctl wait 01K... --timeout 10m";

/// `entries`.
#[derive(Args, Debug)]
pub(crate) struct EntriesArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// Only entries after this one: an id, or its number
    #[arg(long, value_name = "ENTRY", value_parser = Place::parse,
        allow_negative_numbers = true)]
    pub(crate) since: Option<Place>,
    /// At most so many entries [default: all]
    #[arg(long, value_name = "COUNT", value_parser = count_from_one,
        allow_negative_numbers = true)]
    pub(crate) limit: Option<u32>,
    /// Then print entries as they are appended, until Ctrl-C
    #[arg(long, conflicts_with = "limit")]
    pub(crate) follow: bool,
}

/// `events`.
#[derive(Args, Debug)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// First the entries after this one, an id or its number [default: none but new ones]
    #[arg(long, value_name = "ENTRY", value_parser = Place::parse,
        allow_negative_numbers = true)]
    pub(crate) since: Option<Place>,
    /// First all entries
    #[arg(long, conflicts_with = "since")]
    pub(crate) all: bool,
    /// Only live events of these types, e.g. run_settled,tool_started
    #[arg(long, value_name = "TYPES", value_delimiter = ',', num_args = 1,
        value_parser = EventType)]
    pub(crate) filter: Vec<String>,
    /// No deltas of thinking
    #[arg(long)]
    pub(crate) no_thinking: bool,
}

/// `runs`.
#[derive(Args, Debug)]
pub(crate) struct RunsArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// At most so many runs
    #[arg(long, value_name = "COUNT", value_parser = count_from_one,
        allow_negative_numbers = true, default_value_t = 20)]
    pub(crate) limit: u32,
    /// All runs
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
    /// Only runs before this one
    #[arg(long, value_name = "RUN_ID")]
    pub(crate) before: Option<RunId>,
    /// Show the first line of each prompt, or as JSON all of it as "prompt"; takes
    /// one more call for each
    #[arg(long)]
    pub(crate) prompts: bool,
}

/// `run`.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The run
    // Whoever gives a session's name here is told of its runs, which is no matter of parsing.
    #[arg(value_name = "RUN_ID", value_parser = session::parse)]
    pub(crate) run: SessionRef,
}

/// `wait`.
#[derive(Args, Debug)]
pub(crate) struct WaitArgs {
    /// A run's id, or a session: an id, a name, or key:TEXT
    #[arg(value_name = "TARGET", value_parser = session::parse, add = names())]
    pub(crate) target: SessionRef,
}

/// `capabilities` and `commands`.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct TargetArgs {
    /// The session: an id, a name, or key:TEXT
    #[arg(value_name = "SESSION", value_parser = session::parse, add = names())]
    pub(crate) session: Option<SessionRef>,
    /// An agent of the server's configuration
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<AgentName>,
}
