//! The secret of a data directory: what digests are keyed with that must tell nothing to who reads
//! them. Drawn at the first start and kept beside the store, never in it: whoever copies records has
//! no key.
//!
//! What must never enter: the secret in a log line, an error or a debug text.

use std::io;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use rand::TryRng as _;
use rand::rngs::SysRng;
use sha2::Sha256;

use super::hex;
use super::private_file::{self, Problem};

/// The secret's file in the data directory.
pub const SECRET_FILE: &str = "digest.key";
/// Longest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1024;

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
#[error(
    "the digest key {} {problem}; put it right, or delete it: the next start draws a new one, and \
     refuses repeats of answers that were given before", .path.display()
)]
pub struct SecretError {
    path: PathBuf,
    problem: String,
}

/// Reads the secret of a data directory, which must exist, or draws it.
pub fn open(data_dir: &Path) -> Result<[u8; 32], SecretError> {
    let path = data_dir.join(SECRET_FILE);
    let refused = |problem| SecretError {
        path: path.clone(),
        problem,
    };
    let io = |error: io::Error| refused(format!("cannot be made: {error}"));
    if let Some(secret) = read(&path).map_err(refused)? {
        return Ok(secret);
    }
    let mut secret = [0; 32];
    SysRng
        .try_fill_bytes(&mut secret)
        .map_err(|error| io(io::Error::other(error)))?;
    if private_file::create(&path, &line(&secret)).map_err(io)? {
        return Ok(secret);
    }
    let theirs = read(&path).map_err(refused)?;
    theirs.ok_or_else(|| refused("was taken away again".to_owned()))
}

/// What only who can read the data directory can say: HMAC-SHA-256 of the purpose, in digits. The
/// secret cannot be told from it. Nothing is drawn where there is none.
///
/// # Errors
/// When there is no secret, or it cannot be read.
pub fn proof(data_dir: &Path, purpose: &str) -> Result<String, SecretError> {
    let path = data_dir.join(SECRET_FILE);
    let secret = read(&path).and_then(|secret| secret.ok_or_else(|| "is missing".to_owned()));
    let secret = secret.map_err(|problem| SecretError { path, problem })?;
    // A key that is shorter than SHA-256's block is filled up with zeros (RFC 2104).
    let mut block = [0; 64];
    block[..32].copy_from_slice(&secret);
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(purpose.as_bytes());
    Ok(hex::encode(&mac.finalize().into_bytes()))
}

fn read(path: &Path) -> Result<Option<[u8; 32]>, String> {
    let read = private_file::read(path, MAX_FILE_BYTES).map_err(|problem| match problem {
        Problem::Io(error) => format!("cannot be read: {error}"),
        Problem::Exposed { mode } => format!("is readable by others (mode {mode:o})"),
        Problem::Foreign { user } => format!("belongs to user {user}, not to this server's"),
        Problem::NotAFile => "is not a regular file".to_owned(),
    })?;
    let Some(bytes) = read else { return Ok(None) };
    // What a start that was killed left beside it; one that stays does no harm to this one.
    if let Err(error) = private_file::sweep(path) {
        tracing::warn!(%error, path = %path.display(), "what a cut start left cannot be removed");
    }
    let secret = bytes.strip_suffix(b"\n").and_then(parsed);
    secret.map(Some).ok_or_else(|| "is malformed".to_owned())
}

/// The digits, and a checksum of them: another secret would be as good as none, in silence.
fn line(secret: &[u8; 32]) -> String {
    let digits = hex::encode(secret);
    let sum = crc32fast::hash(digits.as_bytes());
    format!("{digits} {sum:08x}")
}

/// Files of before the checksum have digits alone.
fn parsed(text: &[u8]) -> Option<[u8; 32]> {
    let (digits, sum) = text.split_at_checked(64)?;
    let secret = hex::decode(digits)?;
    let whole = sum.is_empty() || line(&secret).as_bytes() == text;
    whole.then_some(secret)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn c61_the_secret_is_drawn_once_and_only_its_user_can_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let secret = open(directory.path()).unwrap();
        assert_eq!(open(directory.path()).unwrap(), secret, "a restart has it");
        let file = directory.path().join(SECRET_FILE);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(open(other.path()).unwrap(), secret);
    }

    #[test]
    fn c61_a_secret_that_others_can_read_or_that_is_damaged_stops_the_start_unspoken() {
        let directory = tempfile::tempdir().unwrap();
        let secret = hex::encode(&open(directory.path()).unwrap());
        let file = directory.path().join(SECRET_FILE);
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        let exposed = open(directory.path()).unwrap_err().to_string();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        fs::write(&file, &secret[1..]).unwrap();
        let short = open(directory.path()).unwrap_err().to_string();
        fs::write(&file, format!("x{}\n", &secret[1..])).unwrap();
        let other = open(directory.path()).unwrap_err().to_string();
        for (error, says) in [
            (exposed, "mode 640"),
            (short, "malformed"),
            (other, "malformed"),
        ] {
            assert!(
                error.contains(says) && error.contains("delete it"),
                "{error}"
            );
            assert!(!error.contains(&secret[1..]), "{error}");
        }
    }

    #[test]
    fn c57_a_proof_is_of_its_secret_and_its_purpose_and_nothing_is_drawn_for_one() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let missing = proof(one.path(), "a").unwrap_err().to_string();
        assert!(missing.contains("is missing"), "{missing}");
        assert_eq!(fs::read_dir(one.path()).unwrap().count(), 0);
        let (secret, _) = (open(one.path()).unwrap(), open(other.path()).unwrap());
        let made = proof(one.path(), "a").unwrap();
        assert_eq!(proof(one.path(), "a").unwrap(), made);
        assert_ne!(proof(one.path(), "b").unwrap(), made);
        assert_ne!(proof(other.path(), "a").unwrap(), made);
        assert!(made.len() == 64 && made != hex::encode(&secret));
    }

    #[test]
    fn b54_a_secret_with_any_changed_bit_or_lost_end_is_told_and_one_of_before_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let secret = open(directory.path()).unwrap();
        let file = directory.path().join(SECRET_FILE);
        let whole = fs::read(&file).unwrap();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[at] ^= 1 << bit;
                fs::write(&file, &changed).unwrap();
                assert!(open(directory.path()).is_err(), "byte {at}, bit {bit}");
            }
            fs::write(&file, &whole[..at]).unwrap();
            assert!(open(directory.path()).is_err(), "cut at {at}");
        }
        fs::write(&file, format!("{}\n", hex::encode(&secret))).unwrap();
        assert_eq!(open(directory.path()).unwrap(), secret);
    }

    #[test]
    fn two_first_starts_at_once_agree_on_one_secret() {
        let directory = tempfile::tempdir().unwrap();
        let secrets = std::thread::scope(|scope| {
            let starts = [(); 8].map(|()| scope.spawn(|| open(directory.path())));
            starts.map(|start| start.join().unwrap().unwrap())
        });
        assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    }
}
