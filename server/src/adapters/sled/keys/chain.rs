//! Where chains of audit records lie: a link by its tenant and its number, and the newest of each.

use sessionplane_core::domain::audit::Series;
use sessionplane_core::domain::ids::TenantId;

use super::{CHAIN, CHAIN_END, Key, audit, in_tenant, metadata_audit};
use crate::adapters::sled::convert::Place;

/// A link of a tenant's chain.
pub(in crate::adapters::sled) fn chain_link(tenant: &TenantId, seq: u64) -> Key {
    let mut key = chain(tenant);
    key.extend_from_slice(&seq.to_be_bytes());
    key
}

/// The prefix of a tenant's chain.
pub(in crate::adapters::sled) fn chain(tenant: &TenantId) -> Key {
    in_tenant(CHAIN, tenant, "")
}

/// The newest link of a tenant's chain.
pub(in crate::adapters::sled) fn chain_end(tenant: &TenantId) -> Key {
    in_tenant(CHAIN_END, tenant, "")
}

/// The prefix of the newest links of all chains.
pub(in crate::adapters::sled) fn chain_ends() -> Key {
    vec![CHAIN_END]
}

/// Where the audit record of a link lies.
pub(in crate::adapters::sled) fn placed(place: Place) -> Key {
    match place.series {
        Series::Session => audit(place.session, place.ordinal),
        Series::Metadata => metadata_audit(place.session, place.ordinal),
    }
}

/// The tenant of a key of a chain, and the number that follows it.
pub(in crate::adapters::sled) fn chained(key: &[u8]) -> Option<(TenantId, Option<u64>)> {
    let (tag, rest) = key.split_first()?;
    let (length, rest) = rest.split_first()?;
    let (tenant, number) = rest.split_at_checked(usize::from(*length))?;
    let tenant = TenantId::parse(std::str::from_utf8(tenant).ok()?).ok()?;
    match *tag {
        CHAIN => Some((tenant, Some(u64::from_be_bytes(number.try_into().ok()?)))),
        CHAIN_END if number.is_empty() => Some((tenant, None)),
        _ => None,
    }
}
