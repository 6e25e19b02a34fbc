//! A commit as keys and values: what each record is stored under, and which indexes go with it.
//!
//! The commit has been judged; nothing is refused here.

use prost::Message;
use sessionplane_core::domain::audit::Series;
use sessionplane_core::domain::binding::{Binding, BoundAnswer};
use sessionplane_core::domain::commit::Commit;
use sessionplane_core::ports::commit_rules::LeaseEffect;
use sessionplane_core::ports::repository::ReadError;

use super::chain;
use super::convert::{ChainedEntry, HeadRow, Stored};
use super::frame::Source;
use super::keys;
use super::round::{Before, Round, fetch};
use super::seal;

mod fleet;

pub(super) use fleet::{deletion, indexes, metadata};

/// Adds a judged commit to the round.
///
/// # Errors
/// When something that it replaces cannot be read; the round is to be put back as it was.
pub(super) fn commit(round: &mut Round<'_>, commit: &Commit) -> Result<(), ReadError> {
    let former: Option<HeadRow> = fetch(round, &keys::head(commit.session))?;
    match &commit.create {
        Some(record) => fleet::created(round, record, commit.head.place.as_ref())?,
        None => fleet::moved(round, commit, former.as_ref())?,
    }
    let newest = entries(round, commit, former.as_ref())?;
    let row = HeadRow {
        head: commit.head.clone(),
        entries_checksum: newest.checksum,
        entries_digest: newest.digest,
    };
    round.put(keys::head(commit.session), &row, Before::Unknown)?;
    records(round, commit)?;
    match LeaseEffect::of(commit) {
        LeaseEffect::Take(lease) => round.put(keys::lease(commit.session), &lease, Before::Unknown),
        LeaseEffect::Keep => Ok(()),
        LeaseEffect::Free => round.delete(keys::lease(commit.session)),
    }
}

/// What the next entry is chained to.
struct Newest {
    checksum: u32,
    digest: Option<chain::Link>,
}

/// Chains the entries on; says what the next one is to be chained to. Where the last entry is of a
/// format that had no digests, the chain begins with the first one here.
fn entries(
    round: &mut Round<'_>,
    commit: &Commit,
    row: Option<&HeadRow>,
) -> Result<Newest, ReadError> {
    let mut newest = Newest {
        checksum: row.map_or(0, |row| row.entries_checksum),
        digest: row.and_then(|row| row.entries_digest),
    };
    for entry in &commit.entries {
        let record = ChainedEntry {
            entry: entry.clone(),
            previous_checksum: newest.checksum,
            previous_digest: Some(newest.digest.unwrap_or(chain::BEGINS)),
        };
        let payload = record.form().encode_to_vec();
        newest = Newest {
            checksum: crc32fast::hash(&payload),
            digest: Some(chain::digest(&payload)),
        };
        round.put_payload(keys::entry(entry.id), &payload, Before::Absent)?;
    }
    Ok(newest)
}

fn records(round: &mut Round<'_>, commit: &Commit) -> Result<(), ReadError> {
    for run in &commit.runs {
        let key = keys::run(run.id);
        if round.raw(&key)?.is_none() {
            let mark = keys::run_of_session(run.first_entry, run.id);
            round.put_payload(mark, &[], Before::Absent)?;
        }
        round.put(key, run, Before::Unknown)?;
    }
    for input in &commit.inputs {
        round.put(keys::input(input.id), input, Before::Unknown)?;
    }
    for interaction in &commit.interactions {
        let key = keys::interaction(interaction.id);
        round.put(key, interaction, Before::Unknown)?;
    }
    bindings(round, &commit.bindings)?;
    for audit in &commit.audits {
        seal::audit(round, Series::Session, audit)?;
    }
    Ok(())
}

fn bindings(round: &mut Round<'_>, bindings: &[Binding]) -> Result<(), ReadError> {
    for binding in bindings {
        let key = keys::binding(&binding.key);
        let mark = keys::binding_by_time(binding.at, &key);
        round.put_payload(mark, &[], Before::Absent)?;
        if let BoundAnswer::Session(Some(answer)) = &binding.answer {
            let place = keys::answer(binding.session, &key);
            round.put(place, &**answer, Before::Absent)?;
        }
        round.put(key, binding, Before::Absent)?;
    }
    Ok(())
}
