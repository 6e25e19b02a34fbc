//! Whoever shows a JWT of a configured issuer, by what it claims.
//!
//! What is inside: `compact` takes a token apart, `jwks` knows keys and signatures (of `ring`, as TLS
//! has it), `fetch` gets the keys, `issuer` judges its tokens, `rules` says which claims make which
//! principal. What must never enter: a way of signing that is symmetric, or none at all.

pub mod compact;
mod fetch;
mod issuer;
pub mod jwks;
mod rules;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use serde_json::{Map, Value};
use sessionplane_core::domain::access::Principal;
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::ports::authenticator::{Known, Unauthenticated};
use sessionplane_core::ports::clock::Clock;
use sha2::{Digest as _, Sha256};

use super::super::hex;
use super::live::{CLOCK_LOOK, Registered};
use issuer::NotHeld;

pub use compact::Algorithm;
pub use fetch::{KeyFile, KeySource, KeyUrl};
pub use issuer::{Issuer, IssuerSettings};
pub use rules::{NoRule, Rule};

/// What the name of a credential begins with; the issuer's name and the subject follow.
const CREDENTIAL: &str = "jwt:";
/// Most characters of a subject in the name of a credential.
const SUBJECT_CHARACTERS: usize = 256;
/// Tokens whose signature need not be looked at again. When there are more, all are.
const REMEMBERED: usize = 1024;

/// A principal by the claims of its JWTs.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// Who it is.
    pub holder: Registered,
    /// The most trust that its JWTs can give to a text.
    pub ceiling: Trust,
    /// Each of them is enough.
    pub rules: Vec<Rule>,
}

/// Knows principals by their JWTs.
pub struct Issuers {
    all: Vec<Issuer>,
    holders: Vec<Claimed>,
    clock: Arc<dyn Clock>,
    /// Who was known by tokens, by their digest.
    remembered: Mutex<HashMap<[u8; 32], Known>>,
}

impl std::fmt::Debug for Issuers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issuers").finish_non_exhaustive()
    }
}

impl Issuers {
    /// These issuers, and who is who by their tokens.
    #[must_use]
    pub fn new(all: Vec<Issuer>, holders: Vec<Claimed>, clock: Arc<dyn Clock>) -> Self {
        Self {
            all,
            holders,
            clock,
            remembered: Mutex::default(),
        }
    }

    /// Follows the issuers' keys for as long as it is polled.
    pub(super) async fn follow(&self) {
        join_all(self.all.iter().map(Issuer::follow)).await;
        // Where there is none, there is nothing to follow, and never an end of it.
        std::future::pending::<()>().await;
    }

    /// Whether a bearer token is to be judged here, and not as one of ours.
    pub(super) fn take(&self, token: &str) -> bool {
        !self.all.is_empty() && compact::looks_like(token)
    }

    /// The principal of a JWT.
    ///
    /// # Errors
    /// The same words whatever keeps it from being proved; what is wrong with one that is.
    pub(super) async fn known(&self, token: &str) -> Result<Known, Unauthenticated> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(known) = self.remembered(&digest) {
            return Ok(known);
        }
        let read = compact::read(token).map_err(|_| unproved())?;
        let iss = read.claims.get("iss").and_then(Value::as_str);
        let issuer = self
            .all
            .iter()
            .position(|one| iss == Some(&*one.settings.issuer));
        let at = issuer.ok_or_else(unproved)?;
        let issuer = &self.all[at];
        let name = issuer.settings.name.as_str();
        let held = issuer.judge(&read).await.map_err(|why| match why {
            NotHeld::Unproved => unproved(),
            NotHeld::Unfit(problem) => {
                Unauthenticated(format!("the JWT of issuer {name} is refused: {problem}"))
            }
        })?;
        let claimed = self.holder(name, &read.claims)?;
        let subject = plain(
            read.claims
                .get("sub")
                .and_then(Value::as_str)
                .unwrap_or("-"),
        );
        let (holder, mark) = (&claimed.holder, hex::encode(&digest[..8]));
        let known = Known {
            principal: Principal {
                tenant: holder.tenant.clone(),
                id: holder.id.clone(),
                kind: holder.kind,
                groups: holder.groups.clone(),
                ceiling: claimed.ceiling,
                credential: format!("{CREDENTIAL}{name}:{subject}#{mark}").into(),
            },
            until: Some(held.until),
            proof: Some(format!("{at}/{}", hex::encode(&held.key)).into()),
        };
        self.remember(digest, &known);
        Ok(known)
    }

    fn holder(&self, name: &str, claims: &Map<String, Value>) -> Result<&Claimed, Unauthenticated> {
        let fits = |one: &&Claimed| {
            let mut rules = one.rules.iter();
            rules.any(|rule| rule.issuer == name && rule.holds(claims))
        };
        let mut fitting = self.holders.iter().filter(fits);
        let refused = |problem: &str| {
            Unauthenticated(format!("the JWT of issuer {name} is good, but {problem}"))
        };
        match (fitting.next(), fitting.next()) {
            (Some(one), None) => Ok(one),
            (Some(_), Some(_)) => Err(refused(
                "more than one principal claims what it says: make the claims of all but one narrower",
            )),
            (None, _) => Err(refused(
                "no principal claims what it says ([identity.principals.NAME] claims)",
            )),
        }
    }

    fn remembered(&self, digest: &[u8; 32]) -> Option<Known> {
        let remembered = self
            .remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = remembered.get(digest)?;
        let over = known.until.is_none_or(|until| until <= self.clock.now());
        (!over && self.still(known)).then(|| known.clone())
    }

    fn remember(&self, digest: [u8; 32], known: &Known) {
        let mut remembered = self
            .remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED {
            remembered.clear();
        }
        remembered.insert(digest, known.clone());
    }

    /// The issuer and the key that proved somebody.
    fn proof(&self, known: &Known) -> Option<(&Issuer, [u8; 32])> {
        let (at, key) = known.proof.as_deref()?.split_once('/')?;
        let issuer = self.all.get(at.parse::<usize>().ok()?)?;
        Some((issuer, hex::decode(key.as_bytes())?))
    }

    /// Whether what proved somebody still counts.
    fn still(&self, known: &Known) -> bool {
        self.proof(known)
            .is_some_and(|(issuer, key)| issuer.has(&key))
    }

    /// Completes when what proved somebody does not count any more. Never for what is not of here.
    pub(super) async fn withdrawn(&self, known: &Known) -> Unauthenticated {
        let Some((issuer, key)) = self.proof(known) else {
            return std::future::pending().await;
        };
        let mut changes = issuer.changes();
        while issuer.has(&key) {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { break },
                // Keys that cannot be read any more end by themselves.
                () = self.clock.sleep(CLOCK_LOOK) => {}
            }
        }
        Unauthenticated(
            "the issuer of this call's JWT has withdrawn the key that signed it, or cannot be asked \
             any more; call again with a new one"
                .to_owned(),
        )
    }
}

/// The refusal of what goes on under a JWT whose time is over.
pub(super) fn over() -> Unauthenticated {
    Unauthenticated(
        "the JWT of this call has expired, or the certificate that came with it; call with a new one"
            .to_owned(),
    )
}

fn unproved() -> Unauthenticated {
    Unauthenticated(
        "the bearer token is not known: it is a JWT, and its issuer, its key or its signature is \
         none of those that are configured ([identity.issuers.NAME])"
            .to_owned(),
    )
}

/// A text from outside as it may stand in a credential's name.
fn plain(text: &str) -> String {
    let shown = text.chars().take(SUBJECT_CHARACTERS);
    let odd = |c: char| c.is_control() || c.is_whitespace();
    shown.map(|c| if odd(c) { '_' } else { c }).collect()
}

#[cfg(test)]
#[path = "jwt/tests.rs"]
mod tests;
