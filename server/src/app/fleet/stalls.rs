//! Marks sessions that work and have shown nothing for long (C46).

use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::time::Timestamp;

use crate::app::channel::Channel;
use crate::app::context::Context;

/// The shortest pause between two looks: a mark comes at most so much late.
const PAUSE: Duration = Duration::from_secs(1);

/// Looks whenever a session may have come to it, while any is at work, until the server stops.
pub(crate) async fn mark(context: Arc<Context>) {
    loop {
        let stopping = context.stopping.clone();
        let at_work = context.work.some();
        tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            () = at_work => {}
        }
        let pause = look(&context);
        tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            () = context.ports.clock.sleep(pause) => {}
        }
    }
}

/// Marks those that are due; returns when to look again. What begins to work meanwhile is not due
/// before.
fn look(context: &Context) -> Duration {
    let patience = context.config.stalled_after;
    let now = context.ports.clock.now();
    let due = |channel: &Arc<Channel>| channel.look_for_stall(now, patience);
    let channels = context.channels.all();
    let next = channels.iter().filter_map(due).min();
    let next: Timestamp = next.unwrap_or_else(|| now.after(patience));
    next.since(now).min(patience).max(PAUSE)
}
