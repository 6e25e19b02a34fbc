//! The owner: the one who can read the server's data directory.
//!
//! At its first start the server mints an owner token into a file that only its own user can read.
//! Whoever sends that token is the owner. Only the token's SHA-256 is kept in memory. What must
//! never enter: a token in a log line, an error or a debug text.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::domain::access::{Principal, PrincipalKind};
use sessionplane_core::domain::ids::{IdError, PrincipalId, TenantId};
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::ports::authenticator::{Authenticator, Known, Presented, Unauthenticated};
use subtle::ConstantTimeEq as _;

use super::super::private_file::{self, Problem};
use super::WAY_IN;
use super::bearer::{self, Digest, Minted, is_token};

/// The tenant of a server without configured identities.
pub const OWNER_TENANT: &str = "default";
/// The owner's id within it.
pub const OWNER_ID: &str = "owner";
/// The name of the owner's credential in audit records.
const OWNER_CREDENTIAL: &str = "owner-token";
/// The token's file in the data directory.
pub const OWNER_FILE: &str = "owner.token";

/// Longest token file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1024;

/// Why there is no owner token.
#[derive(Debug, thiserror::Error)]
pub enum OwnerTokenError {
    /// The file cannot be read or written.
    #[error("the owner token {} cannot be {what}: {error}", .path.display())]
    Io {
        /// The token's file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// Others may have read it.
    #[error(
        "the owner token {} is readable by others (mode {mode:o}); delete it, so that the next \
         start mints a new one", .path.display()
    )]
    Exposed {
        /// The token's file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It was made by somebody else, who knows it.
    #[error(
        "the owner token {} belongs to user {user}, not to this server's user; start the server \
         as that user, or delete the file, so that the next start mints a new one",
        .path.display()
    )]
    Foreign {
        /// The token's file.
        path: PathBuf,
        /// Its owner.
        user: u32,
    },
    /// Something that is no file is in its place.
    #[error(
        "the owner token {} is not a regular file; remove it, so that the next start mints one",
        .path.display()
    )]
    NotAFile {
        /// What is in the way.
        path: PathBuf,
    },
    /// The file holds something else.
    #[error(
        "the owner token {} is malformed; delete it, so that the next start mints a new one",
        .path.display()
    )]
    Malformed {
        /// The token's file.
        path: PathBuf,
    },
    /// A bug: our own names are not valid.
    #[error(transparent)]
    Names(#[from] IdError),
}

/// Knows the owner by the token in the data directory.
#[derive(Debug)]
pub struct OwnerToken {
    path: PathBuf,
    digest: Digest,
    owner: Principal,
    new: bool,
}

impl OwnerToken {
    /// Reads the owner token of a data directory, which must exist, or mints it.
    pub fn open(data_dir: &Path) -> Result<Self, OwnerTokenError> {
        let path = data_dir.join(OWNER_FILE);
        let (token, new) = match read(&path)? {
            Some(token) => (token, false),
            None => mint(&path)?,
        };
        Ok(Self {
            digest: bearer::digest(&token),
            owner: owner()?,
            path,
            new,
        })
    }

    /// The same, giving no more trust than this.
    pub(super) fn up_to(mut self, most: Trust) -> Self {
        self.owner.ceiling = most;
        self
    }

    /// The owner, if it is the owner's token that has this digest.
    pub(super) fn holder(&self, digest: &Digest) -> Option<Principal> {
        bool::from(digest.ct_eq(&self.digest)).then(|| self.owner.clone())
    }

    /// Whether a principal came with the owner's token.
    pub(super) fn is(&self, principal: &Principal) -> bool {
        principal.credential == self.owner.credential
    }

    /// Where the token is, for the line that a start prints.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there was none before: nobody has this one yet.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.new
    }
}

#[async_trait]
impl Authenticator for OwnerToken {
    async fn authenticate(&self, presented: Presented<'_>) -> Result<Known, Unauthenticated> {
        let Some(token) = presented.bearer else {
            return Err(Unauthenticated(format!("no bearer token: {WAY_IN}")));
        };
        let holder = self.holder(&bearer::digest(token));
        holder.map(Known::from).ok_or_else(super::unknown)
    }
}

/// Unless it is known that a sandbox keeps every engine from reading the token, no text sent with it
/// can count as typed by a person.
fn owner() -> Result<Principal, IdError> {
    Ok(Principal {
        tenant: TenantId::parse(OWNER_TENANT)?,
        id: PrincipalId::parse(OWNER_ID)?,
        kind: PrincipalKind::Human,
        groups: Arc::new([]),
        ceiling: Trust::Relayed,
        credential: OWNER_CREDENTIAL.into(),
    })
}

fn read(path: &Path) -> Result<Option<String>, OwnerTokenError> {
    let bytes = private_file::read(path, MAX_FILE_BYTES).map_err(|no| refusal(path, no))?;
    let Some(bytes) = bytes else { return Ok(None) };
    let text = String::from_utf8(bytes).unwrap_or_default();
    let token = text.trim_end();
    if !is_token(token) {
        let path = path.to_owned();
        return Err(OwnerTokenError::Malformed { path });
    }
    tidy(path);
    Ok(Some(token.to_owned()))
}

/// A start that was killed may have left a copy beside the file. One that stays does no harm to this
/// one.
fn tidy(path: &Path) {
    if let Err(error) = private_file::sweep(path) {
        tracing::warn!(%error, path = %path.display(), "what a cut start left cannot be removed");
    }
}

fn refusal(path: &Path, problem: Problem) -> OwnerTokenError {
    let path = path.to_owned();
    match problem {
        Problem::Io(error) => OwnerTokenError::Io {
            path,
            what: "read",
            error,
        },
        Problem::Exposed { mode } => OwnerTokenError::Exposed { path, mode },
        Problem::Foreign { user } => OwnerTokenError::Foreign { path, user },
        Problem::NotAFile => OwnerTokenError::NotAFile { path },
    }
}

/// Writes a new token. A start that lost the race reads the winner's, which is not new to it.
fn mint(path: &Path) -> Result<(String, bool), OwnerTokenError> {
    let failed = |error| OwnerTokenError::Io {
        path: path.to_owned(),
        what: "minted",
        error,
    };
    let token = Minted::draw().map_err(failed)?;
    if private_file::create(path, token.reveal()).map_err(failed)? {
        return Ok((token.reveal().to_owned(), true));
    }
    let theirs = read(path)?;
    let theirs = theirs.ok_or_else(|| failed(io::ErrorKind::AlreadyExists.into()))?;
    Ok((theirs, false))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    async fn present(owner: &OwnerToken, token: &str) -> Result<Principal, Unauthenticated> {
        let presented = Presented {
            bearer: Some(token),
            ..Presented::default()
        };
        owner
            .authenticate(presented)
            .await
            .map(|known| known.principal)
    }

    fn token_in(directory: &Path) -> String {
        fs::read_to_string(directory.join(OWNER_FILE))
            .unwrap()
            .trim_end()
            .to_owned()
    }

    #[tokio::test]
    async fn c54_the_first_start_mints_a_token_that_only_its_user_can_read() {
        let directory = tempfile::tempdir().unwrap();
        let owner = OwnerToken::open(directory.path()).unwrap();
        let mode = fs::metadata(owner.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing but the token is left: {left:?}");

        let token = token_in(directory.path());
        assert!(is_token(&token));
        let principal = present(&owner, &token).await.unwrap();
        assert_eq!(
            (principal.tenant.as_str(), principal.id.as_str()),
            ("default", "owner")
        );
        assert_eq!(
            (principal.kind, principal.ceiling),
            (PrincipalKind::Human, Trust::Relayed)
        );
    }

    #[tokio::test]
    async fn a_restart_knows_the_same_token() {
        let directory = tempfile::tempdir().unwrap();
        assert!(OwnerToken::open(directory.path()).unwrap().is_new());
        let token = token_in(directory.path());
        let again = OwnerToken::open(directory.path()).unwrap();
        assert!(!again.is_new());
        assert_eq!(token_in(directory.path()), token);
        assert!(present(&again, &token).await.is_ok());
    }

    #[tokio::test]
    async fn another_token_and_none_are_refused_with_the_way_in_and_without_the_token() {
        let directory = tempfile::tempdir().unwrap();
        let owner = OwnerToken::open(directory.path()).unwrap();
        let token = token_in(directory.path());
        for wrong in [
            "",
            "x",
            &token[1..],
            &format!("{token}x"),
            &token.to_uppercase(),
        ] {
            let refusal = present(&owner, wrong).await.unwrap_err().to_string();
            assert!(refusal.contains("owner.token"), "{refusal}");
            assert!(wrong.len() < 2 || !refusal.contains(wrong), "{refusal}");
        }
        assert!(owner.authenticate(Presented::default()).await.is_err());
        assert!(!format!("{owner:?}").contains(&token));
    }

    #[test]
    fn a_token_that_others_can_read_stops_the_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = OwnerToken::open(directory.path())
            .unwrap()
            .path()
            .to_owned();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = OwnerToken::open(directory.path()).unwrap_err();
        assert!(
            matches!(error, OwnerTokenError::Exposed { mode: 0o640, .. }),
            "{error}"
        );
    }

    #[test]
    fn a_damaged_token_and_a_link_stop_the_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = OwnerToken::open(directory.path())
            .unwrap()
            .path()
            .to_owned();
        fs::write(&path, "sp_short_\n").unwrap();
        let error = OwnerToken::open(directory.path()).unwrap_err();
        assert!(
            matches!(error, OwnerTokenError::Malformed { .. }),
            "{error}"
        );

        let elsewhere = directory.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        let error = OwnerToken::open(directory.path()).unwrap_err();
        assert!(matches!(error, OwnerTokenError::Io { .. }), "{error}");
    }

    #[test]
    fn a_pipe_and_a_directory_in_the_tokens_place_stop_the_start_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(OWNER_FILE);
        for make in ["mkfifo", "mkdir"] {
            let made = std::process::Command::new(make).arg(&path).status();
            assert!(made.unwrap().success());
            let error = OwnerToken::open(directory.path()).unwrap_err();
            assert!(matches!(error, OwnerTokenError::NotAFile { .. }), "{error}");
            let renamed = directory.path().join(make);
            fs::rename(&path, renamed).unwrap();
        }
    }

    #[test]
    fn a_token_that_is_no_text_is_malformed_and_the_error_names_the_way_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = OwnerToken::open(directory.path()).unwrap().path;
        fs::write(&path, [0xff, 0xfe]).unwrap();
        let error = OwnerToken::open(directory.path()).unwrap_err();
        assert!(
            matches!(error, OwnerTokenError::Malformed { .. }),
            "{error}"
        );
        assert!(error.to_string().contains("delete it"), "{error}");
    }

    #[test]
    fn two_first_starts_at_once_agree_on_one_token() {
        let directory = tempfile::tempdir().unwrap();
        let digests = std::thread::scope(|scope| {
            let starts = [(); 8].map(|()| scope.spawn(|| OwnerToken::open(directory.path())));
            starts.map(|start| start.join().unwrap().unwrap().digest)
        });
        assert!(digests.iter().all(|digest| *digest == digests[0]));
    }
}
