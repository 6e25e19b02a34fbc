//! Where a text came from. What this client does not know of it is read as the least.

use sessionplane::v1;
use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::provenance::{Channel, Digest, Origin, Trust};

use super::field::{Malformed, id, optional_id, required};

/// An origin that must be told.
pub(crate) fn read(field: &'static str, origin: Option<v1::Origin>) -> Result<Origin, Malformed> {
    let origin = required(field, origin)?;
    Ok(Origin {
        kind: kind(origin.kind()),
        channel: channel(origin.channel()),
        trust: trust(origin.trust()),
        principal: id("origin.principal_id", &origin.principal_id)?,
        digest: digest("origin.digest", &origin.digest)?,
        request_id: optional_id("origin.request_id", &origin.request_id)?,
    })
}

fn kind(kind: v1::PrincipalKind) -> PrincipalKind {
    match kind {
        v1::PrincipalKind::Human => PrincipalKind::Human,
        v1::PrincipalKind::Agent => PrincipalKind::Agent,
        v1::PrincipalKind::Service | v1::PrincipalKind::Unspecified => PrincipalKind::Service,
    }
}

fn channel(channel: v1::OriginChannel) -> Channel {
    match channel {
        v1::OriginChannel::Steer => Channel::Steer,
        v1::OriginChannel::FollowUp => Channel::FollowUp,
        v1::OriginChannel::Respond => Channel::Respond,
        v1::OriginChannel::Control => Channel::Control,
        v1::OriginChannel::Invoke | v1::OriginChannel::Unspecified => Channel::Invoke,
    }
}

fn trust(trust: v1::Trust) -> Trust {
    match trust {
        v1::Trust::Typed => Trust::Typed,
        v1::Trust::Relayed => Trust::Relayed,
        v1::Trust::Untrusted | v1::Trust::Unspecified => Trust::Untrusted,
    }
}

pub(super) fn digest(field: &'static str, text: &str) -> Result<Digest, Malformed> {
    let wrong = || Malformed {
        field,
        problem: "is not 64 hexadecimal digits".to_owned(),
    };
    if text.len() != 64 || !text.is_ascii() {
        return Err(wrong());
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        let pair = &text[index * 2..index * 2 + 2];
        *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
    }
    Ok(Digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_back_as_it_prints() {
        let digest_of = Digest([0xa7; 32]);
        assert_eq!(digest("f", &digest_of.to_string()), Ok(digest_of));
        for bad in ["", "zz", &"g".repeat(64), &"é".repeat(32)] {
            assert!(digest("f", bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn c64_an_unknown_trust_is_the_least() {
        let wire = v1::Origin {
            principal_id: "ada".to_owned(),
            trust: 99,
            digest: "00".repeat(32),
            ..v1::Origin::default()
        };
        assert_eq!(read("origin", Some(wire)).unwrap().trust, Trust::Untrusted);
    }
}
