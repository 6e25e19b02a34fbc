//! The stream of an invoke, read with a deadline and judged by C5 and C6 as it is read.

use futures_util::StreamExt as _;
use sessionplane_core::contract::{InvokeEvent, ResultStream};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::{RunId, SessionId};
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::run::RunRecord;

use super::desk::within;

/// An accepted invoke.
pub(crate) struct Run {
    pub(crate) session: SessionId,
    pub(crate) id: RunId,
    pub(crate) position: Position,
    pub(crate) joined: bool,
    stream: ResultStream<InvokeEvent>,
}

impl Run {
    /// Reads the first event, which must be `accepted`.
    pub(crate) async fn accepted(mut stream: ResultStream<InvokeEvent>) -> Self {
        match Self::next_of(&mut stream).await {
            Some(Ok(InvokeEvent::Accepted {
                session,
                run: id,
                position,
                joined,
            })) => Self {
                session,
                id,
                position,
                joined,
                stream,
            },
            other => panic!("not accepted first: {other:?}"),
        }
    }

    pub(crate) async fn next_of(
        stream: &mut ResultStream<InvokeEvent>,
    ) -> Option<Result<InvokeEvent, CallError>> {
        within("the next invoke event", stream.next()).await
    }

    pub(crate) async fn next(&mut self) -> Option<Result<InvokeEvent, CallError>> {
        Self::next_of(&mut self.stream).await
    }

    /// Reads up to the first event of a kind.
    pub(crate) async fn until(
        &mut self,
        wanted: impl Fn(&InvokeEvent) -> bool,
    ) -> Vec<InvokeEvent> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await.expect("an event, not the end");
            let event = event.unwrap_or_else(|error| panic!("{error:?} after {events:?}"));
            let last = wanted(&event);
            assert!(last || !event.is_terminal(), "{event:?} after {events:?}");
            events.push(event);
            if last {
                return events;
            }
        }
    }

    /// Reads up to the first text.
    pub(crate) async fn until_text(&mut self) -> Vec<InvokeEvent> {
        let text = |event: &InvokeEvent| {
            matches!(
                event,
                InvokeEvent::Delta {
                    channel: OutputChannel::Text,
                    ..
                }
            )
        };
        self.until(text).await
    }

    /// Reads to the end: one terminal, and nothing after it.
    pub(crate) async fn finish(mut self) -> Vec<InvokeEvent> {
        let events = self.until(InvokeEvent::is_terminal).await;
        assert_eq!(self.next().await, None, "nothing follows the terminal");
        events
    }

    /// Reads to the error that the stream ends with.
    pub(crate) async fn error(mut self) -> CallError {
        loop {
            match self.next().await {
                Some(Ok(event)) => assert!(!event.is_terminal(), "{event:?}"),
                Some(Err(error)) => {
                    assert_eq!(self.next().await, None, "nothing follows the status");
                    return error;
                }
                None => panic!("the stream ended in silence"),
            }
        }
    }
}

/// The text of a channel, joined.
pub(crate) fn said(events: &[InvokeEvent], wanted: OutputChannel) -> String {
    let piece = |event: &InvokeEvent| match event {
        InvokeEvent::Delta { channel, text, .. } if *channel == wanted => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(piece).collect()
}

/// The record that the terminal carries.
pub(crate) fn record(events: &[InvokeEvent]) -> RunRecord {
    match events.last() {
        Some(InvokeEvent::Completed { run } | InvokeEvent::Failed { run: Some(run), .. }) => {
            (**run).clone()
        }
        other => panic!("no terminal with a record: {other:?}"),
    }
}

/// The terminal's code; `completed` for a completed run.
pub(crate) fn code(events: &[InvokeEvent]) -> String {
    match events.last() {
        Some(InvokeEvent::Completed { .. }) => "completed".to_owned(),
        Some(InvokeEvent::Failed { code, .. }) => code.clone(),
        other => panic!("no terminal: {other:?}"),
    }
}
