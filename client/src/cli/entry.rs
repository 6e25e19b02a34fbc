//! Where the process begins and ends: the command line is read, the verb is run under a runtime,
//! and its end becomes words and an exit code.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _};
use tokio::runtime::Runtime;

use super::args::{Arguments, Globals, Verb, Waits};
use super::completing;
use super::context::Context;
use super::exit::{Exit, Stop};
use super::program::{self, PROGRAM};
use super::screen::{Piece, Screen};
use super::{json, mistyped, verbs};

/// What a bare `sessionctl` prints.
fn first_steps() -> String {
    format!(
        "start a server:   sessiond            (in the source tree: make run)\n\
         start a session:  {PROGRAM} invoke --new NAME \"what to do\"\n\
         be there:         {PROGRAM} attach NAME      (all commands: {PROGRAM} --help)"
    )
}

/// Runs `sessionctl`.
#[must_use]
pub fn main() -> ExitCode {
    match completing::answered() {
        Ok(false) => {}
        Ok(true) => return Exit::Done.into(),
        Err(error) => return told(&error).into(),
    }
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(error) => return told(&error).into(),
    };
    let mut screen = Screen::of_process(arguments.globals.looks());
    let json = arguments.globals.json;
    let Some(verb) = arguments.verb else {
        let end = bare(arguments.globals, &mut screen);
        return ended(end, &mut screen, json).into();
    };
    if let Some(end) = verbs::alone(&verb, json, &mut screen) {
        return ended(end, &mut screen, json).into();
    }
    let end = started(verb, arguments.globals, &mut screen);
    ended(end, &mut screen, json).into()
}

fn arguments() -> Result<Arguments, clap::Error> {
    let matches = Arguments::command().try_get_matches();
    let matches = matches.map_err(|error| {
        let command = Arguments::command();
        mistyped::with_tips(error, &words(), &command)
    })?;
    program::was_called(std::env::args_os().next().as_deref(), &matches);
    Arguments::from_arg_matches(&matches)
}

/// What was typed.
fn words() -> Vec<String> {
    let words = std::env::args_os();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Help, the version, or a command line that makes no sense.
fn told(error: &clap::Error) -> Exit {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        // Nobody to tell that nobody can be told.
        let _ = error.print();
        return Exit::Done;
    }
    // A program that reads JSON hears of this as of any other failure.
    if std::env::args_os().any(|word| word == "--json") {
        let words = error.render().to_string();
        let problem = words.lines().take_while(|line| !line.is_empty());
        let problem: Vec<_> = problem.map(str::trim).collect();
        let problem = problem.join(" ");
        let problem = problem.strip_prefix("error: ").unwrap_or(&problem);
        let _ = writeln!(io::stdout(), "{}", json::error(problem, None));
    }
    let _ = error.print();
    Exit::Usage
}

/// Without a verb: the fleet if there is one, else the first steps.
fn bare(globals: Globals, screen: &mut Screen) -> Result<Exit, Stop> {
    let runtime = runtime()?;
    let shown = runtime.block_on(verbs::bare(globals, screen));
    runtime.shutdown_background();
    if !shown? {
        screen.line(&first_steps())?;
    }
    Ok(Exit::Done)
}

/// Threads that are needed: those of the runtime, and a few that read files and look up names.
const THREADS: usize = 4;

/// Whether the system gives as many threads as are needed. The runtime would end the process in
/// words that nobody understands.
fn has_threads() -> io::Result<()> {
    let (held, let_go) = std::sync::mpsc::sync_channel::<()>(0);
    let let_go = Arc::new(Mutex::new(let_go));
    let mut threads = Vec::new();
    let mut given = Ok(());
    for _ in 0..THREADS {
        let let_go = let_go.clone();
        let waits = move || {
            let let_go = let_go.lock().unwrap_or_else(PoisonError::into_inner);
            // It ends when the other side does.
            let _ = let_go.recv();
        };
        match std::thread::Builder::new().spawn(waits) {
            Ok(thread) => threads.push(thread),
            Err(error) => given = Err(error),
        }
    }
    drop(held);
    for thread in threads {
        // It does not panic.
        let _ = thread.join();
    }
    given
}

fn runtime() -> Result<Runtime, Stop> {
    has_threads().map_err(|error| {
        let words = format!("cannot start: the system gives no thread: {error}");
        Stop::failed(Exit::Failed, words)
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.map_err(|error| Stop::failed(Exit::Failed, format!("cannot start: {error}")))
}

fn started(verb: Verb, globals: Globals, screen: &mut Screen) -> Result<Exit, Stop> {
    let runtime = runtime()?;
    let end = runtime.block_on(timed(verb, globals, screen));
    // A read of standard input cannot be interrupted; the process does not wait for it.
    runtime.shutdown_background();
    end
}

async fn timed(verb: Verb, globals: Globals, screen: &mut Screen) -> Result<Exit, Stop> {
    let (timeout, waits) = (globals.timeout, verb.waits());
    let context = Context::new(globals)?;
    if verb.is_for_its_outcome() {
        screen.outlive_reader();
    }
    let run = verbs::run(verb, &context, screen);
    let end = match timeout {
        None => run.await,
        // A single call has the same time for itself: whichever is up first, the words are the same.
        Some(timeout) => tokio::time::timeout(timeout, run)
            .await
            .unwrap_or_else(|_| Err(context.out_of_time(waits, timeout))),
    };
    let end = match end {
        Err(stop) => Err(context.with_near_names(stop).await),
        end => end,
    };
    match end {
        Err(Stop::Unread) if waits == Waits::Run => Err(unread(&context)),
        end => end,
    }
}

/// Nobody reads the answer of a run any more: it is left, and how it ends is not known.
fn unread(context: &Context) -> Stop {
    let words = format!(
        "nobody reads the answer any more; the run was left, and how it ends is not known\n  \
         rejoin it: the same command with --request-id {}",
        context.request_id
    );
    Stop::failed(Exit::Unknown, words)
}

/// Tells how it ended. What cannot be told is not told.
fn ended(end: Result<Exit, Stop>, screen: &mut Screen, json: bool) -> Exit {
    match end {
        Ok(exit) => {
            // The end of an output is the end of a line, whatever was shown last.
            let _ = screen.put(&Piece::Break);
            exit
        }
        Err(Stop::Unread) => Exit::Done,
        Err(Stop::Failed { exit, words, error }) => {
            if json {
                let _ = screen.json(&json::error(&words, error.as_deref()));
            }
            let _ = screen.error(&words);
            exit
        }
    }
}
