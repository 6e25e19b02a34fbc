//! What each command does.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::time::Timestamp;

use super::print::{self, Meter};
use super::{Found, StoreCommand, ToolError, is_of_the_data};
use crate::adapters::artifacts::FolderArtifacts;
use crate::adapters::sled::OpenError;
use crate::adapters::sled::tools::{Contents, Dumped, Inspection, LoadError, Loaded, load};
use crate::process::backup;
use crate::process::contents::ARTIFACTS;
use crate::process::data_dir::{STORE, belongs_to_us, prepare};
use crate::process::date::compact;

/// What the data directory's user is told to do.
const COMMAND: &str = "sessiond store";

pub(super) fn run(command: &StoreCommand, data_dir: &Path) -> Result<Found, ToolError> {
    match command {
        StoreCommand::Verify { json } => verify(data_dir, *json),
        StoreCommand::Export {
            to,
            whole: true,
            session: _,
        } => export_whole(data_dir, to),
        StoreCommand::Export { to, session, .. } => export(data_dir, to, session),
        StoreCommand::Import { from, json } => import(data_dir, from, false, *json),
        StoreCommand::Restore { from, json } => import(data_dir, from, true, *json),
        StoreCommand::Stats { json } => {
            let store = open(data_dir)?;
            let stats = store.stats(&mut Meter::new("stats"));
            print::stats(&stats.map_err(ToolError::Data)?, *json)?;
            Ok(Found::Whole)
        }
        StoreCommand::Backup { to, json } => backup(data_dir, to, *json),
    }
}

/// The engine may write to its files at every opening: they must stay the server's.
fn open(data_dir: &Path) -> Result<Inspection, ToolError> {
    belongs_to_us(data_dir, COMMAND)?;
    Ok(Inspection::open(&data_dir.join(STORE))?)
}

fn artifacts(data_dir: &Path) -> FolderArtifacts {
    FolderArtifacts::existing(data_dir.join(ARTIFACTS))
}

fn verify(data_dir: &Path, json: bool) -> Result<Found, ToolError> {
    let store = match open(data_dir) {
        Ok(store) => store,
        Err(ToolError::Open(error)) if is_of_the_data(&error) => {
            print::unopened(&error, json)?;
            return Ok(Found::Faults);
        }
        Err(error) => return Err(error),
    };
    let contents = artifacts(data_dir);
    let findings = store.verify(Some(&contents), &mut Meter::new("verify"));
    print::findings(&findings, json)?;
    Ok(if findings.whole() {
        Found::Whole
    } else {
        Found::Faults
    })
}

fn export(data_dir: &Path, to: &Path, sessions: &[String]) -> Result<Found, ToolError> {
    let store = open(data_dir)?;
    let contents = artifacts(data_dir);
    let chosen = (!sessions.is_empty()).then_some(sessions);
    let mut meter = Meter::new("export");
    let mut dump = |out: &mut dyn Write| -> Result<Dumped, ToolError> {
        Ok(store.export(chosen, &contents, out, &mut meter)?)
    };
    let dumped = written(to, |out| dump(out))?;
    print::exported(&dumped)?;
    Ok(found(dumped.missing + dumped.unreadable_bindings))
}

/// Writes to a file, or to standard output where the name is `-`.
fn written<T>(
    to: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, ToolError>,
) -> Result<T, ToolError> {
    if to.as_os_str() == "-" {
        write(&mut BufWriter::new(io::stdout().lock()))
    } else {
        whole_file(to, write)
    }
}

fn export_whole(data_dir: &Path, to: &Path) -> Result<Found, ToolError> {
    belongs_to_us(data_dir, COMMAND)?;
    let store = Inspection::open_damaged(&data_dir.join(STORE))?;
    let contents = artifacts(data_dir);
    let judged = store.judge(Some(&contents), &mut Meter::new("verify"));
    let made = written(to, |out| {
        let mut meter = Meter::new("export");
        Ok(store.export_whole(&judged, &contents, out, &mut meter)?)
    })?;
    print::exported(&made.dumped)?;
    print::left_out(&judged, &made, store.without())?;
    let records = made.strays + made.dumped.unreadable_bindings + made.dumped.missing;
    let all = judged.findings.not_whole.is_empty() && judged.sum_fits;
    Ok(found(records + u64::from(!all)))
}

fn found(missing: u64) -> Found {
    if missing == 0 {
        Found::Whole
    } else {
        Found::Faults
    }
}

fn import(data_dir: &Path, from: &Path, all: bool, json: bool) -> Result<Found, ToolError> {
    belongs_to_us(data_dir, COMMAND)?;
    empty(data_dir)?;
    // Before anything is made: a name that is wrong must not be in the way of the right one.
    let mut lines: Box<dyn BufRead> = if from.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let opened = File::open(from).map_err(file(from))?;
        Box::new(BufReader::with_capacity(256 * 1024, opened))
    };
    let new = !data_dir.exists();
    prepare(data_dir)?;
    let root = data_dir.join(ARTIFACTS);
    let contents = Arriving::below(root.clone());
    let store = data_dir.join(STORE);
    let mut meter = Meter::new(if all { "restore" } else { "import" });
    let loaded = load(&store, all, &contents, &mut lines, &mut meter).inspect_err(|_| {
        if store.exists() {
            print::unfinished(data_dir);
        } else {
            unmake(data_dir, new);
        }
    })?;
    contents.folder().map_err(file(&root))?;
    // What was written is read back, all of it.
    let findings = open(data_dir)?.verify(Some(&contents), &mut Meter::new("verify"));
    print::imported(&loaded, &findings, data_dir, json)?;
    if rustix::process::geteuid().is_root() {
        print::of_root(data_dir);
    }
    Ok(if findings.whole() {
        Found::Whole
    } else {
        Found::Faults
    })
}

/// The contents of an import. Their folder is made with the first of them: before the store is marked
/// as one that is being imported, nothing may be there that a start would go on with.
struct Arriving {
    root: PathBuf,
    folder: OnceCell<FolderArtifacts>,
}

impl Arriving {
    fn below(root: PathBuf) -> Self {
        Self {
            root,
            folder: OnceCell::new(),
        }
    }

    fn folder(&self) -> io::Result<&FolderArtifacts> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder);
        }
        let opened = FolderArtifacts::open(&self.root)?;
        Ok(self.folder.get_or_init(|| opened))
    }
}

impl Contents for Arriving {
    fn content(&self, id: ArtifactId) -> Result<Option<Vec<u8>>, String> {
        FolderArtifacts::existing(&self.root).content(id)
    }

    fn keep(&self, id: ArtifactId, content: Vec<u8>) -> Result<(), String> {
        let folder = self.folder().map_err(|error| error.to_string())?;
        Contents::keep(folder, id, content)
    }
}

/// Takes back what an import made that had nothing to write. What is not empty stays.
fn unmake(data_dir: &Path, new: bool) {
    if new {
        let _ = fs::remove_dir(data_dir);
    }
}

/// Nothing may be in the way of what is imported.
fn empty(data_dir: &Path) -> Result<(), ToolError> {
    match fs::read_dir(data_dir).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(false) => Err(LoadError::NotEmpty(data_dir.display().to_string()).into()),
        Err(error) => Err(file(data_dir)(error)),
    }
}

fn backup(data_dir: &Path, to: &Path, json: bool) -> Result<Found, ToolError> {
    let to = if to.is_dir() {
        to.join(format!("sessionplane-{}.jsonl", stamp()))
    } else if to.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(ToolError::NoFolder {
            path: to.to_owned(),
        });
    } else {
        to.to_owned()
    };
    // A server that is there is asked at once, instead of waiting for it to leave.
    let made = match backup::connect(data_dir) {
        Ok(server) => whole_file(&to, |out| Ok(backup::ask(&server, out)?))?,
        Err(unanswered) => match open(data_dir) {
            Ok(store) => whole_file(&to, |out| at_rest(&store, data_dir, out))?,
            Err(ToolError::Open(OpenError::InUse { .. })) => {
                return Err(LoadError::from(unanswered).into());
            }
            Err(error) => return Err(error),
        },
    };
    print::backed_up(&made, &to, json)?;
    Ok(found(made.missing))
}

/// A backup of a directory that nobody has.
fn at_rest(store: &Inspection, data_dir: &Path, out: &mut dyn Write) -> Result<Loaded, ToolError> {
    let mut meter = Meter::new("backup");
    let dumped = store.export(None, &artifacts(data_dir), out, &mut meter)?;
    Ok(Loaded {
        records: dumped.records,
        artifacts: dumped.artifacts,
        missing: dumped.missing,
    })
}

/// Now, as a part of a file's name: UTC, to the second.
#[expect(
    clippy::disallowed_methods,
    reason = "a name for people, which no stored time depends on"
)]
fn stamp() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    compact(Timestamp::from_millis(
        u64::try_from(millis).unwrap_or(u64::MAX),
    ))
}

/// A file that is there when it is whole and on the disk, and not before: it is written beside its
/// place, for its owner alone.
fn whole_file<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, ToolError>,
) -> Result<T, ToolError> {
    let taken = || ToolError::Taken {
        path: path.to_owned(),
    };
    if path.exists() {
        return Err(taken());
    }
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".partial");
    let partial = path.with_file_name(name);
    let opened = alone(&partial).map_err(file(&partial))?;
    let mut out = BufWriter::with_capacity(256 * 1024, opened);
    let written = write(&mut out).and_then(|written| {
        let synced = out.flush().and_then(|()| out.get_ref().sync_all());
        synced.map_err(file(&partial))?;
        // Unlike a rename this replaces nothing.
        fs::hard_link(&partial, path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => taken(),
            _ => file(path)(error),
        })?;
        Ok(written)
    });
    let removed = fs::remove_file(&partial).map_err(file(&partial));
    let written = written?;
    removed?;
    sync_parent(path).map_err(file(path))?;
    Ok(written)
}

/// A file that nobody else writes to at the same time, empty: one that was left behind is taken over.
fn alone(partial: &Path) -> io::Result<File> {
    loop {
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(partial)?;
        match opened.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let taken = "another process writes it at the moment";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, taken));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Whoever had it may have been done in between: it has its final name then, and not this one.
        let (mine, named) = (opened.metadata()?, fs::metadata(partial));
        if named.is_ok_and(|named| (named.dev(), named.ino()) == (mine.dev(), mine.ino())) {
            opened.set_len(0)?;
            opened.set_permissions(Permissions::from_mode(0o600))?;
            return Ok(opened);
        }
    }
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> ToolError + use<> {
    let path: PathBuf = path.to_owned();
    move |error| ToolError::File { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_that_write_one_file_at_a_time_do_not_write_into_each_other() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("b.jsonl");
        // What a killed one left is no hindrance, and not kept.
        fs::write(
            home.path().join("b.jsonl.partial"),
            "half of something long",
        )
        .unwrap();
        whole_file(&path, |out| {
            out.write_all(b"first").unwrap();
            out.flush().unwrap();
            let refused = whole_file(&path, |_| -> Result<(), ToolError> { panic!("it began") });
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("another process writes it"), "{refused}");
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others may read it");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
        let again = whole_file(&path, |_| -> Result<(), ToolError> { panic!("it began") });
        let again = again.unwrap_err().to_string();
        assert!(again.contains("nothing is replaced"), "{again}");
    }
}
