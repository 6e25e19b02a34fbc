//! What a verb works with: a client, the caller's request id, and the way to wait with patience.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sessionplane_core::contract::{CallOptions, SessionControl as _, SessionState};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::{RequestId, RunId, SessionName, SessionRef};

use super::args::{Globals, SaidArgs, TextSource, Waits};
use super::exit::{Exit, Stop};
use super::hint::{self, About, Effect};
use super::interrupt::Interrupts;
use super::program::PROGRAM;
use super::screen::Screen;
use super::{credentials, fleet, prompt};
use crate::clock::mint_request_id;
use crate::connection::Client;

/// After so long a person is told that something is being waited for.
pub(crate) const IMPATIENCE: Duration = Duration::from_secs(2);

/// What a verb works with.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) globals: Globals,
    /// Names the one logical call of this command.
    pub(crate) request_id: RequestId,
    /// Where the token came from, or was looked for, in words.
    pub(crate) token: String,
    /// Longest wait for an answer.
    pub(crate) patience: Duration,
    /// Told of every Ctrl-C since the command began.
    pub(crate) interrupts: Interrupts,
    /// A text is being read, and nothing was sent yet.
    reading: AtomicBool,
    /// A stream has begun: what it shows until the time is up is all that was asked for.
    streams: AtomicBool,
    /// What goes on however long it is waited for, once the server has told that it does.
    goes_on: Mutex<Option<GoesOn>>,
    /// A name that no session has.
    unknown: Mutex<Option<SessionName>>,
}

/// What goes on by itself.
struct GoesOn {
    /// What is waited for, in words that a time can follow.
    unfinished: String,
    /// What becomes of it when nobody waits, and the ways on.
    next: String,
}

impl Context {
    /// Makes the client; connects at the first call.
    ///
    /// # Errors
    /// When the token or the address cannot be used.
    pub(crate) fn new(globals: Globals) -> Result<Self, Stop> {
        let found = credentials::find(&globals)?;
        let patience = found.options.deadline;
        let client =
            Client::connect(found.options).map_err(|error| credentials::refusal(&error))?;
        let request_id = globals.request_id.clone().unwrap_or_else(mint_request_id);
        Ok(Self {
            client,
            globals,
            request_id,
            token: found.token,
            patience,
            interrupts: Interrupts::new(),
            reading: AtomicBool::new(false),
            streams: AtomicBool::new(false),
            goes_on: Mutex::new(None),
            unknown: Mutex::new(None),
        })
    }

    /// Options for the command's one logical call.
    pub(crate) fn call(&self) -> CallOptions {
        CallOptions {
            request_id: Some(self.request_id.clone()),
            deadline: None,
        }
    }

    /// Longest wait for the beginning of a stream that is taken up again: however long a person
    /// wants to wait, a server that hangs is worth another attempt sooner.
    pub(crate) fn opening(&self) -> Duration {
        self.patience.min(credentials::PATIENCE)
    }

    /// What a call that got no answer means for a person.
    pub(crate) fn stop<'a>(
        &self,
        error: CallError,
        about: impl Into<About<'a>>,
        effect: Effect,
    ) -> Stop {
        let about = about.into();
        if let (Reason::NoSuchSession, About::Session(SessionRef::Name(name))) =
            (error.reason, about)
        {
            *self.unknown_name() = Some(name.clone());
        }
        hint::refusal(error, about, effect, self)
    }

    fn unknown_name(&self) -> MutexGuard<'_, Option<SessionName>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A failure, with the names that may have been meant if it is for a name that no session has.
    pub(crate) async fn with_near_names(&self, stop: Stop) -> Stop {
        let Some(name) = self.unknown_name().take() else {
            return stop;
        };
        match stop {
            Stop::Failed { exit, words, error }
                if error
                    .as_ref()
                    .is_some_and(|error| error.reason == Reason::NoSuchSession) =>
            {
                let near = fleet::near(&self.client, &name).await;
                let words = hint::with_near_names(words, &near);
                Stop::Failed { exit, words, error }
            }
            stop => stop,
        }
    }

    /// Reads the text that a command line gives. A file or a pipe may keep it waiting, which neither
    /// Ctrl-C nor the time that was given waits for.
    ///
    /// # Errors
    /// When there is no such text, or Ctrl-C was pressed.
    pub(crate) async fn text(&self, source: TextSource) -> Result<String, Stop> {
        self.read(move || prompt::read(source, io::stdin())).await
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, Stop> + Send + 'static,
    ) -> Result<T, Stop> {
        self.reading.store(true, Ordering::Relaxed);
        let reading = tokio::task::spawn_blocking(read);
        let text = tokio::select! {
            biased;
            () = self.interrupts.pressed() => Err(hint::interrupted(Effect::Reads, self)),
            text = reading => text.unwrap_or_else(|failed| {
                Err(Stop::failed(Exit::Failed, format!("reading the text failed: {failed}")))
            }),
        };
        self.reading.store(false, Ordering::Relaxed);
        text
    }

    /// What a command line says to an agent, read to its end.
    ///
    /// # Errors
    /// When it cannot be read, is too much, or Ctrl-C was pressed.
    pub(crate) async fn said(&self, source: SaidArgs) -> Result<(String, Given), Stop> {
        self.read(move || prompt::said(source, io::stdin())).await
    }

    /// A session's state as it is now, waited for as patiently as anything that only reads.
    pub(crate) async fn state(
        &self,
        session: &SessionRef,
        screen: &mut Screen,
    ) -> Result<SessionState, Stop> {
        let options = CallOptions::default();
        let call = self.client.get_state(session.clone(), None, options);
        let state = self.patiently(screen, Effect::Reads, call).await?;
        state.map_err(|error| self.stop(error, Some(session), Effect::Reads))
    }

    /// From here on the command waits for what goes on without it: `unfinished` says what has not
    /// happened yet if its time is up, `target` is what `sessionctl wait` is to be given.
    pub(crate) fn goes_on(&self, unfinished: String, target: &str) {
        let next = format!("it goes on\n  wait on: {PROGRAM} wait {target}");
        *self.waited_for() = Some(GoesOn { unfinished, next });
    }

    /// The same of a run that this command has begun or rejoined: it `cancels` the run by leaving, or
    /// not.
    pub(crate) fn run_goes_on(&self, run: RunId, cancels: bool) {
        let request_id = &self.request_id;
        let fate = if cancels {
            "it is aborted unless somebody rejoins it soon"
        } else {
            "it goes on"
        };
        let goes_on = GoesOn {
            unfinished: format!("run {run} has not settled"),
            next: format!(
                "{fate}\n  \
                 wait on:   {PROGRAM} wait {run}\n  \
                 rejoin it: the same command with --request-id {request_id}"
            ),
        };
        *self.waited_for() = Some(goes_on);
    }

    /// From here on a stream shows what happens: the end of its time is its end.
    pub(crate) fn stream_has_begun(&self) {
        self.streams.store(true, Ordering::Relaxed);
    }

    fn waited_for(&self) -> MutexGuard<'_, Option<GoesOn>> {
        self.goes_on.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time that was given for the whole command is up.
    pub(crate) fn out_of_time(&self, verb: Waits, timeout: Duration) -> Stop {
        let target = self.client.target();
        if self.reading.load(Ordering::Relaxed) {
            let words = format!("no text came within {timeout:?}; nothing was sent");
            return Stop::failed(Exit::Unknown, words);
        }
        let late = |words: &str| CallError::unknown(Reason::DeadlineExceeded, words);
        if let Some(GoesOn { unfinished, next }) = &*self.waited_for() {
            let words = format!("{unfinished} within {timeout:?}; {next}");
            let first = words.lines().next().unwrap_or_default();
            return Stop::of(late(first), words);
        }
        if self.streams.load(Ordering::Relaxed) {
            let words = format!("the time is up: this was shown for {timeout:?}");
            return Stop::of(late(&words), words);
        }
        let words = format!("no outcome from {target} within {timeout:?}");
        let error = late(&words);
        match verb {
            Waits::Answer(effect) => self.stop(error, About::Nothing, effect),
            Waits::Run => {
                let id = &self.request_id;
                let next = format!("\n  find out: the same command with --request-id {id}");
                Stop::of(error, words + &next)
            }
            Waits::Stream => Stop::of(error, words),
        }
    }

    /// Waits for a call, telling a person when it takes long, and until Ctrl-C.
    pub(crate) async fn patiently<T>(
        &self,
        screen: &mut Screen,
        effect: Effect,
        call: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        let words = format!("waiting for {}", self.client.target());
        self.waiting(screen, effect, &words, call).await
    }

    /// The same, in `words` of what is being waited for.
    pub(crate) async fn waiting<T>(
        &self,
        screen: &mut Screen,
        effect: Effect,
        words: &str,
        call: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        let mut call = std::pin::pin!(call);
        let mut waited = Duration::ZERO;
        loop {
            tokio::select! {
                // First, so that a press is heard however fast the answers come.
                biased;
                () = self.interrupts.pressed() => return Err(hint::interrupted(effect, self)),
                answer = &mut call => return Ok(answer),
                () = tokio::time::sleep(IMPATIENCE) => {
                    waited += IMPATIENCE;
                    let seconds = waited.as_secs();
                    screen.status(&format!("{words}… {seconds} s"))?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::Arguments;
    use crate::cli::screen::tests::pipes;

    fn context(words: &[&str]) -> Context {
        let words = ["sessionctl", "--address", "127.0.0.1:1"]
            .iter()
            .chain(words);
        let arguments = Arguments::try_parse_from(words.chain(&["version"])).unwrap();
        Context::new(arguments.globals).unwrap_or_else(|stop| panic!("{stop:?}"))
    }

    #[tokio::test]
    async fn a_ctrl_c_between_two_calls_is_heard_by_the_next() {
        let context = context(&[]);
        let (mut screen, ..) = pipes();
        let pressed = Interrupts::new();
        let pid = std::process::id().to_string();
        let killed = std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status();
        assert!(killed.unwrap().success());
        pressed.pressed().await;
        let call = std::future::ready(7);
        let answer = context.patiently(&mut screen, Effect::Reads, call).await;
        assert!(
            matches!(
                &answer,
                Err(Stop::Failed {
                    exit: Exit::Interrupted,
                    ..
                })
            ),
            "{answer:?}"
        );
        let again = context
            .patiently(&mut screen, Effect::Reads, std::future::ready(7))
            .await;
        assert!(matches!(again, Ok(7)), "a press is heard once: {again:?}");
    }

    #[tokio::test]
    async fn a_stream_is_not_waited_for_as_long_as_an_answer_may_be() {
        let opening = |time| context(&["--timeout", time]).opening();
        assert_eq!(opening("2h"), Duration::from_secs(15));
        assert_eq!(opening("300ms"), Duration::from_millis(300));
    }
}
