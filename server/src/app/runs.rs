//! Reading runs: a page of them, and waiting for the end of one.

use std::sync::Arc;

use sessionplane_core::contract::{ListRunsRequest, RunPage};
use sessionplane_core::domain::access::{Action, PolicyContext};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::ids::RunId;
use sessionplane_core::domain::run::RunRecord;
use tokio::sync::watch;

use super::caller::{AppCaller, store};
use super::channel::Channel;
use super::pages;
use super::session_loss::Loss;

/// Runs in a page when the caller does not say.
const DEFAULT_PAGE: usize = 50;
/// Runs in a page at most.
pub(crate) const MAX_PAGE: usize = 500;

/// What a page of runs may weigh, in bytes, unless its first run alone weighs more.
const PAGE_BYTES: usize = 1024 * 1024;

/// How many of the runs fit a page. A record grows with what was never delivered.
fn fitting(runs: &[RunRecord]) -> usize {
    let mut bytes = 0;
    let fits = |run: &&RunRecord| {
        bytes += 1024 + 128 * run.undelivered.len();
        bytes <= PAGE_BYTES
    };
    runs.iter().take_while(fits).count().max(1)
}

impl AppCaller {
    pub(crate) async fn run_page(&self, request: ListRunsRequest) -> Result<RunPage, CallError> {
        let channel = self.observed(&request.session).await?;
        let size = pages::size(request.page_size, DEFAULT_PAGE, MAX_PAGE)?;
        let repository = &self.context.ports.repository;
        if let Some(before) = request.before {
            let known = repository.run(before).await.map_err(store)?;
            if known.is_none_or(|run| run.session != channel.session()) {
                let description = "names no run of this session; start without";
                return Err(CallError::invalid("page_token", description));
            }
        }
        let mut runs = repository
            .runs(channel.session(), request.before, size + 1)
            .await
            .map_err(store)?;
        let fits = fitting(&runs).min(size);
        let has_more = runs.len() > fits;
        runs.truncate(fits);
        Ok(RunPage { runs, has_more })
    }

    /// The record of a run once it has settled. Wakes with the session's events; whoever asks for a
    /// run that nobody serves any more reads its record.
    pub(crate) async fn settled_run(&self, run: RunId) -> Result<RunRecord, CallError> {
        let record = self.run_record(run).await?;
        if record.settled.is_some() {
            return Ok(record);
        }
        // A session that cannot be served is refused here, as it is everywhere.
        let channel = self.context.channel(record.session).await?;
        let channel = channel.ok_or_else(CallError::no_such_session)?;
        let observing = (Action::Observe, PolicyContext::default());
        let revoked = self.revoked(channel.clone(), observing.0, observing.1);
        tokio::select! {
            biased;
            // What was told of the run before is a run of a session that is hidden now.
            refused = revoked => match refused.reason {
                Reason::NoSuchSession => Err(CallError::refused(Reason::NoSuchRun, "no such run")),
                _ => Err(refused),
            },
            settled = self.settles(run, channel) => settled,
        }
    }

    async fn settles(&self, run: RunId, channel: Arc<Channel>) -> Result<RunRecord, CallError> {
        let mut wake = channel.subscribe();
        loop {
            let record = self.run_record(run).await?;
            if record.settled.is_some() {
                return Ok(record);
            }
            // The channel outlives the wait, unless the session lost its owner.
            if !self.is_current(&channel) {
                return Err(lost(&channel));
            }
            self.stirred(&mut wake).await?;
            self.over(&channel, &mut wake, run).await?;
        }
    }

    /// Waits until the state no longer shows the run as active, without a read per event.
    async fn over(
        &self,
        channel: &Arc<Channel>,
        wake: &mut watch::Receiver<u64>,
        run: RunId,
    ) -> Result<(), CallError> {
        while self.is_current(channel) && channel.with_view(|view| view.active_run == Some(run)) {
            self.stirred(wake).await?;
        }
        Ok(())
    }

    /// Waits for the channel to tell something, be it its end. A server that stops does not: its
    /// runs end with it, and the next start settles them.
    async fn stirred(&self, wake: &mut watch::Receiver<u64>) -> Result<(), CallError> {
        tokio::select! {
            biased;
            changed = wake.changed() => changed.map_err(|_| {
                CallError::unknown(Reason::ServingLost, "the run is being settled; ask again")
            }),
            () = self.context.waiting_is_over.cancelled() => Err(CallError::unknown(
                Reason::ServerDraining,
                "the server stops, and the run is not settled yet; ask again",
            )),
        }
    }

    fn is_current(&self, channel: &Arc<Channel>) -> bool {
        let now = self.context.channels.get(channel.session());
        now.is_some_and(|now| Arc::ptr_eq(&now, channel))
    }
}

/// What is told of a run whose session this face lost.
fn lost(channel: &Channel) -> CallError {
    match channel.loss() {
        Some(loss @ Loss::Store) => {
            CallError::unknown(loss.reason(), format!("{}; ask again", loss.told()))
        }
        _ => CallError::unknown(Reason::ServingLost, "the run is being settled; ask again"),
    }
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::access::PrincipalKind;
    use sessionplane_core::domain::ids::{
        AgentName, EntryId, InputId, PrincipalId, RunId, SessionId,
    };
    use sessionplane_core::domain::input::{DiscardCause, InputKind, UndeliveredInput};
    use sessionplane_core::domain::provenance::{Channel, Digest, Origin, Trust};
    use sessionplane_core::domain::run::RunSettings;
    use sessionplane_core::domain::time::Timestamp;
    use sessionplane_core::domain::usage::Usage;

    use super::*;

    fn run(undelivered: u32) -> RunRecord {
        let (id, session) = (RunId::from_bytes([1; 16]), SessionId::from_bytes([2; 16]));
        let lost = |ordinal| UndeliveredInput {
            id: InputId { run: id, ordinal },
            kind: InputKind::Steer,
            cause: DiscardCause::Lost,
            text: None,
        };
        RunRecord {
            id,
            session,
            agent: AgentName::parse("a").unwrap(),
            request_id: None,
            origin: Origin {
                principal: PrincipalId::parse("p").unwrap(),
                kind: PrincipalKind::Human,
                channel: Channel::Invoke,
                trust: Trust::Relayed,
                digest: Digest([0; 32]),
                request_id: None,
            },
            started_at: Timestamp::default(),
            first_entry: EntryId { session, seq: 1 },
            final_entry: None,
            usage: Usage::default(),
            undelivered: (1..=undelivered).map(lost).collect(),
            settings: RunSettings::default(),
            abort_requested: false,
            settled: None,
        }
    }

    #[test]
    fn c64_a_page_of_runs_is_bounded_in_bytes_and_never_empty() {
        assert_eq!(fitting(&vec![run(0); 500]), 500);
        assert!((1..20).contains(&fitting(&vec![run(1000); 500])));
        assert_eq!(fitting(&[run(100_000)]), 1);
    }
}
