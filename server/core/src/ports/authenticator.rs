//! Who is it? The question that a face asks before it looks at anything else of a call.

use async_trait::async_trait;

use crate::domain::access::Principal;

/// What a caller presented to show who it is. It holds secrets, so it cannot be printed.
#[derive(Clone, Copy, Default)]
pub struct Presented<'a> {
    /// The bearer token.
    pub bearer: Option<&'a str>,
}

/// The caller is not known. Says how to become known, never which part of a credential was wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unauthenticated(pub String);

/// Turns what a caller presents into a principal.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// The principal behind a credential. Runs on every call, so it must be cheap.
    async fn authenticate(&self, presented: Presented<'_>) -> Result<Principal, Unauthenticated>;

    /// Completes once the credential with which a principal came is good for nothing any more, and
    /// says why: what goes on for long ends then (C55). Must not take longer than a few seconds to
    /// notice. Credentials that never end need not say so.
    async fn ended(&self, principal: &Principal) -> Unauthenticated {
        let _never_ends = principal;
        std::future::pending().await
    }
}
