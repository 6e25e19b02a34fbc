//! Erases what deleted sessions held: first the contents that their entries name, then the entries, from
//! the newest to the oldest, then everything else. What a crash interrupts goes on at the next start.

use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::ids::{ArtifactId, EntryId, SessionId};
use sessionplane_core::ports::repository::{DeletedSession, EntryRange, ReadError};

use crate::app::context::Context;
use crate::failpoint;

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
                let later = context.ports.clock.sleep(PAUSE);
                tokio::select! {
                    () = later => {}
                    () = context.deleted.notified() => {}
                }
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

/// Erases what there is. A session that stands in the way of its own erasure is left for later, and in
/// nobody else's way.
async fn all(context: &Context) -> Result<(), ReadError> {
    let repository = &context.ports.repository;
    let (mut after, mut stuck) = (None, Ok(()));
    while let Some(deleted) = repository.deleted(after).await? {
        let session = deleted.session;
        after = Some(session);
        match one(context, deleted).await {
            Ok(()) => tracing::info!(%session, "what a deleted session held is erased"),
            Err(error) => stuck = stuck.and(Err(error)),
        }
    }
    stuck
}

/// Erases what a session held.
async fn one(context: &Context, deleted: DeletedSession) -> Result<(), ReadError> {
    let DeletedSession {
        session,
        mut entries,
    } = deleted;
    let max = usize::try_from(SLICE).unwrap_or(usize::MAX);
    unshown(context, session, max).await?;
    loop {
        let keep = entries.saturating_sub(SLICE);
        contents(context, session, keep, entries).await?;
        failpoint::reach("eraser::contents-removed");
        if context.ports.repository.erase(session, keep, max).await? {
            return Ok(());
        }
        entries = keep;
    }
}

/// Removes what inputs name that never became an entry. Their records are found by their runs', which are
/// erased last.
async fn unshown(context: &Context, session: SessionId, max: usize) -> Result<(), ReadError> {
    let repository = &context.ports.repository;
    let mut before = None;
    loop {
        let runs = match repository.runs(session, before, max).await {
            Err(ReadError::Damaged { key, problem }) => {
                tracing::error!(
                    key,
                    problem,
                    "a run of a deleted session is damaged; contents stay"
                );
                return Ok(());
            }
            runs => runs?,
        };
        let Some(last) = runs.last() else {
            return Ok(());
        };
        before = Some(last.id);
        for input in runs.iter().flat_map(|run| &run.undelivered) {
            match repository.input(input.id).await {
                Err(ReadError::Damaged { .. }) | Ok(None) => {}
                Err(error) => return Err(error),
                Ok(Some(input)) => {
                    for artifact in input.data.iter().flat_map(|data| data.artifacts()) {
                        remove(context, artifact.id).await?;
                    }
                }
            }
        }
    }
}

/// Removes what entries name.
async fn contents(
    context: &Context,
    session: SessionId,
    after: u64,
    up_to: u64,
) -> Result<(), ReadError> {
    let mut range = EntryRange {
        after,
        up_to,
        max_entries: usize::try_from(SLICE).unwrap_or(usize::MAX),
        max_bytes: 1024 * 1024,
    };
    while range.after < up_to {
        match context.ports.repository.entries(session, range).await {
            Ok(entries) => {
                let Some(last) = entries.last() else {
                    return Ok(());
                };
                range.after = last.id.seq;
                for entry in &entries {
                    content(context, entry).await?;
                }
            }
            Err(ReadError::Damaged { .. }) => return one_by_one(context, session, range).await,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The same where an entry is damaged, which no page reads past. That one names nothing any more.
async fn one_by_one(
    context: &Context,
    session: SessionId,
    range: EntryRange,
) -> Result<(), ReadError> {
    for seq in range.after + 1..=range.up_to {
        let id = EntryId { session, seq };
        match context.ports.repository.entry(id).await {
            Ok(Some(entry)) => content(context, &entry).await?,
            Ok(None) => {}
            Err(ReadError::Damaged { key, problem }) => {
                tracing::error!(
                    key,
                    problem,
                    "an entry of a deleted session is damaged; a content that it names stays"
                );
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes what an entry names.
async fn content(context: &Context, entry: &Entry) -> Result<(), ReadError> {
    for artifact in entry.body.artifacts() {
        remove(context, artifact.id).await?;
    }
    Ok(())
}

async fn remove(context: &Context, id: ArtifactId) -> Result<(), ReadError> {
    let removed = context.ports.artifacts.remove(id).await;
    removed.map_err(|error| ReadError::Store(format!("the content {id}: {error}")))
}
