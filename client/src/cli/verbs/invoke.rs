//! `sessionctl invoke`: the answer streams to standard output, all else beside it.

mod beforehand;
mod leaving;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use sessionplane_core::contract::{InvokeEvent, InvokeRequest, OnDisconnect, Parent};
use sessionplane_core::domain::command::DispatchAnswer;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::ids::{RunId, SessionId, SessionRef};
use sessionplane_core::domain::run::{RunRecord, code};

use tokio::time::Instant;

use super::catch_up;
use crate::cli::args::InvokeArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint;
use crate::cli::json;
use crate::cli::outage::Outage;
use crate::cli::place::{Place, cursor};
use crate::cli::program::PROGRAM;
use crate::cli::render::{Flow, settled_lines};
use crate::cli::screen::{Piece, Screen};
use crate::clock::instant;
use crate::rejoin::{REJOIN_LIMIT, RunItem, RunStream};

/// How often a person is told what is being waited for.
const TICK: Duration = Duration::from_secs(1);

pub(super) async fn run(
    args: InvokeArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.session;
    let (agent, branches) = (args.agent.as_ref(), args.parent.is_some());
    beforehand::warn(&session, agent, branches, context, screen).await?;
    let parent = match args.parent {
        Some(session) => Some(parent(session, args.from, context, screen).await?),
        None => None,
    };
    let (prompt, given) = context.said(args.text).await?;
    let request = InvokeRequest {
        session: session.clone(),
        prompt,
        given,
        agent: args.agent,
        parent,
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
        flow: Flow::of(session.clone()),
        session,
        accepted: None,
        cancels,
        run: None,
        abort: None,
        pressed: 0,
        missed: false,
        last: instant(),
        outage: Outage::default(),
    };
    following.follow(stream).await
}

/// Where the new session branches off.
async fn parent(
    session: SessionRef,
    from: Option<Place>,
    context: &Context,
    screen: &mut Screen,
) -> Result<Parent, Stop> {
    let entry = cursor(from, &session, context, screen).await?;
    Ok(Parent { session, entry })
}

type Answer = Pin<Box<dyn Future<Output = Result<DispatchAnswer, CallError>> + Send>>;

/// A run that is being followed.
struct Following<'a> {
    context: &'a Context,
    screen: &'a mut Screen,
    session: SessionRef,
    /// The session that the server has accepted the run in, whoever has its name by now.
    accepted: Option<SessionId>,
    cancels: bool,
    flow: Flow,
    run: Option<RunId>,
    /// The abort that Ctrl-C asked for, while it is not answered.
    abort: Option<Answer>,
    pressed: u32,
    /// Not all that the run told has come.
    missed: bool,
    /// When the last item came.
    last: Instant,
    outage: Outage,
}

impl Following<'_> {
    async fn follow(&mut self, mut stream: RunStream) -> Result<Exit, Stop> {
        let context = self.context;
        let mut ticks = tokio::time::interval(TICK);
        loop {
            let abort = self.abort.as_mut();
            tokio::select! {
                item = stream.next() => {
                    self.last = instant();
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
                () = context.interrupts.pressed() => self.interrupted()?,
                _ = ticks.tick() => self.still_waiting()?,
            }
        }
    }

    /// Shows an item; gives back the terminal.
    fn item(&mut self, item: RunItem) -> Result<Option<InvokeEvent>, Stop> {
        let terminal = matches!(&item, RunItem::Event(event) if event.is_terminal());
        // A terminal is the last line; what was missed is told before it.
        if self.context.globals.json && !terminal {
            self.screen.json(&match &item {
                RunItem::Event(event) => json::invoked(event),
                RunItem::Rejoining {
                    attempt,
                    delay,
                    error,
                } => json::rejoining(*attempt, *delay, error),
                RunItem::Rejoined => json::rejoined(),
                RunItem::Missed { skipped } => json::missed(*skipped),
            })?;
        }
        let quiet = self.context.globals.json;
        match &item {
            RunItem::Rejoining { .. } => self.outage.begin(instant()),
            RunItem::Event(_) | RunItem::Rejoined | RunItem::Missed { .. } => self.outage.end(),
        }
        match item {
            RunItem::Event(event) => {
                if let InvokeEvent::Accepted { session, run, .. } = &event {
                    self.accepted = Some(*session);
                    self.run = Some(*run);
                    self.context.run_goes_on(*run, self.cancels);
                }
                if !quiet && !terminal {
                    let pieces = self.flow.invoked(&event);
                    self.screen.put_all(pieces)?;
                }
                return Ok(terminal.then_some(event));
            }
            RunItem::Rejoining {
                attempt: 1, error, ..
            } if !quiet => {
                let (target, limit) = (self.context.client.target(), REJOIN_LIMIT.as_secs());
                let line = format!(
                    "connection lost ({error}); trying for up to {limit} s to rejoin the run at \
                     {target}\n"
                );
                let pieces = self.flow.interjected(Piece::Aside(line));
                self.screen.put_all(pieces)?;
            }
            RunItem::Rejoining { .. } => {}
            RunItem::Missed { .. } => self.missed = true,
            RunItem::Rejoined if quiet => {}
            RunItem::Rejoined => {
                let pieces = self.flow.interjected(Piece::Aside("rejoined\n".to_owned()));
                self.screen.put_all(pieces)?;
            }
        }
        Ok(None)
    }

    async fn terminal(&mut self, event: InvokeEvent, stream: &RunStream) -> Result<Exit, Stop> {
        let told = self.context.globals.json.then(|| json::invoked(&event));
        let last = match told {
            Some(_) => Vec::new(),
            None => self.flow.invoked(&event),
        };
        let (record, failure) = match event {
            InvokeEvent::Completed { run } => (Some(run), None),
            InvokeEvent::Failed {
                code, details, run, ..
            } => (run, Some((code, details))),
            _ => (None, None),
        };
        let missing = match record.as_deref().filter(|_| self.missed) {
            Some(record) => catch_up::missed_text(record, stream, self.context, self.screen).await,
            None => Ok(0),
        };
        self.screen.put_all(last)?;
        if let Some(told) = told {
            self.screen.json(&told)?;
        }
        let missing = missing?;
        match failure {
            None => {
                self.settled(record.as_deref())?;
                if missing > 0 {
                    return Err(not_whole(missing, &self.session));
                }
                Ok(Exit::Done)
            }
            Some((code, details)) => self.failed(&code, &details, record.as_deref()),
        }
    }

    fn settled(&mut self, record: Option<&RunRecord>) -> Result<(), Stop> {
        if let Some(record) = record.filter(|_| !self.context.globals.json) {
            for line in settled_lines(record) {
                self.screen.aside(&line)?;
            }
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
            Some(record) => settled_lines(record).join("\n"),
            None => hint::not_begun(&self.session, failure, details),
        };
        self.screen.error(&words)?;
        Ok(Exit::Failed)
    }
}

/// The run completed, and nobody can show all that it answered any more.
fn not_whole(missing: u64, session: &SessionRef) -> Stop {
    let word = hint::word(session);
    Stop::failed(
        Exit::Unknown,
        format!(
            "the run completed, but {missing} bytes of its answer are not shown and not kept\n  \
             read what is kept: {PROGRAM} --json entries {word}"
        ),
    )
}

/// The answer to the abort, once there is one.
async fn answered(abort: Option<&mut Answer>) -> Result<DispatchAnswer, CallError> {
    match abort {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    }
}
