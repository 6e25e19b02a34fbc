//! Who calls: the owner, by the token in the data directory, and whoever holds a token that
//! `sessiond token create` made for a configured principal.
//!
//! What is inside: `bearer` knows a token's text, `owner` the one of the owner, `book` the file with
//! the digests of all others, `live` follows that file while the server runs, `uses` tells when they
//! were used last. What must never enter: what a caller may do; a token in a log line, an error or a
//! debug text.

mod bearer;
mod book;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod live;
mod owner;
mod uses;

use async_trait::async_trait;
use sessionplane_core::domain::access::Principal;
use sessionplane_core::ports::authenticator::{Authenticator, Presented, Unauthenticated};

pub use bearer::{Minted, TokenId, with_secrets_as, without_a_begun_token, without_secrets};
pub use book::{
    BookError, Grant, LIFETIME_AT_MOST, LIVE_TOKENS, State, TOKENS_FILE, TokenBook, TokenRecord,
};
pub use live::{Registered, Tokens};
pub use owner::{OWNER_FILE, OWNER_ID, OWNER_TENANT, OwnerToken, OwnerTokenError};
pub use uses::Uses;

/// How a caller becomes known.
const WAY_IN: &str = "send `authorization: Bearer TOKEN`; the token of this server's owner is in the \
                      file owner.token of its data directory, and `sessiond token create` makes one \
                      for another principal";

/// The refusal of a token that is none of ours: the same words whatever is wrong with it.
fn unknown() -> Unauthenticated {
    Unauthenticated(format!("the bearer token is not known: {WAY_IN}"))
}

/// Everybody who can be known: the owner, and the holders of tokens.
#[derive(Debug)]
pub struct Identities {
    owner: OwnerToken,
    tokens: Tokens,
}

impl Identities {
    /// The owner and the holders of `tokens`.
    #[must_use]
    pub fn new(owner: OwnerToken, tokens: Tokens) -> Self {
        Self { owner, tokens }
    }

    /// The owner's token, for the line that a start prints.
    #[must_use]
    pub fn owner(&self) -> &OwnerToken {
        &self.owner
    }

    /// Follows the tokens' file for as long as it is polled.
    pub async fn follow(&self) {
        self.tokens.follow().await;
    }

    /// Writes down when tokens were used last, once nobody follows them any more.
    pub async fn settle(&self) {
        self.tokens.settle_uses().await;
    }
}

#[async_trait]
impl Authenticator for Identities {
    async fn authenticate(&self, presented: Presented<'_>) -> Result<Principal, Unauthenticated> {
        let Some(token) = presented.bearer else {
            return Err(Unauthenticated(format!("no bearer token: {WAY_IN}")));
        };
        // Both are looked at whatever the first one says.
        let digest = bearer::digest(token);
        let owner = self.owner.holder(&digest);
        let holder = self.tokens.holder(token, &digest);
        owner.map_or(holder, Ok)
    }

    async fn ended(&self, principal: &Principal) -> Unauthenticated {
        if self.owner.is(principal) {
            return std::future::pending().await;
        }
        self.tokens.ended(principal).await
    }
}
