//! What must be in order before anything is served, and the counting of the boot. Only what
//! concerns the store as a whole: damage in one session's records is told where they are read.

use std::path::Path;

use ::sled::Db;
use prost::Message as _;
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::ports::repository::ReadError;

use super::committer::Direct;
use super::convert::{Meta, RoundRow, Stored as _};
use super::device::Device;
use super::open::{OpenError, damaged};
use super::round::fetch;
use super::tally::Tally;
use super::witness::{Acknowledged, Said, note_loss};
use super::{frame, keys};

/// The version of the stored forms that this server writes, and the highest that it reads.
pub(super) const FORMAT_VERSION: u32 = 5;
/// The first version in which each session is in the indexes of its terms.
pub(super) const INDEXES: u32 = 4;
/// The first version in which each audit record is a link of its tenant's chain.
pub(super) const SEALED: u32 = 5;

/// The store's record as this opening will write it, but in the format in which it was found.
pub(super) fn next_boot(path: &Path, db: &Db, store_id: u128) -> Result<Meta, OpenError> {
    let found: Option<Meta> = fetch(&Direct(db), &keys::meta())
        .map_err(|error: ReadError| damaged(path, error.to_string()))?;
    let Some(meta) = found else {
        if !db.is_empty() {
            return Err(damaged(
                path,
                "it has records, but not that of the store, as an import that did not come to its \
                 end leaves it"
                    .into(),
            ));
        }
        return Ok(Meta {
            format_version: FORMAT_VERSION,
            store_id,
            boots: 1,
        });
    };
    if meta.format_version > FORMAT_VERSION {
        return Err(OpenError::Newer {
            path: path.to_owned(),
            found: meta.format_version,
            supported: FORMAT_VERSION,
        });
    }
    next(meta).map_err(|problem| damaged(path, problem.to_owned()))
}

/// The store's record as the next opening writes it.
///
/// # Errors
/// Why no opening takes it.
pub(super) fn next(meta: Meta) -> Result<Meta, &'static str> {
    if meta.format_version == 0 {
        return Err("there is no format 0");
    }
    let boots = meta.boots.checked_add(1);
    let boots = boots.filter(|boots| LeaseToken::minted(*boots, 1).is_some());
    let boots = boots.ok_or("its boot counter is at its end")?;
    Ok(Meta { boots, ..meta })
}

/// The newest round of the database, if it is not behind what was acknowledged, and what the store is
/// to hold after it: none before format 3.
pub(super) fn durable(
    path: &Path,
    db: &Db,
    meta: Meta,
    said: &Said,
) -> Result<(Acknowledged, Option<Tally>), OpenError> {
    let newest: Option<RoundRow> = fetch(&Direct(db), &keys::round())
        .map_err(|error: ReadError| damaged(path, error.to_string()))?;
    let found = Acknowledged {
        store_id: meta.store_id,
        round: newest.map_or(0, |row| row.number),
    };
    let noted = said.whole();
    match noted {
        Some(said) if said.store_id != found.store_id => {
            let problem = "its file `acknowledged` belongs to another store";
            Err(damaged(path, problem.to_owned()))
        }
        Some(said) if said.round > found.round => {
            if let Err(error) = note_loss(path, found.round, said.round) {
                tracing::warn!(%error, "the loss could not be noted; a next start will look again");
            }
            Err(OpenError::Lost {
                path: path.to_owned(),
                found: found.round,
                acknowledged: said.round,
            })
        }
        _ => {
            if let Some(problem) = said.is_no_witness(found.round) {
                tracing::warn!(path = %path.display(), "the file `acknowledged` {problem}");
            }
            // A store that nothing was ever written to holds nothing.
            let tally = newest.map_or(Some(Tally::default()), |row| row.tally);
            if tally.is_none() && meta.format_version >= 3 {
                let problem = "its newest round does not say what the store holds";
                return Err(damaged(path, problem.to_owned()));
            }
            Ok((found, tally))
        }
    }
}

/// Counts the boot, before a token of it can exist.
pub(super) fn count_boot(path: &Path, device: &mut Device, meta: Meta) -> Result<(), OpenError> {
    let payload = meta.form().encode_to_vec();
    let writes = frame::values(keys::meta(), &payload, || 0).into_iter();
    let writes = writes.map(|(key, value)| (key, Some(value))).collect();
    device.write_alone(writes).map_err(|problem| OpenError::Io {
        path: path.to_owned(),
        problem,
    })
}
