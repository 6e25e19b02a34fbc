//! Where a text came from.

use sessionplane::v1 as wire;
use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::ids::RequestId;
use sessionplane_core::domain::provenance::{Channel, Origin, Trust};

/// An origin.
pub(crate) fn to_wire(origin: &Origin) -> wire::Origin {
    wire::Origin {
        principal_id: origin.principal.to_string(),
        kind: kind(origin.kind).into(),
        channel: channel(origin.channel).into(),
        trust: trust(origin.trust).into(),
        digest: origin.digest.to_string(),
        request_id: optional_request_id(origin.request_id.as_ref()),
    }
}

/// A caller's key, empty for none.
pub(crate) fn optional_request_id(id: Option<&RequestId>) -> String {
    id.map(ToString::to_string).unwrap_or_default()
}

fn kind(kind: PrincipalKind) -> wire::PrincipalKind {
    match kind {
        PrincipalKind::Human => wire::PrincipalKind::Human,
        PrincipalKind::Service => wire::PrincipalKind::Service,
        PrincipalKind::Agent => wire::PrincipalKind::Agent,
    }
}

fn channel(channel: Channel) -> wire::OriginChannel {
    match channel {
        Channel::Invoke => wire::OriginChannel::Invoke,
        Channel::Steer => wire::OriginChannel::Steer,
        Channel::FollowUp => wire::OriginChannel::FollowUp,
        Channel::Respond => wire::OriginChannel::Respond,
        Channel::Control => wire::OriginChannel::Control,
    }
}

fn trust(trust: Trust) -> wire::Trust {
    match trust {
        Trust::Typed => wire::Trust::Typed,
        Trust::Relayed => wire::Trust::Relayed,
        Trust::Untrusted => wire::Trust::Untrusted,
    }
}
