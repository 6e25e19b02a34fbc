//! Links for audit records that a server wrote which sealed none, or that an import of some sessions
//! brought without their chain.
//!
//! They are sealed in the order of their keys: sessions in the order of their creation, each one's
//! records by their number; then what was done to metadata, the same way. So their place in the
//! chain says nothing of when they were written, and the chain proves of them what stood there when
//! they were sealed. A record is sealed in the round that writes its link, and knows its number from
//! then on: an upgrade that was cut passes over what it has done.

use ::sled::IVec;
use sessionplane_core::domain::audit::Series;
use sessionplane_core::ports::repository::ReadError;

use super::Failed;
use crate::adapters::sled::convert::{Place, SealedAudit};
use crate::adapters::sled::device::Device;
use crate::adapters::sled::frame::{self, damaged};
use crate::adapters::sled::keys::{self, Key, Named};
use crate::adapters::sled::round::{Before, PieceSets, Round, decode, failed};
use crate::adapters::sled::seal;

/// After how many slices it is told how far it is: some seconds.
const TOLD: usize = 16;

/// Seals all that is not sealed; gives how many records those are. `boot` was counted already.
pub(super) fn seal_all(device: &mut Device, boot: u32, slice: usize) -> Result<usize, Failed> {
    let mut sets = PieceSets::of_upgrade(boot);
    let (mut sealed, mut slices) = (0, 0_usize);
    for prefix in [keys::audits(), keys::metadata_audits()] {
        let mut from = prefix.clone();
        loop {
            let records = page(device, &prefix, &from, slice).map_err(Failed::Read)?;
            let Some((last, _)) = records.last() else {
                break;
            };
            from = keys::after(last);
            sealed += seal_slice(device, &mut sets, records)?;
            slices += 1;
            if slices.is_multiple_of(TOLD) {
                tracing::info!(records = sealed, "audit records are being sealed");
            }
        }
    }
    Ok(sealed)
}

fn seal_slice(
    device: &mut Device,
    sets: &mut PieceSets,
    records: Vec<(IVec, IVec)>,
) -> Result<usize, Failed> {
    let db = device.db().clone();
    let mut round = Round::new(&db, sets);
    let mut sealed = 0;
    for (key, value) in records {
        match round.attempt(|round| seal_one(round, &key, value)) {
            Ok(new) => sealed += usize::from(new),
            // Damage in one record is told where it is read.
            Err(error @ ReadError::Damaged { .. }) => {
                tracing::warn!(%error, "an audit record is in no chain");
            }
            Err(error) => return Err(Failed::Read(error)),
        }
    }
    let writes: Vec<(Key, Option<Vec<u8>>)> = round
        .into_writes()
        .into_iter()
        .map(|(key, write)| (key, write.value))
        .collect();
    if !writes.is_empty() {
        device.write_alone(writes).map_err(Failed::Write)?;
    }
    Ok(sealed)
}

/// Seals a record, unless it is; tells whether it was not.
fn seal_one(round: &mut Round<'_>, key: &[u8], value: IVec) -> Result<bool, ReadError> {
    let place = match keys::named(key) {
        Some(Named::Audit(session, ordinal)) => Place {
            session,
            series: Series::Session,
            ordinal,
        },
        Some(Named::MetadataAudit(session, revision)) => Place {
            session,
            series: Series::Metadata,
            ordinal: revision,
        },
        _ => return Err(damaged(key, "it has no number")),
    };
    let Some(payload) = frame::open(round, key, value)? else {
        return Ok(false);
    };
    let found: SealedAudit = decode(key, &payload)?;
    if (found.record.session, found.record.ordinal) != (place.session, place.ordinal) {
        return Err(damaged(key, "it is another record"));
    }
    if seal::is_sealed(round, place, &found)? {
        return Ok(false);
    }
    seal::write(round, place, found.record, Before::Unknown)?;
    Ok(true)
}

/// The next records below a prefix.
fn page(
    device: &Device,
    prefix: &[u8],
    from: &[u8],
    max: usize,
) -> Result<Vec<(IVec, IVec)>, ReadError> {
    let end = keys::below(prefix.to_vec()).end;
    let records = device.db().range(from.to_vec()..end).take(max);
    let records = records.map(|record| record.map_err(|error| failed(from, &error)));
    records.collect()
}

#[cfg(test)]
mod tests {
    use ::sled::Db;
    use prost::Message as _;
    use sessionplane_core::domain::access::Action;
    use sessionplane_core::domain::audit::{AuditAction, AuditRecord, Link, Sealed, Verifier};
    use sessionplane_core::domain::ids::{SessionId, TenantId};
    use sessionplane_core::domain::time::Timestamp;
    use sessionplane_core::ports::audit_trail::StoredLink;

    use super::*;
    use crate::adapters::sled::StoreOptions;
    use crate::adapters::sled::boot::{FORMAT_VERSION, SEALED};
    use crate::adapters::sled::convert::{Meta, Stored as _};
    use crate::adapters::sled::open::{Opened, open};
    use crate::adapters::sled::tools::Inspection;

    fn session(n: u8) -> SessionId {
        SessionId::from_bytes([n; 16])
    }

    fn put(db: &Db, key: Key, payload: &[u8]) {
        for (key, value) in frame::values(key, payload, || 1) {
            db.insert(key, value).unwrap();
        }
    }

    fn record(n: u8, ordinal: u64) -> AuditRecord {
        let tenant = if n < 3 { "acme" } else { "umbra" };
        AuditRecord {
            session: session(n),
            ordinal,
            tenant: tenant.parse().unwrap(),
            at: Timestamp::from_millis(1000 - ordinal),
            actor: None,
            // It is the last one of a deleted session's, which needs no head.
            action: AuditAction::Call(Action::Delete),
            request_digest: None,
            bytes: 0,
            request_id: None,
            run: None,
            entries: Vec::new(),
            outcome: "accepted",
            sandbox: None,
        }
    }

    /// Records of deleted sessions as format 4 kept them: nothing but the trail is left of those.
    fn keep(db: &Db) {
        for n in 1..=3 {
            for ordinal in 1..=3 {
                let record = record(n, ordinal);
                let payload = record.form().encode_to_vec();
                put(db, keys::audit(session(n), ordinal), &payload);
            }
            let renamed = record(n, 2);
            let payload = renamed.form().encode_to_vec();
            put(db, keys::metadata_audit(session(n), 2), &payload);
        }
    }

    fn former(change: impl FnOnce(&Db)) -> tempfile::TempDir {
        let directory = tempfile::TempDir::new().unwrap();
        let opened = open(directory.path(), &StoreOptions::new(7)).unwrap();
        let meta = Meta {
            format_version: 2,
            ..opened.meta
        };
        let db = opened.device.db();
        put(db, keys::meta(), &meta.form().encode_to_vec());
        keep(db);
        change(db);
        let round = crate::adapters::sled::convert::RoundRow {
            number: 9,
            tally: None,
        };
        put(db, keys::round(), &round.form().encode_to_vec());
        db.flush().unwrap();
        directory
    }

    fn chain(opened: &Opened, of: &str) -> Vec<StoredLink> {
        let of: TenantId = of.parse().unwrap();
        opened.reader.links(&of, 0, 100).unwrap()
    }

    fn verify(opened: &Opened, of: &str) -> Vec<(SessionId, u64)> {
        let of: TenantId = of.parse().unwrap();
        let hash = sessionplane_core::domain::audit::genesis(7, &of);
        let mut verifier = Verifier::after(of.as_str(), Link { seq: 0, hash });
        let mut told = Vec::new();
        for link in chain(opened, of.as_str()) {
            let sealed = Sealed {
                record: link.record.unwrap(),
                previous: link.previous,
                hash: link.hash,
            };
            verifier.next(&sealed).unwrap();
            told.push((
                sealed.record.session.unwrap(),
                sealed.record.ordinal.unwrap(),
            ));
        }
        told
    }

    fn all_are_sealed(opened: &Opened) {
        let of = |n| [1, 2, 3].map(|ordinal| (session(n), ordinal));
        let acme = [&of(1)[..], &of(2)].concat();
        let renamed = [(session(1), 2), (session(2), 2)];
        assert_eq!(verify(opened, "acme"), [&acme[..], &renamed].concat());
        let umbra = [&of(3)[..], &[(session(3), 2)]].concat();
        assert_eq!(verify(opened, "umbra"), umbra);
    }

    #[test]
    fn c56_what_an_earlier_format_wrote_is_sealed_in_the_order_of_keys() {
        let directory = former(|_| {});
        for _ in 0..2 {
            let opened = open(directory.path(), &StoreOptions::new(7)).unwrap();
            assert_eq!(opened.meta.format_version, FORMAT_VERSION);
            all_are_sealed(&opened);
        }
        let store = Inspection::open(directory.path()).unwrap();
        let findings = store.verify(None, &mut |_, _| {});
        assert!(findings.whole(), "{:?}", findings.faults);
    }

    #[test]
    fn c56_slices_of_any_size_seal_each_record_once_and_a_cut_one_goes_on() {
        for slice in 1..7 {
            let directory = tempfile::TempDir::new().unwrap();
            let mut opened = open(directory.path(), &StoreOptions::new(7)).unwrap();
            keep(opened.device.db());
            // As if it had been cut after the first slice.
            let first = page(&opened.device, &keys::audits(), &keys::audits(), slice).unwrap();
            let mut sets = PieceSets::of_upgrade(1);
            let before = seal_slice(&mut opened.device, &mut sets, first).ok();
            assert_eq!(before, Some(slice));
            let rest = seal_all(&mut opened.device, 1, slice).ok();
            assert_eq!(rest, Some(12 - slice));
            all_are_sealed(&opened);
            assert_eq!(seal_all(&mut opened.device, 1, slice).ok(), Some(0));
        }
    }

    #[test]
    fn b54_a_damaged_audit_record_keeps_no_other_from_its_chain() {
        let directory = former(|db| {
            db.insert(keys::audit(session(1), 2), b"?").unwrap();
        });
        let opened = open(directory.path(), &StoreOptions::new(7)).unwrap();
        assert_eq!(verify(&opened, "acme").len(), 7);
        assert_eq!(verify(&opened, "umbra").len(), 4);
    }

    /// Whoever can write the files can make a record's checksum fit, not its hash.
    #[test]
    fn c56_a_record_that_was_changed_on_the_disk_is_named() {
        for (forge, named, problem) in [
            (
                (|db: &Db| {
                    let mut forged = record(1, 2);
                    forged.bytes = 1;
                    let seq = Some(2);
                    let sealed = SealedAudit {
                        record: forged,
                        seq,
                    };
                    put(
                        db,
                        keys::audit(session(1), 2),
                        &sealed.form().encode_to_vec(),
                    );
                }) as fn(&Db),
                "chain acme-2",
                "it was changed",
            ),
            (
                |db| {
                    db.remove(keys::audit(session(1), 2)).unwrap();
                },
                "chain acme-2",
                "is missing",
            ),
            (
                |db| {
                    let tenant = "acme".parse().unwrap();
                    db.remove(keys::chain_link(&tenant, 3)).unwrap();
                },
                "chain acme-4",
                "record 3 is missing",
            ),
            (
                |db| {
                    let tenant = "acme".parse().unwrap();
                    db.remove(keys::chain_link(&tenant, 8)).unwrap();
                },
                "chain_end acme",
                "the chain ends before it",
            ),
            (
                |db| {
                    let tenant = "acme".parse().unwrap();
                    db.remove(keys::chain_end(&tenant)).unwrap();
                },
                "chain_end acme",
                "it is missing",
            ),
        ] {
            let directory = former(|_| {});
            let opened = open(directory.path(), &StoreOptions::new(7)).unwrap();
            assert!(opened.meta.format_version >= SEALED);
            forge(opened.device.db());
            opened.device.db().flush().unwrap();
            drop(opened);
            let store = Inspection::open(directory.path()).unwrap();
            let findings = store.verify(None, &mut |_, _| {});
            let told = |fault: &crate::adapters::sled::tools::Fault| {
                fault.key == named && fault.problem.contains(problem)
            };
            assert!(findings.faults.iter().any(told), "{:?}", findings.faults);
        }
    }
}
