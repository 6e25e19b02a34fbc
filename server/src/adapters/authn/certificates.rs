//! Whoever shows a certificate, to this server or to a proxy that it believes.
//!
//! What must never enter: the bytes of a certificate; a bearer token.

use std::collections::{BTreeSet, HashMap};

use sessionplane_core::domain::access::Principal;
use sessionplane_core::domain::certificate::{CertificateName, NameProblem, PeerCertificate};
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::authenticator::{Forwarded, Known, Presented, Unauthenticated};

use super::live::Registered;
use super::xfcc;

/// What the name of a credential begins with; the certificate's name follows.
const CREDENTIAL: &str = "cert:";

/// A principal by the names of its certificates.
#[derive(Clone, Debug)]
pub struct Certified {
    /// Who it is.
    pub holder: Registered,
    /// The most trust that its certificates can give to a text.
    pub ceiling: Trust,
    /// What its certificates call it.
    pub names: Vec<CertificateName>,
}

/// From whom `x-forwarded-client-cert` is believed.
#[derive(Clone, Default, Debug)]
pub struct Forwarding {
    /// Peers that show one of these names.
    pub peers: BTreeSet<CertificateName>,
    /// Everybody: the listener is where only this host reaches it.
    pub loopback_only: bool,
}

/// Knows principals by their certificates.
#[derive(Default, Debug)]
pub struct Certificates {
    holders: HashMap<CertificateName, (Registered, Trust)>,
    forwarding: Forwarding,
}

/// What a connection says of its caller, before any token.
pub(super) enum Shown {
    /// Who calls.
    Somebody(Known),
    /// Nobody that is known; in words for who sends nothing else, if a certificate was there.
    Nobody(Option<String>),
}

/// Whose certificate it is.
struct Holder {
    name: CertificateName,
    /// How it is told from others of this name.
    mark: String,
    until: Option<Timestamp>,
}

impl Certificates {
    /// These principals, and what is believed of others. Of a name that two claim the first counts:
    /// configuration refuses that.
    #[must_use]
    pub fn new(all: impl IntoIterator<Item = Certified>, forwarding: Forwarding) -> Self {
        let mut holders = HashMap::new();
        for one in all {
            for name in one.names {
                let holder = (one.holder.clone(), one.ceiling);
                holders.entry(name).or_insert(holder);
            }
        }
        Self {
            holders,
            forwarding,
        }
    }

    /// Who is behind the certificate of a call.
    ///
    /// # Errors
    /// When there is one that must not be: whatever else was sent, it is not looked at.
    pub(super) fn known(
        &self,
        presented: &Presented<'_>,
        now: Timestamp,
    ) -> Result<Shown, Unauthenticated> {
        let holder = match self.holder(presented, now)? {
            Ok(holder) => holder,
            Err(nobody) => return Ok(Shown::Nobody(nobody)),
        };
        let Some((registered, ceiling)) = self.holders.get(&holder.name) else {
            let words = format!(
                "the certificate {} is of no principal; name it in the certificates of one \
                 ([identity.principals.NAME]){}",
                holder.name,
                self.of_forwarding(presented)
            );
            return Ok(Shown::Nobody(Some(words)));
        };
        Ok(Shown::Somebody(Known {
            principal: Principal {
                tenant: registered.tenant.clone(),
                id: registered.id.clone(),
                kind: registered.kind,
                groups: registered.groups.clone(),
                ceiling: *ceiling,
                credential: format!("{CREDENTIAL}{}{}", holder.name, holder.mark).into(),
            },
            until: holder.until,
            proof: None,
        }))
    }

    /// What is added for who sent a header that is not believed.
    fn of_forwarding(&self, presented: &Presented<'_>) -> &'static str {
        let sent = !matches!(presented.forwarded, Forwarded::Absent);
        if sent && !self.believes(presented.certificate) {
            "; x-forwarded-client-cert is not believed from this peer ([identity.forwarded])"
        } else {
            ""
        }
    }

    fn believes(&self, peer: Option<&PeerCertificate>) -> bool {
        self.forwarding.loopback_only || self.relays(peer)
    }

    /// Whether a peer calls for others.
    fn relays(&self, peer: Option<&PeerCertificate>) -> bool {
        let name = peer.and_then(|peer| peer.name.as_ref().ok());
        name.is_some_and(|name| self.forwarding.peers.contains(name))
    }

    /// The certificate that counts, or why there is none.
    fn holder(
        &self,
        presented: &Presented<'_>,
        now: Timestamp,
    ) -> Result<Result<Holder, Option<String>>, Unauthenticated> {
        let peer = presented.certificate;
        if let Some(peer) = peer {
            refuse_unfit(peer, now)?;
        }
        if self.believes(peer) {
            match presented.forwarded {
                Forwarded::Once(header) => return forwarded(header, peer),
                Forwarded::Repeated => {
                    let words = "x-forwarded-client-cert came more than once; a proxy appends to the \
                                 one that there is, or replaces it";
                    return Err(Unauthenticated(words.to_owned()));
                }
                // A relay that says nothing of its caller had one without a certificate. It is
                // nobody itself, so that such a caller is not taken for it.
                Forwarded::Absent if self.relays(peer) => {
                    return Ok(Err(Some("the proxy was shown no certificate".to_owned())));
                }
                Forwarded::Absent => {}
            }
        }
        let Some(peer) = peer else {
            let words = self.of_forwarding(presented).trim_start_matches("; ");
            return Ok(Err((!words.is_empty()).then(|| words.to_owned())));
        };
        Ok(match &peer.name {
            Ok(name) => Ok(Holder {
                name: name.clone(),
                mark: format!("#{}", super::super::hex::encode(&peer.fingerprint)),
                until: Some(peer.ends),
            }),
            Err(problem) => Err(Some(format!("the certificate names nobody: {problem}"))),
        })
    }
}

/// Refuses a certificate that is over, or that is not as its kind must be: no token makes up for that.
fn refuse_unfit(peer: &PeerCertificate, now: Timestamp) -> Result<(), Unauthenticated> {
    let problem = match &peer.name {
        Err(
            problem @ (NameProblem::NoSpiffeId
            | NameProblem::SeveralSpiffeIds
            | NameProblem::Unreadable),
        ) => problem.to_string(),
        _ if peer.ends <= now => return Err(over()),
        _ => return Ok(()),
    };
    Err(Unauthenticated(format!(
        "the client certificate is refused: {problem}; have it made anew"
    )))
}

/// The refusal of what goes on under a certificate that has ended.
pub(super) fn over() -> Unauthenticated {
    Unauthenticated(
        "the client certificate of this connection has ended; connect again with its successor"
            .to_owned(),
    )
}

fn forwarded(
    header: &[u8],
    relay: Option<&PeerCertificate>,
) -> Result<Result<Holder, Option<String>>, Unauthenticated> {
    let names = xfcc::last(header).map_err(|error| Unauthenticated(error.to_string()))?;
    let name = match names.choose() {
        Ok(name) => name,
        Err(problem @ (NameProblem::NoSpiffeId | NameProblem::SeveralSpiffeIds)) => {
            let words = format!("the forwarded certificate is refused: {problem}");
            return Err(Unauthenticated(words));
        }
        Err(problem) => {
            let words = format!("the forwarded certificate names nobody: {problem}");
            return Ok(Err(Some(words)));
        }
    };
    let via = relay.and_then(|relay| relay.name.as_ref().ok());
    let via = via.map_or_else(|| "loopback".to_owned(), ToString::to_string);
    Ok(Ok(Holder {
        name,
        mark: format!(" via {via}"),
        until: relay.map(|relay| relay.ends),
    }))
}

/// Who calls with a certificate and a token: both must say the same. The token says what it may do: it
/// can have fewer groups and less trust, never more; what ends first ends both.
///
/// # Errors
/// When they are of two principals.
pub(super) fn both(certificate: &Known, bearer: Known) -> Result<Known, Unauthenticated> {
    let (one, other) = (&certificate.principal, &bearer.principal);
    if (&one.tenant, &one.id) != (&other.tenant, &other.id) {
        return Err(Unauthenticated(format!(
            "the certificate is of {}, and the bearer token is not: send one of the two",
            one.id
        )));
    }
    let ceiling = one.ceiling.min(other.ceiling);
    Ok(Known {
        until: earlier(certificate.until, bearer.until),
        principal: Principal {
            ceiling,
            ..bearer.principal
        },
        proof: bearer.proof,
    })
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
#[path = "certificates/tests.rs"]
mod tests;
