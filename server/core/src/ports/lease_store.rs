//! Who holds which session. The lease itself is taken, held and released inside commits; this
//! port mints tokens and reads and revokes.

use async_trait::async_trait;

use super::repository::ReadError;
use crate::domain::ids::SessionId;
use crate::domain::lease::{Holder, LeaseToken};

/// A session that ran or was compacted when the store was closed or its process died.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldLease {
    /// The session.
    pub session: SessionId,
    /// What it was held for.
    pub holder: Holder,
    /// The token it held it under.
    pub token: LeaseToken,
}

/// Mints, reads and revokes leases.
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// A token greater than every one minted before, in this process or an earlier one.
    async fn mint(&self) -> Result<LeaseToken, ReadError>;
    /// The token that a live writer of this process holds a session under, as far as that is
    /// durable. For tests and for looking into a server: nothing is decided by it, because it may
    /// change before the answer is read. A commit's lease clause is judged with the write.
    async fn holder(&self, session: SessionId) -> Result<Option<LeaseToken>, ReadError>;
    /// Voids a live lease: every later commit under its token is refused.
    async fn revoke(&self, session: SessionId) -> Result<(), ReadError>;
    /// Leases that the records name and no live writer holds: runs and compactions that a crash cut. Reads the
    /// index of running sessions only, never all sessions. A damaged record is left out (and
    /// logged): it concerns one session, and [`LeaseStore::cut`] tells of it.
    async fn orphaned(&self) -> Result<Vec<HeldLease>, ReadError>;
    /// The same for one session: the lease of a run that nobody drives any more and that is not
    /// settled yet, or of a compaction that nobody ends. Cheap where there is none.
    async fn cut(&self, session: SessionId) -> Result<Option<HeldLease>, ReadError>;
}
