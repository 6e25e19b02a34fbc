//! Who is it? The question that a face asks before it looks at anything else of a call.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::access::Principal;
use crate::domain::certificate::PeerCertificate;
use crate::domain::time::Timestamp;

/// What a caller presented to show who it is. It holds secrets, so it cannot be printed.
#[derive(Clone, Copy, Default)]
pub struct Presented<'a> {
    /// The bearer token.
    pub bearer: Option<&'a str>,
    /// The certificate that the peer of its connection has proved to hold.
    pub certificate: Option<&'a PeerCertificate>,
    /// What its connection's peer says of the certificate of who called *it*
    /// (`x-forwarded-client-cert`), as it came. Anybody can send that.
    pub forwarded: Forwarded<'a>,
}

/// A header that says for whom a proxy calls.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Forwarded<'a> {
    /// It did not come.
    #[default]
    Absent,
    /// It came once.
    Once(&'a [u8]),
    /// It came more than once: a proxy and the server might each believe another one.
    Repeated,
}

/// Who calls, and what that rests on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// Who it is.
    pub principal: Principal,
    /// When what was presented ends by itself, the first of it.
    pub until: Option<Timestamp>,
    /// What proves it and may be taken away meanwhile, in the authenticator's own words.
    pub proof: Option<Arc<str>>,
}

impl From<Principal> for Known {
    /// By a credential that its name tells.
    fn from(principal: Principal) -> Self {
        Self {
            principal,
            until: None,
            proof: None,
        }
    }
}

/// The caller is not known. Says how to become known, never which part of a credential was wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unauthenticated(pub String);

/// Turns what a caller presents into a principal.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// The principal behind a credential. Runs on every call, so it must be cheap.
    async fn authenticate(&self, presented: Presented<'_>) -> Result<Known, Unauthenticated>;

    /// Completes once the credential with which a caller came is good for nothing any more, and
    /// says why: what goes on for long ends then (C55). Must not take longer than a few seconds to
    /// notice. Credentials that never end need not say so.
    async fn ended(&self, known: &Known) -> Unauthenticated {
        let _never_ends = known;
        std::future::pending().await
    }
}
