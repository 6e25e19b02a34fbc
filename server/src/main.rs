//! `sessiond`, the Sessionplane server.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use sessionplane_server::adapters::clock::{TokioClock, TokioSpawner};
use sessionplane_server::adapters::engine::scripted::{SCRIPTED_VERB, serve_scripted};
use sessionplane_server::adapters::process_host::{self, SETUP_VERB, SUPERVISE_VERB};
use sessionplane_server::config::{self, Settings, Sources, given_flags, offered_by};
use sessionplane_server::process::config_tool::{self, ConfigCommand};
use sessionplane_server::process::health::Question;
use sessionplane_server::process::login::{self, LoginArgs};
use sessionplane_server::process::policy_tool::{self, PolicyCommand};
use sessionplane_server::process::store_tools::{self, StoreCommand};
use sessionplane_server::process::token::{self, TokenCommand};
use sessionplane_server::process::{self, Options};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The Sessionplane server: turns agent sessions into objects that can be found, watched, steered
/// and stopped over gRPC.
#[allow(clippy::doc_markdown, reason = "these comments are the help text")]
#[derive(Debug, Parser)]
#[command(
    name = "sessiond",
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
    /// Show, check and test policies: who may do what.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Ask a running server whether it takes calls; exits 0 if it does, else 1.
    Health(Question),
    /// Make, list and revoke the tokens of configured principals.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Make a token for yourself, at a terminal: what you type with it can count as typed.
    Login(LoginArgs),
    /// Verify, export, import, count, back up and restore the data directory.
    #[command(subcommand)]
    Store(StoreCommand),
}

impl Arguments {
    /// The command line as a person is told of it.
    fn told() -> clap::Command {
        offered_by(Self::command(), &["token", "login", "store"])
    }

    /// The command line, with the flags that the settings declare.
    fn read() -> (Self, Sources) {
        let matches = Self::told().get_matches();
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
/// The status of a process whose main thread panicked.
const PANICKED: i32 = 101;
/// The status of a process that a second signal ended.
const ENDED_AT_ONCE: i32 = 130;

fn main() -> ExitCode {
    if let Some(ended) = apart() {
        return ended;
    }
    // Without the feature nothing of the environment may reach into the server.
    #[cfg(feature = "failpoints")]
    let _failpoints = fail::FailScenario::setup();
    if let Err(error) = large_files_fail_and_do_not_kill() {
        return failed(&error);
    }
    let (arguments, sources) = Arguments::read();
    match &arguments.command {
        Some(Verb::Config { command }) => return config_tool::run(command, &sources),
        Some(Verb::Policy(command)) => return policy_tool::run(command, &sources),
        Some(Verb::Health(question)) => return health(question, &sources),
        Some(Verb::Token(command)) => return tokens(command, &sources),
        Some(Verb::Login(args)) => return log_in(args, &sources),
        Some(Verb::Store(command)) => return store(command, &sources),
        None => {}
    }
    // Not for the verbs: those go on after what the storage engine gives up on, and say what it was.
    end_with_the_main_thread();
    let options = Options {
        sources,
        workspace: arguments.workspace,
        ready_file: arguments.ready_file,
        reload: Arc::default(),
    };
    let config = match process::configuration(&options) {
        Ok(config) => config,
        Err(error) => return failed(&error),
    };
    start_logging(&config, "info");
    for doubt in config::doubtful(&options.sources) {
        tracing::warn!("{doubt}");
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(process::threads(&config))
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let ended = runtime.block_on(async {
        let shutdown = shutdown_signal(options.reload.clone())?;
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

/// What this binary is in processes beside the server's, where it was started anew as that. It is not
/// offered: nobody types it.
fn apart() -> Option<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).take(3).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [SUPERVISE_VERB, grace] => {
            let grace = grace.parse().map(Duration::from_millis).ok()?;
            Some(process_host::supervise(grace))
        }
        [SCRIPTED_VERB] => Some(scripted()),
        [SETUP_VERB, parent] => Some(process_host::setup(parent.parse().ok()?)),
        _ => None,
    }
}

/// The scripted engine, as an agent that has this process to itself.
fn scripted() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let served = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let spawner = TokioSpawner::current();
            serve_scripted(Arc::new(TokioClock::start()), &spawner).await
        })
    });
    served.map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS)
}

/// From here on a panic of the main thread ends the process: what it was doing, nobody goes on with, and the runtime
/// that its unwinding would wait for may never end. One elsewhere is the matter of whoever runs there.
fn end_with_the_main_thread() {
    let main = std::thread::current().id();
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        told(panic);
        if std::thread::current().id() == main {
            let payload = panic.payload();
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            let what = text.unwrap_or("no reason is known");
            // The last word to whoever started it, if it is still heard.
            let _ = writeln!(
                std::io::stderr(),
                "sessiond: an internal error: {what}; what was acknowledged is kept"
            );
            std::process::exit(PANICKED);
        }
    }));
}

/// Lets a write beyond a limit on the size of files fail with an error, as on a full disk, instead of
/// killing the process.
fn large_files_fail_and_do_not_kill() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let _entered = runtime.enter();
    // Once it is listened to, the signal does nothing else, for as long as the process lives.
    let number = rustix::process::Signal::XFSZ.as_raw();
    signal(SignalKind::from_raw(number)).map(drop)
}

fn store(command: &StoreCommand, sources: &Sources) -> ExitCode {
    let settings = match config::load(sources) {
        Ok(settings) => settings,
        Err(error) => return failed(&error),
    };
    start_logging(&settings, "warn");
    match process::data_directory(&settings) {
        Ok(data_dir) => store_tools::run(command, &data_dir),
        Err(error) => failed(&error),
    }
}

fn tokens(command: &TokenCommand, sources: &Sources) -> ExitCode {
    let settings = match config::load(sources) {
        Ok(settings) => settings,
        Err(error) => return failed(&error),
    };
    start_logging(&settings, "warn");
    let done = token::run(command, &settings, sources.file.as_deref());
    done.map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS)
}

fn log_in(args: &LoginArgs, sources: &Sources) -> ExitCode {
    let settings = match config::load(sources) {
        Ok(settings) => settings,
        Err(error) => return failed(&error),
    };
    start_logging(&settings, "warn");
    let done = login::run(args, &settings, sources.file.as_deref());
    done.map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS)
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

/// Logs what is configured, or what is unless anything is.
fn start_logging(settings: &Settings, unless: &str) {
    let configured = settings.source("log.filter").map(|_| &*settings.log_filter);
    let filter = EnvFilter::try_new(configured.unwrap_or(unless));
    let filter = filter.unwrap_or_else(|_| EnvFilter::new(unless));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(colour)
        .with_writer(std::io::stderr);
    let lines = if settings.log_json {
        lines
            .json()
            .with_filter(filter_fn(tells_no_headers))
            .boxed()
    } else {
        lines.with_filter(filter_fn(tells_no_headers)).boxed()
    };
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .init();
}

/// Whether what is logged can hold no header of a call, and so no token: at their finest level the
/// transport's libraries tell each of them.
fn tells_no_headers(about: &Metadata<'_>) -> bool {
    const TRANSPORT: [&str; 7] = [
        "h2",
        "hyper",
        "hyper_util",
        "rustls",
        "tokio_rustls",
        "tonic",
        "tower",
    ];
    let library = about.target().split("::").next().unwrap_or_default();
    *about.level() <= Level::DEBUG || !TRANSPORT.contains(&library)
}

/// Completes at SIGTERM, SIGINT, and where it means that the terminal is gone, at SIGHUP. A second
/// one ends the process at once. Otherwise SIGHUP asks for the files to be read again.
fn shutdown_signal(reload: Arc<Notify>) -> std::io::Result<impl Future<Output = ()> + Send> {
    // On a thread of its own: they are heard however busy the server's threads are, or hang.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::listen(reload)?
    };
    let (asked, stop) = tokio::sync::oneshot::channel();
    let listen = move || {
        runtime.block_on(async {
            signals.next().await;
            // A server that has ended meanwhile needs not be told.
            let _ = asked.send(());
            signals.next().await;
        });
        process::end(ENDED_AT_ONCE, || {
            tracing::warn!("ended at once: what was acknowledged is kept");
        });
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(listen)?;
    // A listener that is lost could tell of no stop any more: that is one.
    Ok(async move { drop(stop.await) })
}

/// The signals that ask the server to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Option<Signal>,
    /// Whom a hang-up tells to read files again; nobody where it means that the terminal is gone.
    reload: Option<Arc<Notify>>,
}

impl Signals {
    fn listen(reload: Arc<Notify>) -> std::io::Result<Self> {
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
            reload: (!has_terminal()).then_some(reload),
        })
    }

    async fn next(&mut self) {
        let hangup = async {
            let Some(hangup) = &mut self.hangup else {
                return std::future::pending().await;
            };
            while hangup.recv().await.is_some()
                && let Some(reload) = &self.reload
            {
                tracing::info!("SIGHUP: the files are looked at");
                reload.notify_one();
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = hangup => {}
        }
    }
}

/// Whether this process has a terminal that can go away. A service has none: there SIGHUP is a word
/// of its supervisor.
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Whether whoever started this process had SIGHUP ignored. Where the system does not tell, no.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Signal 1 is the lowest bit.
    mask.is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(verb: &str) -> String {
        let mut command = Arguments::told();
        command.build();
        let verb = command.find_subcommand_mut(verb);
        verb.map(|verb| verb.render_long_help().to_string())
            .unwrap_or_default()
    }

    #[test]
    fn the_command_line_is_well_formed_and_has_the_programs_name() {
        Arguments::told().debug_assert();
        let version = Arguments::told().render_version();
        assert!(version.starts_with("sessiond "), "{version}");
    }

    #[test]
    fn who_asks_no_server_is_not_offered_where_it_listens_but_may_say_it() {
        for verb in ["token", "store"] {
            let help = help(verb);
            assert!(
                help.contains("--data-dir") && help.contains("--set"),
                "{help}"
            );
            assert!(!help.contains("listen"), "{help}");
        }
        // These judge or use it.
        for verb in ["config", "health"] {
            assert!(help(verb).contains("--listen"), "{verb}");
        }
        let given = |words: &[&str]| {
            let words = ["sessiond"].iter().chain(words);
            let matches = Arguments::told().try_get_matches_from(words).unwrap();
            given_flags(&matches).len()
        };
        assert_eq!(given(&["--listen", "127.0.0.1:1", "token", "list"]), 1);
        assert_eq!(given(&["token", "list", "--listen", "127.0.0.1:1"]), 1);
        assert_eq!(given(&["token", "list"]), 0);
    }
}
