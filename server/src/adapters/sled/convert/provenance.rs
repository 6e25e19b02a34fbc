//! Where a text came from, and the digests that go with it.

use sessionplane::store::v1 as form;
use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::ids::{PrincipalId, RequestId};
use sessionplane_core::domain::provenance::{Channel, Digest, Origin, Trust};

use super::{Stored, Unreadable, bytes, optional, unknown};

pub(super) fn digest(value: &[u8]) -> Result<Digest, Unreadable> {
    bytes(value, "digest").map(Digest)
}

impl Stored for Origin {
    type Form = form::Origin;
    fn form(&self) -> Self::Form {
        let kind = match self.kind {
            PrincipalKind::Human => form::PrincipalKind::Human,
            PrincipalKind::Service => form::PrincipalKind::Service,
            PrincipalKind::Agent => form::PrincipalKind::Agent,
        };
        let channel = match self.channel {
            Channel::Invoke => form::Channel::Invoke,
            Channel::Steer => form::Channel::Steer,
            Channel::FollowUp => form::Channel::FollowUp,
            Channel::Respond => form::Channel::Respond,
            Channel::Control => form::Channel::Control,
        };
        let trust = match self.trust {
            Trust::Untrusted => form::Trust::Untrusted,
            Trust::Relayed => form::Trust::Relayed,
            Trust::Typed => form::Trust::Typed,
        };
        form::Origin {
            principal: self.principal.as_str().to_owned(),
            kind: kind.into(),
            channel: channel.into(),
            trust: trust.into(),
            digest: self.digest.0.to_vec(),
            request_id: self.request_id.as_ref().map(ToString::to_string),
        }
    }
    fn read(origin: Self::Form) -> Result<Self, Unreadable> {
        let kind = match origin.kind() {
            form::PrincipalKind::Human => PrincipalKind::Human,
            form::PrincipalKind::Service => PrincipalKind::Service,
            form::PrincipalKind::Agent => PrincipalKind::Agent,
            form::PrincipalKind::Unspecified => return Err(unknown("origin.kind")),
        };
        let channel = match origin.channel() {
            form::Channel::Invoke => Channel::Invoke,
            form::Channel::Steer => Channel::Steer,
            form::Channel::FollowUp => Channel::FollowUp,
            form::Channel::Respond => Channel::Respond,
            form::Channel::Control => Channel::Control,
            form::Channel::Unspecified => return Err(unknown("origin.channel")),
        };
        let trust = match origin.trust() {
            form::Trust::Untrusted => Trust::Untrusted,
            form::Trust::Relayed => Trust::Relayed,
            form::Trust::Typed => Trust::Typed,
            form::Trust::Unspecified => return Err(unknown("origin.trust")),
        };
        Ok(Self {
            principal: PrincipalId::parse(&origin.principal)?,
            kind,
            channel,
            trust,
            digest: digest(&origin.digest)?,
            request_id: optional(origin.request_id.as_ref(), RequestId::parse)?,
        })
    }
}
