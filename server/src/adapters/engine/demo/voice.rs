//! How the agent speaks: messages in small pieces, tool events, and file work off the runtime's
//! threads. All of it is heard at a pace that a person can watch, and ends at once at an abort. No
//! secret of a token leaves by it, whatever it was read from: a file, a name, a commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::interaction::{Choice, InteractionAnswer, Question, Shape};
use sessionplane_core::domain::run::{Failure, code};
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::clock::BoxFuture;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};
use tokio::sync::Semaphore;

use super::engine::Pace;
use super::withheld::{told, told_of};
use crate::adapters::engine::link::{Halt, Link};

/// How many words are said in one delta.
const WORDS: usize = 2;
/// How long one piece of file work is waited for. A large folder is listed in a fraction of it.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long somebody is asked which of several things was meant.
const ASKED_FOR: Duration = Duration::from_secs(120);
/// The code of a run that fails for want of its folder.
const UNREADABLE: &str = "folder_unreadable";

/// Why a run leaves its course.
pub(super) enum Stop {
    /// It was told to, or nobody is there.
    Halt(Halt),
    /// It cannot go on.
    Failed(Failure),
}

impl From<Halt> for Stop {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}

impl Stop {
    /// A failure of the folder.
    pub(super) fn folder(error: &impl std::fmt::Display) -> Self {
        Self::Failed(Failure {
            code: UNREADABLE.to_owned(),
            details: format!("the folder cannot be read: {error}"),
            retryable: false,
        })
    }

    /// The reason as it is reported; `None` when nobody is there to hear it.
    pub(super) fn reason(self) -> Option<StopReason> {
        match self {
            Self::Halt(Halt::Aborted) => Some(StopReason::Aborted),
            Self::Halt(Halt::Gone) => None,
            Self::Failed(failure) => Some(StopReason::Failed(failure)),
        }
    }
}

/// What became of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Chosen {
    /// This one of the choices, from 0.
    This(usize),
    /// Nobody answered.
    Nobody,
    /// It was steered meanwhile; nobody is asked any more.
    Steered,
}

/// The agent's voice.
pub(super) struct Voice {
    pub(super) link: Link,
    pub(super) pace: Pace,
    jobs: Arc<Semaphore>,
    /// The numbers of the last message, call and question; ids are unique within a run and beyond.
    messages: u64,
    calls: u64,
    asks: u64,
}

impl Voice {
    /// A voice whose file work takes a place of `jobs`, which it shares with others.
    pub(super) fn new(link: Link, pace: Pace, jobs: Arc<Semaphore>) -> Self {
        Self {
            link,
            pace,
            jobs,
            messages: 0,
            calls: 0,
            asks: 0,
        }
    }

    /// Says a whole message, a few words at a time.
    pub(super) async fn say(&mut self, channel: OutputChannel, text: &str) -> Result<(), Stop> {
        let text = &*told(text);
        self.messages += 1;
        let message = format!("m{}", self.messages);
        let started = EngineEvent::MessageStarted {
            message: message.clone(),
        };
        self.link.emit(started).await?;
        for piece in pieces(text) {
            self.link.pause(self.pace.delta).await?;
            let delta = EngineEvent::MessageDelta {
                message: message.clone(),
                channel,
                text: piece,
            };
            self.link.emit(delta).await?;
        }
        let text = match channel {
            OutputChannel::Text => text.to_owned(),
            OutputChannel::Thinking => String::new(),
        };
        let finished = EngineEvent::MessageFinished {
            message,
            text: Some(text),
            usage: Usage::default(),
        };
        Ok(self.link.emit(finished).await?)
    }

    /// Starts a tool; returns the call's id.
    pub(super) async fn call(
        &mut self,
        name: &str,
        input: &serde_json::Value,
    ) -> Result<String, Stop> {
        self.calls += 1;
        let call = format!("c{}", self.calls);
        let started = EngineEvent::ToolStarted {
            call: call.clone(),
            name: name.to_owned(),
            input_json: told_of(input.to_string()),
        };
        self.link.emit(started).await?;
        Ok(call)
    }

    /// Tells what a tool did so far.
    pub(super) async fn progress(&mut self, call: &str, output: String) -> Result<(), Stop> {
        let call = call.to_owned();
        let output = told_of(output);
        let progress = EngineEvent::ToolProgress { call, output };
        Ok(self.link.emit(progress).await?)
    }

    /// Finishes a tool, not sooner than a person can follow.
    pub(super) async fn give_back(
        &mut self,
        call: String,
        output: String,
        failed: bool,
    ) -> Result<(), Stop> {
        self.link.pause(self.pace.tool).await?;
        let finished = EngineEvent::ToolFinished {
            call,
            output: told_of(output),
            failed,
        };
        Ok(self.link.emit(finished).await?)
    }

    /// Asks which of some things is meant, and waits for the answer or for a steer.
    pub(super) async fn choose(
        &mut self,
        title: String,
        details: String,
        choices: &[String],
    ) -> Result<Chosen, Stop> {
        self.asks += 1;
        let ask = format!("q{}", self.asks);
        let numbered = choices.iter().enumerate().map(|(at, label)| Choice {
            id: (at + 1).to_string(),
            label: told(label).into_owned(),
        });
        let asked = EngineEvent::Asked {
            ask: ask.clone(),
            question: Question {
                title: told_of(title),
                details: told_of(details),
                shape: Shape::Select(numbered.collect()),
                default: None,
            },
            timeout: Some(ASKED_FOR),
        };
        // What was asked before and withdrawn may have been answered since.
        self.link.forget_answers(|_| true);
        self.link.emit(asked).await?;
        loop {
            let answer = match self.link.wait_answer_or_steer().await? {
                Some((of, answer)) if of == ask => answer,
                Some(_) => continue,
                None => {
                    self.link.emit(EngineEvent::AskWithdrawn { ask }).await?;
                    return Ok(Chosen::Steered);
                }
            };
            let number = match answer {
                Some(InteractionAnswer::Choice(id)) => id.parse::<usize>().ok(),
                _ => None,
            };
            let chosen = number.and_then(|number| number.checked_sub(1));
            let chosen = chosen.filter(|at| *at < choices.len());
            return Ok(chosen.map_or(Chosen::Nobody, Chosen::This));
        }
    }

    /// As [`Self::work`], but the work is told to stop after some time and then gives what it has.
    pub(super) async fn work_within<T: Send + 'static>(
        &mut self,
        time: Duration,
        work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Result<T, Stop> {
        let over = self.link.timer(time);
        self.work_until(Some(over), work).await
    }

    /// Does file work on a thread that may block, once there is a place for it. The work is told
    /// to stop when it is no longer waited for; it is waited for so long and no longer.
    pub(super) async fn work<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Result<T, Stop> {
        self.work_until(None, work).await
    }

    async fn work_until<T: Send + 'static>(
        &mut self,
        over: Option<BoxFuture<()>>,
        work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Result<T, Stop> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let _tell = TellOnDrop(stop.clone());
        let jobs = self.jobs.clone();
        let job = async move {
            let place = jobs.acquire_owned().await;
            let job = tokio::task::spawn_blocking(move || {
                // The thread gives the place back, not who waits for it: what stalls keeps it.
                let _place = place;
                work(&stop)
            });
            job.await
        };
        let job = async {
            tokio::pin!(job);
            if let Some(over) = over {
                tokio::select! {
                    biased;
                    done = &mut job => return done,
                    () = over => told.store(true, Ordering::Relaxed),
                }
            }
            job.await
        };
        let patience = self.link.timer(PATIENCE);
        let done = async {
            tokio::select! {
                biased;
                done = job => Some(done),
                () = patience => None,
            }
        };
        match self.link.until(done).await? {
            Some(Ok(done)) => Ok(done),
            Some(Err(error)) => Err(Stop::Failed(Failure {
                code: code::ENGINE_FAILED.to_owned(),
                details: format!("the file work broke off: {error}"),
                retryable: false,
            })),
            None => Err(Stop::Failed(Failure {
                code: UNREADABLE.to_owned(),
                details: format!("the folder did not answer within {} s", PATIENCE.as_secs()),
                retryable: true,
            })),
        }
    }
}

/// Sets its flag when it is dropped, however that comes.
struct TellOnDrop(Arc<AtomicBool>);

impl Drop for TellOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A text in pieces of a few words; lines are not cut apart from their ends.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut words = 0;
    for part in text.split_inclusive([' ', '\n']) {
        piece.push_str(part);
        words += usize::from(!part.trim().is_empty());
        if words >= WORDS || part.ends_with('\n') {
            pieces.push(std::mem::take(&mut piece));
            words = 0;
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::engine::link::tests::line;

    /// A mount that does not answer fails the run in time, and takes at most the agent's own
    /// threads with it.
    #[tokio::test(start_paused = true)]
    async fn file_work_that_stalls_fails_the_run_and_keeps_its_place_until_it_is_over() {
        let (_connection, link) = line();
        let jobs = Arc::new(Semaphore::new(1));
        let mut voice = Voice::new(link, Pace::NONE, jobs.clone());
        let (answer, mount) = std::sync::mpsc::sync_channel::<()>(1);
        let (told, stopped) = tokio::sync::oneshot::channel();
        let stalls = voice.work(move |stop| {
            let _answered = mount.recv();
            let _heard = told.send(stop.load(Ordering::Relaxed));
        });
        let (stalled, ()) = tokio::join!(stalls, tokio::time::advance(PATIENCE));
        let code = |done: Result<(), Stop>| match done.map_err(Stop::reason) {
            Err(Some(StopReason::Failed(failure))) => failure.code,
            other => panic!("{other:?}"),
        };
        assert_eq!(code(stalled), UNREADABLE);

        let next = voice.work(|_| ());
        let (waits, ()) = tokio::join!(next, tokio::time::advance(PATIENCE));
        assert_eq!(code(waits), UNREADABLE, "no further thread was taken");

        answer.send(()).expect("it still waits");
        assert!(stopped.await.expect("it ends"), "it was not told to stop");
        let place = jobs.acquire().await.expect("open");
        drop(place);
        assert!(voice.work(|_| ()).await.is_ok());
    }

    #[test]
    fn the_pieces_are_the_text() {
        let text = "one two  three\n\n    code line\nend \u{e9}";
        assert_eq!(pieces(text).concat(), text);
        assert!(pieces(text).len() > 4);
    }
}
