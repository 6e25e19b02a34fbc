//! The command line: its words, their help, and nothing else.

#![expect(
    clippy::doc_markdown,
    reason = "these comments are the help that a terminal shows, where a backtick is noise"
)]

mod audit;
mod control;
mod fleet;
mod reading;
mod value;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use sessionplane_core::domain::ids::{AgentName, RequestId, SessionRef};

use super::completing::{Which, agents, names, names_of};
use super::place::Place;
use super::screen::Looks;
use super::session;
use crate::retry::Effect;
use crate::target::Target;
pub(crate) use audit::{AuditArgs, AuditVerb, ExportArgs, ListArgs, VerifyArgs};
pub(crate) use control::{
    AbortArgs, AnswerArgs, CompactArgs, NavigateArgs, SaidArgs, SetModelArgs, SetThinkingArgs,
    TextArgs, TextSource,
};
pub(crate) use fleet::{
    AgentsArgs, CdArgs, LabelArgs, NewArgs, PriorityArgs, QuestionsArgs, RenameArgs, RmArgs,
    TopArgs, WatchArgs, quoted,
};
pub(crate) use reading::{EntriesArgs, EventsArgs, RunArgs, RunsArgs, TargetArgs, WaitArgs};
use value::{count, duration};

const AFTER_HELP: &str = "\
SESSION is an id if it has the shape of one (26 letters and digits), else a
name; key:TEXT is an external key.

Exit codes:
  0    the outcome that was waited for
  1    failed, rejected or refused
  2    the command line or its input makes no sense; nothing was sent
  3    no answer that tells: no connection, outcome unknown, time-out, stream
       lost or cut; repeat with the same --request-id to find out
  4    no such session, run or agent, or more than one that may be meant
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
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own, and every combination exists"
)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Globals {
    /// The server: https://HOST:PORT, http://HOST:PORT, HOST:PORT or unix:/PATH
    /// [env: SESSIONPLANE_ADDRESS] [default: http://127.0.0.1:50051]
    // The variable is read by those verbs that connect: the others must not fail for it.
    #[arg(long, global = true)]
    pub(crate) address: Option<Target>,
    /// The file that holds the token
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) token_file: Option<PathBuf>,
    /// Where sessiond keeps its data on this machine [env: SESSIONPLANE_DATA_DIR]
    /// [default: $XDG_STATE_HOME/sessionplane or ~/.local/state/sessionplane]
    // The variable is no word of the line, and so must not be in its usage.
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The authorities to trust for https:// (PEM), and no others [env:
    /// SESSIONPLANE_TLS_CA] [default: those of the system]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// The client certificate, for a server that asks for one (PEM) [env:
    /// SESSIONPLANE_TLS_CERT]
    #[arg(long, global = true, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its private key (PEM) [env: SESSIONPLANE_TLS_KEY]
    #[arg(long, global = true, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
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
    /// No colour
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// Nothing but text on a terminal too: no colour, no line that replaces
    /// another, no Markdown that is laid out (also: NO_COLOR)
    #[arg(long, global = true)]
    pub(crate) plain: bool,
    /// Nothing beside the answer but questions and failures
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

impl Globals {
    /// How the output may look.
    pub(crate) fn looks(&self) -> Looks {
        Looks {
            colourless: self.no_color,
            plain: self.plain,
            quiet: self.quiet,
        }
    }
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// List the sessions, what needs you first
    ///
    /// Under a session that waits for an answer is what it asks. A directory with
    /// a * before it is one that several sessions of the list work in which are not
    /// dormant. BRANCH is as it was at the last boundary of a run: what is checked
    /// out since is seen by the next run. AGE is the time in that state; of a paused
    /// session that the server has not seen pause since its start, the time since
    /// its last change: it is paused at least so long.
    #[command(after_help = fleet::AGENTS_EXAMPLES)]
    Agents(AgentsArgs),
    /// Watch and steer the fleet on the whole terminal
    ///
    /// Enter attaches to the selected session; keys answer, steer, abort, pause
    /// and rename. ? lists them.
    Top(TopArgs),
    /// Create a session, at rest
    #[command(after_help = fleet::NEW_EXAMPLES)]
    New(NewArgs),
    /// Show what is known of a session
    Show(SessionArgs),
    /// Give a session a prompt and follow the run to its end
    ///
    /// The answer goes to standard output, all else to standard error. Ctrl-C
    /// stops the run; pressed twice, it leaves at once.
    #[command(override_usage = "sessionctl invoke [OPTIONS] SESSION TEXT\n       \
        sessionctl invoke [OPTIONS] SESSION [TEXT] --text-file PATH")]
    Invoke(InvokeArgs),
    /// Be there: see what happens in a session and type to steer it
    ///
    /// A line that is typed steers the active run. /follow TEXT adds a text
    /// for when the run would otherwise stop, /answer ANSWER answers the open
    /// question, /abort stops the run; /help lists all of them. // begins a
    /// text that begins with a slash. Ctrl-D, /quit, or the end of a pipe, detaches
    /// and disturbs nothing.
    Attach(AttachArgs),
    /// Show what a session is doing
    State(SessionArgs),
    /// List the entries of a session
    Entries(EntriesArgs),
    /// Print the events of a session as they happen
    Events(EventsArgs),
    /// List the runs of a session, newest first
    #[command(after_help = reading::RUNS_EXAMPLES)]
    Runs(RunsArgs),
    /// Show the record of a run
    Run(RunArgs),
    /// Wait until a run has settled and tell how it ended
    ///
    /// Waits across lost connections and restarts of the server, for as long as
    /// --timeout says. Of a session it waits for the active run or compaction;
    /// if there is none, its last run is told. A question that the run waits with
    /// is told once, with the way to answer it. Exit codes: 0 completed, 1 failed
    /// or aborted, 3 not settled in time (it goes on) or no server to be reached.
    #[command(after_help = reading::WAIT_EXAMPLES)]
    Wait(WaitArgs),
    /// Put a text before the model, at its next call
    #[command(override_usage = "sessionctl steer [OPTIONS] SESSION TEXT\n       \
        sessionctl steer [OPTIONS] SESSION [TEXT] --text-file PATH")]
    Steer(TextArgs),
    /// Add a text for when the run would otherwise stop
    #[command(
        override_usage = "sessionctl follow-up [OPTIONS] SESSION TEXT\n       \
        sessionctl follow-up [OPTIONS] SESSION [TEXT] --text-file PATH"
    )]
    FollowUp(TextArgs),
    /// Stop the active run, or a compaction
    Abort(AbortArgs),
    /// List what all runs ask, oldest first, and how to answer it
    Questions(QuestionsArgs),
    /// Answer what a run asks; alone, list what is open
    ///
    /// TARGET is a session, or a question's id. Of a session the only open question
    /// is meant, unless qN or an id before the answer says which; where several are
    /// open they are listed (exit 4). Without an answer the open questions are
    /// listed. An answer is a choice's id, yes or no, a text, or NAME=VALUE for each
    /// field of a form. A secret is better read from a file or a pipe than typed as
    /// an argument.
    // What it was called before it took sessions.
    #[command(alias = "respond",
        override_usage = "sessionctl answer [OPTIONS] TARGET [QUESTION] [ANSWER]...\n       \
        sessionctl answer [OPTIONS] TARGET [QUESTION] --text-file PATH",
        after_help = control::ANSWER_EXAMPLES)]
    Answer(AnswerArgs),
    /// Tell each question when it is asked, until Ctrl-C
    #[command(after_help = fleet::WATCH_EXAMPLES)]
    Watch(WatchArgs),
    /// Give a session another name; its id, history and streams stay
    Rename(RenameArgs),
    /// Set labels of a session, or take them away
    #[command(after_help = fleet::LABEL_EXAMPLES)]
    Label(LabelArgs),
    /// Say how urgent a session is
    Priority(PriorityArgs),
    /// Hold sessions: the active run settles, and nothing begins after it
    Pause(SessionsArgs),
    /// Let paused sessions go on
    Resume(PausedArgs),
    /// Move a session to another directory; its next run starts there
    Cd(CdArgs),
    /// Delete sessions with their conversation, runs and artifacts
    ///
    /// A working tree that one worked in stays.
    Rm(RmArgs),
    /// Have a summary take the place of the earlier conversation
    ///
    /// Only between runs. The answer comes at once and says that it began;
    /// --wait waits for its outcome. Nothing is lost: the entries stay, and a
    /// compaction that fails leaves the conversation as it was.
    #[command(after_help = control::COMPACT_EXAMPLES)]
    Compact(CompactArgs),
    /// Choose the model of the runs to come
    #[command(after_help = control::SET_MODEL_EXAMPLES)]
    SetModel(SetModelArgs),
    /// Choose the thinking level of the runs to come
    #[command(after_help = control::SET_THINKING_EXAMPLES)]
    SetThinking(SetThinkingArgs),
    /// Go on from an earlier entry; what came after it stays as a branch
    #[command(after_help = control::NAVIGATE_EXAMPLES)]
    Navigate(NavigateArgs),
    /// Show what a session, or a new session of an agent, can do
    Capabilities(TargetArgs),
    /// List the commands that a composer may offer
    Commands(TargetArgs),
    /// Read, export and verify the record of who did what
    Audit(AuditArgs),
    /// Print the completions of a shell
    ///
    /// Of names, the server is asked that the line speaks to. Write what is printed
    /// to where the shell reads it at its start, as below, or try it in one shell:
    /// source <(sessionctl completions bash). A program that is called by its path
    /// is completed by that path: print the script anew when it moves.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Write the manual pages into a folder
    Man(ManArgs),
    /// Show the version of this program and of the API it speaks
    Version,
}

impl Verb {
    /// What the verb waits for.
    pub(crate) fn waits(&self) -> Waits {
        match self {
            Self::Invoke(_) => Waits::Run,
            Self::Attach(_)
            | Self::Events(_)
            | Self::Watch(_)
            | Self::Top(_)
            | Self::Agents(AgentsArgs { watch: true, .. })
            | Self::Entries(EntriesArgs { follow: true, .. }) => Waits::Stream,
            Self::Steer(_)
            | Self::FollowUp(_)
            | Self::Abort(_)
            | Self::Compact(_)
            | Self::SetModel(_)
            | Self::SetThinking(_)
            | Self::Navigate(_)
            | Self::New(_)
            | Self::Answer(_)
            | Self::Rename(_)
            | Self::Label(_)
            | Self::Priority(_)
            | Self::Pause(_)
            | Self::Resume(_)
            | Self::Cd(_)
            | Self::Rm(_) => Waits::Answer(Effect::Writes),
            Self::Agents(_)
            | Self::Show(_)
            | Self::Questions(_)
            | Self::State(_)
            | Self::Entries(_)
            | Self::Runs(_)
            | Self::Run(_)
            | Self::Wait(_)
            | Self::Capabilities(_)
            | Self::Commands(_)
            | Self::Audit(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Version => Waits::Answer(Effect::Reads),
        }
    }
}

impl Verb {
    /// Whether it is given for its outcome, and what it prints only tells it.
    pub(crate) fn is_for_its_outcome(&self) -> bool {
        matches!(self.waits(), Waits::Answer(Effect::Writes)) || matches!(self, Self::Wait(_))
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
    #[arg(value_name = "SESSION", value_parser = session::parse, add = names())]
    pub(crate) session: SessionRef,
}

/// Sessions.
#[derive(Args, Debug)]
pub(crate) struct SessionsArgs {
    /// The sessions: an id, a name, or key:TEXT each
    #[arg(value_name = "SESSION", value_parser = session::parse, required = true,
        add = names_of(Which::Others))]
    pub(crate) sessions: Vec<SessionRef>,
}

/// Sessions that are paused.
#[derive(Args, Debug)]
pub(crate) struct PausedArgs {
    /// The sessions: an id, a name, or key:TEXT each
    #[arg(value_name = "SESSION", value_parser = session::parse, required = true,
        add = names_of(Which::Paused))]
    pub(crate) sessions: Vec<SessionRef>,
}

/// `invoke`.
#[derive(Args, Debug)]
pub(crate) struct InvokeArgs {
    /// Create the session if it does not exist
    #[arg(long)]
    pub(crate) new: bool,
    /// The agent of a session that is created [default: the server's]
    #[arg(long, value_name = "AGENT", requires = "new", add = agents())]
    pub(crate) agent: Option<AgentName>,
    /// The session that a new one branches off: its past becomes the new one's
    #[arg(long, value_name = "SESSION", value_parser = session::parse, requires = "new",
        add = names())]
    pub(crate) parent: Option<SessionRef>,
    /// The last entry of the parent's past: an id, or its number [default: where
    /// the parent is]
    #[arg(long, value_name = "ENTRY", value_parser = Place::parse, requires = "parent")]
    pub(crate) from: Option<Place>,
    /// Abort the run when this command is gone; otherwise it goes on
    #[arg(long)]
    pub(crate) cancel_on_disconnect: bool,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    #[command(flatten)]
    pub(crate) text: SaidArgs,
}

/// `completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples (make the folder first; zsh needs ~/.zfunc in its fpath):
  sessionctl completions bash > ~/.local/share/bash-completion/completions/sessionctl
  sessionctl completions zsh > ~/.zfunc/_sessionctl
  sessionctl completions fish > ~/.config/fish/completions/sessionctl.fish";

/// `man`.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// The folder; it is made if it is not there
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
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
    /// Names one call, which attach is not: it is refused, and so not offered
    // Instead of the flag that every command has.
    #[arg(long, value_name = "ID", hide = true)]
    pub(crate) request_id: Option<RequestId>,
}

#[cfg(test)]
mod tests;
