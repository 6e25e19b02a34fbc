//! Who calls: the owner, by the token in the data directory; whoever holds a token that
//! `sessiond token create` made for a configured principal; and whoever shows a certificate, or a JWT
//! of a configured issuer, that is configured as one's.
//!
//! What is inside: `bearer` knows a token's text, `owner` the one of the owner, `book` the file with
//! the digests of all others, `live` follows that file while the server runs, `uses` tells when they
//! were used last; `certificates` knows who shows one, to us or to a proxy, whose word `xfcc` reads;
//! `jwt` knows who shows one of those.
//! What must never enter: what a caller may do; a token in a log line, an error or a debug text.

mod bearer;
mod book;
mod certificates;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub mod jwt;
mod live;
mod owner;
mod uses;
pub mod xfcc;

use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::authenticator::{Authenticator, Known, Presented, Unauthenticated};
use sessionplane_core::ports::clock::Clock;

use certificates::Shown;
use jwt::Issuers;
use live::CLOCK_LOOK;

pub use bearer::{Minted, TokenId, with_secrets_as, without_a_begun_token, without_secrets};
pub use book::{
    BookError, Grant, LIFETIME_AT_MOST, LIVE_TOKENS, State, TOKENS_FILE, TokenBook, TokenRecord,
};
pub use certificates::{Certificates, Certified, Forwarding};
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

/// Everybody who can be known: the owner, the holders of tokens, and those of certificates.
#[derive(Debug)]
pub struct Identities {
    owner: OwnerToken,
    tokens: Tokens,
    certificates: Certificates,
    issuers: Option<Issuers>,
}

impl Identities {
    /// The owner and the holders of `tokens`.
    #[must_use]
    pub fn new(owner: OwnerToken, tokens: Tokens) -> Self {
        Self {
            owner,
            tokens,
            certificates: Certificates::default(),
            issuers: None,
        }
    }

    /// The most trust that what lies in the data directory gives: `Typed` only where no agent that is
    /// served can read it (C57).
    #[must_use]
    pub fn with_local_trust(mut self, most: Trust) -> Self {
        self.owner = self.owner.up_to(most);
        self.tokens = self.tokens.up_to(most);
        self
    }

    /// And whoever shows one of these.
    #[must_use]
    pub fn with_certificates(mut self, certificates: Certificates) -> Self {
        self.certificates = certificates;
        self
    }

    /// And whoever shows a JWT of one of these.
    #[must_use]
    pub fn with_issuers(mut self, issuers: Issuers) -> Self {
        self.issuers = Some(issuers);
        self
    }

    /// The owner's token, for the line that a start prints.
    #[must_use]
    pub fn owner(&self) -> &OwnerToken {
        &self.owner
    }

    /// Follows the tokens' file and the issuers' keys for as long as it is polled.
    pub async fn follow(&self) {
        let issuers = async {
            match &self.issuers {
                Some(issuers) => issuers.follow().await,
                None => std::future::pending().await,
            }
        };
        tokio::join!(self.tokens.follow(), issuers);
    }

    /// Writes down when tokens were used last, once nobody follows them any more.
    pub async fn settle(&self) {
        self.tokens.settle_uses().await;
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        self.tokens.clock()
    }

    async fn bearer(&self, token: &str) -> Result<Known, Unauthenticated> {
        if let Some(issuers) = self.issuers.as_ref().filter(|all| all.take(token)) {
            return issuers.known(token).await;
        }
        // Both are looked at whatever the first one says.
        let digest = bearer::digest(token);
        let owner = self.owner.holder(&digest);
        let holder = self.tokens.holder(token, &digest);
        owner.map_or(holder, Ok).map(Known::from)
    }

    /// Completes when a time has come. The wall clock may be set meanwhile.
    async fn reached(&self, until: Option<Timestamp>) {
        let Some(until) = until else {
            return std::future::pending().await;
        };
        loop {
            let left = until.since(self.clock().now());
            if left.is_zero() {
                return;
            }
            self.clock().sleep(left.min(CLOCK_LOOK)).await;
        }
    }
}

#[async_trait]
impl Authenticator for Identities {
    /// Decision 0043: the certificate first, then the token; whatever came must be good, and of one
    /// principal.
    async fn authenticate(&self, presented: Presented<'_>) -> Result<Known, Unauthenticated> {
        let shown = self.certificates.known(&presented, self.clock().now())?;
        let bearer = match presented.bearer {
            Some(token) => Some(self.bearer(token).await?),
            None => None,
        };
        match (shown, bearer) {
            (Shown::Somebody(certified), Some(bearer)) => certificates::both(&certified, bearer),
            (Shown::Somebody(known), None) | (Shown::Nobody(_), Some(known)) => Ok(known),
            (Shown::Nobody(None), None) => {
                Err(Unauthenticated(format!("no bearer token: {WAY_IN}")))
            }
            (Shown::Nobody(Some(words)), None) => {
                Err(Unauthenticated(format!("{words}; or {WAY_IN}")))
            }
        }
    }

    async fn ended(&self, known: &Known) -> Unauthenticated {
        let principal = &known.principal;
        let token = async {
            if self.owner.is(principal) {
                return std::future::pending().await;
            }
            self.tokens.ended(principal).await
        };
        let withdrawn = async {
            match &self.issuers {
                Some(issuers) => issuers.withdrawn(known).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = token => ended,
            ended = withdrawn => ended,
            () = self.reached(known.until) => match known.proof {
                Some(_) => jwt::over(),
                None => certificates::over(),
            },
        }
    }
}
