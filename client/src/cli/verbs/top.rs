//! `sessionctl top`: the fleet on a whole screen, live.

mod signals;

use std::io::{self, IsTerminal as _};
use std::pin::Pin;
use std::time::Duration;

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use sessionplane_core::contract::fleet::{Fleet as _, UpdateSession};
use sessionplane_core::contract::{CallOptions, DispatchRequest, SessionControl as _};
use sessionplane_core::domain::command::{Command, DispatchAnswer};
use sessionplane_core::domain::error::{CallError, Outcome};
use sessionplane_core::domain::fleet::metadata::MetadataChange;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::{SessionId, SessionRef};

use crate::cli::args::TopArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::fleet;
use crate::cli::hint::{self, Effect};
use crate::cli::program;
use crate::cli::render::{named, phase_words};
use crate::cli::screen::Screen;
use crate::cli::top::{Act, Board, FullScreen, Link, Notice, draw, key, pasted};
use crate::clock::{mint_request_id, now};
use crate::connection::Client;
use crate::fleet_watch::FleetWatch;
use signals::{Signals, Told};

/// How often ages are drawn anew.
const TICK: Duration = Duration::from_secs(1);
/// Changes are drawn together that come within this time.
const FRAME: Duration = Duration::from_millis(50);
/// Most things that are being done at once.
const AT_ONCE: usize = 16;

pub(super) async fn run(
    args: TopArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Stop::usage(
            "top needs a terminal; `agents --watch` tells changes line by line",
        ));
    }
    let filter = args.wanted.filter();
    let options = fleet::watching(filter.clone(), context.opening());
    let mut desk = Desk {
        board: Board::wanting(filter),
        doing: FuturesUnordered::new(),
        client: context.client.clone(),
        colours: screen.is_coloured(),
    };
    let mut watch = context.client.watch_fleet(options);
    loop {
        let left = desk.stay(&mut watch).await?;
        match left {
            Left::Quit => return Ok(Exit::Done),
            Left::Ended(error) => {
                return Err(context.stop(error, None::<&SessionRef>, Effect::Reads));
            }
            Left::Told => return Err(hint::interrupted(Effect::Reads, context)),
            Left::Attach(session) => {
                if desk.attach(session).await? == Told::End {
                    return Err(hint::interrupted(Effect::Reads, context));
                }
            }
        }
    }
}

/// What is being done, and its outcome for the last line.
type Doing = Pin<Box<dyn Future<Output = Notice> + Send>>;

/// Why the screen is left.
enum Left {
    Quit,
    /// The system has told it to end.
    Told,
    Ended(CallError),
    Attach(SessionId),
}

/// Somebody sits before the board.
struct Desk {
    board: Board,
    doing: FuturesUnordered<Doing>,
    client: Client,
    colours: bool,
}

impl Desk {
    /// Shows the board until it is left; the terminal is then as it was, and so it is while the
    /// program is stopped.
    async fn stay(&mut self, watch: &mut FleetWatch) -> Result<Left, Stop> {
        let mut signals = Signals::new()?;
        // One for all screens: a second would wait for the first to let go of the terminal.
        let mut keys = EventStream::new();
        loop {
            let mut full = FullScreen::enter()?;
            let left = self.shown(&mut full, &mut keys, &mut signals, watch);
            if let Some(left) = left.await? {
                return Ok(left);
            }
            // What follows is a new screen: the old one was somebody else's meanwhile.
        }
    }

    /// Shows the board on one screen; none if another is to follow.
    async fn shown(
        &mut self,
        full: &mut FullScreen,
        keys: &mut EventStream,
        signals: &mut Signals,
        watch: &mut FleetWatch,
    ) -> Result<Option<Left>, Stop> {
        let mut tick = tokio::time::interval(TICK);
        let mut frame = tokio::time::interval(FRAME);
        frame.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut stale = true;
        loop {
            tokio::select! {
                biased;
                told = signals.next() => match told {
                    Told::End | Told::Interrupt => return Ok(Some(Left::Told)),
                    Told::GoOn => return Ok(None),
                    Told::Stop if !signals::can_go_on() => {}
                    Told::Stop => {
                        full.give_back()?;
                        signals::stop();
                        return Ok(None);
                    }
                },
                event = keys.next() => {
                    stale = true;
                    match event {
                        Some(Ok(event)) => if let Some(left) = self.event(event) {
                            return Ok(Some(left));
                        },
                        // The terminal is gone, and with it whoever sat there.
                        Some(Err(_)) | None => return Ok(Some(Left::Quit)),
                    }
                }
                _ = frame.tick(), if stale => {
                    stale = false;
                    let (board, colours) = (&self.board, self.colours);
                    full.draw(|area| draw(board, now(), colours, area))?;
                }
                Some(notice) = self.doing.next(), if !self.doing.is_empty() => {
                    stale = true;
                    self.board.notice = Some(notice);
                }
                item = watch.next() => {
                    stale = true;
                    match item {
                        Some(Ok(item)) => {
                            self.board.told(item);
                            fleet::watchable(self.board.size())?;
                        }
                        Some(Err(error)) => return Ok(Some(Left::Ended(error))),
                        None => return Ok(Some(Left::Quit)),
                    }
                }
                _ = tick.tick() => stale = true,
            }
        }
    }

    fn event(&mut self, event: Event) -> Option<Left> {
        let act = match event {
            Event::Key(event) => key(&mut self.board, event)?,
            Event::Paste(text) => {
                pasted(&mut self.board, &text);
                return None;
            }
            // It is drawn in its new size.
            _ => return None,
        };
        match act {
            Act::Quit => Some(Left::Quit),
            Act::Attach(session) => Some(Left::Attach(session)),
            Act::Suspend => {
                if signals::can_go_on() {
                    signals::stop_job();
                } else {
                    let words = "no shell waits here that could let it go on";
                    self.board.notice = Some(Notice::Failed(words.to_owned()));
                }
                None
            }
            _ if self.doing.len() >= AT_ONCE => {
                let words = "too much is being done already; wait until some of it is answered";
                self.board.notice = Some(Notice::Failed(words.to_owned()));
                None
            }
            act => {
                self.doing.push(doing(self.client.clone(), act));
                None
            }
        }
    }

    /// Another process of this program has the terminal until it ends, or this one is told to end.
    async fn attach(&mut self, session: SessionId) -> Result<Told, Stop> {
        let mut signals = Signals::new()?;
        let child = std::env::current_exe().and_then(|program| {
            let mut attach = tokio::process::Command::new(program);
            // By the name that this one was called by: its hints are then those of who types.
            attach.arg0(std::env::args_os().next().unwrap_or_default());
            attach.args(program::flags());
            attach.arg("attach").arg(session.to_string());
            attach.spawn()
        });
        let ran = match child {
            Ok(mut child) => loop {
                tokio::select! {
                    ran = child.wait() => break ran,
                    told = signals.next() => match told {
                        // The terminal has told both: the shell waits for both to stop.
                        Told::Stop => signals::stop(),
                        // A Ctrl-C is for who is attached.
                        Told::GoOn | Told::Interrupt => {}
                        Told::End => {
                            signals::end(&mut child).await;
                            return Ok(Told::End);
                        }
                    },
                }
            },
            Err(error) => Err(error),
        };
        self.board.notice = match ran {
            Ok(status) if status.success() => None,
            Ok(status) => Some(Notice::Failed(format!("attach ended with {status}"))),
            Err(error) => Some(Notice::Failed(format!(
                "attach could not be started: {error}"
            ))),
        };
        if self.board.link == Link::Opening {
            self.board.notice = None;
        }
        Ok(Told::GoOn)
    }
}

/// Does it; says what came of it.
fn doing(client: Client, act: Act) -> Doing {
    Box::pin(async move {
        let done = match act {
            Act::Answer(session, interaction, answer) => {
                let command = Command::Respond {
                    interaction,
                    answer,
                };
                give(&client, session, command, None, "answered").await
            }
            Act::Steer(session, run, text) => {
                let command = Command::Steer {
                    text: text.into(),
                    given: Given::typed(),
                };
                give(&client, session, command, Some(run), "steered").await
            }
            Act::Abort(session, run) => {
                give(&client, session, Command::Abort, Some(run), "aborted").await
            }
            Act::Rename(session, name) => {
                let words = format!("renamed to {name}");
                let change = MetadataChange {
                    name: Some(Some(name)),
                    ..MetadataChange::default()
                };
                let request = UpdateSession {
                    session: SessionRef::Id(session),
                    change,
                    etag: None,
                };
                let renamed = client.update_session(request, call()).await;
                renamed.map(|_| Notice::Done(words))
            }
            Act::Pause(session, true) => {
                let paused = client.pause_session(SessionRef::Id(session), call()).await;
                paused.map(|it| Notice::Done(at(&it)))
            }
            Act::Pause(session, false) => {
                let resumed = client.resume_session(SessionRef::Id(session), call()).await;
                resumed.map(|it| Notice::Done(at(&it)))
            }
            Act::Quit | Act::Suspend | Act::Attach(_) => Ok(Notice::Done(String::new())),
        };
        done.unwrap_or_else(|error| match error.outcome {
            Outcome::Refused => Notice::Failed(error.message),
            // C2: without an answer it may have been done all the same.
            Outcome::Unknown | Outcome::StreamEnded => Notice::Unknown(error.message),
        })
    })
}

/// What a session is at after what was done to it: who is paused may still be working.
fn at(session: &SessionSummary) -> String {
    let phase = phase_words(session.phase, session.paused);
    format!("{} is {phase}", named(session))
}

fn call() -> CallOptions {
    CallOptions {
        request_id: Some(mint_request_id()),
        deadline: None,
    }
}

async fn give(
    client: &Client,
    session: SessionId,
    command: Command,
    expected_run: Option<sessionplane_core::domain::ids::RunId>,
    words: &str,
) -> Result<Notice, CallError> {
    let request = DispatchRequest {
        session: SessionRef::Id(session),
        command,
        expected_run,
    };
    Ok(match client.dispatch(request, call()).await? {
        DispatchAnswer::Accepted(_) => Notice::Done(words.to_owned()),
        DispatchAnswer::Rejected(rejection) => Notice::Failed(rejection.message),
    })
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::fleet::phase::Phase;

    use super::*;
    use crate::cli::testing::session;

    #[test]
    fn who_is_paused_while_it_works_is_told_to_be_pausing() {
        let mut paused = session(1);
        paused.name = Some("docs".parse().unwrap());
        paused.paused = true;
        paused.phase = Phase::Working;
        assert_eq!(at(&paused), "docs is pausing");
        paused.phase = Phase::Paused;
        assert_eq!(at(&paused), "docs is paused");
    }
}
