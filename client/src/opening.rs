//! Waiting for answers and reading streams: a stream counts as open once its first message came,
//! so that every error after that is one of a stream that ended. Nothing here retries.

use std::future::Future;

use futures_core::Stream;
use futures_util::stream;
use sessionplane_core::domain::error::CallError;
use tonic::{Response, Status, Streaming};

use crate::convert::Malformed;
use crate::outcome::{Moment, call_error, ended_early, unreadable};

/// Waits for a unary answer.
pub(crate) async fn answered<W>(
    answer: impl Future<Output = Result<Response<W>, Status>>,
) -> Result<W, CallError> {
    match answer.await {
        Ok(response) => Ok(response.into_inner()),
        Err(status) => Err(call_error(&status, Moment::BeforeFirst)),
    }
}

/// An answer that was converted.
pub(crate) fn readable<T>(answer: Result<T, Malformed>) -> Result<T, CallError> {
    answer.map_err(|malformed| unreadable(malformed, Moment::BeforeFirst))
}

/// A stream whose first message came.
pub(crate) struct Opened<W> {
    first: W,
    rest: Streaming<W>,
}

/// Waits for a stream's first message.
pub(crate) async fn open<W>(
    call: impl Future<Output = Result<Response<Streaming<W>>, Status>>,
) -> Result<Opened<W>, CallError> {
    let before = |status: Status| call_error(&status, Moment::BeforeFirst);
    let mut rest = call.await.map_err(before)?.into_inner();
    match rest.message().await.map_err(before)? {
        Some(first) => Ok(Opened { first, rest }),
        None => Err(ended_early(Moment::BeforeFirst)),
    }
}

/// A stream that is being read.
struct Reading<W, T> {
    first: Option<W>,
    /// None once nothing more may be read.
    rest: Option<Streaming<W>>,
    convert: fn(W) -> Result<Option<T>, Malformed>,
    is_last: fn(&T) -> bool,
}

/// The converted messages of a stream; those that convert to nothing are left out. Ends after the
/// message that `is_last` tells, else with an error: never with silence.
pub(crate) fn messages<W, T>(
    opened: Opened<W>,
    convert: fn(W) -> Result<Option<T>, Malformed>,
    is_last: fn(&T) -> bool,
) -> impl Stream<Item = Result<T, CallError>> + Send
where
    W: Send + 'static,
    T: Send + 'static,
{
    let reading = Reading {
        first: Some(opened.first),
        rest: Some(opened.rest),
        convert,
        is_last,
    };
    stream::unfold(reading, |mut reading| async move {
        let item = reading.next().await?;
        Some((item, reading))
    })
}

impl<W, T> Reading<W, T> {
    async fn next(&mut self) -> Option<Result<T, CallError>> {
        let item = self.read().await?;
        let goes_on = item.as_ref().is_ok_and(|item| !(self.is_last)(item));
        if !goes_on {
            self.rest = None;
        }
        Some(item)
    }

    async fn read(&mut self) -> Option<Result<T, CallError>> {
        let after = Moment::AfterFirst;
        loop {
            let rest = self.rest.as_mut()?;
            let wire = match self.first.take() {
                Some(first) => first,
                None => match rest.message().await {
                    Ok(Some(wire)) => wire,
                    Ok(None) => return Some(Err(ended_early(after))),
                    Err(status) => return Some(Err(call_error(&status, after))),
                },
            };
            match (self.convert)(wire) {
                Ok(Some(item)) => return Some(Ok(item)),
                Ok(None) => {}
                Err(malformed) => return Some(Err(unreadable(malformed, after))),
            }
        }
    }
}
