//! What was refused. A refusal has no effect to be committed with, so it is recorded after the fact,
//! and repeats of one within a minute are one record with a count.
//!
//! What must never enter: what the caller sent.

use std::sync::Arc;

use super::via::Via;
use crate::domain::ids::{PrincipalId, SessionId, TenantId};
use crate::domain::time::Timestamp;

/// Why something did not happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RefusalKind {
    /// The caller is not known.
    Unauthenticated,
    /// Policy denied it.
    Denied,
    /// It was allowed, and then refused for what it asked.
    Rejected,
    /// Refusals that could not be recorded; `count` says how many.
    Lost,
}

impl RefusalKind {
    /// Every kind there is.
    pub const ALL: [Self; 4] = [
        Self::Unauthenticated,
        Self::Denied,
        Self::Rejected,
        Self::Lost,
    ];

    /// The stable word of the kind: what a record's decision says.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unauthenticated => "unauthenticated",
            Self::Denied => "deny",
            Self::Rejected => "reject",
            Self::Lost => "lost",
        }
    }
}

/// Who was refused.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Refused {
    /// A caller that is known.
    Known {
        /// Who.
        principal: PrincipalId,
        /// A non-secret name of the credential used.
        credential: Arc<str>,
    },
    /// Somebody at an address, or at none that is known.
    Peer(Option<Arc<str>>),
    /// Nobody in particular: refusals that are only counted.
    Nobody,
}

/// Refusals of one kind, by one caller, within one minute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The chain that it belongs to: the caller's tenant, or the server's own.
    pub tenant: TenantId,
    /// When the first of them was.
    pub first_at: Timestamp,
    /// When the last of them was.
    pub last_at: Timestamp,
    /// Why.
    pub kind: RefusalKind,
    /// Who.
    pub who: Refused,
    /// How the first of them came; `None` where nobody noted it.
    pub via: Option<Via>,
    /// What was wanted: an action's name, or a method's.
    pub action: Arc<str>,
    /// The reason that the caller was told.
    pub reason: Arc<str>,
    /// The session that the first of them was about, where one was found.
    pub session: Option<SessionId>,
    /// The policies that decided.
    pub policies: Arc<[String]>,
    /// How many there were, at least 1.
    pub count: u64,
}
