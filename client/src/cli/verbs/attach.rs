//! `sessionctl attach`: be there, see what happens, steer by typing, leave without disturbing.

use std::future::Future;
use std::pin::Pin;

use futures_util::StreamExt as _;
use sessionplane_core::contract::{
    CallOptions, DispatchRequest, SessionControl as _, SessionState,
};
use sessionplane_core::domain::command::{Command, DispatchAnswer};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::{EntryId, SessionRef};
use sessionplane_core::domain::limits::MAX_TEXT_BYTES;
use tokio::io::Stdin;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use super::dispatch::accepted_line;
use crate::cli::args::AttachArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::interrupt::Interrupts;
use crate::cli::json;
use crate::cli::render::{Flow, entry_block, event_line, summary};
use crate::cli::screen::Screen;
use crate::watch::{Watch, WatchItem, WatchOptions};

pub(super) async fn run(
    args: AttachArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let session = args.session.session;
    let call = context
        .client
        .get_state(session.clone(), None, context.call());
    let state = context.patiently(screen, Effect::Reads, call).await?;
    let state = state.map_err(|error| context.stop(error, Some(&session), Effect::Reads))?;
    let options = WatchOptions {
        entries_since: before_the_last(&state, args.last),
        ..WatchOptions::default()
    };
    screen.merge();
    let mut attached = Attached {
        context,
        screen,
        flow: Flow::default(),
        answer: None,
        running: state.view.active_run.is_some(),
        introduced: false,
        closing: false,
        session: session.clone(),
    };
    attached.stay(context.client.watch(session, options)).await
}

/// The entry after which only the last `count` come.
fn before_the_last(state: &SessionState, count: u32) -> Option<EntryId> {
    let seq = state.view.entries.checked_sub(u64::from(count))?;
    let session = state.view.session.id;
    (seq > 0).then_some(EntryId { session, seq })
}

type Answer = Pin<Box<dyn Future<Output = Result<DispatchAnswer, CallError>> + Send>>;
type Typed = Option<Result<String, LinesCodecError>>;

/// Somebody is there.
struct Attached<'a> {
    context: &'a Context,
    screen: &'a mut Screen,
    session: SessionRef,
    flow: Flow,
    /// The command that was typed last, while it is not answered; meanwhile no other is read.
    answer: Option<Answer>,
    running: bool,
    /// The last entries and the state were shown.
    introduced: bool,
    /// Nothing more will be typed.
    closing: bool,
}

impl Attached<'_> {
    async fn stay(&mut self, mut watch: Watch) -> Result<Exit, Stop> {
        let mut interrupts = Interrupts::new();
        let codec = LinesCodec::new_with_max_length(MAX_TEXT_BYTES);
        let mut lines = FramedRead::new(tokio::io::stdin(), codec);
        loop {
            if self.closing && self.introduced && self.answer.is_none() {
                self.screen.aside(&self.farewell())?;
                return Ok(Exit::Done);
            }
            let listens = self.introduced && !self.closing && self.answer.is_none();
            tokio::select! {
                item = watch.next() => match item {
                    Some(Ok(item)) => self.show(&item)?,
                    Some(Err(error)) => {
                        return Err(self.context.stop(error, Some(&self.session), Effect::Reads));
                    }
                    None => return Ok(Exit::Done),
                },
                typed = typed(&mut lines), if listens => self.typed(typed)?,
                answer = answered(self.answer.as_mut()) => {
                    self.answer = None;
                    self.answered(answer)?;
                }
                () = interrupts.pressed() => {
                    self.screen.aside(&self.farewell())?;
                    return Ok(Exit::Interrupted);
                }
            }
        }
    }

    fn farewell(&self) -> String {
        let what = if self.running {
            "still working"
        } else {
            "detached"
        };
        let word = hint::word(&self.session);
        format!("{what}; re-attach with: sessionctl attach {word}")
    }

    fn show(&mut self, item: &WatchItem) -> Result<(), Stop> {
        if let WatchItem::Snapshot(state) = item {
            self.running = state.view.active_run.is_some();
        }
        if let WatchItem::Event(envelope) = item {
            match envelope.event.body {
                EventBody::RunStarted { .. } => self.running = true,
                EventBody::RunSettled { .. } => self.running = false,
                _ => {}
            }
        }
        if self.context.globals.json {
            self.introduced |= matches!(item, WatchItem::Snapshot(_));
            return Ok(self.screen.json(&json::watched(item))?);
        }
        match item {
            WatchItem::Entries { entries, .. } => {
                for entry in entries {
                    self.screen.put_all(entry_block(entry))?;
                }
            }
            WatchItem::Snapshot(state) if !self.introduced => {
                self.introduced = true;
                self.introduce(state)?;
            }
            WatchItem::Event(envelope) => {
                let pieces = self.flow.observed(&envelope.event.body);
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
                if let Some(line) = event_line(item) {
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
            self.screen
                .aside("-- a line steers; /follow TEXT queues; /abort stops; Ctrl-D detaches --")?;
        }
        Ok(())
    }

    fn typed(&mut self, typed: Typed) -> Result<(), Stop> {
        let line = match typed {
            Some(Ok(line)) => line,
            Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {
                self.screen
                    .error("that line is longer than 1 MiB, the limit of one text")?;
                return Ok(());
            }
            Some(Err(LinesCodecError::Io(error))) => {
                self.closing = true;
                self.screen.error(&format!("standard input: {error}"))?;
                return Ok(());
            }
            None => {
                self.closing = true;
                return Ok(());
            }
        };
        match parse(&line) {
            Typing::Nothing => {}
            Typing::Unknown => self.screen.error(
                "no such command; there are /abort and /follow TEXT\n  \
                 a text that begins with / is typed with two: //...",
            )?,
            Typing::Command(command) => self.dispatch(command),
        }
        Ok(())
    }

    fn dispatch(&mut self, command: Command) {
        let client = self.context.client.clone();
        let request = DispatchRequest {
            session: self.session.clone(),
            command,
            expected_run: None,
        };
        self.answer = Some(Box::pin(async move {
            client.dispatch(request, CallOptions::default()).await
        }));
    }

    fn answered(&mut self, answer: Result<DispatchAnswer, CallError>) -> Result<(), Stop> {
        let json = self.context.globals.json;
        match answer {
            Ok(answer) if json => self.screen.json(&json::dispatched(&answer))?,
            Ok(DispatchAnswer::Accepted(accepted)) => {
                self.screen.aside(&accepted_line(&accepted))?;
            }
            Ok(DispatchAnswer::Rejected(rejection)) => {
                self.screen
                    .error(&hint::rejected(&self.session, &rejection))?;
            }
            Err(error) => {
                let words = error.to_string();
                if json {
                    self.screen.json(&json::error(&words, Some(&error)))?;
                }
                self.screen.error(&words)?;
            }
        }
        Ok(())
    }
}

/// What a line means.
#[derive(Debug, PartialEq, Eq)]
enum Typing {
    Nothing,
    Unknown,
    Command(Command),
}

fn parse(line: &str) -> Typing {
    let line = line.trim_end();
    if line.trim_start().is_empty() {
        return Typing::Nothing;
    }
    let Some(command) = line.strip_prefix('/') else {
        return Typing::Command(Command::Steer { text: line.into() });
    };
    if command.starts_with('/') {
        return Typing::Command(Command::Steer {
            text: command.into(),
        });
    }
    match command.split_once(' ').unwrap_or((command, "")) {
        ("abort", "") => Typing::Command(Command::Abort),
        ("follow", text) if !text.trim().is_empty() => Typing::Command(Command::FollowUp {
            text: text.trim().into(),
        }),
        _ => Typing::Unknown,
    }
}

async fn typed(lines: &mut FramedRead<Stdin, LinesCodec>) -> Typed {
    lines.next().await
}

/// The answer to the typed command, once there is one.
async fn answered(answer: Option<&mut Answer>) -> Result<DispatchAnswer, CallError> {
    match answer {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steer(text: &str) -> Typing {
        Typing::Command(Command::Steer { text: text.into() })
    }

    #[test]
    fn a_line_steers_unless_it_is_a_command() {
        assert_eq!(parse("use tabs \r"), steer("use tabs"));
        assert_eq!(parse("//etc/hosts is wrong"), steer("/etc/hosts is wrong"));
        assert_eq!(parse("/abort"), Typing::Command(Command::Abort));
        let follow = Typing::Command(Command::FollowUp {
            text: "then docs".into(),
        });
        assert_eq!(parse("/follow then docs"), follow);
        assert_eq!(parse("  "), Typing::Nothing);
        for typo in ["/aborted", "/abort now", "/follow", "/follow  ", "/"] {
            assert_eq!(parse(typo), Typing::Unknown, "{typo:?}");
        }
    }
}
