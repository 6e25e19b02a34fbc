//! Commands that are run for questions: a few at a time, each with its question in its environment and
//! never on a command line that a shell reads.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::process::{ExitStatus, Stdio};

use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionId;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::asked::Asked;
use crate::cli::render::named;
use crate::cli::visible;

/// Commands that run at a time.
const AT_ONCE: usize = 4;
/// Longest value in an environment, in bytes: the system bounds all of it.
const VALUE_BYTES: usize = 4096;

/// The commands of a watch; those that run end with it.
pub(super) struct Commands {
    /// The program and its arguments; nothing runs without.
    line: Vec<OsString>,
    /// Standard output is for objects: what the commands say goes beside it.
    beside: bool,
    /// That questions wait is told.
    told: bool,
    /// Questions whose turn has not come: no more than are open.
    waiting: VecDeque<Asked>,
    running: JoinSet<Option<String>>,
}

impl Commands {
    /// `beside`: what they say goes to standard error.
    pub(super) fn new(line: Vec<OsString>, beside: bool) -> Self {
        Self {
            line,
            beside,
            told: false,
            waiting: VecDeque::new(),
            running: JoinSet::new(),
        }
    }

    /// Runs the command for a question, at once or when there is room. Words where questions begin to
    /// wait: commands that hang keep all others away.
    pub(super) fn give(&mut self, asked: Asked) -> Option<String> {
        if self.line.is_empty() {
            return None;
        }
        let about = named(&asked.session);
        self.waiting.push_back(asked);
        self.start();
        if self.waiting.is_empty() {
            self.told = false;
            return None;
        }
        let is_news = !std::mem::replace(&mut self.told, true);
        is_news.then(|| {
            format!(
                "! the command for {about} waits: {AT_ONCE} others run, and no more run at a time"
            )
        })
    }

    /// Questions that were answered before their turn came need no command.
    pub(super) fn drop_answered(&mut self, session: &SessionSummary) {
        self.waiting.retain(|asked| {
            asked.session.id != session.id
                || session
                    .questions
                    .iter()
                    .any(|open| open.id == asked.interaction.id && open.resolution.is_none())
        });
    }

    /// A session is not wanted any more, or is no more.
    pub(super) fn forget(&mut self, session: SessionId) {
        self.waiting.retain(|asked| asked.session.id != session);
    }

    /// Completes when a command has failed, with words about it; never without.
    pub(super) async fn problem(&mut self) -> String {
        loop {
            let Some(ended) = self.running.join_next().await else {
                return std::future::pending().await;
            };
            self.start();
            if let Ok(Some(problem)) = ended {
                return problem;
            }
        }
    }

    fn start(&mut self) {
        while self.running.len() < AT_ONCE
            && let Some(asked) = self.waiting.pop_front()
            && let Some(mut command) = command(&self.line, self.beside, &asked)
        {
            let program = self.line[0].to_string_lossy().into_owned();
            let about = named(&asked.session).to_string();
            self.running.spawn(async move {
                match command.status().await {
                    Ok(status) if status.success() => None,
                    Ok(status) => Some(format!("! {program} for {about} {}", ended(status))),
                    Err(error) => Some(format!("! cannot run {program}: {error}")),
                }
            });
        }
    }
}

fn ended(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("ended with {code}"),
        None => "was ended by a signal".to_owned(),
    }
}

/// The command for a question.
fn command(line: &[OsString], beside: bool, asked: &Asked) -> Option<Command> {
    let (program, arguments) = line.split_first()?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    if beside && let Ok(error) = io::stderr().as_fd().try_clone_to_owned() {
        command.stdout(error);
    }
    command.envs(environment(asked));
    Some(command)
}

/// What a command finds in its environment.
fn environment(asked: &Asked) -> [(&'static str, String); 7] {
    let (session, question) = (&asked.session, &asked.interaction.question);
    let name = session.name.as_ref().map(ToString::to_string);
    let place = session.place.as_ref();
    let place = place.map(|place| place.directory.to_string());
    [
        ("SESSIONPLANE_SESSION", session.id.to_string()),
        ("SESSIONPLANE_NAME", name.unwrap_or_default()),
        ("SESSIONPLANE_AGENT", session.agent.to_string()),
        ("SESSIONPLANE_DIRECTORY", value(&place.unwrap_or_default())),
        ("SESSIONPLANE_QUESTION", asked.interaction.id.to_string()),
        ("SESSIONPLANE_KIND", question.kind().as_str().to_owned()),
        ("SESSIONPLANE_TITLE", value(&question.title)),
    ]
}

/// One line without what steers a terminal or ends a text: an engine wrote it.
fn value(text: &str) -> String {
    let line = visible::line(text);
    sessionplane_core::domain::text::head(&line, VALUE_BYTES).to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cli::testing::{asking, session};

    fn asked(number: u128, title: &str) -> Asked {
        let session = asking(number, &[1]);
        let mut interaction = session.questions[0].clone();
        title.clone_into(&mut interaction.question.title);
        Asked {
            session,
            interaction,
        }
    }

    fn words(line: &[&str]) -> Vec<OsString> {
        line.iter().map(OsString::from).collect()
    }

    async fn until_done(commands: &mut Commands) {
        while !commands.running.is_empty() {
            let next = commands.running.join_next();
            let ended = tokio::time::timeout(Duration::from_secs(20), next).await;
            assert_eq!(ended.unwrap().unwrap().unwrap(), None);
            commands.start();
        }
    }

    #[tokio::test]
    async fn c61_what_an_engine_wrote_reaches_a_command_as_a_value_and_never_as_words_of_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("told");
        let script = format!("printf '%s' \"$SESSIONPLANE_TITLE\" > {}", file.display());
        let mut commands = Commands::new(words(&["sh", "-c", &script]), false);
        commands.give(asked(1, "$(touch hit); `id` \"'\0 & \x1b[2J"));
        until_done(&mut commands).await;
        let told = std::fs::read_to_string(&file).unwrap();
        assert_eq!(told, "$(touch hit); `id` \"'\\u{0} & \\e[2J");
    }

    #[tokio::test]
    async fn c60_a_crowd_of_questions_runs_a_few_commands_at_a_time_and_all_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("touch {}/$SESSIONPLANE_SESSION", folder.path().display());
        let mut commands = Commands::new(words(&["sh", "-c", &script]), false);
        for number in 1..=20 {
            commands.give(asked(number, "?"));
            assert!(commands.running.len() <= AT_ONCE);
        }
        assert!(!commands.waiting.is_empty());
        until_done(&mut commands).await;
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 20);
    }

    #[tokio::test]
    async fn a_question_that_was_answered_before_its_turn_came_runs_no_command() {
        let mut commands = Commands::new(words(&["sleep", "60"]), false);
        let told: Vec<_> = (1..=6)
            .map(|number| commands.give(asked(number, "?")))
            .collect();
        let words = told[4].as_deref().unwrap_or_default();
        assert!(words.contains("waits: 4 others run"), "{words}");
        assert_eq!(told.iter().flatten().count(), 1, "once: {told:?}");
        assert_eq!(commands.waiting.len(), 2);
        commands.drop_answered(&session(6));
        commands.forget(session(5).id);
        assert!(commands.waiting.is_empty());
    }

    #[tokio::test]
    async fn a_command_that_fails_is_told_and_the_watch_goes_on() {
        let mut commands = Commands::new(words(&["sh", "-c", "exit 3"]), false);
        commands.give(asked(1, "?"));
        let problem = tokio::time::timeout(Duration::from_secs(20), commands.problem());
        let problem = problem.await.unwrap();
        assert!(problem.ends_with("ended with 3"), "{problem}");
        let mut commands = Commands::new(words(&["/no/such/program"]), false);
        commands.give(asked(1, "?"));
        let problem = tokio::time::timeout(Duration::from_secs(20), commands.problem());
        assert!(problem.await.unwrap().contains("cannot run"));
    }
}
