//! What the committer judges a commit by: the store, the round so far, and the live leases.

use std::collections::HashMap;

use sessionplane_core::domain::binding::BindingKey;
use sessionplane_core::domain::fleet::filter::StoredTerm;
use sessionplane_core::domain::ids::{ExternalKey, SessionId, SessionName, TenantId};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::session::{SessionHead, SessionRecord};
use sessionplane_core::ports::commit_rules::CommitFacts;
use sessionplane_core::ports::lease_store::HeldLease;
use sessionplane_core::ports::repository::ReadError;

use super::convert::HeadRow;
use super::frame::Source;
use super::keys;
use super::round::{Round, fetch, fetch_binding};

/// The facts of one moment of a round.
pub(super) struct Facts<'f, 'db> {
    pub(super) round: &'f Round<'db>,
    pub(super) live: &'f HashMap<SessionId, LeaseToken>,
}

impl CommitFacts for Facts<'_, '_> {
    fn record(&self, session: SessionId) -> Result<Option<SessionRecord>, ReadError> {
        fetch(self.round, &keys::session(session))
    }

    fn child(&self, session: SessionId) -> Result<Option<SessionId>, ReadError> {
        // No conversation goes on in another tenant.
        let Some(record) = self.record(session)? else {
            return Ok(None);
        };
        let rows = keys::term(&record.tenant, &StoredTerm::Parent(session));
        let row = self.round.first_below(&rows)?;
        Ok(row.and_then(|row| keys::found_session(&row)))
    }

    fn head(&self, session: SessionId) -> Result<Option<SessionHead>, ReadError> {
        let row: Option<HeadRow> = fetch(self.round, &keys::head(session))?;
        Ok(row.map(|row| row.head))
    }

    fn live(&self, session: SessionId) -> Option<LeaseToken> {
        self.live.get(&session).copied()
    }

    fn leased(&self, session: SessionId) -> Result<Option<HeldLease>, ReadError> {
        fetch(self.round, &keys::lease(session))
    }

    fn named(&self, tenant: &TenantId, name: &SessionName) -> Result<bool, ReadError> {
        Ok(self.round.raw(&keys::name(tenant, name))?.is_some())
    }

    fn keyed(&self, tenant: &TenantId, key: &ExternalKey) -> Result<bool, ReadError> {
        Ok(self.round.raw(&keys::external_key(tenant, key))?.is_some())
    }

    fn bound(&self, key: &BindingKey) -> Result<bool, ReadError> {
        Ok(fetch_binding(self.round, key)?.is_some())
    }
}
