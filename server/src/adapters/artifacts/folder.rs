//! Contents as files of one folder, each written aside, synced and then renamed into its place, so
//! that whatever has the name is whole and durable.
//!
//! A file is a header of 44 bytes (`SPA1`, the length as a big-endian u64, the SHA-256 of the
//! content) and the content. Files lie in subfolders by the last two characters of their id, which
//! are random.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::provenance::Digest;
use sessionplane_core::ports::artifact_store::{ArtifactError, ArtifactStore};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

const MAGIC: &[u8; 4] = b"SPA1";
const HEADER: usize = 44;
/// Bytes that are read at a time.
const BLOCK: usize = 64 * 1024;
/// Contents in a folder that nobody else writes to.
pub struct FolderArtifacts {
    root: PathBuf,
    permits: Arc<Semaphore>,
}

impl FolderArtifacts {
    /// Files that are read or written at the same time at most, each on a thread that may block.
    pub const AT_ONCE: usize = 8;

    /// Opens the folder, creating it (readable by its owner alone) if there is none. What a killed
    /// process left unfinished is removed.
    ///
    /// # Errors
    /// When the folder cannot be made or read.
    pub fn open(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = root.into();
        let unfinished = root.join(UNFINISHED);
        std::fs::create_dir_all(&unfinished)?;
        std::fs::set_permissions(&root, Permissions::from_mode(0o700))?;
        for entry in std::fs::read_dir(&unfinished)? {
            std::fs::remove_file(entry?.path())?;
        }
        sync_dir(&root)?;
        if let Some(parent) = root.parent() {
            sync_dir(parent)?;
        }
        Ok(Self {
            root,
            permits: Arc::new(Semaphore::new(Self::AT_ONCE)),
        })
    }

    /// A folder that is there already, to be read: nothing is made or removed.
    #[must_use]
    pub fn existing(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            permits: Arc::new(Semaphore::new(Self::AT_ONCE)),
        }
    }

    /// A whole content, checked. Blocks: for tools and threads of their own.
    ///
    /// # Errors
    /// As [`ArtifactStore::read`].
    pub fn whole(&self, id: ArtifactId) -> Result<Option<Vec<u8>>, ArtifactError> {
        read(&self.root, id, 0, usize::MAX)
    }

    /// Keeps a content. Blocks: for tools and threads of their own.
    ///
    /// # Errors
    /// As [`ArtifactStore::put`].
    pub fn keep(&self, id: ArtifactId, content: &[u8]) -> Result<Digest, ArtifactError> {
        put(&self.root, id, content)
    }

    /// Runs blocking work on a thread where blocking is allowed; a bounded number at a time.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> Result<T, ArtifactError> + Send + 'static,
    ) -> Result<T, ArtifactError> {
        let permit = self.permits.clone().acquire_owned().await;
        let permit = permit.map_err(|error| ArtifactError::Store(error.to_string()))?;
        let root = self.root.clone();
        let done = spawn_blocking(move || {
            let _permit = permit;
            work(&root)
        });
        done.await
            .unwrap_or_else(|error| Err(ArtifactError::Store(error.to_string())))
    }
}

/// The subfolder of files that are being written.
const UNFINISHED: &str = "unfinished";
/// The name of the next of them in this process.
static ASIDE: AtomicU64 = AtomicU64::new(0);

#[async_trait]
impl ArtifactStore for FolderArtifacts {
    async fn put(&self, id: ArtifactId, content: Arc<[u8]>) -> Result<Digest, ArtifactError> {
        self.blocking(move |root| put(root, id, &content)).await
    }

    async fn remove(&self, id: ArtifactId) -> Result<(), ArtifactError> {
        self.blocking(move |root| remove(root, id)).await
    }

    async fn read(
        &self,
        id: ArtifactId,
        offset: u64,
        max: usize,
    ) -> Result<Option<Vec<u8>>, ArtifactError> {
        self.blocking(move |root| read(root, id, offset, max)).await
    }
}

fn place(root: &Path, id: ArtifactId) -> (PathBuf, PathBuf) {
    let name = id.to_string();
    let folder = root.join(&name[name.len() - 2..]);
    let file = folder.join(&name);
    (folder, file)
}

fn put(root: &Path, id: ArtifactId, content: &[u8]) -> Result<Digest, ArtifactError> {
    let (folder, file) = place(root, id);
    let digest: [u8; 32] = Sha256::digest(content).into();
    if let Some(kept) = read(root, id, 0, usize::MAX)? {
        if kept != content {
            return Err(ArtifactError::Exists(id));
        }
        // Whoever wrote it may not have come to this, or failed at it.
        name(root, &folder).map_err(|error| failed(&error))?;
    } else {
        let header = header(content.len(), digest);
        write(root, &folder, &file, [&header, content]).map_err(|error| failed(&error))?;
    }
    Ok(Digest(digest))
}

fn write(root: &Path, folder: &Path, file: &Path, parts: [&[u8]; 2]) -> io::Result<()> {
    // A name of its own: who puts the same content at the same time writes beside it.
    let number = ASIDE.fetch_add(1, Ordering::Relaxed);
    let aside = root.join(UNFINISHED).join(number.to_string());
    let written = fill(&aside, parts).and_then(|()| {
        std::fs::create_dir_all(folder)?;
        std::fs::rename(&aside, file)
    });
    if let Err(error) = written {
        // It would take the room until the next start, where there may be none left already.
        let _ = std::fs::remove_file(&aside);
        return Err(error);
    }
    name(root, folder)
}

fn fill(aside: &Path, parts: [&[u8]; 2]) -> io::Result<()> {
    let mut open = OpenOptions::new();
    let mut writing = open.write(true).create(true).truncate(true).open(aside)?;
    for part in parts {
        writing.write_all(part)?;
    }
    writing.sync_all()
}

/// Syncs the names on the way to a file. The subfolder's own too, each time: another call may have
/// made it and not have synced it yet. Where nothing changed this writes nothing.
fn name(root: &Path, folder: &Path) -> io::Result<()> {
    sync_dir(folder)?;
    sync_dir(root)
}

fn remove(root: &Path, id: ArtifactId) -> Result<(), ArtifactError> {
    let (folder, file) = place(root, id);
    match std::fs::remove_file(file) {
        Ok(()) => sync_dir(&folder).map_err(|error| failed(&error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}

fn header(length: usize, digest: [u8; 32]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(MAGIC);
    header[4..12].copy_from_slice(&(length as u64).to_be_bytes());
    header[12..].copy_from_slice(&digest);
    header
}

/// The digest is of the whole, so also a read of a part reads all of it: damage is never shown.
fn read(
    root: &Path,
    id: ArtifactId,
    offset: u64,
    max: usize,
) -> Result<Option<Vec<u8>>, ArtifactError> {
    let (_, path) = place(root, id);
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let damaged = || ArtifactError::Damaged(id);
    let mut header = [0; HEADER];
    file.read_exact(&mut header).map_err(|_| damaged())?;
    let length = u64::from_be_bytes(header[4..12].try_into().map_err(|_| damaged())?);
    let stored = file.metadata().map_err(|error| failed(&error))?.len();
    if header[..4] != *MAGIC || stored.checked_sub(HEADER as u64) != Some(length) {
        return Err(damaged());
    }
    let mut content = Vec::new();
    let mut digest = Sha256::new();
    let (first, last) = (
        offset.min(length),
        offset.saturating_add(max as u64).min(length),
    );
    let (mut at, mut block) = (0, vec![0; BLOCK]);
    while at < length {
        let end = length.min(at + BLOCK as u64);
        // All of it is within a block.
        let place = |from: u64| usize::try_from(from.clamp(at, end) - at).unwrap_or(0);
        let block = &mut block[..place(end)];
        file.read_exact(block).map_err(|error| failed(&error))?;
        digest.update(&*block);
        content.extend_from_slice(&block[place(first)..place(last)]);
        at = end;
    }
    if header[12..] != *digest.finalize() {
        return Err(damaged());
    }
    Ok(Some(content))
}

fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn failed(error: &io::Error) -> ArtifactError {
    ArtifactError::Store(error.to_string())
}
