//! Runs that nobody drives any more: cut by a crash, or abandoned by a task whose commit failed.
//! Each is settled from its records, before anybody is told that its session is idle.

use futures_util::stream::{self, StreamExt};
use sessionplane_core::domain::ids::{RunId, SessionId};
use sessionplane_core::domain::lease::Holder;
use sessionplane_core::domain::lifecycle::{CutRun, give_up_boundary, interrupt};
use sessionplane_core::domain::session::StoredSession;
use sessionplane_core::ports::lease_store::HeldLease;
use sessionplane_core::ports::repository::{CommitError, EntryRange, ReadError};

use super::context::Ports;
use crate::failpoint;

/// Sessions that are recovered at the same time, so that their commits share rounds.
pub(crate) const CONCURRENT: usize = 64;

/// Why a session could not be recovered.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// A record could not be read.
    #[error("session {session}: {error}")]
    Read {
        /// The session.
        session: SessionId,
        /// Why.
        error: ReadError,
    },
    /// The settlement could not be written.
    #[error("session {session}: {error}")]
    Commit {
        /// The session.
        session: SessionId,
        /// Why.
        error: CommitError,
    },
    /// The index of running sessions could not be read.
    #[error("the index of running sessions: {0}")]
    Index(ReadError),
    /// The index names a run that has no record.
    #[error("session {session}: it, or its running run, has no record")]
    Dangling {
        /// The session.
        session: SessionId,
    },
    /// The index names a run that has settled, which one commit writes together: a record is lost.
    #[error("session {session}: its running run {run} has settled already")]
    Settled {
        /// The session.
        session: SessionId,
        /// The run.
        run: RunId,
    },
}

impl RecoveryError {
    /// Whether it is the matter of one session, and not of the store as a whole.
    fn is_of_one_session(&self) -> bool {
        match self {
            Self::Read { error, .. } => matches!(error, ReadError::Damaged { .. }),
            Self::Commit { error, .. } => !matches!(error, CommitError::Store(_)),
            Self::Index(_) => false,
            Self::Dangling { .. } | Self::Settled { .. } => true,
        }
    }
}

/// Settles every run that a crash cut; returns how many. Reads only sessions that were running. One
/// whose records are damaged is left as it is, and refused by name whenever it is asked for: a copy
/// of the data directory has what it lacks.
///
/// # Errors
/// When the store fails; the sessions settled before that stay settled.
pub async fn recover(ports: &Ports) -> Result<usize, RecoveryError> {
    let orphaned = ports
        .leases
        .orphaned()
        .await
        .map_err(RecoveryError::Index)?;
    let mut settled = stream::iter(orphaned)
        .map(|lease| settle(ports, lease))
        .buffer_unordered(CONCURRENT);
    let mut count = 0;
    while let Some(settled) = settled.next().await {
        match settled {
            Ok(()) => count += 1,
            Err(error) if error.is_of_one_session() => {
                tracing::error!(%error, "a run that was cut cannot be settled; its session is refused");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// Settles the run of a session whose task lost its commit: the lease is voided first, so that
/// nothing of that task can be written any more. Returns whether there was one to settle.
///
/// # Errors
/// When the settlement could not be written: the session's run is still to be settled.
pub(crate) async fn abandon(ports: &Ports, session: SessionId) -> Result<bool, RecoveryError> {
    let revoked = ports.leases.revoke(session).await;
    revoked.map_err(|error| RecoveryError::Read { session, error })?;
    settle_if_cut(ports, session).await
}

/// Settles the run of a session that nobody drives, if there is one. To be asked before the session
/// is shown or taken for idle. Returns whether there was one.
///
/// # Errors
/// When that run is not settled: nobody may be told that the session is idle.
pub(crate) async fn settle_if_cut(
    ports: &Ports,
    session: SessionId,
) -> Result<bool, RecoveryError> {
    let cut = || async {
        let cut = ports.leases.cut(session).await;
        cut.map_err(|error| RecoveryError::Read { session, error })
    };
    let Some(lease) = cut().await? else {
        return Ok(false);
    };
    let settled = settle(ports, lease).await;
    // Of several that saw the same run one settles it, and the others are refused.
    if settled.is_err() && cut().await? != Some(lease) {
        return Ok(false);
    }
    settled.map(|()| true)
}

async fn settle(ports: &Ports, lease: HeldLease) -> Result<(), RecoveryError> {
    let session = lease.session;
    let read = |error| RecoveryError::Read { session, error };
    let stored = ports.repository.session(session).await.map_err(read)?;
    let stored = stored.ok_or(RecoveryError::Dangling { session })?;
    // What is written is chained to the last entry: it must be there.
    let last = EntryRange {
        after: stored.head.entries.saturating_sub(1),
        up_to: stored.head.entries,
        max_entries: 1,
        max_bytes: usize::MAX,
    };
    ports
        .repository
        .entries(session, last)
        .await
        .map_err(read)?;
    let token = ports.leases.mint().await.map_err(read)?;
    let now = ports.clock.now();
    let commit = match lease.holder {
        Holder::Run(run) => interrupt(cut(ports, stored, run).await?, token, now),
        Holder::Boundary => give_up_boundary(stored, token, now),
    };
    tracing::info!(%session, holder = %lease.holder, "settling what was cut");
    failpoint::reach("recovery::before-settle");
    ports
        .repository
        .commit(commit)
        .await
        .map_err(|error| RecoveryError::Commit { session, error })?;
    failpoint::reach("recovery::after-settle");
    Ok(())
}

/// A cut run, as it is stored.
async fn cut(ports: &Ports, stored: StoredSession, id: RunId) -> Result<CutRun, RecoveryError> {
    let session = stored.record.id;
    let read = |error| RecoveryError::Read { session, error };
    let repository = &ports.repository;
    let run = repository.run(id).await.map_err(read)?;
    let run = run.ok_or(RecoveryError::Dangling { session })?;
    if run.settled.is_some() {
        return Err(RecoveryError::Settled { session, run: id });
    }
    Ok(CutRun {
        session: stored,
        run,
        inputs: repository.pending_inputs(id).await.map_err(read)?,
        interactions: repository.interactions(id).await.map_err(read)?,
    })
}
