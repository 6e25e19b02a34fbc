//! What the commands of the fleet take.

use std::ffi::OsString;

use clap::Args;
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue, Priority};
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::ids::{
    AgentName, ExternalKey, SessionName, SessionRef, WorkspaceName,
};
use sessionplane_core::domain::place::Directory;

use super::value::count_from_one;
use super::{SessionArgs, SessionsArgs};
use crate::cli::completing::{agents, names, stages, workspaces};
use crate::cli::place::Place;
use crate::cli::session;

pub(super) const AGENTS_EXAMPLES: &str = "\
Examples:
  sessionctl agents                       what there is, what needs you first
  sessionctl agents --watch
  sessionctl agents --phase needs_input --label team=net
  sessionctl agents --filter 'name = \"fix-*\" AND NOT phase = DORMANT'
  sessionctl --json agents | jq -r 'select(.stalled_since).name'

Phases: needs_input, working, compacting, queued, ready, paused, dormant; in the
table a working session that is to pause is pausing, and one that has shown
nothing for long is stalled. --phase takes all words of the table.

Filters: conditions FIELD OPERATOR VALUE, joined by AND, OR, NOT (in upper case)
and parentheses.
  phase, agent, workspace, parent (an id)          = !=
  stalled, paused                                  = != with true or false
  name, external_key, directory, branch            = != and \"begin*\"
  labels.KEY                                       = != and :* (has it)
  priority, created_at, updated_at, last_run_at    = != < <= > >=
All of it: docs/fleet.md";

pub(super) const NEW_EXAMPLES: &str = "\
Reserved names: agent, agents, all, any, fleet, me, new, none, null, self,
server, session, sessions, system, this.

Examples:
  sessionctl new docs --dir docs --label team=net
  sessionctl new fix-flaky --worktree fix/flaky   in the working tree of that branch
  sessionctl new second-try --parent fix-flaky    with its past";

pub(super) const LABEL_EXAMPLES: &str = "\
Examples:
  sessionctl label docs team=net urgent=         sets two
  sessionctl label docs urgent-                  takes one away
  sessionctl label docs                          shows them";

pub(super) const WATCH_EXAMPLES: &str = "\
Examples:
  sessionctl watch --needs-input
  sessionctl watch --needs-input --exec notify-send 'a session asks'
  sessionctl watch --needs-input --exec sh -c \\
    'echo \"$SESSIONPLANE_NAME asks: $SESSIONPLANE_TITLE\" | mail -s asked me'";

/// Which sessions.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Only sessions that this filter wants
    #[arg(long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Only sessions with this label; again for more
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) label: Vec<(LabelKey, LabelValue)>,
    /// Only sessions of this agent
    #[arg(long, value_name = "AGENT", add = agents())]
    pub(crate) agent: Option<AgentName>,
    /// Only sessions in this phase, e.g. needs_input, or stalled or pausing; again
    /// for others too
    #[arg(long, value_name = "PHASE", value_parser = stage, add = stages())]
    pub(crate) phase: Vec<Stage>,
}

/// `top`.
#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) wanted: Wanted,
}

/// `agents`.
#[derive(Args, Debug)]
pub(crate) struct AgentsArgs {
    #[command(flatten)]
    pub(crate) wanted: Wanted,
    /// At most so many sessions
    #[arg(long, value_name = "COUNT", value_parser = count_from_one,
        allow_negative_numbers = true, default_value_t = 200)]
    pub(crate) limit: u32,
    /// Keep it up to date until Ctrl-C; in a pipe, print the lines that change
    #[arg(long)]
    pub(crate) watch: bool,
}

/// `new`.
#[derive(Args, Debug)]
pub(crate) struct NewArgs {
    /// Its name: a-z, 0-9 and inner hyphens; some are reserved, see below
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<SessionName>,
    /// Its agent [default: the parent's, or the server's]
    #[arg(long, value_name = "AGENT", add = agents())]
    pub(crate) agent: Option<AgentName>,
    /// Its workspace [default: the agent's]
    #[arg(long, value_name = "WORKSPACE", add = workspaces())]
    pub(crate) workspace: Option<WorkspaceName>,
    /// Its directory beneath the workspace [default: the workspace itself]
    #[arg(long, value_name = "DIR", value_parser = directory)]
    pub(crate) dir: Option<Directory>,
    /// Work in the working tree of this branch of the directory's repository. A
    /// branch or a tree that is missing is made; a tree that is there is shared
    /// with whoever works in it, and that is told
    #[arg(long, value_name = "BRANCH")]
    pub(crate) worktree: Option<String>,
    /// A label; again for more
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) label: Vec<(LabelKey, LabelValue)>,
    /// How urgent it is: -100 to 100
    #[arg(long, value_name = "NUMBER", value_parser = priority, allow_negative_numbers = true)]
    pub(crate) priority: Option<Priority>,
    /// Nothing runs in it until it is resumed
    #[arg(long)]
    pub(crate) paused: bool,
    /// Your own key for it, to name it by as key:TEXT
    #[arg(long, value_name = "TEXT")]
    pub(crate) key: Option<ExternalKey>,
    /// The session it branches off: its past becomes the new one's
    #[arg(long, value_name = "SESSION", value_parser = session::parse, add = names())]
    pub(crate) parent: Option<SessionRef>,
    /// The last entry of the parent's past: an id, or its number [default: where
    /// the parent is]
    #[arg(long, value_name = "ENTRY", value_parser = Place::parse, requires = "parent")]
    pub(crate) from: Option<Place>,
}

/// `rename`.
#[derive(Args, Debug)]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// The new name
    #[arg(value_name = "NEW")]
    pub(crate) name: SessionName,
}

/// A label that is set, or taken away.
pub(crate) type LabelChange = (LabelKey, Option<LabelValue>);

/// `label`.
#[derive(Args, Debug)]
pub(crate) struct LabelArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// KEY=VALUE sets a label, KEY- takes it away
    #[arg(value_name = "CHANGE", value_parser = label_change)]
    pub(crate) changes: Vec<LabelChange>,
}

/// `priority`.
#[derive(Args, Debug)]
pub(crate) struct PriorityArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// -100 to 100, higher first
    #[arg(value_name = "NUMBER", value_parser = priority, allow_negative_numbers = true)]
    pub(crate) priority: Priority,
}

/// `cd`.
#[derive(Args, Debug)]
pub(crate) struct CdArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// The directory beneath the workspace; . is the workspace itself
    #[arg(value_name = "DIR", value_parser = directory)]
    pub(crate) dir: Directory,
    /// The workspace [default: the present one]
    #[arg(long, value_name = "WORKSPACE", add = workspaces())]
    pub(crate) workspace: Option<WorkspaceName>,
}

/// `rm`.
#[derive(Args, Debug)]
pub(crate) struct RmArgs {
    #[command(flatten)]
    pub(crate) sessions: SessionsArgs,
    /// Stop what is active first
    #[arg(long)]
    pub(crate) abort: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// `questions`.
#[derive(Args, Debug)]
pub(crate) struct QuestionsArgs {
    #[command(flatten)]
    pub(crate) wanted: Wanted,
}

/// `watch`.
#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// Tell each question when it is asked
    #[arg(long, required = true)]
    pub(crate) needs_input: bool,
    /// Also those that are open already
    #[arg(long)]
    pub(crate) open: bool,
    #[command(flatten)]
    pub(crate) wanted: Wanted,
    /// Run this once for each question, at most four at a time; all that follows
    /// are its arguments. It finds SESSIONPLANE_SESSION, _NAME, _AGENT,
    /// _DIRECTORY, _QUESTION, _KIND and _TITLE in its environment
    #[arg(long, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true)]
    pub(crate) exec: Vec<OsString>,
}

fn label(text: &str) -> Result<(LabelKey, LabelValue), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("write KEY=VALUE, for example team=net")?;
    let key = LabelKey::parse(key).map_err(|error| error.to_string())?;
    let value = LabelValue::parse(value).map_err(|error| error.to_string())?;
    Ok((key, value))
}

fn label_change(text: &str) -> Result<LabelChange, String> {
    match text.strip_suffix('-').filter(|key| !key.contains('=')) {
        Some(key) => {
            let key = LabelKey::parse(key).map_err(|error| error.to_string())?;
            Ok((key, None))
        }
        None if !text.contains('=') => {
            Err("write KEY=VALUE to set it, KEY- to take it away".into())
        }
        None => label(text).map(|(key, value)| (key, Some(value))),
    }
}

/// What a table shows as a session's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Phase(Phase),
    /// It works and has shown nothing for long.
    Stalled,
    /// It works and will pause.
    Pausing,
}

impl Stage {
    fn filter(self) -> String {
        match self {
            Self::Phase(phase) => format!("phase = {}", phase.as_str()),
            Self::Stalled => "stalled = true".to_owned(),
            Self::Pausing => "(phase = WORKING AND paused = true)".to_owned(),
        }
    }
}

fn stage(text: &str) -> Result<Stage, String> {
    let name = text.trim().replace(['-', ' '], "_").to_ascii_lowercase();
    match name.as_str() {
        "stalled" => return Ok(Stage::Stalled),
        "pausing" => return Ok(Stage::Pausing),
        _ => {}
    }
    Phase::named(&name).map(Stage::Phase).ok_or_else(|| {
        let all = Phase::ALL.map(|phase| phase.as_str().to_ascii_lowercase());
        format!(
            "is no phase; there are {}, stalled and pausing",
            all.join(", ")
        )
    })
}

fn priority(text: &str) -> Result<Priority, String> {
    let number = text.parse().ok();
    let priority = number.and_then(|number| Priority::parse(number).ok());
    priority.ok_or_else(|| "must be a number from -100 to 100".to_owned())
}

fn directory(text: &str) -> Result<Directory, String> {
    Directory::parse(text).map_err(|error| error.to_string())
}

impl Wanted {
    /// The filter that says all of it.
    pub(crate) fn filter(&self) -> String {
        let mut all = Vec::new();
        // Together with others, an OR of it must stay in its place.
        all.extend(self.filter.iter().map(|filter| {
            if self.is_plain() {
                filter.clone()
            } else {
                format!("({filter})")
            }
        }));
        all.extend(
            self.label.iter().map(|(key, value)| {
                format!("labels.{} = {}", key.as_str(), quoted(value.as_str()))
            }),
        );
        all.extend(
            self.agent
                .iter()
                .map(|agent| format!("agent = {}", quoted(agent.as_str()))),
        );
        let phases: Vec<_> = self.phase.iter().map(|stage| stage.filter()).collect();
        match &phases[..] {
            [] => {}
            [one] => all.push(one.clone()),
            several => all.push(format!("({})", several.join(" OR "))),
        }
        all.join(" AND ")
    }

    /// The filter that says all of it, of sessions that wait for an answer: of a large fleet those
    /// are few, and the server has them at hand.
    pub(crate) fn that_ask(&self) -> String {
        let asks = format!("phase = {}", Phase::NeedsInput.as_str());
        match self.filter() {
            all if all.is_empty() => asks,
            // An OR of it must stay in its place.
            all => format!("({all}) AND {asks}"),
        }
    }

    /// Whether the filter is all that is wanted.
    fn is_plain(&self) -> bool {
        self.label.is_empty() && self.agent.is_none() && self.phase.is_empty()
    }
}

/// A value of a filter.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::fleet::filter::Filter;

    use super::*;

    #[test]
    fn c46_the_flags_of_a_list_are_one_filter_that_servers_understand() {
        let wanted = Wanted {
            filter: Some("name = \"a*\" OR name = \"b*\"".to_owned()),
            label: vec![label("k8s.io/x=a \"b\"").unwrap(), label("team=").unwrap()],
            agent: Some("demo".parse().unwrap()),
            phase: vec![Stage::Phase(Phase::Working), Stage::Stalled, Stage::Pausing],
        };
        let filter = wanted.filter();
        assert_eq!(
            filter,
            "(name = \"a*\" OR name = \"b*\") AND labels.k8s.io/x = \"a \\\"b\\\"\" \
             AND labels.team = \"\" AND agent = \"demo\" \
             AND (phase = WORKING OR stalled = true OR (phase = WORKING AND paused = true))"
        );
        let parsed = Filter::parse(&filter);
        assert!(parsed.is_ok(), "{parsed:?}");
        assert_eq!(Wanted::default().filter(), "");
        assert_eq!(Wanted::default().that_ask(), "phase = NEEDS_INPUT");
        let asks = wanted.that_ask();
        assert!(asks.ends_with(") AND phase = NEEDS_INPUT"), "{asks}");
        assert!(Filter::parse(&asks).is_ok(), "{asks}");
    }

    #[test]
    fn a_label_is_set_or_taken_away() {
        let told = |text| {
            let (key, value) = label_change(text)?;
            let value = value.map(|value| value.as_str().to_owned());
            Ok::<_, String>((key.as_str().to_owned(), value))
        };
        let net = Some("net".to_owned());
        assert_eq!(told("team=net"), Ok(("team".to_owned(), net)));
        assert_eq!(told("team-"), Ok(("team".to_owned(), None)));
        let dash = Some("-".to_owned());
        assert_eq!(told("team=-"), Ok(("team".to_owned(), dash)));
        for bad in ["team", "", "-", "Team=x", "=x"] {
            assert!(told(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_phase_is_read_in_any_case_and_as_the_table_says_it() {
        assert_eq!(stage("needs input"), Ok(Stage::Phase(Phase::NeedsInput)));
        assert_eq!(stage("Needs Input"), Ok(Stage::Phase(Phase::NeedsInput)));
        assert_eq!(stage("needs-input"), Ok(Stage::Phase(Phase::NeedsInput)));
        assert_eq!(stage("READY"), Ok(Stage::Phase(Phase::Ready)));
        assert_eq!(stage("stalled"), Ok(Stage::Stalled));
        assert_eq!(stage("pausing"), Ok(Stage::Pausing));
        assert!(stage("busy").unwrap_err().contains("needs_input"));
    }
}
