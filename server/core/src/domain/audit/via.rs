//! How an audited call came: over what, and by which kind of proof. A word each, which records keep.
//!
//! What must never enter: an address, a name, or anything that a client says of itself.

use std::fmt;

/// What carried a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transport {
    /// A unix socket.
    Unix,
    /// TCP without TLS.
    Plain,
    /// TLS.
    Tls,
    /// TLS in which the client showed a certificate.
    MutualTls,
    /// A proxy that ended the client's connection and says who it was.
    Forwarded,
}

/// What a caller showed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Proof {
    /// An opaque token.
    Token,
    /// A signed token of an issuer.
    Jwt,
    /// A certificate.
    Certificate,
}

/// How a call came.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Via {
    /// What carried it.
    pub transport: Transport,
    /// What the caller showed.
    pub proof: Proof,
}

impl Transport {
    /// Every transport there is.
    pub const ALL: [Self; 5] = [
        Self::Unix,
        Self::Plain,
        Self::Tls,
        Self::MutualTls,
        Self::Forwarded,
    ];

    /// The stable word of it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unix => "unix",
            Self::Plain => "plain",
            Self::Tls => "tls",
            Self::MutualTls => "mtls",
            Self::Forwarded => "forwarded",
        }
    }
}

impl Proof {
    /// Every proof there is.
    pub const ALL: [Self; 3] = [Self::Token, Self::Jwt, Self::Certificate];

    /// The stable word of it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Jwt => "jwt",
            Self::Certificate => "certificate",
        }
    }
}

impl Via {
    /// Reads what [`fmt::Display`] writes: `TRANSPORT+PROOF`, as in `tls+token`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (transport, proof) = text.split_once('+')?;
        let mut transports = Transport::ALL.into_iter();
        let mut proofs = Proof::ALL.into_iter();
        Some(Self {
            transport: transports.find(|it| it.as_str() == transport)?,
            proof: proofs.find(|it| it.as_str() == proof)?,
        })
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.transport.as_str(), self.proof.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c56_every_way_a_call_may_come_has_a_word_that_reads_back() {
        for transport in Transport::ALL {
            for proof in Proof::ALL {
                let via = Via { transport, proof };
                assert_eq!(Via::parse(&via.to_string()), Some(via));
            }
        }
        for odd in ["", "tls", "tls+", "+token", "TLS+token", "tls+token "] {
            assert_eq!(Via::parse(odd), None, "{odd:?}");
        }
    }
}
