//! The storage engine alone, in a process of its own: what it takes to open a store, and its memory.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::Outcome;
use crate::load::now;

/// The server's cache, by default.
const CACHE_BYTES: u64 = 256 * 1024 * 1024;

/// What an opening took.
pub(crate) struct Opening {
    pub(crate) time: Duration,
    /// Memory that is no file's, in bytes.
    pub(crate) memory: u64,
}

/// Opens a store in another process, which gives back at once what memory it frees.
pub(crate) fn open(store: &Path) -> Outcome<Opening> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("open").arg(store);
    let output = command.env("MIMALLOC_PURGE_DELAY", "0").output()?;
    let said = String::from_utf8(output.stdout)?;
    let (time, memory) = said.trim().split_once(' ').ok_or(said.clone())?;
    Ok(Opening {
        time: Duration::from_micros(time.parse()?),
        memory: memory.parse()?,
    })
}

/// The other process. The one argument is the store.
#[allow(clippy::print_stdout, reason = "it is how it answers")]
pub(crate) fn main(arguments: &[String]) -> Outcome<()> {
    let store = arguments.first().ok_or("which store is to be opened?")?;
    let begun = now();
    let db = sled::Config::new()
        .path(store)
        .cache_capacity(CACHE_BYTES)
        .flush_every_ms(None)
        .open()?;
    let taken = begun.elapsed().as_micros();
    println!("{taken} {}", anonymous(std::process::id())?);
    drop(db);
    Ok(())
}

/// The memory of a process that is no file's, in bytes.
pub(crate) fn anonymous(pid: u32) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib = status.lines().find_map(|line| {
        let kib = line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB")?;
        kib.parse::<u64>().ok()
    });
    Ok(kib.ok_or("a process has no size")? * 1024)
}
