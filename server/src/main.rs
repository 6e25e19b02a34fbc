//! `sessiond`, the Sessionplane server.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use sessionplane_server::config::{self, Settings, Sources, given_flags, offered_flags};
use sessionplane_server::process::config_tool::{self, ConfigCommand};
use sessionplane_server::process::health::Question;
use sessionplane_server::process::{self, Options};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The Sessionplane server: turns agent sessions into objects that can be found, watched, steered
/// and stopped over gRPC.
#[allow(clippy::doc_markdown, reason = "these comments are the help text")]
#[derive(Debug, Parser)]
#[command(
    version,
    about = "The Sessionplane server: agent sessions that can be found, watched, steered and stopped over gRPC"
)]
struct Arguments {
    /// The configuration file (TOML).
    #[arg(long, env = "SESSIONPLANE_CONFIG", value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// The directory that the built-in demo agent reads. Default: the current one.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// A file to write once the server takes calls: one line of JSON with its address and pid. It
    /// is removed when the server stops, and one that an earlier server left is removed first.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Verb>,
}

/// What else it does than serve.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Check, explain and describe the configuration.
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Ask a running server whether it takes calls; exits 0 if it does, else 1.
    Health(Question),
}

impl Arguments {
    /// The command line, with the flags that the settings declare.
    fn read() -> (Self, Sources) {
        let matches = Self::command().args(offered_flags()).get_matches();
        let arguments = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        let sources = Sources {
            file: arguments.config.clone(),
            variables: Sources::environment(),
            flags: given_flags(&matches),
        };
        (arguments, sources)
    }
}

/// How long the runtime's threads may take to end after everything was stopped.
const THREADS_END_WITHIN: Duration = Duration::from_millis(100);
/// The status of a process that a second signal ended.
const ENDED_AT_ONCE: i32 = 130;

fn main() -> ExitCode {
    // Without the feature nothing of the environment may reach into the server.
    #[cfg(feature = "failpoints")]
    let _failpoints = fail::FailScenario::setup();
    let (arguments, sources) = Arguments::read();
    match &arguments.command {
        Some(Verb::Config { command }) => return config_tool::run(command, &sources),
        Some(Verb::Health(question)) => return health(question, &sources),
        None => {}
    }
    let options = Options {
        sources,
        workspace: arguments.workspace,
        ready_file: arguments.ready_file,
    };
    let config = match process::configuration(&options) {
        Ok(config) => config,
        Err(error) => return failed(&error),
    };
    start_logging(&config);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let ended = runtime.block_on(async {
        let shutdown = shutdown_signal()?;
        process::run(config, &options, shutdown)
            .await
            .map_err(Box::<dyn std::error::Error>::from)
    });
    // A thread that hangs must not keep the process: what was acknowledged is on disk.
    runtime.shutdown_timeout(THREADS_END_WITHIN);
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(error.as_ref()),
    }
}

#[allow(clippy::print_stdout, reason = "the answer")]
fn health(question: &Question, sources: &Sources) -> ExitCode {
    // Where the address is named, nothing of the configuration is needed.
    let settings = match config::load(sources) {
        Ok(settings) => settings,
        Err(_) if question.names_address() => Settings::default(),
        Err(error) => return failed(&error),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let address = settings.health_listen.as_ref().unwrap_or(&settings.listen);
    match runtime.block_on(question.ask(address)) {
        Ok(address) => {
            println!("{address} is SERVING");
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

#[allow(
    clippy::print_stderr,
    reason = "the last word to whoever started it, whatever the log does"
)]
fn failed(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("sessiond: {error}");
    ExitCode::FAILURE
}

fn start_logging(settings: &Settings) {
    let filter = EnvFilter::try_new(&settings.log_filter);
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_writer(std::io::stderr);
    if settings.log_json {
        builder.json().init();
    } else {
        builder.init();
    }
}

/// Completes at SIGTERM, SIGINT or SIGHUP. A second one ends the process at once.
fn shutdown_signal() -> std::io::Result<impl Future<Output = ()> + Send> {
    let mut signals = Signals::listen()?;
    Ok(async move {
        signals.next().await;
        tracing::info!("stopping; a second signal ends the process at once");
        tokio::spawn(async move {
            signals.next().await;
            tracing::warn!("ended at once: what was acknowledged is kept");
            std::process::exit(ENDED_AT_ONCE);
        });
    })
}

/// The signals that ask the server to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        // Listening to it would undo what `nohup` asked for.
        let hangup = if hangup_is_ignored() {
            None
        } else {
            Some(signal(SignalKind::hangup())?)
        };
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup,
        })
    }

    async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Whether whoever started this process had SIGHUP ignored. Where the system does not tell, no.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Signal 1 is the lowest bit.
    mask.is_some_and(|mask| mask & 1 == 1)
}
