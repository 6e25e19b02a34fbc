//! Refusals in words that teach: what happened, then what to do next. Words only.

mod field;

use std::time::Duration;

use sessionplane_core::domain::command::{Command, CommandKind, Rejection, RejectionCode};
use sessionplane_core::domain::error::{CallError, FieldViolation, Outcome, Reason};
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::{RequestId, RunId, SessionName, SessionRef, WorkspaceName};
use sessionplane_core::domain::run::code;

use super::context::Context;
use super::exit::{Exit, Stop};
use super::program::PROGRAM;
use super::session::shell_word;
use super::visible;
pub(crate) use crate::retry::Effect;

/// The longest text that a hint holds, in bytes.
const PASTED_BYTES: usize = 200;

/// What a call was about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About<'a> {
    /// Neither a session nor a run.
    Nothing,
    /// A session.
    Session(&'a SessionRef),
    /// A run.
    Run(RunId),
}

impl<'a> From<Option<&'a SessionRef>> for About<'a> {
    fn from(session: Option<&'a SessionRef>) -> Self {
        session.map_or(Self::Nothing, Self::Session)
    }
}

impl From<RunId> for About<'_> {
    fn from(run: RunId) -> Self {
        Self::Run(run)
    }
}

/// What is known of the place a call went to.
struct Setting<'a> {
    address: String,
    token: &'a str,
    request_id: &'a str,
    patience: Duration,
}

/// A call that got no answer of its own.
pub(crate) fn refusal(
    error: CallError,
    about: About<'_>,
    effect: Effect,
    context: &Context,
) -> Stop {
    let setting = Setting {
        address: context.client.target().to_string(),
        token: &context.token,
        request_id: context.request_id.as_str(),
        patience: context.patience,
    };
    let words = words(&error, about, effect, &setting);
    Stop::of(error, words)
}

fn words(error: &CallError, about: About<'_>, effect: Effect, setting: &Setting<'_>) -> String {
    let mut lines = vec![first_line(error, about, setting)];
    lines.extend(fields(error));
    lines.extend(advised(error, about));
    lines.extend(next_steps(error, about, setting));
    if effect == Effect::Writes && error.outcome != Outcome::Refused {
        lines.push(unknown(setting.request_id));
    }
    lines.join("\n  ")
}

fn first_line(error: &CallError, about: About<'_>, setting: &Setting<'_>) -> String {
    let Setting {
        address, patience, ..
    } = setting;
    match (error.reason, about) {
        (Reason::NoSuchSession, _) if is_of_parent(error) => {
            "there is no session to branch off: --parent names none that is there".to_owned()
        }
        (Reason::NoSuchSession, About::Session(session)) => {
            format!("there is no session {}", quoted(session))
        }
        (Reason::NoSuchRun, About::Run(run)) => format!("there is no run {run}"),
        (Reason::Unimplemented, _) => format!("{address}: {}", error.message),
        (Reason::Transport, _) if error.outcome == Outcome::Refused => format!(
            "cannot connect to {address}: {}; nothing was sent",
            error.message
        ),
        (Reason::Transport, _) => format!("no answer from {address}: {}", error.message),
        (Reason::DeadlineExceeded, _) => format!("no answer from {address} within {patience:?}"),
        (Reason::Unauthenticated, _) => {
            format!("{address} does not know this caller: {}", error.message)
        }
        _ => field::said(&error.message).0,
    }
}

/// What the server advises, in words of the command line.
fn advised(error: &CallError, about: About<'_>) -> Option<String> {
    let verb = field::said(&error.message).1?;
    let about_parent = |violation: &FieldViolation| violation.field.starts_with("branch_hints");
    let session = match about {
        // What is wrong with --from is so of the entries of another session.
        _ if error.violations.iter().any(about_parent) => "PARENT".to_owned(),
        About::Session(session) => word(session),
        About::Nothing | About::Run(_) => "SESSION".to_owned(),
    };
    Some(format!("what there is: {PROGRAM} {verb} {session}"))
}

/// Whether it is the parent session that is unknown, and not the session that was called.
fn is_of_parent(error: &CallError) -> bool {
    let mut fields = error.violations.iter();
    fields.any(|violation| violation.field == "parent_session")
}

/// The fields concerned, unless the message names them already.
fn fields(error: &CallError) -> impl Iterator<Item = String> {
    let named = |violation: &&FieldViolation| !error.message.contains(&violation.description);
    error.violations.iter().filter(named).map(|violation| {
        // With its field before it, which says whose words these are.
        field::said(&format!("{}: {}", violation.field, violation.description)).0
    })
}

fn next_steps(error: &CallError, about: About<'_>, setting: &Setting<'_>) -> Vec<String> {
    let elsewhere = "another address: --address or SESSIONPLANE_ADDRESS".to_owned();
    match (error.reason, about) {
        (Reason::NoSuchSession, _) if is_of_parent(error) => {
            vec!["leave --parent out to begin with nothing".to_owned()]
        }
        (Reason::NoSuchSession, About::Session(SessionRef::Id(id))) => vec![
            format!("if it is the id of a run: {PROGRAM} run {id}"),
            format!("what there is:            {PROGRAM} agents"),
        ],
        (Reason::NoSuchSession, About::Session(_)) => {
            vec![format!("what there is: {PROGRAM} agents")]
        }
        (Reason::NoSuchRun, About::Run(_)) => vec![
            format!("the runs of a session:      {PROGRAM} runs SESSION"),
            format!("the last run of a session:  {PROGRAM} state SESSION"),
        ],
        (Reason::Unimplemented, _) => vec![elsewhere],
        (Reason::Transport, _) => vec![
            "start a server:  sessiond (in the source tree: make run)".to_owned(),
            elsewhere,
        ],
        (Reason::DeadlineExceeded, _) => {
            vec!["wait longer:     --timeout 60s".to_owned(), elsewhere]
        }
        (Reason::Unauthenticated, _) => vec![setting.token.to_owned()],
        (Reason::Overloaded | Reason::ServerDraining | Reason::PositionNotReached, _) => {
            let after = error.retry_after;
            let when = after.map_or_else(String::new, |after| format!(" in {after:?}"));
            vec![format!("try again{when}")]
        }
        (Reason::NameTaken, About::Session(session)) => {
            let word = word(session);
            vec![
                format!("who has it:   {PROGRAM} show {word}"),
                format!("be there:     {PROGRAM} attach {word}"),
            ]
        }
        (Reason::HasChildren, About::Session(session)) => {
            let word = word(session);
            vec![format!(
                "who they are: {PROGRAM} agents --filter 'parent = ID', with the id from {PROGRAM} show {word}"
            )]
        }
        (Reason::RequestIdReused, _) => {
            vec!["give another --request-id, or none".to_owned()]
        }
        _ => Vec::new(),
    }
}

/// An invoke that began no run, and the way out where there is one.
pub(crate) fn not_begun(session: &SessionRef, failure: &str, details: &str) -> String {
    let (first, word) = (format!("{failure}: {details}"), word(session));
    match failure {
        code::SESSION_BUSY => busy(session, details),
        code::SESSION_PAUSED => format!("{first}\n  let it go on: {PROGRAM} resume {word}"),
        code::DIRECTORY_UNAVAILABLE => elsewhere(&word, failure, details),
        _ => first,
    }
}

/// An invoke of a session whose place is not there, and the command that moves it.
fn elsewhere(word: &str, failure: &str, details: &str) -> String {
    let (what, _) = field::said(details);
    let first = format!("{failure}: {what}");
    // Beneath a workspace that is gone, no directory can be chosen.
    let known = what.strip_prefix("no workspace ");
    let known = known.and_then(|rest| Some(rest.split_once("configured are: ")?.1));
    match known {
        None => format!("{first}\n  put it back, or move it: {PROGRAM} cd {word} DIR"),
        Some(known) => {
            let only = WorkspaceName::parse(known).ok();
            let workspace = only.map_or_else(|| "WORKSPACE".to_owned(), |it| it.to_string());
            format!("{first}\n  move it: {PROGRAM} cd {word} DIR --workspace {workspace}")
        }
    }
}

/// A prompt for a session that is not there, and how to create it; whatever else ended a call as it
/// is.
pub(crate) fn with_creation(stop: Stop, session: &SessionRef) -> Stop {
    match stop {
        Stop::Failed {
            exit,
            words,
            error: Some(error),
        } if error.reason == Reason::NoSuchSession && !is_of_parent(&error) => {
            let create = match session {
                SessionRef::Name(name) => format!("{PROGRAM} invoke --new {name} \"...\""),
                SessionRef::ExternalKey(key) => {
                    format!("{PROGRAM} new --key {}", shell_word(key.as_str()))
                }
                SessionRef::Id(_) => format!("{PROGRAM} invoke --new NAME \"...\""),
            };
            Stop::Failed {
                exit,
                words: format!("{words}\n  create it:     {create}"),
                error: Some(error),
            }
        }
        stop => stop,
    }
}

/// An invoke that another run, or a change of the session, was in the way of. Only a run, which the
/// details then name, can be steered.
fn busy(session: &SessionRef, details: &str) -> String {
    let word = word(session);
    let names_run = |word: &str| word.parse::<RunId>().is_ok();
    let way_in = if details.split_whitespace().any(names_run) {
        format!(
            "steer it:    {PROGRAM} steer {word} \"...\"\n  \
             queue after: {PROGRAM} follow-up {word} \"...\""
        )
    } else {
        format!("wait for it: {PROGRAM} wait {word}")
    };
    format!(
        "session {} is busy: {details}\n  \
         {way_in}\n  \
         watch it:    {PROGRAM} attach {word}\n  \
         stop it:     {PROGRAM} abort {word}",
        quoted(session)
    )
}

/// A command that was rejected. Each way on is told once, also where the server's words hold it.
pub(crate) fn rejected(session: &SessionRef, kind: CommandKind, rejection: &Rejection) -> String {
    let code = &rejection.code;
    // Each way on that a server advises has its line below.
    let (message, advised) = field::said(&rejection.message);
    let word = word(session);
    let over = matches!(
        code,
        RejectionCode::NoActiveRun | RejectionCode::RunCommandFailed
    );
    let message = match message.split_once(';') {
        Some((what, _)) if over => what,
        _ => &message,
    };
    if over && kind == CommandKind::Abort {
        return format!("nothing to abort, {}: {message}", code.as_str());
    }
    let first = format!("rejected, {}: {message}", code.as_str());
    let next = match code {
        _ if over => format!("start a run: {PROGRAM} invoke {word} \"...\""),
        RejectionCode::UnsupportedCapability => {
            format!("what it can do: {PROGRAM} capabilities {word}")
        }
        RejectionCode::NoSuchInteraction => format!("what is open: {PROGRAM} answer {word}"),
        RejectionCode::SessionBusy => {
            format!("wait for it: {PROGRAM} wait {word}\n  stop it:     {PROGRAM} abort {word}")
        }
        RejectionCode::InvalidCommand if kind == CommandKind::SetModel => {
            format!("what may be chosen: {PROGRAM} capabilities {word}")
        }
        RejectionCode::InvalidCommand if kind == CommandKind::SetThinking => {
            format!("what may be chosen: {PROGRAM} state {word}")
        }
        RejectionCode::InvalidCommand if kind == CommandKind::Navigate => {
            format!("the entries there are: {PROGRAM} entries {word}")
        }
        _ if rejection.retryable => "the same command may succeed later".to_owned(),
        _ => match advised {
            Some(verb) => format!("what there is: {PROGRAM} {verb} {word}"),
            None => return first,
        },
    };
    format!("{first}\n  {next}")
}

/// A change between runs that what is active did not let happen.
pub(crate) fn held(session: &SessionRef, rejection: &Rejection) -> String {
    let (message, _) = field::said(&rejection.message);
    let first = format!("rejected, {}: {message}", rejection.code.as_str());
    let word = word(session);
    match rejection.code {
        RejectionCode::SessionBusy => {
            format!(
                "{first}\n  wait for it: {PROGRAM} wait {word}\n  stop it:     {PROGRAM} abort {word}"
            )
        }
        _ if rejection.retryable => format!("{first}\n  the same command may succeed later"),
        _ => first,
    }
}

/// The command line that gives a command once more under its id, which does nothing twice.
pub(crate) fn repeat(session: &SessionRef, command: &Command, id: &RequestId) -> String {
    let chosen = |chosen: &Option<String>| match chosen {
        Some(chosen) => format!(" {}", pasted(chosen)),
        None => " --default".to_owned(),
    };
    let word = word(session);
    let (verb, rest) = match command {
        Command::Steer { text, given } => ("steer", said(text, given)),
        Command::FollowUp { text, given } => ("follow-up", said(text, given)),
        Command::Abort => ("abort", String::new()),
        Command::Compact { instructions: None } => ("compact", String::new()),
        Command::Compact {
            instructions: Some(text),
        } => ("compact", format!(" --instructions={}", pasted(text))),
        Command::SetModel { model } => ("set-model", chosen(model)),
        Command::SetThinking { level } => ("set-thinking", chosen(level)),
        Command::Navigate { entry } => ("navigate", format!(" {entry}")),
        Command::Respond { interaction, .. } => {
            // The answer may be a secret.
            let answer = "'... the same answer ...'";
            return format!("{PROGRAM} answer {interaction} --request-id {id} {answer}");
        }
    };
    format!("{PROGRAM} {verb} {word} --request-id {id}{rest}")
}

/// A text as the last argument: one that begins as an option does comes after `--`.
/// A text, and a stand-in for each file that goes with it.
fn said(text: &str, given: &Given) -> String {
    let files = " --text-file '... the same file ...'".repeat(given.data.len());
    let text = if text.is_empty() && !given.data.is_empty() {
        String::new()
    } else {
        argument(text)
    };
    files + &text
}

fn argument(text: &str) -> String {
    match pasted(text) {
        word if word.starts_with('-') || word.starts_with("'-") => format!(" -- {word}"),
        word => format!(" {word}"),
    }
}

/// A text as an argument that can be pasted; a stand-in where it cannot.
fn pasted(text: &str) -> String {
    let as_shown = text.len() <= PASTED_BYTES && visible::line(text) == text;
    if as_shown && text != "-" {
        return shell_word(text);
    }
    "'... the same text ...'".to_owned()
}

/// A run's stream that was lost for good.
pub(crate) fn lost_run(session: &SessionRef, cancel: bool, request_id: &str) -> String {
    let fate = if cancel {
        "the run is aborted unless somebody rejoins it soon"
    } else {
        "the run goes on without this command"
    };
    let word = word(session);
    format!(
        "{fate}\n  \
         watch it:  {PROGRAM} attach {word}\n  \
         rejoin it: the same command with --request-id {request_id}"
    )
}

/// A run whose server cannot be reached: what becomes of it cannot be known from here.
pub(crate) fn unreachable_run(run: RunId, context: &Context) -> String {
    let (target, request_id) = (context.client.target(), &context.request_id);
    format!(
        "what becomes of run {run} is not known while {target} cannot be reached\n  \
         find out:  {PROGRAM} run {run}\n  \
         rejoin it: the same command with --request-id {request_id}"
    )
}

/// Ctrl-C while a call was under way.
pub(crate) fn interrupted(effect: Effect, context: &Context) -> Stop {
    let words = match effect {
        Effect::Reads => "interrupted".to_owned(),
        Effect::Writes => format!("interrupted; {}", unknown(context.request_id.as_str())),
    };
    Stop::failed(Exit::Interrupted, words)
}

/// Words about an unknown name, with the names that are nearly so after the first line.
pub(crate) fn with_near_names(words: String, near: &[SessionName]) -> String {
    if near.is_empty() {
        return words;
    }
    let near: Vec<_> = near.iter().map(SessionName::as_str).collect();
    let meant = format!("did you mean {}?", near.join(", or "));
    match words.split_once('\n') {
        Some((first, rest)) => format!("{first}\n  {meant}\n{rest}"),
        None => format!("{words}\n  {meant}"),
    }
}

/// How to find out what became of a call.
fn unknown(request_id: &str) -> String {
    format!(
        "whether it was done is unknown; repeating it is harmless with\n    \
         --request-id {request_id}"
    )
}

fn quoted(session: &SessionRef) -> String {
    format!("\"{session}\"")
}

/// The session as an argument.
pub(crate) fn word(session: &SessionRef) -> String {
    shell_word(&session.to_string())
}

#[cfg(test)]
mod tests;
