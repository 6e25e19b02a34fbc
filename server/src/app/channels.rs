//! The channels that are in memory, and which of them stay.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessionplane_core::domain::event::{Event, EventBody};
use sessionplane_core::domain::ids::{SessionId, TenantId};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::session::SessionRecord;
use sessionplane_core::domain::settings::ModelPolicy;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::view::SessionView;
use sessionplane_core::ports::lease_store::LeaseStore;
use sessionplane_core::ports::repository::{ReadError, Repository};

use super::agents::AgentCatalog;
use super::channel::Channel;
use super::config::AppConfig;
use super::fleet::hub::Hub;
use super::ring_budget::Budget;
use super::session_loss::Loss;

/// The channels that are in memory.
pub(crate) struct Channels {
    config: AppConfig,
    budget: Arc<Budget>,
    hub: Arc<Hub>,
    table: Mutex<Table>,
}

struct Table {
    channels: BTreeMap<SessionId, Arc<Channel>>,
    /// How many there may be before those that serve nobody are looked for.
    sweep_at: usize,
    /// Grows when channels are dropped, and when rows were changed that had none: what was loaded before
    /// may be outdated by then.
    outdated: u64,
    /// The revision of every session that has no channel: above all that were told of it by one.
    floor: u64,
    /// How many sessions without a channel are having a run settled that was cut.
    settling: usize,
}

/// Taken before rows are read of a session that has no channel. A session's rows change only while it has
/// one, or while it is being settled: if the ticket still counts and there is no channel, then they say
/// what the session has been at all the while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket {
    outdated: u64,
    /// The revision of what is read.
    pub(crate) revision: u64,
    settling: usize,
}

impl Table {
    /// Takes out the channels that only the table holds, once there are enough to be worth the look:
    /// their sessions have no task and no observer. The caller drops them, without the lock.
    ///
    /// The next look is at twice of what is left, so that its cost per insertion is constant however
    /// many channels are in use.
    fn evict(&mut self, idle_channels: usize, hub: &Hub) -> Vec<Arc<Channel>> {
        if self.channels.len() < self.sweep_at {
            return Vec::new();
        }
        let mut evicted = Vec::new();
        self.channels.retain(|_, channel| {
            let idle = Arc::strong_count(channel) == 1;
            if idle {
                evicted.push(channel.clone());
            }
            !idle
        });
        self.outdated += evicted.len() as u64;
        if !evicted.is_empty() {
            self.raise(hub);
        }
        self.sweep_at = idle_channels.max(2 * self.channels.len());
        evicted
    }
}

impl Table {
    /// What is said from now on of sessions without a channel is newer than what any channel said. A
    /// number of its own: the newest that was drawn is what a channel said of its session.
    fn raise(&mut self, hub: &Hub) {
        self.floor = self.floor.max(hub.draw());
    }

    fn ticket(&self, hub: &Hub) -> Ticket {
        Ticket {
            outdated: self.outdated,
            revision: self.floor.max(hub.first().unwrap_or(0)),
            settling: self.settling,
        }
    }
}

impl Channels {
    pub(crate) fn new(config: AppConfig, hub: Arc<Hub>) -> Self {
        let table = Table {
            channels: BTreeMap::new(),
            sweep_at: config.idle_channels.max(1),
            outdated: 0,
            floor: 0,
            settling: 0,
        };
        Self {
            budget: Budget::new(config.all_rings_bytes, config.idle_ring_bytes),
            config,
            hub,
            table: Mutex::new(table),
        }
    }

    /// A channel that is in memory.
    pub(crate) fn get(&self, session: SessionId) -> Option<Arc<Channel>> {
        self.lock().channels.get(&session).cloned()
    }

    /// The channel of a stored session: in memory, or made from its rows. Nothing durable changes.
    pub(crate) async fn open(
        &self,
        session: SessionId,
        repository: &dyn Repository,
        leases: &dyn LeaseStore,
        agents: &AgentCatalog,
    ) -> Result<Option<Arc<Channel>>, ReadError> {
        loop {
            let outdated = {
                let table = self.lock();
                if let Some(channel) = table.channels.get(&session) {
                    return Ok(Some(channel.clone()));
                }
                table.outdated
            };
            let Some(stored) = repository.session(session).await? else {
                return Ok(None);
            };
            let asked = match stored.head.last_run.as_ref() {
                Some(last) => repository.interactions(last.run).await?,
                None => Vec::new(),
            };
            let models = agents.models(&stored.record.agent);
            let token = leases.mint().await?;
            self.hub.begin(token.start());
            let placed = (stored.head.place.clone(), stored.head.checkout.clone());
            let made = Channel::new(
                &stored.record,
                token.0,
                SessionView::dormant(&stored, &models, asked),
                placed,
                &self.config,
                (self.budget.clone(), self.hub.clone()),
            );
            let table = self.lock();
            if table.outdated == outdated {
                made.found(table.ticket(&self.hub).revision);
                return Ok(Some(self.insert(table, made)));
            }
        }
    }

    /// The channel of a session that is about to be created.
    pub(crate) fn unborn(
        &self,
        record: &SessionRecord,
        models: &ModelPolicy,
        epoch: u64,
    ) -> Arc<Channel> {
        self.hub.begin(LeaseToken(epoch).start());
        let made = Channel::new(
            record,
            epoch,
            SessionView::unborn(record.identity(), models),
            (None, None),
            &self.config,
            (self.budget.clone(), self.hub.clone()),
        );
        self.insert(self.lock(), made)
    }

    /// Takes a channel out: the next reader makes one from the stored rows.
    pub(crate) fn forget(&self, session: SessionId) -> Option<Arc<Channel>> {
        let mut table = self.lock();
        table.outdated += 1;
        let forgotten = table.channels.remove(&session);
        // It draws no revision any more by the time that the floor is above those it drew.
        if let Some(channel) = &forgotten {
            channel.retire();
        }
        table.raise(&self.hub);
        forgotten
    }

    /// To be taken before rows are read, and shown after it.
    pub(crate) fn ticket(&self) -> Ticket {
        self.lock().ticket(&self.hub)
    }

    /// A session's channel, or whether what was read of the session since the ticket was taken counts.
    pub(crate) fn judge(&self, session: SessionId, ticket: Ticket) -> Judged {
        let table = self.lock();
        match table.channels.get(&session) {
            Some(channel) => Judged::Channel(channel.clone()),
            None if ticket.settling == 0 && table.ticket(&self.hub) == ticket => Judged::Counts,
            None => Judged::Outdated,
        }
    }

    /// Rows of a session that has no channel are about to change: what is read of any meanwhile does
    /// not count.
    pub(crate) fn settling(&self) -> Settling<'_> {
        self.lock().settling += 1;
        Settling(self)
    }

    /// Channels of a tenant's sessions after one, or before one, in the order of ids; at most so many.
    /// Those of others are passed over here, so that no place in the order is theirs.
    pub(crate) fn beside(
        &self,
        tenant: &TenantId,
        place: Option<SessionId>,
        descending: bool,
        max: usize,
    ) -> Vec<Arc<Channel>> {
        use std::ops::Bound::{Excluded, Unbounded};
        let table = self.lock();
        let end = place.map_or(Unbounded, Excluded);
        let mine = |channel: &&Arc<Channel>| channel.tenant() == tenant;
        if descending {
            let channels = table.channels.range((Unbounded, end)).rev();
            let channels = channels.map(|(_, it)| it).filter(mine);
            return channels.take(max).cloned().collect();
        }
        let channels = table.channels.range((end, Unbounded));
        let channels = channels.map(|(_, it)| it).filter(mine);
        channels.take(max).cloned().collect()
    }

    /// Every channel.
    pub(crate) fn all(&self) -> Vec<Arc<Channel>> {
        self.lock().channels.values().cloned().collect()
    }

    /// Ends every stream: nobody serves any session here any more.
    pub(crate) fn close(&self, at: Timestamp) {
        let channels = std::mem::take(&mut self.lock().channels);
        for channel in channels.into_values() {
            let run = channel.with_view(|view| view.active_run);
            let body = EventBody::ServingError {
                reason: "the server was stopped".to_owned(),
            };
            channel.close(Event { at, run, body }, Loss::Right);
        }
    }

    /// Puts a channel in, unless its session has one by now: that one was told of already, and its
    /// epoch may be the later one.
    fn insert(&self, mut table: MutexGuard<'_, Table>, made: Channel) -> Arc<Channel> {
        if let Some(channel) = table.channels.get(&made.session()) {
            return channel.clone();
        }
        let evicted = table.evict(self.config.idle_channels.max(1), &self.hub);
        let channel = Arc::new(made);
        self.budget.count(&channel);
        table.channels.insert(channel.session(), channel.clone());
        drop(table);
        // Their rings may take a while to free, and nobody waits for that.
        drop(evicted);
        channel
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What [`Channels::judge`] says.
pub(crate) enum Judged {
    /// The session has a channel, which knows it better.
    Channel(Arc<Channel>),
    /// It has none, and what was read is what there is.
    Counts,
    /// It may have changed since: read again.
    Outdated,
}

/// Until it is dropped, rows of a session without a channel change.
pub(crate) struct Settling<'a>(&'a Channels);

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        let mut table = self.0.lock();
        table.settling -= 1;
        table.outdated += 1;
        table.raise(&self.0.hub);
    }
}

#[cfg(test)]
mod tests;
