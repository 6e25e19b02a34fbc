//! Completion on a command line: the shell asks this program, which asks the server for the names of
//! its sessions. Nothing is told where none can be had: who completes is in the middle of a line.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

use clap::{CommandFactory as _, Parser as _};
use clap_complete::env::Shells;
use clap_complete::{ArgValueCompleter, CompleteEnv, CompletionCandidate};
use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::{Fleet as _, ListSessions, SessionOrder};
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;

use super::args::{Arguments, quoted};
use super::context::Context;
use super::program;
use super::render::phase_words;

/// What the scripts of the shells set, with the shell's name.
const VARIABLE: &str = "SESSIONCTL_COMPLETE";
const PROGRAM: &str = "sessionctl";
/// How long who presses a key waits for names.
const BRIEFLY: Duration = Duration::from_secs(1);
/// Names that are offered at most.
const NAMES: u32 = 200;

/// Which sessions an argument is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    /// Any.
    All,
    /// Any that the line does not name already.
    Others,
    /// Those that wait for an answer.
    Asking,
    /// Those that are paused, and that the line does not name already.
    Paused,
}

impl Which {
    /// Sessions of which only these are offered.
    fn filter(self) -> Option<&'static str> {
        match self {
            Self::All | Self::Others => None,
            Self::Asking => Some("phase = NEEDS_INPUT"),
            Self::Paused => Some("paused = true"),
        }
    }

    /// Whether a session is offered beside the words of the line, the one that is begun among them.
    fn offers(self, name: &str, begun: &str, words: &[OsString]) -> bool {
        if !matches!(self, Self::Others | Self::Paused) {
            return true;
        }
        // After the program and its verb; the word that is being completed is there, too.
        let named = words.iter().skip(2).filter(|word| *word == name).count();
        named <= usize::from(name == begun)
    }
}

/// Completes the words of an argument that names a session.
pub(crate) fn names() -> ArgValueCompleter {
    names_of(Which::All)
}

/// The same, of those sessions that it is for.
pub(crate) fn names_of(which: Which) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let begun = current.to_string_lossy();
        let words: Vec<_> = typed(std::env::args_os()).collect();
        let found = found(&begun, which.filter()).unwrap_or_default();
        let fitting = found.iter().filter(|session| {
            let name = session.name.as_ref();
            name.is_some_and(|name| which.offers(name.as_str(), &begun, &words))
        });
        fitting.filter_map(offer).collect::<Vec<_>>()
    })
}

/// Answers a shell that completes a line, if one asks; whether it did.
///
/// # Errors
/// When the shell is not known.
pub(crate) fn answered() -> Result<bool, clap::Error> {
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(Arguments::command)
        .var(VARIABLE)
        .try_complete(std::env::args_os(), here.as_deref())
}

/// The script that has a shell ask this program.
///
/// # Errors
/// When there is none for the shell.
pub(crate) fn script(shell: &str) -> std::io::Result<String> {
    let shells = Shells::builtins();
    let known = shells.completer(shell);
    let known = known.ok_or_else(|| std::io::Error::other(format!("no script for {shell}")))?;
    let mut script = Vec::new();
    known.write_registration(VARIABLE, PROGRAM, PROGRAM, &completer(), &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// What the script calls: this program, by its path if it was called by one, since a shell would look
/// for the name in vain.
fn completer() -> String {
    let by_path = std::env::args_os()
        .next()
        .is_some_and(|first| first.to_string_lossy().contains('/'));
    let path = std::env::current_exe().ok().filter(|_| by_path);
    path.map_or_else(
        || PROGRAM.to_owned(),
        |path| path.to_string_lossy().into_owned(),
    )
}

/// Completes what a table shows as the state of sessions.
pub(crate) fn stages() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let begun = current.to_string_lossy().to_ascii_lowercase();
        let phases = Phase::ALL.map(|phase| phase.as_str().to_ascii_lowercase());
        let all = phases
            .into_iter()
            .chain(["stalled", "pausing"].map(str::to_owned));
        let fitting = all.filter(|name| name.starts_with(&begun));
        fitting.map(CompletionCandidate::new).collect::<Vec<_>>()
    })
}

/// Completes the agents that sessions have: no call lists those that a server has.
pub(crate) fn agents() -> ArgValueCompleter {
    of_sessions(|session| Some(session.agent.to_string()))
}

/// Completes the workspaces that sessions work in.
pub(crate) fn workspaces() -> ArgValueCompleter {
    of_sessions(|session| Some(session.place.as_ref()?.workspace.to_string()))
}

fn of_sessions(part: fn(&SessionSummary) -> Option<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let begun = current.to_string_lossy().into_owned();
        let found = found("", None).unwrap_or_default();
        let all: BTreeSet<_> = found.iter().filter_map(part).collect();
        let fitting = all.into_iter().filter(|name| name.starts_with(&begun));
        fitting.map(CompletionCandidate::new).collect::<Vec<_>>()
    })
}

fn offer(session: &SessionSummary) -> Option<CompletionCandidate> {
    let name = session.name.as_ref()?;
    let phase = phase_words(session.phase, session.paused);
    let help = format!("{phase}, {}", session.agent);
    Some(CompletionCandidate::new(name.as_str()).help(Some(help.into())))
}

/// Sessions whose names begin so, of those that a filter wants; none where no server tells.
fn found(begun: &str, wanted: Option<&str>) -> Option<Vec<SessionSummary>> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !begun.chars().all(plain) {
        return None;
    }
    let begins = || format!("name = {}", quoted(&format!("{begun}*")));
    let begins = (!begun.is_empty()).then(begins);
    let conditions: Vec<_> = begins
        .into_iter()
        .chain(wanted.map(str::to_owned))
        .collect();
    let filter = conditions.join(" AND ");
    let request = ListSessions {
        filter,
        order: SessionOrder::Attention,
        page_size: NAMES,
        page_token: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let page = runtime.block_on(async {
        let context = Context::new(globals(std::env::args_os())?).ok()?;
        let call = context
            .client
            .list_sessions(request, CallOptions::default());
        tokio::time::timeout(BRIEFLY, call).await.ok()?.ok()
    });
    page.map(|page| page.sessions)
}

/// The line that is completed: what comes before is the shell's call of this program.
fn typed(words: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    words.skip_while(|word| word != "--").skip(1)
}

/// The flags of the line that is completed which say where the server is.
fn globals(words: impl Iterator<Item = OsString>) -> Option<super::args::Globals> {
    let mut line = vec![OsString::from(PROGRAM)];
    line.extend(program::that_say_where(typed(words)));
    line.push("version".into());
    let arguments = Arguments::try_parse_from(line).ok()?;
    Some(arguments.globals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_that_is_offered_has_a_script_that_asks_this_program() {
        use clap::ValueEnum as _;
        for shell in clap_complete::Shell::value_variants() {
            let script = script(&shell.to_string()).unwrap();
            assert!(script.contains(VARIABLE), "{shell}: {script}");
            // Tests are called by their path.
            let path = std::env::current_exe().unwrap();
            assert!(
                script.contains(&*path.to_string_lossy()),
                "{shell}: {script}"
            );
        }
    }

    #[test]
    fn a_name_is_offered_once_and_a_verb_those_that_it_is_for() {
        let words: Vec<_> = ["sessionctl", "pause", "docs", "do"]
            .map(OsString::from)
            .to_vec();
        assert!(!Which::Others.offers("docs", "do", &words));
        assert!(Which::Others.offers("docs-old", "do", &words));
        assert!(Which::Others.offers("docs", "docs", &words), "being typed");
        assert!(Which::Others.offers("pause", "pa", &words), "the verb");
        assert!(Which::All.offers("docs", "do", &words));
        assert_eq!(Which::Asking.filter(), Some("phase = NEEDS_INPUT"));
        assert_eq!(Which::Paused.filter(), Some("paused = true"));
        assert!(!Which::Paused.offers("docs", "", &words));
    }

    #[test]
    fn the_server_of_the_line_that_is_completed_is_asked() {
        let line = "sessionctl -- sessionctl --address 127.0.0.1:7 --json show --token-file=/t do";
        let globals = globals(line.split(' ').map(OsString::from)).unwrap();
        let address = globals.address.unwrap().to_string();
        assert_eq!(address, "http://127.0.0.1:7");
        assert_eq!(globals.token_file, Some("/t".into()));
        let unfinished = "sessionctl -- sessionctl show --address";
        let globals = super::globals(unfinished.split(' ').map(OsString::from)).unwrap();
        assert!(globals.address.is_none());
    }
}
