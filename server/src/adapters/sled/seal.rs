//! Sealing: an audit record becomes the next link of its tenant's chain in the round that writes it.
//!
//! The record lies where it always lay, and knows its number; the link, under tenant and number, has
//! the hash and says where the record lies. What a record says must never enter.

use sessionplane_core::domain::audit::{
    AuditRecord, ChainRecord, Link, Refusal, Series, genesis, seal,
};
use sessionplane_core::domain::ids::TenantId;
use sessionplane_core::ports::repository::ReadError;

use super::convert::{ChainEnd, ChainLink, Linked, Meta, Place, SealedAudit};
use super::frame::{Source, damaged};
use super::keys;
use super::round::{Before, Round, fetch};

/// The newest link of a tenant's chain, or what stands before its first.
pub(super) fn end(source: &impl Source, tenant: &TenantId) -> Result<Link, ReadError> {
    let end: Option<ChainEnd> = fetch(source, &keys::chain_end(tenant))?;
    match end {
        Some(ChainEnd(link)) => Ok(link),
        None => beginning(source, tenant),
    }
}

/// What stands before the first link of a tenant's chain.
pub(super) fn beginning(source: &impl Source, tenant: &TenantId) -> Result<Link, ReadError> {
    let meta: Option<Meta> = fetch(source, &keys::meta())?;
    let meta = meta.ok_or_else(|| damaged(&keys::meta(), "it is missing"))?;
    Ok(Link {
        seq: 0,
        hash: genesis(meta.store_id, tenant),
    })
}

/// Writes a new audit record of a session, sealed.
pub(super) fn audit(
    round: &mut Round<'_>,
    series: Series,
    record: &AuditRecord,
) -> Result<(), ReadError> {
    let place = Place {
        session: record.session,
        series,
        ordinal: record.ordinal,
    };
    write(round, place, record.clone(), Before::Absent)
}

/// Writes an audit record at its place, sealed; `before` says whether it lies there already.
pub(super) fn write(
    round: &mut Round<'_>,
    place: Place,
    record: AuditRecord,
    before: Before,
) -> Result<(), ReadError> {
    let tenant = record.tenant.clone();
    let before_it = end(round, &tenant)?;
    let seq = before_it.seq + 1;
    let hash = seal(
        before_it.hash,
        &ChainRecord::of_write(seq, place.series, &record),
    );
    let sealed = SealedAudit {
        record,
        seq: Some(seq),
    };
    round.put(keys::placed(place), &sealed, before)?;
    link(round, &tenant, Link { seq, hash }, Linked::Write(place))
}

/// Writes refusals, sealed. They lie in their links: they have no session that they would be of.
pub(super) fn refused(round: &mut Round<'_>, refusals: &[Refusal]) -> Result<(), ReadError> {
    for refusal in refusals {
        let before_it = end(round, &refusal.tenant)?;
        let seq = before_it.seq + 1;
        let hash = seal(before_it.hash, &ChainRecord::of_refusal(seq, refusal));
        let of = Linked::Refused(refusal.clone());
        link(round, &refusal.tenant, Link { seq, hash }, of)?;
    }
    Ok(())
}

fn link(round: &mut Round<'_>, tenant: &TenantId, at: Link, of: Linked) -> Result<(), ReadError> {
    let row = ChainLink { hash: at.hash, of };
    round.put(keys::chain_link(tenant, at.seq), &row, Before::Absent)?;
    round.put(keys::chain_end(tenant), &ChainEnd(at), Before::Unknown)
}

/// What a link is of, read from where it lies: an error where that cannot be read, a fault in words
/// where something else lies there.
pub(super) fn linked(
    source: &impl Source,
    seq: u64,
    of: &Linked,
) -> Result<Result<ChainRecord, String>, ReadError> {
    let place = match of {
        Linked::Refused(refusal) => return Ok(Ok(ChainRecord::of_refusal(seq, refusal))),
        Linked::Write(place) => place,
    };
    let key = keys::placed(*place);
    let found: Option<SealedAudit> = fetch(source, &key)?;
    Ok(match found {
        Some(found) if found.seq == Some(seq) => {
            Ok(ChainRecord::of_write(seq, place.series, &found.record))
        }
        Some(_) => Err(format!("{} has another number", keys::describe(&key))),
        None => Err(format!("{} is missing", keys::describe(&key))),
    })
}

/// Whether a record is the link of its tenant's chain that it says.
pub(super) fn is_sealed(
    source: &impl Source,
    place: Place,
    sealed: &SealedAudit,
) -> Result<bool, ReadError> {
    let Some(seq) = sealed.seq else {
        return Ok(false);
    };
    let key = keys::chain_link(&sealed.record.tenant, seq);
    let link: Option<ChainLink> = fetch(source, &key)?;
    Ok(link.is_some_and(|link| link.of == Linked::Write(place)))
}
