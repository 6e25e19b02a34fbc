//! Checkpoints: signed statements of where the chains of audit records stand, a line each in a file
//! that is only ever appended to. Kept elsewhere they are the witness that a chain was not cut or
//! written anew.
//!
//! What must never enter: the key in a log line, an error or a debug text; what a record says.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::TryRng as _;
use rand::rngs::SysRng;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use sessionplane_core::domain::audit::{Checkpoint, CheckpointBody, Link};
use sessionplane_core::domain::ids::TenantId;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::audit_trail::AuditTrail;
use sessionplane_core::ports::repository::ReadError;
use sha2::{Digest as _, Sha256};

use super::hex;
use super::private_file::{self, Problem};

/// The key's file in the data directory.
pub const KEY_FILE: &str = "audit.key";
/// The file of the public key beside it: what verifiers are given.
pub const PUBLIC_FILE: &str = "audit.pub";
/// The file of checkpoints in the data directory, where none is configured.
pub const CHECKPOINTS_FILE: &str = "checkpoints.jsonl";
/// Chains that are looked at at a time.
const PAGE: usize = 256;
/// Longest key file that is read, in bytes.
const MAX_KEY_BYTES: u64 = 1024;

/// Why nothing can be signed.
#[derive(Debug, thiserror::Error)]
#[error("the key of checkpoints {} {problem}", .path.display())]
pub struct KeyError {
    path: PathBuf,
    problem: String,
}

/// Why checkpoints were not written.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The chains cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file cannot be written.
    #[error("{} cannot be written: {error}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Signs checkpoints.
pub struct Signer {
    pair: Ed25519KeyPair,
    key_id: String,
}

impl Signer {
    /// Reads the key of a data directory, or draws it at the first start; writes the public one beside
    /// it.
    ///
    /// # Errors
    /// When either cannot be read or written.
    pub fn open(data_dir: &Path) -> Result<Self, KeyError> {
        let path = data_dir.join(KEY_FILE);
        let refused = |problem: String| KeyError {
            path: path.clone(),
            problem,
        };
        let unmade = |error: io::Error| refused(format!("cannot be made: {error}"));
        let seed = if let Some(seed) = read(&path).map_err(refused)? {
            seed
        } else {
            let mut seed = [0; 32];
            let drawn = SysRng.try_fill_bytes(&mut seed);
            drawn.map_err(|error| unmade(io::Error::other(error)))?;
            let fresh = Self::of(&seed).map_err(|problem| refused(problem.to_owned()))?;
            let line = format!("{} {}", hex::encode(&seed), fresh.key_id);
            if !private_file::create(&path, &line).map_err(unmade)? {
                return Err(refused("was made by somebody else meanwhile".to_owned()));
            }
            seed
        };
        let signer = Self::of(&seed).map_err(|problem| refused(problem.to_owned()))?;
        let public = data_dir.join(PUBLIC_FILE);
        let line = format!("{}\n", signer.public());
        if std::fs::read_to_string(&public).ok().as_deref() != Some(&line) {
            std::fs::write(&public, line).map_err(|error| KeyError {
                path: public,
                problem: format!("cannot be written: {error}"),
            })?;
        }
        Ok(signer)
    }

    fn of(seed: &[u8; 32]) -> Result<Self, &'static str> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| "is no key")?;
        let digest = Sha256::digest(pair.public_key().as_ref());
        Ok(Self {
            key_id: hex::encode(&digest[..8]),
            pair,
        })
    }

    /// The public key, in hexadecimal digits.
    #[must_use]
    pub fn public(&self) -> String {
        hex::encode(self.pair.public_key().as_ref())
    }

    fn sign(&self, tenant: &TenantId, at: Link, now: Timestamp) -> Checkpoint {
        let body = CheckpointBody {
            tenant: tenant.to_string(),
            seq: at.seq,
            hash: at.hash,
            time_ms: now.as_millis(),
            key_id: self.key_id.clone(),
        };
        let signed = self.pair.sign(&body.signed());
        let mut signature = [0; 64];
        signature.copy_from_slice(signed.as_ref());
        Checkpoint { body, signature }
    }
}

fn read(path: &Path) -> Result<Option<[u8; 32]>, String> {
    let read = private_file::read(path, MAX_KEY_BYTES).map_err(|problem| match problem {
        Problem::Io(error) => format!("cannot be read: {error}"),
        Problem::Exposed { mode } => format!("is readable by others (mode {mode:o})"),
        Problem::Foreign { user } => format!("belongs to user {user}, not to this server's"),
        Problem::NotAFile => "is not a regular file".to_owned(),
    })?;
    let Some(bytes) = read else { return Ok(None) };
    // The id of the key follows it: another seed would be as good a key, in silence.
    let line = bytes.strip_suffix(b"\n");
    let parts = line.and_then(|line| line.split_at_checked(64));
    let seed = parts.and_then(|(seed, id)| {
        let seed = hex::decode(seed)?;
        let key_id = Signer::of(&seed).ok()?.key_id;
        (id == format!(" {key_id}").as_bytes()).then_some(seed)
    });
    seed.map(Some)
        .ok_or_else(|| "is malformed, or damaged".to_owned())
}

/// Writes checkpoints of all chains that have grown.
pub struct Checkpoints {
    trail: Arc<dyn AuditTrail>,
    signer: Signer,
    path: PathBuf,
    /// Where each chain stood when it was signed last.
    told: BTreeMap<TenantId, Link>,
}

impl Checkpoints {
    /// Of the chains of a store, into a file.
    #[must_use]
    pub fn new(trail: Arc<dyn AuditTrail>, signer: Signer, path: PathBuf) -> Self {
        Self {
            trail,
            signer,
            path,
            told: BTreeMap::new(),
        }
    }

    /// One for each chain that has grown since the last; gives how many. What is returned from is on
    /// stable storage.
    ///
    /// # Errors
    /// When a chain cannot be read or the file not be written; the next call tries again.
    pub async fn write(&mut self, now: Timestamp) -> Result<usize, CheckpointError> {
        let mut written = 0;
        let mut after: Option<TenantId> = None;
        loop {
            let tenants = self.trail.chains(after.as_ref(), PAGE).await?;
            let mut grown = Vec::new();
            for tenant in &tenants {
                let end = self.trail.chain_end(tenant).await?;
                let told = self.told.get(tenant);
                if let Some(end) = end.filter(|end| told != Some(end)) {
                    grown.push((tenant.clone(), end));
                }
            }
            self.append(&grown, now).await?;
            written += grown.len();
            self.told.extend(grown);
            if tenants.len() < PAGE {
                return Ok(written);
            }
            after = tenants.into_iter().next_back();
        }
    }

    async fn append(
        &self,
        grown: &[(TenantId, Link)],
        now: Timestamp,
    ) -> Result<(), CheckpointError> {
        if grown.is_empty() {
            return Ok(());
        }
        let mut lines = String::new();
        for (tenant, at) in grown {
            let checkpoint = self.signer.sign(tenant, *at, now);
            tracing::info!(%tenant, seq = at.seq, hash = %at.hash, key_id = self.signer.key_id, "checkpoint");
            lines.push_str(&line(&checkpoint));
            lines.push('\n');
        }
        let path = self.path.clone();
        let written = tokio::task::spawn_blocking(move || append(&path, lines.as_bytes())).await;
        let written = written.unwrap_or_else(|error| Err(io::Error::other(error)));
        written.map_err(|error| CheckpointError::Write {
            path: self.path.clone(),
            error,
        })
    }
}

/// Appends lines, and syncs them with the name of a file that is new. A line that was cut, by a full disk
/// or a kill, is ended first: it spoils itself, and not the one after it.
fn append(path: &Path, lines: &[u8]) -> io::Result<()> {
    let mut file = File::options()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if let Some(at) = length.checked_sub(1) {
        file.read_exact_at(&mut last, at)?;
    }
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    file.write_all(lines)?;
    file.sync_data()?;
    match path.parent() {
        Some(folder) if length == 0 => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// A checkpoint as it is written.
fn line(checkpoint: &Checkpoint) -> String {
    let body = &checkpoint.body;
    serde_json::json!({
        "tenant": body.tenant,
        "seq": body.seq,
        "hash": body.hash.to_string(),
        "time_ms": body.time_ms,
        "key_id": body.key_id,
        "signature": hex::encode(&checkpoint.signature),
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use ring::signature::{ED25519, UnparsedPublicKey};
    use sessionplane_core::domain::audit::Refusal;
    use sessionplane_core::domain::ids::SessionId;
    use sessionplane_core::domain::provenance::Digest;
    use sessionplane_core::ports::audit_trail::StoredLink;
    use sessionplane_core::ports::repository::CommitError;

    use super::*;

    /// Chains of which nothing is known but their ends.
    #[derive(Default)]
    struct Ends(Mutex<BTreeMap<TenantId, Link>>);

    impl Ends {
        fn grow(&self, tenant: &str) -> Link {
            let mut ends = self.0.lock().unwrap();
            let end = ends.entry(tenant.parse().unwrap()).or_insert(Link {
                seq: 0,
                hash: Digest([0; 32]),
            });
            end.seq += 1;
            end.hash = Digest([u8::try_from(end.seq).unwrap(); 32]);
            *end
        }
    }

    #[async_trait]
    impl AuditTrail for Ends {
        fn store_id(&self) -> u128 {
            7
        }
        async fn chain_end(&self, tenant: &TenantId) -> Result<Option<Link>, ReadError> {
            Ok(self.0.lock().unwrap().get(tenant).copied())
        }
        async fn chains(
            &self,
            after: Option<&TenantId>,
            max: usize,
        ) -> Result<Vec<TenantId>, ReadError> {
            let ends = self.0.lock().unwrap();
            let rest = ends
                .keys()
                .filter(|it| after.is_none_or(|after| *it > after));
            Ok(rest.take(max).cloned().collect())
        }
        async fn links(
            &self,
            _: &TenantId,
            _: u64,
            _: usize,
        ) -> Result<Vec<StoredLink>, ReadError> {
            Ok(Vec::new())
        }
        async fn links_of_session(
            &self,
            _: SessionId,
            _: u64,
            _: usize,
        ) -> Result<Vec<u64>, ReadError> {
            Ok(Vec::new())
        }
        async fn refused(&self, _: Vec<Refusal>) -> Result<(), CommitError> {
            Ok(())
        }
    }

    #[test]
    fn c56_a_line_that_was_cut_spoils_none_after_it() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("outside.jsonl");
        append(&path, b"{\"seq\": 1}\n").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(8).unwrap();
        append(&path, b"{\"seq\": 2}\n").unwrap();
        append(&path, b"{\"seq\": 3}\n").unwrap();
        let lines = std::fs::read_to_string(&path).unwrap();
        assert_eq!(lines, "{\"seq\": \n{\"seq\": 2}\n{\"seq\": 3}\n");
    }

    /// The documented vector, made here.
    #[test]
    fn c56_a_checkpoint_is_signed_as_documented() {
        let page = include_str!("../../../docs/audit-vectors.json");
        let page: serde_json::Value = serde_json::from_str(page).unwrap();
        let said = &page["checkpoint"];
        let seed = hex::decode(said["seed"].as_str().unwrap().as_bytes()).unwrap();
        let signer = Signer::of(&seed).unwrap();
        assert_eq!(said["public_key"], signer.public());
        let at = Link {
            seq: said["seq"].as_u64().unwrap(),
            hash: Digest::parse(said["hash"].as_str().unwrap()).unwrap(),
        };
        let now = Timestamp::from_millis(said["time_ms"].as_u64().unwrap());
        let checkpoint = signer.sign(&"acme".parse().unwrap(), at, now);
        let line: serde_json::Value = serde_json::from_str(&line(&checkpoint)).unwrap();
        for field in ["tenant", "seq", "hash", "time_ms", "key_id", "signature"] {
            assert_eq!(line[field], said[field], "{field}");
        }
    }

    #[test]
    fn c56_the_key_of_a_directory_is_drawn_once_and_only_its_public_half_is_for_others() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::TempDir::new().unwrap();
        let first = Signer::open(directory.path()).unwrap();
        let second = Signer::open(directory.path()).unwrap();
        assert_eq!(first.public(), second.public());
        let public = std::fs::read_to_string(directory.path().join(PUBLIC_FILE)).unwrap();
        assert_eq!(public.trim_end(), first.public());
        let key = directory.path().join(KEY_FILE);
        let mode = std::fs::metadata(&key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let whole = std::fs::read(&key).unwrap();
        let mut flipped = whole.clone();
        flipped[3] = if flipped[3] == b'0' { b'1' } else { b'0' };
        for damaged in [&flipped[..], b"short\n", &whole[..64]] {
            std::fs::write(&key, damaged).unwrap();
            assert!(Signer::open(directory.path()).is_err());
        }
    }

    #[tokio::test]
    async fn c56_each_chain_that_grew_gets_a_checkpoint_and_no_other() {
        let directory = tempfile::TempDir::new().unwrap();
        let store = Arc::new(Ends::default());
        let signer = Signer::open(directory.path()).unwrap();
        let key = signer.pair.public_key().as_ref().to_vec();
        let path = directory.path().join("outside.jsonl");
        let mut checkpoints = Checkpoints::new(store.clone(), signer, path.clone());
        let now = Timestamp::from_millis(9);
        assert_eq!(checkpoints.write(now).await.unwrap(), 0);
        for tenant in ["acme", "umbra", "umbra"] {
            store.grow(tenant);
        }
        assert_eq!(checkpoints.write(now).await.unwrap(), 2);
        assert_eq!(checkpoints.write(now).await.unwrap(), 0);
        let end = store.grow("umbra");
        assert_eq!(checkpoints.write(now).await.unwrap(), 1);
        let lines = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let told: Vec<_> = lines
            .iter()
            .map(|it| (it["tenant"].as_str().unwrap(), it["seq"].as_u64().unwrap()))
            .collect();
        assert_eq!(told, [("acme", 1), ("umbra", 2), ("umbra", 3)]);
        assert_eq!(lines[2]["hash"], end.hash.to_string());
        let body = CheckpointBody {
            tenant: "umbra".to_owned(),
            seq: 3,
            hash: end.hash,
            time_ms: 9,
            key_id: lines[2]["key_id"].as_str().unwrap().to_owned(),
        };
        let digits = lines[2]["signature"].as_str().unwrap();
        let signature: Vec<u8> = (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
            .collect();
        let key = UnparsedPublicKey::new(&ED25519, key);
        key.verify(&body.signed(), &signature).unwrap();
    }
}
