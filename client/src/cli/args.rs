//! The command line: its words, their help, and nothing else.

#![expect(
    clippy::doc_markdown,
    reason = "these comments are the help that a terminal shows, where a backtick is noise"
)]

mod value;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use sessionplane_core::domain::ids::{AgentName, EntryId, RequestId, RunId, SessionRef};

use super::session;
use crate::retry::Effect;
use crate::target::Target;
use value::{count, count_from_one, duration};

const AFTER_HELP: &str = "\
SESSION is an id if it has the shape of one (26 letters and digits), else a
name; key:TEXT is an external key.

Exit codes:
  0    the outcome that was waited for
  1    failed, rejected or refused
  2    the command line or its input makes no sense; nothing was sent
  3    outcome unknown, time-out or stream lost; repeat with the same
       --request-id to find out
  4    no such session, run or agent
  130  interrupted

The token is looked for in --token-file, then SESSIONPLANE_TOKEN, then the file
owner.token of the data directory (the same default as sessiond's). The latter
is only sent to this machine.";

/// Drive coding-agent sessions from a terminal.
#[derive(Parser, Debug)]
#[command(
    name = "sessionctl",
    version,
    term_width = 80,
    max_term_width = 80,
    after_help = AFTER_HELP
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

/// What every verb takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Globals {
    /// The server: HOST:PORT, http://HOST:PORT or unix:/PATH [env:
    /// SESSIONPLANE_ADDRESS] [default: http://127.0.0.1:50051]
    // The variable is read by those verbs that connect: the others must not fail for it.
    #[arg(long, global = true)]
    pub(crate) address: Option<Target>,
    /// The file that holds the token
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) token_file: Option<PathBuf>,
    /// Where sessiond keeps its data on this machine [default:
    /// $XDG_STATE_HOME/sessionplane or ~/.local/state/sessionplane]
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = "SESSIONPLANE_DATA_DIR",
        hide_env_values = true
    )]
    pub(crate) data_dir: Option<PathBuf>,
    /// Send the token unencrypted to another machine
    #[arg(long, global = true)]
    pub(crate) insecure_send_token: bool,
    /// Print one JSON object per line, with the field names of the API
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Name this call, so that repeating it is harmless [default: a new one]
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) request_id: Option<RequestId>,
    /// Stop waiting after this long (exit 3), e.g. 30s, 500ms, 5m; a run goes
    /// on [default: 15s for an answer, no limit for a run or a stream]
    #[arg(long, global = true, value_name = "TIME", value_parser = duration,
        allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,
    /// No colour (also: NO_COLOR)
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// Give a session a prompt and follow the run to its end
    ///
    /// The answer goes to standard output, all else to standard error. Ctrl-C
    /// stops the run; pressed twice, it leaves at once.
    #[command(override_usage = "sessionctl invoke [OPTIONS] SESSION TEXT\n       \
        sessionctl invoke [OPTIONS] SESSION --text-file PATH")]
    Invoke(InvokeArgs),
    /// Be there: see what happens in a session and type to steer it
    ///
    /// A line that is typed steers the active run. /follow TEXT adds a text
    /// for when the run would otherwise stop, /abort stops it, // begins a text
    /// that begins with a slash. Ctrl-D, or the end of a pipe, detaches and
    /// disturbs nothing.
    Attach(AttachArgs),
    /// Show what a session is doing
    State(SessionArgs),
    /// List the entries of a session
    Entries(EntriesArgs),
    /// Print the events of a session as they happen
    Events(EventsArgs),
    /// Show the record of a run
    Run(RunArgs),
    /// Put a text before the model, at its next call
    #[command(override_usage = "sessionctl steer [OPTIONS] SESSION TEXT\n       \
        sessionctl steer [OPTIONS] SESSION --text-file PATH")]
    Steer(TextArgs),
    /// Add a text for when the run would otherwise stop
    #[command(
        override_usage = "sessionctl follow-up [OPTIONS] SESSION TEXT\n       \
        sessionctl follow-up [OPTIONS] SESSION --text-file PATH"
    )]
    FollowUp(TextArgs),
    /// Stop the active run
    Abort(AbortArgs),
    /// Show what a session, or a new session of an agent, can do
    Capabilities(CapabilitiesArgs),
    /// Show the version of this program and of the API it speaks
    Version,
}

impl Verb {
    /// What the verb waits for.
    pub(crate) fn waits(&self) -> Waits {
        match self {
            Self::Invoke(_) => Waits::Run,
            Self::Attach(_) | Self::Events(_) => Waits::Stream,
            Self::Steer(_) | Self::FollowUp(_) | Self::Abort(_) => Waits::Answer(Effect::Writes),
            Self::State(_)
            | Self::Entries(_)
            | Self::Run(_)
            | Self::Capabilities(_)
            | Self::Version => Waits::Answer(Effect::Reads),
        }
    }
}

/// What a verb waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// The answer of a call, or of several that read. A writing one can be repeated by its id.
    Answer(Effect),
    /// The end of a run, which can be rejoined by its request id.
    Run,
    /// Nothing: it shows what happens.
    Stream,
}

/// One session.
#[derive(Args, Debug)]
pub(crate) struct SessionArgs {
    /// The session: an id, a name, or key:TEXT
    #[arg(value_name = "SESSION", value_parser = session::parse)]
    pub(crate) session: SessionRef,
}

/// A text, from one of three places.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct TextSource {
    /// The text, at most 1 MiB; - reads it from standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Read the text from this file; - is standard input
    #[arg(long, value_name = "PATH")]
    pub(crate) text_file: Option<PathBuf>,
}

/// `invoke`.
#[derive(Args, Debug)]
pub(crate) struct InvokeArgs {
    /// Create the session if it does not exist
    #[arg(long)]
    pub(crate) new: bool,
    /// The agent of a session that is created [default: the server's]
    #[arg(long, value_name = "AGENT", requires = "new")]
    pub(crate) agent: Option<AgentName>,
    /// Abort the run when this command is gone; otherwise it goes on
    #[arg(long)]
    pub(crate) cancel_on_disconnect: bool,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    #[command(flatten)]
    pub(crate) text: TextSource,
}

/// `attach`.
#[derive(Args, Debug)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// How many of the last entries to show first
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = count,
        allow_negative_numbers = true)]
    pub(crate) last: u32,
}

/// `entries`.
#[derive(Args, Debug)]
pub(crate) struct EntriesArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// Only entries after this one
    #[arg(long, value_name = "ID")]
    pub(crate) since: Option<String>,
    /// At most so many entries [default: all]
    #[arg(long, value_name = "COUNT", value_parser = count_from_one,
        allow_negative_numbers = true)]
    pub(crate) limit: Option<u32>,
}

/// `events`.
#[derive(Args, Debug)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// First the entries after this one [default: none but new ones]
    #[arg(long, value_name = "ID")]
    pub(crate) since: Option<EntryId>,
    /// First all entries
    #[arg(long, conflicts_with = "since")]
    pub(crate) all: bool,
}

/// `run`.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The run
    #[arg(value_name = "RUN_ID")]
    pub(crate) run: RunId,
}

/// `steer` and `follow-up`.
#[derive(Args, Debug)]
pub(crate) struct TextArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    #[command(flatten)]
    pub(crate) text: TextSource,
    /// Only if this run is the active one
    #[arg(long, value_name = "RUN_ID")]
    pub(crate) expected_run: Option<RunId>,
}

/// `abort`.
#[derive(Args, Debug)]
pub(crate) struct AbortArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// Only if this run is the active one
    #[arg(long, value_name = "RUN_ID")]
    pub(crate) expected_run: Option<RunId>,
}

/// `capabilities`.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct CapabilitiesArgs {
    /// The session: an id, a name, or key:TEXT
    #[arg(value_name = "SESSION", value_parser = session::parse)]
    pub(crate) session: Option<SessionRef>,
    /// An agent of the server's configuration
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<AgentName>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_text_comes_from_exactly_one_place() {
        let parse = |words: &[&str]| {
            Arguments::try_parse_from(["sessionctl"].iter().chain(words)).map(|_| ())
        };
        assert!(parse(&["steer", "docs", "go on"]).is_ok());
        assert!(parse(&["steer", "docs", "-"]).is_ok());
        assert!(parse(&["steer", "docs", "--text-file", "f"]).is_ok());
        assert!(parse(&["steer", "docs"]).is_err());
        assert!(parse(&["steer", "docs", "go on", "--text-file", "f"]).is_err());
        assert!(parse(&["invoke", "docs"]).is_err());
    }

    #[test]
    fn a_count_that_makes_no_sense_says_what_would() {
        for words in [
            ["attach", "docs", "--last", "-3"],
            ["attach", "docs", "--last", "many"],
            ["entries", "docs", "--limit", "-1"],
            ["entries", "docs", "--limit", "0"],
            ["state", "docs", "--timeout", "-3s"],
        ] {
            let refused = Arguments::try_parse_from(["sessionctl"].iter().chain(&words));
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("invalid value"), "{words:?}: {refused}");
        }
    }

    #[test]
    fn help_fits_eighty_columns() {
        let mut command = Arguments::command();
        command.build();
        let mut all = vec![command.render_long_help().to_string()];
        for verb in command.get_subcommands_mut() {
            all.push(verb.render_long_help().to_string());
        }
        for line in all.iter().flat_map(|help| help.lines()) {
            assert!(line.chars().count() <= 80, "too wide: {line}");
        }
    }

    #[test]
    fn help_of_the_whole_and_of_each_verb() {
        let mut command = Arguments::command();
        command.build();
        insta::assert_snapshot!("help", command.render_long_help().to_string());
        for name in ["invoke", "attach", "entries", "steer"] {
            let verb = command.find_subcommand_mut(name).unwrap();
            insta::assert_snapshot!(format!("help_{name}"), verb.render_long_help().to_string());
        }
    }
}
