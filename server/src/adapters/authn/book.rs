//! The file of tokens: who holds one, until when, and its SHA-256. Never a token.
//!
//! Each change takes the lock beside it, reads the file, and puts a new one in its place, synced. A
//! reader needs no lock: it finds the old file or the new one, whole.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::domain::time::Timestamp;

use super::super::hex;
use super::super::private_file::{self, Problem};
use super::bearer::{self, Digest, Minted, TokenId};
use super::live::Registered;

/// The tokens' file in the data directory.
pub const TOKENS_FILE: &str = "tokens.json";
const LOCK_FILE: &str = "tokens.lock";
/// Most tokens of one principal that are good for something at a time: the old one and its
/// successor.
pub const LIVE_TOKENS: usize = 2;
/// Longest life of a token.
pub const LIFETIME_AT_MOST: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);
/// How long a token that is over stays in the list.
const REMEMBERED: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Largest file that is read or written, in bytes: some 20,000 tokens.
const MAX_FILE_BYTES: usize = 8 * 1024 * 1024;
/// Largest file that a new token is added to: each there can still be revoked, which adds a line of
/// 40 bytes to the 250 or more that it has.
const FULL_AT_BYTES: usize = MAX_FILE_BYTES / 5 * 4;
/// How long a change waits for another one.
const LOCKED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// The version of the file that this server writes, and the only one that it reads.
const VERSION: u32 = 1;

/// Why the tokens cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// The system refused.
    #[error("the tokens in {} cannot be {what}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The file is not as it should be.
    #[error("the tokens' file {} {problem}", .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong, and the way out.
        problem: String,
    },
    /// Another change does not end.
    #[error("another `sessiond token` holds {}; try again when it is done", .0.display())]
    Busy(PathBuf),
    /// The principal has its share of tokens.
    #[error(
        "{principal} has {LIVE_TOKENS} live tokens already ({}); revoke the one that is not used \
         any more: sessiond token revoke {}", .live.join(", "), .live.first().map_or("ID", String::as_str)
    )]
    TooMany {
        /// Whose they are.
        principal: PrincipalId,
        /// Their ids, the oldest first.
        live: Vec<String>,
    },
    /// Nothing is known of such a token.
    #[error("there is no token {0}; `sessiond token list` shows those there are")]
    NoSuchToken(TokenId),
}

/// What is known of a token.
#[derive(Clone, Debug)]
pub struct TokenRecord {
    /// Its name.
    pub id: TokenId,
    pub(super) digest: Digest,
    /// Who holds it.
    pub principal: PrincipalId,
    /// The tenant it was made for.
    pub tenant: TenantId,
    /// What kind of actor it was made for.
    pub kind: PrincipalKind,
    /// The groups it is restricted to; none: all of its principal's.
    pub groups: Option<Vec<String>>,
    /// The most trust that it can give to a text.
    pub ceiling: Trust,
    /// When it was made.
    pub created: Timestamp,
    /// When it ends by itself.
    pub expires: Option<Timestamp>,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
}

/// Whether a token is good for something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It is.
    Live,
    /// Not any more: its time is over.
    Expired,
    /// Not any more: somebody said so.
    Revoked,
}

impl TokenRecord {
    /// Whether it is good for something at `now`.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> State {
        if self.revoked.is_some() {
            State::Revoked
        } else if self.expires.is_some_and(|expires| expires <= now) {
            State::Expired
        } else {
            State::Live
        }
    }

    /// When it stopped being good for something, as far as that is past.
    fn over(&self, now: Timestamp) -> Option<Timestamp> {
        let expired = self.expires.filter(|expires| *expires <= now);
        self.revoked.into_iter().chain(expired).min()
    }
}

/// What a new token is to be.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Who gets it.
    pub holder: Registered,
    /// The groups it is restricted to; none: all of its holder's.
    pub groups: Option<Vec<String>>,
    /// The most trust that it can give to a text.
    pub ceiling: Trust,
    /// How long it lives; none: until it is revoked.
    pub lifetime: Option<Duration>,
}

/// The tokens of a data directory.
#[derive(Clone, Debug)]
pub struct TokenBook {
    path: PathBuf,
}

impl TokenBook {
    /// The tokens of this data directory, which must exist before they are changed.
    #[must_use]
    pub fn of(data_dir: &Path) -> Self {
        let path = data_dir.join(TOKENS_FILE);
        Self { path }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All tokens, the oldest first. None where there is no file.
    ///
    /// # Errors
    /// When the file cannot be read, others could have read or written it, or it is damaged.
    pub fn read(&self) -> Result<Vec<TokenRecord>, BookError> {
        let most = MAX_FILE_BYTES as u64 + 1;
        let bytes = private_file::read(&self.path, most).map_err(|no| self.refusal(no))?;
        let Some(bytes) = bytes else {
            return Ok(Vec::new());
        };
        if bytes.len() > MAX_FILE_BYTES {
            return Err(self.unusable(format!("is larger than {MAX_FILE_BYTES} bytes")));
        }
        decode(&bytes).map_err(|problem| {
            self.unusable(format!(
                "{problem}; restore it from a backup, or remove it and make the tokens anew"
            ))
        })
    }

    /// Makes a token. It is in the file, durably, once it is returned; nobody can read it there.
    ///
    /// # Errors
    /// When its holder has two live ones, or the file cannot be changed.
    pub fn create(
        &self,
        grant: &Grant,
        now: Timestamp,
    ) -> Result<(TokenRecord, Minted), BookError> {
        let _alone = self.alone()?;
        let mut records = self.read()?;
        let principal = &grant.holder.id;
        let live = records
            .iter()
            .filter(|record| record.principal == *principal && record.state(now) == State::Live)
            .map(|record| record.id.to_string());
        let live: Vec<String> = live.collect();
        if live.len() >= LIVE_TOKENS {
            let principal = principal.clone();
            return Err(BookError::TooMany { principal, live });
        }
        records.retain(|record| {
            record
                .over(now)
                .is_none_or(|over| now.since(over) < REMEMBERED)
        });
        let token = loop {
            let token = Minted::draw().map_err(|error| self.failed("made", error))?;
            if records.iter().all(|record| record.id != token.id()) {
                break token;
            }
        };
        let record = TokenRecord {
            id: token.id(),
            digest: bearer::digest(token.reveal()),
            principal: principal.clone(),
            tenant: grant.holder.tenant.clone(),
            kind: grant.holder.kind,
            groups: grant.groups.clone(),
            ceiling: grant.ceiling,
            created: now,
            expires: grant.lifetime.map(|lifetime| now.after(lifetime)),
            revoked: None,
        };
        records.push(record.clone());
        self.write(&records, FULL_AT_BYTES)?;
        Ok((record, token))
    }

    /// Removes what a change that was killed left beside the file: at a start. While another change is
    /// under way it is left, and goes with the next one.
    pub fn tidy(&self) {
        let path = self.path.with_file_name(LOCK_FILE);
        let lock = OpenOptions::new().write(true).open(&path);
        // Where there is no lock, nobody ever changed the file.
        let Ok(lock) = lock else { return };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        if let Err(error) = private_file::sweep(&self.path) {
            tracing::warn!(%error, "what a cut `sessiond token` left cannot be removed");
        }
    }

    /// Ends a token. False: it was revoked before, and stays so.
    ///
    /// # Errors
    /// When there is none of this id, or the file cannot be changed.
    pub fn revoke(&self, id: &TokenId, now: Timestamp) -> Result<bool, BookError> {
        let _alone = self.alone()?;
        let mut records = self.read()?;
        let found = records.iter_mut().find(|record| record.id == *id);
        let found = found.ok_or_else(|| BookError::NoSuchToken(id.clone()))?;
        if found.revoked.is_some() {
            return Ok(false);
        }
        found.revoked = Some(now);
        self.write(&records, MAX_FILE_BYTES)?;
        Ok(true)
    }

    fn write(&self, records: &[TokenRecord], most: usize) -> Result<(), BookError> {
        let text = encode(records);
        if text.len() >= most {
            return Err(self.unusable(format!(
                "is full; tokens that are over leave it {} days later",
                REMEMBERED.as_secs() / (24 * 60 * 60)
            )));
        }
        private_file::replace(&self.path, &text).map_err(|error| self.failed("written", error))
    }

    /// Nobody else changes the file as long as the descriptor is kept.
    fn alone(&self) -> Result<File, BookError> {
        let path = self.path.with_file_name(LOCK_FILE);
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        let lock = opened.map_err(|error| self.failed("locked", error))?;
        let mut waited = Duration::ZERO;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(lock),
                Err(Errno::WOULDBLOCK | Errno::INTR) if waited < LOCKED_WITHIN => {
                    std::thread::sleep(LOOK_AGAIN);
                    waited += LOOK_AGAIN;
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(BookError::Busy(path)),
                Err(error) => return Err(self.failed("locked", error.into())),
            }
        }
    }

    fn failed(&self, what: &'static str, error: io::Error) -> BookError {
        let path = self.path.clone();
        BookError::Io { path, what, error }
    }

    fn unusable(&self, problem: String) -> BookError {
        let path = self.path.clone();
        BookError::Unusable { path, problem }
    }

    fn refusal(&self, problem: Problem) -> BookError {
        match problem {
            Problem::Io(error) => self.failed("read", error),
            Problem::Exposed { mode } => self.unusable(format!(
                "can be read or written by others (mode {mode:o}); look who did it, then \
                 chmod 600 it"
            )),
            Problem::Foreign { user } => self.unusable(format!(
                "belongs to user {user}, not to this user; run as that user, or chown it"
            )),
            Problem::NotAFile => self.unusable("is not a regular file; remove it".to_owned()),
        }
    }
}

/// The file as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    tokens: Vec<StoredToken>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredToken {
    id: String,
    sha256: String,
    principal: String,
    tenant: String,
    kind: StoredKind,
    trust: StoredTrust,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    groups: Option<Vec<String>>,
    created_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    expires_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    revoked_ms: Option<u64>,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum StoredKind {
    Human,
    Service,
    Agent,
}

/// `typed` came with `sessiond login`; a server that does not know it refuses the file.
#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum StoredTrust {
    Untrusted,
    Relayed,
    Typed,
}

pub(super) fn encode(records: &[TokenRecord]) -> String {
    let tokens = records.iter().map(|record| StoredToken {
        id: record.id.to_string(),
        sha256: hex::encode(&record.digest),
        principal: record.principal.to_string(),
        tenant: record.tenant.to_string(),
        kind: match record.kind {
            PrincipalKind::Human => StoredKind::Human,
            PrincipalKind::Service => StoredKind::Service,
            PrincipalKind::Agent => StoredKind::Agent,
        },
        trust: match record.ceiling {
            Trust::Untrusted => StoredTrust::Untrusted,
            Trust::Relayed => StoredTrust::Relayed,
            Trust::Typed => StoredTrust::Typed,
        },
        groups: record.groups.clone(),
        created_ms: record.created.as_millis(),
        expires_ms: record.expires.map(Timestamp::as_millis),
        revoked_ms: record.revoked.map(Timestamp::as_millis),
    });
    let tokens = tokens.collect();
    let stored = Stored {
        version: VERSION,
        tokens,
    };
    // Texts and numbers only: there is nothing that JSON cannot say.
    serde_json::to_string_pretty(&stored).unwrap_or_default()
}

pub(super) fn decode(bytes: &[u8]) -> Result<Vec<TokenRecord>, String> {
    let stored: Stored = serde_json::from_slice(bytes).map_err(|error| {
        // Its own words may quote the file.
        format!("is damaged at line {}", error.line())
    })?;
    if stored.version != VERSION {
        return Err(format!(
            "was written by another release (version {}, this one reads {VERSION})",
            stored.version
        ));
    }
    let records = stored.tokens.into_iter().enumerate().map(|(at, token)| {
        record(token).ok_or_else(|| format!("has a token that makes no sense, number {}", at + 1))
    });
    records.collect()
}

fn record(token: StoredToken) -> Option<TokenRecord> {
    Some(TokenRecord {
        id: TokenId::parse(&token.id)?,
        digest: hex::decode(token.sha256.as_bytes())?,
        principal: PrincipalId::parse(&token.principal).ok()?,
        tenant: TenantId::parse(&token.tenant).ok()?,
        kind: match token.kind {
            StoredKind::Human => PrincipalKind::Human,
            StoredKind::Service => PrincipalKind::Service,
            StoredKind::Agent => PrincipalKind::Agent,
        },
        groups: token.groups,
        ceiling: match token.trust {
            StoredTrust::Untrusted => Trust::Untrusted,
            StoredTrust::Relayed => Trust::Relayed,
            StoredTrust::Typed => Trust::Typed,
        },
        created: Timestamp::from_millis(token.created_ms),
        expires: token.expires_ms.map(Timestamp::from_millis),
        revoked: token.revoked_ms.map(Timestamp::from_millis),
    })
}

#[cfg(test)]
#[path = "book/tests.rs"]
mod tests;
