//! Erases what deleted sessions held: first the contents that their entries name, then the entries, from
//! the newest to the oldest, then everything else. What a crash interrupts goes on at the next start.

use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::ports::repository::{DeletedSession, EntryRange, ReadError};

use crate::app::context::Context;

/// Entries that are read and erased at a time; records of other kinds, too.
const SLICE: u64 = 64;
/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(60);

/// Erases until the server stops: at the start, and whenever a session was deleted.
pub(crate) async fn erase(context: Arc<Context>) {
    let stopping = context.stopping.clone();
    loop {
        let working = async {
            if let Err(error) = all(&context).await {
                tracing::error!(%error, "what deleted sessions held is not erased yet; trying again");
                context.ports.clock.sleep(PAUSE).await;
                return;
            }
            context.deleted.notified().await;
        };
        tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            () = working => {}
        }
    }
}

/// Erases what there is.
async fn all(context: &Context) -> Result<(), ReadError> {
    let repository = &context.ports.repository;
    while let Some(DeletedSession {
        session,
        mut entries,
    }) = repository.deleted(None).await?
    {
        loop {
            let keep = entries.saturating_sub(SLICE);
            contents(context, session, keep, entries).await?;
            let max = usize::try_from(SLICE).unwrap_or(usize::MAX);
            let nothing_left = repository.erase(session, keep, max).await?;
            entries = keep;
            if nothing_left {
                break;
            }
        }
        tracing::info!(%session, "what a deleted session held is erased");
    }
    Ok(())
}

/// Removes what entries name. One that is damaged names nothing any more.
async fn contents(
    context: &Context,
    session: SessionId,
    after: u64,
    up_to: u64,
) -> Result<(), ReadError> {
    let mut after = after;
    while after < up_to {
        let range = EntryRange {
            after,
            up_to,
            max_entries: usize::try_from(SLICE).unwrap_or(usize::MAX),
            max_bytes: 1024 * 1024,
        };
        let entries = match context.ports.repository.entries(session, range).await {
            Ok(entries) => entries,
            Err(ReadError::Damaged { key, problem }) => {
                tracing::error!(key, problem, "an entry of a deleted session is damaged");
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let Some(last) = entries.last() else {
            return Ok(());
        };
        after = last.id.seq;
        for entry in &entries {
            if let EntryBody::Tool {
                artifact: Some(it), ..
            } = &entry.body
                && let Err(error) = context.ports.artifacts.remove(it.id).await
            {
                return Err(ReadError::Store(error.to_string()));
            }
        }
    }
    Ok(())
}
