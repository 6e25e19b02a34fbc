//! `sessionctl invoke`: the answer streams to standard output, all else beside it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use sessionplane_core::contract::{
    CallOptions, DispatchRequest, InvokeEvent, InvokeRequest, OnDisconnect, SessionControl as _,
};
use sessionplane_core::domain::command::{Command, DispatchAnswer};
use sessionplane_core::domain::error::{CallError, Outcome};
use sessionplane_core::domain::ids::{RunId, SessionRef};
use sessionplane_core::domain::run::{RunRecord, code};

use super::catch_up;
use crate::cli::args::InvokeArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::interrupt::Interrupts;
use crate::cli::render::{Flow, settled_line};
use crate::cli::screen::Screen;
use crate::cli::{json, prompt};
use crate::rejoin::{RunItem, RunStream};

/// After so long without an event a person is told that the run still works.
const QUIET: Duration = Duration::from_secs(2);

pub(super) async fn run(
    args: InvokeArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.session;
    let request = InvokeRequest {
        session: session.clone(),
        prompt: prompt::read(args.text, io::stdin())?,
        agent: args.agent,
        must_exist: !args.new,
        on_disconnect: if args.cancel_on_disconnect {
            OnDisconnect::Cancel
        } else {
            OnDisconnect::Detach
        },
    };
    let cancels = args.cancel_on_disconnect;
    let stream = context.client.invoke_to_end(request, context.call());
    let mut following = Following {
        context,
        screen,
        session,
        cancels,
        flow: Flow::default(),
        run: None,
        abort: None,
        pressed: 0,
        rejoined: false,
        quiet: Duration::ZERO,
    };
    following.follow(stream).await
}

type Answer = Pin<Box<dyn Future<Output = Result<DispatchAnswer, CallError>> + Send>>;

/// A run that is being followed.
struct Following<'a> {
    context: &'a Context,
    screen: &'a mut Screen,
    session: SessionRef,
    cancels: bool,
    flow: Flow,
    run: Option<RunId>,
    /// The abort that Ctrl-C asked for, while it is not answered.
    abort: Option<Answer>,
    pressed: u32,
    rejoined: bool,
    quiet: Duration,
}

impl Following<'_> {
    async fn follow(&mut self, mut stream: RunStream) -> Result<Exit, Stop> {
        let mut interrupts = Interrupts::new();
        loop {
            let abort = self.abort.as_mut();
            tokio::select! {
                item = stream.next() => {
                    self.quiet = Duration::ZERO;
                    match item {
                        Some(Ok(item)) => {
                            if let Some(terminal) = self.item(item)? {
                                return self.terminal(terminal, &stream).await;
                            }
                        }
                        Some(Err(error)) => return Err(self.lost(error)),
                        None => return Ok(Exit::Unknown),
                    }
                }
                answer = answered(abort) => {
                    self.abort = None;
                    self.abort_answered(answer)?;
                }
                () = interrupts.pressed() => self.interrupted()?,
                () = tokio::time::sleep(QUIET) => self.still_working()?,
            }
        }
    }

    /// Shows an item; gives back the terminal.
    fn item(&mut self, item: RunItem) -> Result<Option<InvokeEvent>, Stop> {
        if self.context.globals.json {
            self.screen.json(&match &item {
                RunItem::Event(event) => json::invoked(event),
                RunItem::Rejoining {
                    attempt,
                    delay,
                    error,
                } => json::rejoining(*attempt, *delay, error),
                RunItem::Rejoined => json::rejoined(),
            })?;
        }
        let quiet = self.context.globals.json;
        match item {
            RunItem::Event(event) => {
                if let InvokeEvent::Accepted { run, .. } = &event {
                    self.run = Some(*run);
                }
                if !quiet {
                    let pieces = self.flow.invoked(&event);
                    self.screen.put_all(pieces)?;
                }
                return Ok(event.is_terminal().then_some(event));
            }
            RunItem::Rejoining {
                attempt: 1, error, ..
            } if !quiet => {
                self.screen
                    .aside(&format!("connection lost ({error}), rejoining the run"))?;
            }
            RunItem::Rejoining { .. } => {}
            RunItem::Rejoined => {
                self.rejoined = true;
                if !quiet {
                    self.screen.aside("rejoined")?;
                }
            }
        }
        Ok(None)
    }

    async fn terminal(&mut self, event: InvokeEvent, stream: &RunStream) -> Result<Exit, Stop> {
        let (record, failure) = match event {
            InvokeEvent::Completed { run } => (Some(run), None),
            InvokeEvent::Failed {
                code, details, run, ..
            } => (run, Some((code, details))),
            _ => (None, None),
        };
        if let Some(record) = record.as_deref().filter(|_| self.rejoined) {
            catch_up::missed_text(record, stream, self.context, self.screen).await?;
        }
        match failure {
            None => {
                self.settled(record.as_deref())?;
                Ok(Exit::Done)
            }
            Some((code, details)) => self.failed(&code, &details, record.as_deref()),
        }
    }

    fn settled(&mut self, record: Option<&RunRecord>) -> Result<(), Stop> {
        if let Some(record) = record.filter(|_| !self.context.globals.json) {
            self.screen.aside(&settled_line(record))?;
        }
        Ok(())
    }

    fn failed(
        &mut self,
        failure: &str,
        details: &str,
        record: Option<&RunRecord>,
    ) -> Result<Exit, Stop> {
        if failure == code::ABORTED && self.pressed > 0 {
            self.settled(record)?;
            return Ok(Exit::Interrupted);
        }
        let words = match record {
            Some(record) => settled_line(record),
            None if failure == code::SESSION_BUSY => hint::busy(&self.session, details),
            None => format!("{failure}: {details}"),
        };
        self.screen.error(&words)?;
        Ok(Exit::Failed)
    }

    /// The first Ctrl-C stops the run, the second leaves it.
    fn interrupted(&mut self) -> Result<(), Stop> {
        self.pressed += 1;
        let Some(run) = self.run else {
            return Err(hint::interrupted(Effect::Writes, self.context));
        };
        if self.pressed > 1 {
            let word = hint::word(&self.session);
            return Err(Stop::failed(
                Exit::Interrupted,
                format!("left before run {run} settled\n  watch it: sessionctl attach {word}"),
            ));
        }
        self.screen
            .aside(&format!("stopping run {run} (Ctrl-C again leaves at once)"))?;
        let client = self.context.client.clone();
        let request = DispatchRequest {
            session: self.session.clone(),
            command: Command::Abort,
            expected_run: Some(run),
        };
        self.abort = Some(Box::pin(async move {
            client.dispatch(request, CallOptions::default()).await
        }));
        Ok(())
    }

    /// What becomes of the run is told by its terminal; only a no is worth a line.
    fn abort_answered(&mut self, answer: Result<DispatchAnswer, CallError>) -> Result<(), Stop> {
        match answer {
            Ok(DispatchAnswer::Accepted(_)) => {}
            Ok(DispatchAnswer::Rejected(rejection)) => {
                self.screen
                    .aside(&format!("not stopped: {}", rejection.message))?;
            }
            Err(error) => self.screen.aside(&format!("not stopped: {error}"))?,
        }
        Ok(())
    }

    fn still_working(&mut self) -> Result<(), Stop> {
        self.quiet += QUIET;
        let seconds = self.quiet.as_secs();
        if !self.context.globals.json {
            self.screen.status(&match self.run {
                Some(run) => format!("run {run} works, nothing new for {seconds} s"),
                None => format!("waiting for {}, {seconds} s", self.context.client.target()),
            })?;
        }
        Ok(())
    }

    /// The stream is gone for good.
    fn lost(&mut self, error: CallError) -> Stop {
        let ended = error.outcome == Outcome::StreamEnded || self.run.is_some();
        let stop = self
            .context
            .stop(error, Some(&self.session), Effect::Writes);
        match stop {
            Stop::Failed { error, words, .. } if ended => {
                let request_id = self.context.request_id.as_str();
                let next = hint::lost_run(&self.session, self.cancels, request_id);
                let first = words.lines().next().unwrap_or_default();
                Stop::Failed {
                    exit: Exit::Unknown,
                    words: format!("{first}\n  {next}"),
                    error,
                }
            }
            stop => stop,
        }
    }
}

/// The answer to the abort, once there is one.
async fn answered(abort: Option<&mut Answer>) -> Result<DispatchAnswer, CallError> {
    match abort {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    }
}
