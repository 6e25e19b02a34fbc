//! Runs that nobody drives any more: cut by a crash, or abandoned by a task whose commit failed.
//! Each is settled from its records, before anybody is told that its session is idle.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use sessionplane_core::domain::ids::{RunId, SessionId};
use sessionplane_core::domain::lease::Holder;
use sessionplane_core::domain::lifecycle::{CutRun, give_up_boundary, interrupt};
use sessionplane_core::domain::session::StoredSession;
use sessionplane_core::ports::lease_store::HeldLease;
use sessionplane_core::ports::repository::{CommitError, ReadError};

use super::context::Ports;
use crate::failpoint;

/// Sessions that are recovered at the same time, so that their commits share rounds.
const CONCURRENT: usize = 64;

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
    #[error("session {session}: its running run has no record; run `sessiond store verify`")]
    Dangling {
        /// The session.
        session: SessionId,
    },
}

/// Settles every run that a crash cut. Reads only sessions that were running.
///
/// # Errors
/// When a record cannot be read or a settlement cannot be written; the sessions settled before
/// that stay settled.
pub async fn recover(ports: &Ports) -> Result<usize, RecoveryError> {
    let orphaned = ports
        .leases
        .orphaned()
        .await
        .map_err(RecoveryError::Index)?;
    let count = orphaned.len();
    let settled = stream::iter(orphaned)
        .map(|lease| settle(ports, lease))
        .buffer_unordered(CONCURRENT);
    settled.try_collect::<Vec<()>>().await?;
    Ok(count)
}

/// Settles the run of a session whose task lost its commit: the lease is voided first, so that
/// nothing of that task can be written any more.
pub(crate) async fn abandon(ports: &Ports, session: SessionId) {
    let result = async {
        ports
            .leases
            .revoke(session)
            .await
            .map_err(|error| RecoveryError::Read { session, error })?;
        let orphaned = ports
            .leases
            .orphaned()
            .await
            .map_err(RecoveryError::Index)?;
        match orphaned.into_iter().find(|lease| lease.session == session) {
            Some(lease) => settle(ports, lease).await,
            None => Ok(()),
        }
    };
    if let Err(error) = result.await {
        tracing::error!(%session, %error, "an abandoned run could not be settled; the next start will");
    }
}

async fn settle(ports: &Ports, lease: HeldLease) -> Result<(), RecoveryError> {
    let session = lease.session;
    let read = |error| RecoveryError::Read { session, error };
    let stored = ports.repository.session(session).await.map_err(read)?;
    let stored = stored.ok_or(RecoveryError::Dangling { session })?;
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
    Ok(CutRun {
        session: stored,
        run: run.ok_or(RecoveryError::Dangling { session })?,
        inputs: repository.inputs(id).await.map_err(read)?,
        interactions: repository.interactions(id).await.map_err(read)?,
    })
}
