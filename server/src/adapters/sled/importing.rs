//! A directory whose store is made of an export: marked from before anything of it is there until all
//! of it is, so that no start takes it for a store of its own meanwhile.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::device::Device;
use super::directory::{DATABASE, Place, lock};
use super::engine::{guarded, patiently, sled_said, start};
use super::open::{OpenError, failed_io};
use super::tally::Tally;
use super::witness::{Acknowledged, Witness};
use crate::failpoint;

/// Memory for pages of a database that is being filled, in bytes.
const FRESH_CACHE: u64 = 256 * 1024 * 1024;
/// The file that is in the directory from before anything of an import is, until all of it is.
const IMPORTING: &str = "importing";

/// Refuses a directory whose import did not come to its end.
pub(super) fn refuse_unfinished(path: &Path) -> Result<(), OpenError> {
    // Where the directory cannot be looked into, what comes next says so.
    if path.join(IMPORTING).try_exists().unwrap_or_default() {
        return Err(OpenError::Unfinished {
            path: path.to_owned(),
        });
    }
    Ok(())
}

/// All of an import is durable.
pub(super) fn finished(path: &Path) -> std::io::Result<()> {
    std::fs::remove_file(path.join(IMPORTING))?;
    File::open(path)?.sync_all()
}

/// A database in a directory that has none, without the record that makes it a store. No start takes
/// the directory before [`finished`], however little of it is on the disk by then.
pub(super) fn fresh(path: &Path, store_id: u128) -> Result<Device, OpenError> {
    let io = |error: std::io::Error| failed_io(path, &error);
    let held = patiently(|| lock(path))?;
    if path.join(DATABASE).exists() {
        let taken =
            std::io::Error::new(std::io::ErrorKind::AlreadyExists, "it has a store already");
        return Err(io(taken));
    }
    File::create(path.join(IMPORTING))
        .and_then(|marker| marker.sync_all())
        .and_then(|()| File::open(path)?.sync_all())
        .map_err(io)?;
    failpoint::reach("store::importing");
    let db = guarded(path, || {
        start(path, FRESH_CACHE).map_err(|error| sled_said(path, &error))
    })?;
    let file = File::options()
        .read(true)
        .write(true)
        .open(path.join(DATABASE))
        .map_err(io)?;
    let place = Place::of(path, &file, held).map_err(io)?;
    let (witness, _) = Witness::open(path).map_err(io)?;
    Ok(Device {
        db,
        file,
        witness,
        place,
        inflight: Arc::default(),
        probe: None,
        syncs: Arc::default(),
        durable: Acknowledged { store_id, round: 0 },
        tally: Tally::default(),
    })
}
