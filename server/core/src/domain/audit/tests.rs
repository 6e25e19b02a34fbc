//! The encoding against the documented vectors, and chains that somebody laid hands on.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::domain::ids::RunId;

fn unhex<const N: usize>(text: &str) -> [u8; N] {
    let bytes = (0..text.len()).step_by(2);
    let bytes: Vec<u8> = bytes
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect();
    bytes.try_into().unwrap()
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap();
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(digit).collect()
}

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../../../docs/audit-vectors.json")).unwrap()
}

fn record(of: &Value) -> ChainRecord {
    let text = |name: &str| of[name].as_str().map(str::to_owned);
    let words = |name: &str| of[name].as_array().unwrap().clone();
    ChainRecord {
        seq: of["seq"].as_u64().unwrap(),
        time_ms: of["time_ms"].as_u64().unwrap(),
        tenant: text("tenant").unwrap(),
        principal: text("principal"),
        credential: text("credential"),
        via: text("via"),
        action: text("action").unwrap(),
        session: text("session_id").map(|id| id.parse().unwrap()),
        decision: text("decision").unwrap(),
        policies: words("policies")
            .iter()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect(),
        request_digest: text("request_digest").map(|it| Digest(unhex(&it))),
        bytes: of["bytes"].as_u64().unwrap(),
        request_id: text("request_id"),
        trace_id: text("trace_id"),
        outcome: text("outcome").unwrap(),
        run: text("run_id").map(|id| id.parse().unwrap()),
        entries: words("entries")
            .iter()
            .map(|it| it.as_u64().unwrap())
            .collect(),
        message: None,
        series: text("series"),
        ordinal: of["ordinal"].as_u64(),
        sandbox: text("sandbox"),
        peer: text("peer"),
        reason: text("reason"),
        count: of["count"].as_u64(),
        last_time_ms: of["last_time_ms"].as_u64(),
    }
}

/// The page, the code and the second implementation (`tests/audit_vectors.py`) cannot drift apart.
#[test]
fn c56_the_documented_vectors_are_what_is_sealed() {
    let page = vectors();
    let store = u128::from_str_radix(page["store_id"].as_str().unwrap(), 16).unwrap();
    let tenant = TenantId::parse("acme").unwrap();
    let mut previous = genesis(store, &tenant);
    assert_eq!(page["genesis"], previous.to_string());
    let begin = Link {
        seq: 0,
        hash: previous,
    };
    let mut verifier = Verifier::after("acme", begin);
    for it in page["records"].as_array().unwrap() {
        let record = record(&it["record"]);
        assert_eq!(it["encoding"], hex(&encode(&record)));
        assert_eq!(it["prev_hash"], previous.to_string());
        let hash = seal(previous, &record);
        assert_eq!(it["hash"], hash.to_string());
        let sealed = Sealed {
            record,
            previous,
            hash,
        };
        verifier.next(&sealed).unwrap();
        previous = hash;
    }
    let said = &page["checkpoint"];
    let body = CheckpointBody {
        tenant: "acme".to_owned(),
        seq: verifier.at().seq,
        hash: verifier.at().hash,
        time_ms: said["time_ms"].as_u64().unwrap(),
        key_id: said["key_id"].as_str().unwrap().to_owned(),
    };
    assert_eq!(said["signed"], hex(&body.signed()));
}

fn sealed(store: u128, tenant: &str, records: &[(u64, String, Vec<u64>)]) -> Vec<Sealed> {
    let mut previous = genesis(store, &TenantId::parse(tenant).unwrap());
    let mut chain = Vec::new();
    for (seq, (time_ms, principal, entries)) in (1..).zip(records) {
        let record = ChainRecord {
            seq,
            time_ms: *time_ms,
            tenant: tenant.to_owned(),
            principal: Some(principal.clone()),
            action: "Invoke".to_owned(),
            decision: ChainRecord::ALLOWED.to_owned(),
            outcome: "accepted".to_owned(),
            run: Some(RunId::from_bytes([7; 16])),
            entries: entries.clone(),
            ..ChainRecord::default()
        };
        let hash = seal(previous, &record);
        chain.push(Sealed {
            record,
            previous,
            hash,
        });
        previous = hash;
    }
    chain
}

/// The first bad record, if there is one.
fn verify(store: u128, tenant: &str, chain: &[Sealed], end: Option<Link>) -> Result<(), Broken> {
    let begin = Link {
        seq: 0,
        hash: genesis(store, &TenantId::parse(tenant).unwrap()),
    };
    let mut verifier = Verifier::after(tenant, begin);
    for sealed in chain {
        verifier.next(sealed)?;
    }
    end.map_or(Ok(()), |end| verifier.ends(end))
}

fn records() -> impl Strategy<Value = Vec<(u64, String, Vec<u64>)>> {
    prop::collection::vec(
        (
            any::<u64>(),
            "[a-z]{0,6}",
            prop::collection::vec(any::<u64>(), 0..3),
        ),
        2..12,
    )
}

/// What somebody does to a record who cannot make hashes fit.
fn edit(record: &mut ChainRecord, which: u8) {
    match which {
        0 => record.time_ms = record.time_ms.wrapping_add(1),
        1 => record.principal = None,
        2 => record.principal = Some(format!("{}x", record.principal.clone().unwrap_or_default())),
        3 => record.credential = Some(String::new()),
        4 => "Delete".clone_into(&mut record.action),
        5 => record.policies.push("owner".to_owned()),
        6 => record.entries.push(9),
        7 => record.run = None,
        8 => record.bytes += 1,
        9 => record.via = Some("tls+token".to_owned()),
        10 => record.count = Some(1),
        _ => "deny".clone_into(&mut record.decision),
    }
}

proptest! {
    #[test]
    fn c56_a_whole_chain_verifies_to_its_end(records in records()) {
        let chain = sealed(1, "acme", &records);
        let end = chain.last().map(Sealed::link);
        prop_assert_eq!(verify(1, "acme", &chain, end), Ok(()));
    }

    #[test]
    fn c56_an_edit_is_caught_at_its_record(
        records in records(), at: prop::sample::Index, which in 0_u8..12, fits: bool,
    ) {
        let mut chain = sealed(1, "acme", &records);
        let at = at.index(chain.len());
        edit(&mut chain[at].record, which);
        let seq = at as u64 + 1;
        if fits {
            // Who can make hashes fit is caught by the record that follows, or by the known end.
            let end = chain.last().map(Sealed::link);
            chain[at].hash = seal(chain[at].previous, &chain[at].record);
            let broken = verify(1, "acme", &chain, end).unwrap_err();
            let next = (seq + 1).min(chain.len() as u64);
            prop_assert_eq!(broken.seq, next);
        } else {
            let broken = verify(1, "acme", &chain, None).unwrap_err();
            prop_assert_eq!(broken, Broken { seq, flaw: Flaw::Changed });
        }
    }

    #[test]
    fn c56_a_dropped_record_is_caught_at_its_place(records in records(), at: prop::sample::Index) {
        let mut chain = sealed(1, "acme", &records);
        let end = chain.last().map(Sealed::link).unwrap();
        let at = at.index(chain.len());
        chain.remove(at);
        let broken = verify(1, "acme", &chain, Some(end)).unwrap_err();
        prop_assert_eq!(broken.seq, at as u64 + 1);
    }

    #[test]
    fn c56_records_out_of_order_are_caught_at_the_first(records in records(), at: prop::sample::Index) {
        let mut chain = sealed(1, "acme", &records);
        let at = at.index(chain.len() - 1);
        chain.swap(at, at + 1);
        prop_assert_eq!(verify(1, "acme", &chain, None).unwrap_err().seq, at as u64 + 1);
        // With their numbers exchanged, too.
        let seq = chain[at].record.seq;
        chain[at].record.seq = chain[at + 1].record.seq;
        chain[at + 1].record.seq = seq;
        prop_assert_eq!(verify(1, "acme", &chain, None).unwrap_err().seq, at as u64 + 1);
    }

    #[test]
    fn c56_a_chain_that_was_cut_is_caught_by_whoever_knows_its_end(
        records in records(), at: prop::sample::Index,
    ) {
        let mut chain = sealed(1, "acme", &records);
        let end = chain.last().map(Sealed::link).unwrap();
        let at = at.index(chain.len());
        chain.truncate(at);
        // By itself it cannot know.
        prop_assert_eq!(verify(1, "acme", &chain, None), Ok(()));
        let broken = verify(1, "acme", &chain, Some(end)).unwrap_err();
        prop_assert_eq!(broken, Broken { seq: at as u64 + 1, flaw: Flaw::CutOff });
        let hash = chain.iter().find(|it| it.record.seq == end.seq).map(|it| it.hash);
        let cut = WitnessFlaw::Cut { end: at as u64, seen: end.seq };
        prop_assert_eq!(witness(end, hash, at as u64), Err(cut));
    }

    #[test]
    fn c56_records_of_another_chain_are_caught_where_they_begin(
        records in records(), other in records(), at: prop::sample::Index, same_tenant: bool,
    ) {
        let mut chain = sealed(1, "acme", &records);
        // Another tenant's, or the same tenant's in another store.
        let foreign = if same_tenant {
            sealed(2, "acme", &other)
        } else {
            sealed(1, "umbra", &other)
        };
        let at = at.index(chain.len().min(foreign.len()));
        chain.truncate(at);
        chain.extend_from_slice(&foreign[at..]);
        prop_assert_eq!(verify(1, "acme", &chain, None).unwrap_err().seq, at as u64 + 1);
    }

    #[test]
    fn c56_a_chain_that_was_written_anew_fits_no_checkpoint(records in records(), at: prop::sample::Index) {
        let chain = sealed(1, "acme", &records);
        let seen = chain[at.index(chain.len())].link();
        let hash = |chain: &[Sealed]| chain.get(usize::try_from(seen.seq).unwrap() - 1).map(|it| it.hash);
        prop_assert_eq!(witness(seen, hash(&chain), chain.len() as u64), Ok(()));
        let mut forged = records;
        forged[0].0 = forged[0].0.wrapping_add(1);
        let forged = sealed(1, "acme", &forged);
        // It is whole by itself.
        prop_assert_eq!(verify(1, "acme", &forged, forged.last().map(Sealed::link)), Ok(()));
        let rewritten = WitnessFlaw::Rewritten { seq: seen.seq };
        prop_assert_eq!(witness(seen, hash(&forged), forged.len() as u64), Err(rewritten));
    }

    #[test]
    fn c56_no_two_records_have_the_same_encoding(a in records(), b in records()) {
        let (a, b) = (sealed(1, "acme", &a), sealed(1, "acme", &b));
        for (a, b) in a.iter().zip(&b) {
            prop_assert_eq!(a.record == b.record, encode(&a.record) == encode(&b.record));
        }
    }
}

#[test]
fn c56_a_part_of_a_chain_is_verified_from_where_it_begins() {
    let records: Vec<_> = (0..6).map(|n| (n, "ann".to_owned(), vec![n])).collect();
    let chain = sealed(1, "acme", &records);
    let mut verifier = Verifier::unanchored("acme", 3);
    for sealed in &chain[3..] {
        verifier.next(sealed).unwrap();
    }
    assert_eq!(verifier.at(), chain[5].link());
    let mut verifier = Verifier::unanchored("acme", 3);
    verifier.next(&chain[3]).unwrap();
    let mut other = chain[4].clone();
    other.previous = Digest([1; 32]);
    other.hash = seal(other.previous, &other.record);
    let broken = verifier.next(&other).unwrap_err();
    assert_eq!((broken.seq, broken.flaw), (5, Flaw::NotLinked));
}
