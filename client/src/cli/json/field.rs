//! Single values: ids, times, origins, consumption.

use std::fmt::Display;
use std::time::Duration;

use serde_json::{Value, json};
use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::provenance::{Channel, Origin, Trust};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;

use crate::cli::render::rfc3339;

/// Anything with a text form.
pub(super) fn text(value: impl Display) -> Value {
    Value::String(value.to_string())
}

/// Anything with a text form, or `null`.
pub(super) fn maybe(value: Option<impl Display>) -> Value {
    value.map_or(Value::Null, text)
}

/// RFC 3339 in UTC with milliseconds.
pub(super) fn time(at: Timestamp) -> Value {
    Value::String(rfc3339(at))
}

/// Seconds with a unit, as the JSON form of protobuf writes durations.
pub(super) fn duration(delay: Duration) -> Value {
    Value::String(format!("{}s", delay.as_secs_f64()))
}

pub(super) fn position(position: Position) -> Value {
    json!({ "epoch": position.epoch, "seq": position.seq })
}

/// Where a content is kept whole.
pub(super) fn artifact(artifact: Option<&ArtifactRef>) -> Value {
    artifact.map_or(
        Value::Null,
        |artifact| json!({ "id": text(artifact.id), "bytes": artifact.bytes }),
    )
}

pub(super) fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.cost_usd,
    })
}

pub(super) fn origin(origin: &Origin) -> Value {
    json!({
        "principal_id": text(&origin.principal),
        "kind": match origin.kind {
            PrincipalKind::Human => "human",
            PrincipalKind::Service => "service",
            PrincipalKind::Agent => "agent",
        },
        "channel": match origin.channel {
            Channel::Invoke => "invoke",
            Channel::Steer => "steer",
            Channel::FollowUp => "follow_up",
            Channel::Respond => "respond",
            Channel::Control => "control",
        },
        "trust": match origin.trust {
            Trust::Typed => "typed",
            Trust::Relayed => "relayed",
            Trust::Untrusted => "untrusted",
        },
        "digest": text(origin.digest),
        "request_id": maybe(origin.request_id.as_ref()),
    })
}
