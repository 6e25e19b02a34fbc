//! `sessionctl attach`: be there, see what happens, steer by typing, leave without disturbing.

mod giving;
mod hearing;
mod lines;
mod questions;
mod typing;

use std::future::Future;
use std::io::{self, IsTerminal as _};
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use sessionplane_core::contract::{Agent as _, CallOptions, SessionControl as _, SessionState};
use sessionplane_core::domain::command::DispatchAnswer;
use sessionplane_core::domain::error::{CallError, Outcome};
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::{EntryId, InteractionId, RunId, SessionRef};
use sessionplane_core::domain::interaction::Interaction;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::view::SessionView;
use tokio::io::Stdin;
use tokio_util::codec::FramedRead;

use super::dispatch::accepted_line;
use crate::cli::args::AttachArgs;
use crate::cli::context::Context;
use crate::cli::echo::Silence;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::json;
use crate::cli::outage::Outage;
use crate::cli::program::PROGRAM;
use crate::cli::render::{
    Desk, Flow, STARTS_OVER, asked, bar, connection_line, settled_lines, summary,
};
use crate::cli::screen::{Piece, Screen};
use crate::clock::instant;
use crate::watch::{Watch, WatchItem, WatchOptions};
use giving::{Given, Giving};
use lines::{Line, Lines};
use questions::Questions;

/// Most records that are asked for at once.
const RECORDS: usize = 8;

/// How often a person is told that the server is gone.
const TICK: Duration = Duration::from_secs(1);

pub(super) async fn run(
    args: AttachArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    if args.request_id.is_some() {
        return Err(Stop::usage(
            "attach gives each line that is typed an id of its own; --request-id names one call",
        ));
    }
    let session = args.session.session;
    let call = context
        .client
        .get_state(session.clone(), None, context.call());
    let state = context.patiently(screen, Effect::Reads, call).await?;
    let state = state.map_err(|error| context.stop(error, Some(&session), Effect::Reads))?;
    // From here on it is this session, whoever has its name by then.
    let met = SessionRef::Id(state.view.session.id);
    let entries_since = before_the_last(&state, args.last);
    let options = WatchOptions {
        entries_since,
        open_deadline: context.opening(),
        ..WatchOptions::default()
    };
    if !context.globals.json {
        // For a person all of it is one view; a program finds objects only on standard output.
        screen.merge();
    }
    let rich = screen.is_rich() && !context.globals.json;
    let mut attached = Attached {
        context,
        screen,
        flow: Flow::attended(rich, entries_since),
        giving: Giving::new(context.client.clone(), met.clone()),
        questions: Questions::default(),
        secret: None,
        records: FuturesOrdered::new(),
        running: state.view.active_run,
        outage: Outage::default(),
        introduced: false,
        view: None,
        closing: false,
        worst: Exit::Done,
        session,
        met: met.clone(),
    };
    let watch = context.client.watch(met, options);
    let left = attached.stay(watch).await;
    attached.screen.foot([])?;
    left
}

/// The entry after which only the last `count` come.
fn before_the_last(state: &SessionState, count: u32) -> Option<EntryId> {
    let seq = state.view.entries.checked_sub(u64::from(count))?;
    let session = state.view.session.id;
    (seq > 0).then_some(EntryId { session, seq })
}

/// A run, and its record once it came.
type Recorded = (RunId, Result<RunRecord, CallError>);
type Asked = Pin<Box<dyn Future<Output = Recorded> + Send>>;
type Typed = Option<io::Result<Line>>;

/// Somebody is there.
struct Attached<'a> {
    context: &'a Context,
    screen: &'a mut Screen,
    /// The session as it was named, for hints.
    session: SessionRef,
    /// The session that was met, for all that is sent.
    met: SessionRef,
    flow: Flow,
    /// What was typed, while it is not answered.
    giving: Giving,
    questions: Questions,
    /// The question that the next line answers, while a terminal does not show what is typed.
    secret: Option<(InteractionId, Silence)>,
    /// The records of runs whose ends were missed, while they are asked for.
    records: FuturesOrdered<Asked>,
    running: Option<RunId>,
    outage: Outage,
    /// The last entries and the state were shown.
    introduced: bool,
    /// The state as of the last item, once it is known.
    view: Option<SessionView>,
    /// Nothing more will be typed.
    closing: bool,
    /// The worst that became of something that was typed: it was not done, or nobody knows.
    worst: Exit,
}

impl Attached<'_> {
    async fn stay(&mut self, mut watch: Watch) -> Result<Exit, Stop> {
        let context = self.context;
        let mut lines = FramedRead::new(tokio::io::stdin(), Lines::default());
        let mut ticks = tokio::time::interval(TICK);
        loop {
            let answered = self.giving.is_idle() && self.records.is_empty();
            if self.closing && self.introduced && answered {
                self.screen.aside(&self.farewell())?;
                return Ok(self.left());
            }
            self.redraw()?;
            // What a pipe holds can wait in it; a person is heard at any time.
            let room = is_typed() || self.giving.has_room();
            let listens = self.introduced && !self.closing && room;
            tokio::select! {
                            item = watch.next() => match item {
                                Some(Ok(item)) => {
            self.context.stream_has_begun();
            self.show(&item)?;
            }
                                Some(Err(error)) => {
                                    return Err(self.context.stop(error, Some(&self.called()), Effect::Reads));
                                }
                                None => return Ok(Exit::Done),
                            },
                            typed = typed(&mut lines), if listens => self.typed(typed)?,
                            (given, answer) = self.giving.answered() => self.answered(&given, answer)?,
                            (run, record) = arrived(&mut self.records) => self.recorded(run, record)?,
                            // A person is told for how long the server has been gone.
                            _ = ticks.tick() => {}
                            () = context.interrupts.pressed() => {
                                self.screen.aside(&self.farewell())?;
                                return Ok(Exit::Interrupted);
                            }
                        }
        }
    }

    /// How it ends when nothing more is typed. A person has seen what was refused or is unknown; a
    /// script that writes into a pipe sees the exit code.
    fn left(&self) -> Exit {
        if is_typed() {
            return Exit::Done;
        }
        self.worst
    }

    /// How the session is called by now: who named it by its name, or its id, finds it by the name that
    /// it has.
    fn called(&self) -> SessionRef {
        let (SessionRef::Name(_) | SessionRef::Id(_), Some(view)) = (&self.session, &self.view)
        else {
            return self.session.clone();
        };
        let name = view.session.name.clone().map(SessionRef::Name);
        name.unwrap_or_else(|| self.met.clone())
    }

    fn farewell(&self) -> String {
        let what = match self.running {
            _ if self.outage.is_on() => "detached while the server cannot be reached",
            Some(_) => "still working",
            None => "detached",
        };
        let word = hint::word(&self.called());
        format!("{what}; re-attach with: {PROGRAM} attach {word}")
    }

    /// Draws what stays below everything else: what is under way, the state, and the place to type.
    fn redraw(&mut self) -> Result<(), Stop> {
        if self.context.globals.json {
            return Ok(());
        }
        let outage = self.outage.words(self.context.client.target(), instant());
        let passing = match &outage {
            Some(words) => Some(words.as_str()),
            None => self.flow.under_way(),
        };
        let state = self.view.as_ref().map(bar);
        let prompt = if self.secret.is_some() {
            "(not shown) "
        } else {
            "> "
        };
        let prompt = (is_typed() && self.introduced && !self.closing).then_some(prompt);
        let rows = [passing, state.as_deref(), prompt];
        Ok(self.screen.foot(rows.into_iter().flatten())?)
    }

    /// Keeps in mind what an item tells of the connection and of the run.
    fn note(&mut self, item: &WatchItem) -> Result<(), Stop> {
        if matches!(item, WatchItem::Reconnecting { .. }) {
            self.outage.begin(instant());
            return Ok(());
        }
        self.outage.end();
        match item {
            WatchItem::Snapshot(state) => {
                self.view = Some(state.view.clone());
                let active = state.view.active_run;
                let before = std::mem::replace(&mut self.running, active);
                if let Some(run) = before.filter(|run| self.introduced && active != Some(*run)) {
                    return self.ask_for(run);
                }
            }
            WatchItem::Event(envelope) => {
                if let Some(view) = &mut self.view {
                    view.apply(&envelope.event);
                }
                match envelope.event.body {
                    EventBody::RunStarted { .. } => self.running = envelope.event.run,
                    EventBody::RunSettled { .. } => self.running = None,
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A run has settled while nobody was told: its record tells how.
    fn ask_for(&mut self, run: RunId) -> Result<(), Stop> {
        if self.context.globals.json {
            return Ok(());
        }
        if self.records.len() == RECORDS {
            let words = format!("run {run} has settled; how: {PROGRAM} run {run}");
            return Ok(self.screen.aside(&words)?);
        }
        let client = self.context.client.clone();
        self.records.push_back(Box::pin(async move {
            (run, client.get_run(run, CallOptions::default()).await)
        }));
        Ok(())
    }

    fn recorded(&mut self, run: RunId, record: Result<RunRecord, CallError>) -> Result<(), Stop> {
        let pieces = self.flow.missed_end(run);
        self.screen.put_all(pieces)?;
        match record {
            Ok(record) => {
                for line in settled_lines(&record) {
                    self.screen.aside(&line)?;
                }
            }
            Err(error) => self
                .screen
                .aside(&format!("run {run} has settled; how is unknown: {error}"))?,
        }
        Ok(())
    }

    fn show(&mut self, item: &WatchItem) -> Result<(), Stop> {
        self.note(item)?;
        let unseen = self.questions.note(item);
        if self.context.globals.json {
            self.introduced |= matches!(item, WatchItem::Snapshot(_));
            return Ok(self.screen.json(&json::watched(item))?);
        }
        self.tell(item)?;
        self.ask(&unseen)
    }

    /// Shows questions that were asked before somebody was there.
    fn ask(&mut self, questions: &[Interaction]) -> Result<(), Stop> {
        for question in questions {
            let pieces = self.flow.pause();
            self.screen.put_all(pieces)?;
            self.screen.put(&Piece::Break)?;
            self.screen.put(&asked(question, &Desk::Here))?;
        }
        Ok(())
    }

    fn tell(&mut self, item: &WatchItem) -> Result<(), Stop> {
        if let WatchItem::Snapshot(state) = item {
            self.flow.knows(state);
        }
        match item {
            WatchItem::Entries {
                entries,
                full_backfill,
            } => {
                if *full_backfill {
                    let pieces = self.flow.start_over();
                    self.screen.put_all(pieces)?;
                    self.screen.notice(STARTS_OVER)?;
                }
                for entry in entries {
                    let pieces = self.flow.appended(entry);
                    self.screen.put_all(pieces)?;
                }
            }
            WatchItem::Snapshot(state) if !self.introduced => {
                self.introduced = true;
                self.introduce(state)?;
            }
            WatchItem::Event(envelope) => {
                let pieces = self.flow.observed(&envelope.event);
                self.screen.put_all(pieces)?;
            }
            WatchItem::Reconnecting { attempt: 1, .. }
            | WatchItem::Reconnected { .. }
            | WatchItem::Gap => {
                let pieces = match item {
                    WatchItem::Gap => self.flow.forget(),
                    _ => self.flow.pause(),
                };
                self.screen.put_all(pieces)?;
                if let Some(line) = connection_line(item) {
                    self.screen.aside(&line)?;
                }
            }
            WatchItem::Subscribed { .. }
            | WatchItem::Reconnecting { .. }
            | WatchItem::EpochChanged { .. }
            | WatchItem::Snapshot(_)
            | WatchItem::Unknown { .. }
            | WatchItem::Heartbeat(_) => {}
        }
        Ok(())
    }

    fn introduce(&mut self, state: &SessionState) -> Result<(), Stop> {
        self.screen
            .aside(&format!("-- {} --", summary(&state.view)))?;
        if self.screen.is_watched() {
            self.screen.aside(&self.invitation())?;
        }
        Ok(())
    }

    /// What there is to do. Nothing that is typed here starts a run.
    fn invitation(&self) -> String {
        const REST: &str = "/help lists the commands; Ctrl-D or /quit detaches --";
        if self.running.is_some() {
            return format!("-- a line steers; {REST}");
        }
        let word = hint::word(&self.called());
        format!("-- no run to steer; start one: {PROGRAM} invoke {word} \"...\" --\n-- {REST}")
    }

    fn answered(
        &mut self,
        given: &Given,
        answer: Result<DispatchAnswer, CallError>,
    ) -> Result<(), Stop> {
        let json = self.context.globals.json;
        self.worst = self.worst.worse(match &answer {
            Ok(DispatchAnswer::Accepted(_)) => Exit::Done,
            Ok(DispatchAnswer::Rejected(_)) => Exit::Failed,
            Err(error) => Exit::of(error),
        });
        match answer {
            Ok(answer) if json => self.screen.json(&json::dispatched(&answer))?,
            // Its end is told by an event.
            Ok(DispatchAnswer::Accepted(_)) if given.is_answer() => {}
            Ok(DispatchAnswer::Accepted(accepted)) => {
                self.screen.aside(&accepted_line(&accepted))?;
            }
            Ok(DispatchAnswer::Rejected(rejection)) => {
                let kind = given.command.kind();
                self.screen
                    .error(&hint::rejected(&self.called(), kind, &rejection))?;
            }
            Err(error) => {
                let words = match error.outcome {
                    Outcome::Refused => format!("not done: {error}"),
                    _ => format!(
                        "whether it was done is unknown: {error}\n  \
                         find out, harmlessly: {}",
                        hint::repeat(&self.met, &given.command, &given.id)
                    ),
                };
                if json {
                    let mut told = json::error(&words, Some(&error));
                    told["error"]["request_id"] = given.id.as_str().into();
                    self.screen.json(&told)?;
                }
                self.screen.error(&words)?;
            }
        }
        Ok(())
    }
}

async fn typed(lines: &mut FramedRead<Stdin, Lines>) -> Typed {
    lines.next().await
}

/// Whether a person types.
fn is_typed() -> bool {
    io::stdin().is_terminal()
}

/// The next record, once it came; never, while none is asked for.
async fn arrived(records: &mut FuturesOrdered<Asked>) -> Recorded {
    match records.next().await {
        Some(recorded) => recorded,
        None => std::future::pending().await,
    }
}
