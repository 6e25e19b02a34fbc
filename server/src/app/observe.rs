//! The observing methods: strictly read-only, whatever is running and whatever is not.

use std::sync::Arc;

use futures_util::future::{Either, select};
use sessionplane_core::contract::{
    CapabilityReport, CapabilityTarget, CommandTarget, EntryPage, EventsRequest,
    ListEntriesRequest, OfferedCommand, SessionState,
};
use sessionplane_core::domain::access::{Action, PolicyContext};
use sessionplane_core::domain::command::CommandKind;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::ids::{AgentName, EntryId, EntrySeq, SessionId, SessionRef};
use sessionplane_core::domain::lifecycle::AgentFacts;
use sessionplane_core::domain::position::Position;
use sessionplane_core::ports::repository::EntryRange;

use super::caller::{AppCaller, store};
use super::channel::Channel;
use super::observation::Observation;
use super::observer::Observer;
use super::pages;

/// Entries in a page when the caller does not say.
pub(crate) const DEFAULT_PAGE: usize = 100;
/// Entries in a page at most.
pub(crate) const MAX_PAGE: usize = 1000;
/// Stored bytes in a page at most, unless its first entry alone has more.
pub(crate) const PAGE_BYTES: usize = 1024 * 1024;

impl AppCaller {
    pub(crate) async fn capabilities(
        &self,
        target: CapabilityTarget,
    ) -> Result<CapabilityReport, CallError> {
        let agent = self.agent_facts(target).await?;
        let capabilities = agent.capabilities.clone();
        let commands = CommandKind::ALL
            .into_iter()
            .filter(|kind| capabilities.allows(*kind))
            .collect();
        Ok(CapabilityReport {
            capabilities,
            commands,
            models: agent.models.clone(),
            binding_retention: self.context.config.binding_retention,
        })
    }

    async fn agent_facts(&self, target: CapabilityTarget) -> Result<Arc<AgentFacts>, CallError> {
        let name = self.agent_name(target).await?;
        self.context.agents.facts(&name).cloned()
    }

    /// The agent that is asked about, if the caller may ask.
    async fn agent_name(&self, target: CapabilityTarget) -> Result<AgentName, CallError> {
        match target {
            CapabilityTarget::Agent(agent) => {
                self.authorize_tenant(Action::ReadMetadata).await?;
                Ok(agent)
            }
            CapabilityTarget::Session(session) => {
                let (id, _) = self.session(&session, Action::ReadMetadata).await?;
                self.session_agent(id).await
            }
        }
    }

    /// C26: the names that a composer may offer.
    pub(crate) async fn offered(
        &self,
        target: CapabilityTarget,
    ) -> Result<Vec<OfferedCommand>, CallError> {
        let agent = self.agent_name(target).await?;
        let facts = self.context.agents.facts(&agent)?;
        let able = CommandKind::ALL
            .into_iter()
            .filter(|kind| facts.capabilities.allows(*kind));
        let ours = able.map(|kind| OfferedCommand {
            name: kind.as_str().to_owned(),
            description: about(kind).to_owned(),
            target: CommandTarget::Dispatch(kind),
        });
        let engine = self.context.agents.engine(&agent)?.describe();
        let its = engine.commands.iter().map(|command| OfferedCommand {
            name: command.name.clone(),
            description: command.description.clone(),
            target: CommandTarget::Prompt,
        });
        Ok(ours.chain(its).collect())
    }

    pub(crate) async fn state(
        &self,
        session: SessionRef,
        min_position: Option<Position>,
    ) -> Result<SessionState, CallError> {
        let channel = self.observed(&session).await?;
        if let Some(min) = min_position {
            self.reach(&channel, min).await?;
        }
        Ok(self.context.state(channel.state()))
    }

    /// Waits a moment for a position, or says that it is not reached here.
    async fn reach(&self, channel: &Channel, min: Position) -> Result<(), CallError> {
        // Epochs grow: everything durable of an older one is in what this one started from.
        if min.epoch < channel.epoch() {
            return Ok(());
        }
        let mut wake = channel.subscribe();
        let reached = async {
            wake.wait_for(|_| channel.position().seq >= min.seq)
                .await
                .is_ok()
        };
        let sleep = self
            .context
            .ports
            .clock
            .sleep(self.context.config.position_wait);
        let reached = min.epoch == channel.epoch()
            && matches!(
                select(Box::pin(reached), sleep).await,
                Either::Left((true, _))
            );
        if reached {
            return Ok(());
        }
        let message = "the session has not reached min_position here; ask again, or without it";
        Err(CallError::refused(Reason::PositionNotReached, message)
            .retry_after(self.context.config.position_wait))
    }

    pub(crate) async fn entry_page(
        &self,
        request: ListEntriesRequest,
    ) -> Result<EntryPage, CallError> {
        let channel = self.observed(&request.session).await?;
        let max_entries = pages::size(request.page_size, DEFAULT_PAGE, MAX_PAGE)?;
        let (up_to, leaf) = channel.with_view(|view| (view.entries, view.leaf));
        let (after, full_backfill) = since(channel.session(), request.since.as_deref(), up_to);
        let range = EntryRange {
            after,
            up_to,
            max_entries,
            max_bytes: PAGE_BYTES,
        };
        let session = channel.session();
        let entries = pages::entries(&self.context, session, range)
            .await
            .map_err(store)?;
        let last = entries.last().map_or(after, |entry| entry.id.seq);
        let next_since = (last > 0).then(|| EntryId { session, seq: last }.to_string());
        Ok(EntryPage {
            entries,
            leaf,
            full_backfill,
            next_since,
            has_more: last < up_to,
        })
    }

    pub(crate) async fn observe_session(
        &self,
        request: EventsRequest,
    ) -> Result<Observation, CallError> {
        let channel = self.observed(&request.session).await?;
        let observer = Observer::open(self.context.clone(), channel.clone(), &request)?;
        let asked = (Action::Observe, PolicyContext::default());
        Ok(self.guarded(Box::pin(observer), channel, asked))
    }

    /// The channel of a session that the caller may observe.
    pub(crate) async fn observed(&self, session: &SessionRef) -> Result<Arc<Channel>, CallError> {
        let (id, _) = self.session(session, Action::Observe).await?;
        let channel = self.context.channel(id).await?;
        channel.ok_or_else(CallError::no_such_session)
    }
}

fn about(kind: CommandKind) -> &'static str {
    match kind {
        CommandKind::Steer => "put a text before the model at its next call",
        CommandKind::FollowUp => "add a text for when the run would otherwise stop",
        CommandKind::Abort => "stop the run, or a compaction",
        CommandKind::Compact => "summarize the earlier part of the conversation",
        CommandKind::SetModel => "choose the model of the runs to come",
        CommandKind::SetThinking => "choose the thinking level of the runs to come",
        CommandKind::Navigate => "go on from an earlier entry",
        CommandKind::Respond => "answer a question of the run",
    }
}

/// The place that a cursor names, and whether it was unknown, which means all from the start.
pub(crate) fn since(
    session: SessionId,
    cursor: Option<&str>,
    newest: EntrySeq,
) -> (EntrySeq, bool) {
    let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else {
        return (0, false);
    };
    match cursor.parse::<EntryId>() {
        Ok(id) if id.session == session && id.seq <= newest => (id.seq, false),
        _ => (0, true),
    }
}
