//! C55: a stream that was allowed once is asked about again, when other policies hold and when its session
//! becomes another one to them, and ends at once where its caller may not have it any more.
//!
//! What must never enter: what a stream tells, and the end of a credential, which the face sees to.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use futures_core::Stream;
use sessionplane_core::domain::access::{Action, PolicyContext};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::ports::clock::BoxFuture;

use super::caller::AppCaller;
use super::channel::Channel;
use super::face::ServerEnds;
use super::permission::{Subject, may, may_in_tenant};

/// Items after which a stream that never waits is asked about.
const ASK_EVERY: u32 = 64;

type Inner<T> = Pin<Box<dyn Stream<Item = Result<T, CallError>> + Send>>;

/// A stream, until its caller may not have it any more.
pub(crate) struct Guarded<T> {
    /// None once it has ended.
    stream: Option<Inner<T>>,
    revoked: BoxFuture<CallError>,
    server_ends: ServerEnds,
    told: u32,
}

impl<T> Stream for Guarded<T> {
    type Item = Result<T, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(stream) = &mut this.stream else {
            return Poll::Ready(None);
        };
        this.told = this.told.wrapping_add(1);
        if this.told % ASK_EVERY != 1 {
            let polled = stream.as_mut().poll_next(cx);
            if polled.is_ready() {
                return polled;
            }
        }
        if let Poll::Ready(refused) = this.revoked.as_mut().poll(cx) {
            // Before the stream is dropped: its caller did not leave (C13).
            this.server_ends.set();
            this.stream = None;
            let CallError {
                reason, message, ..
            } = refused;
            return Poll::Ready(Some(Err(CallError::stream_ended(reason, message))));
        }
        stream.as_mut().poll_next(cx)
    }
}

impl AppCaller {
    /// A stream of a session, for as long as the caller may have it.
    pub(crate) fn guarded<T>(
        &self,
        stream: Inner<T>,
        channel: Arc<Channel>,
        (action, context): (Action, PolicyContext<'static>),
    ) -> Pin<Box<Guarded<T>>> {
        Box::pin(Guarded {
            stream: Some(stream),
            revoked: self.revoked(channel, action, context),
            server_ends: self.caller.server_ends.clone(),
            told: 0,
        })
    }

    /// A stream of the tenant, for as long as the caller may have it.
    pub(crate) fn guarded_in_tenant<T>(
        &self,
        stream: Inner<T>,
        action: Action,
    ) -> Pin<Box<Guarded<T>>> {
        let authorizer = self.context.ports.authorizer.clone();
        let principal = self.principal().clone();
        let revoked = Box::pin(async move {
            loop {
                // Before it is asked by it.
                let version = authorizer.version();
                if let Err(refused) = may_in_tenant(&*authorizer, &principal, action).await {
                    return refused;
                }
                authorizer.changed_from(version).await;
            }
        });
        Box::pin(Guarded {
            stream: Some(stream),
            revoked,
            server_ends: self.caller.server_ends.clone(),
            told: 0,
        })
    }

    /// Completes once the caller may not do something with a session any more, with the refusal.
    pub(crate) fn revoked(
        &self,
        channel: Arc<Channel>,
        action: Action,
        context: PolicyContext<'static>,
    ) -> BoxFuture<CallError> {
        let authorizer = self.context.ports.authorizer.clone();
        let principal = self.principal().clone();
        Box::pin(async move {
            let mut facts = channel.facts();
            loop {
                // Before it is asked by it.
                let version = authorizer.version();
                facts.mark_unchanged();
                let Some(shown) = channel.shown() else {
                    // It is not there yet; or it is gone, and its streams end by that.
                    let _ = facts.changed().await;
                    continue;
                };
                let subject = Subject::Shown(shown);
                let may = may(&*authorizer, &principal, &subject, action, &context);
                if let Err(refused) = may.await {
                    return refused;
                }
                tokio::select! {
                    () = authorizer.changed_from(version) => {}
                    // The sender lives as long as the channel.
                    _ = facts.changed() => {}
                }
            }
        })
    }
}
