//! The tokens as a running server knows them: the file is looked at every second, so that one that
//! is made or revoked beside the server counts at once, and what goes on under a token that is over
//! ends.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use sessionplane_core::domain::access::{Principal, PrincipalKind};
use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::authenticator::Unauthenticated;
use sessionplane_core::ports::clock::Clock;
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;

use super::bearer::{self, Digest, TokenId};
use super::book::{BookError, State, TokenBook, TokenRecord};
use super::unknown;
use super::uses::{Use, Uses, WRITE_EVERY};
use crate::failpoint;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Longest time between two looks at the wall clock, which may be set: an end that it brings nearer
/// is noticed by then.
pub(super) const CLOCK_LOOK: Duration = Duration::from_secs(2);
/// What the name of a credential begins with; the token's id follows.
const CREDENTIAL: &str = "token:";

/// A principal that configuration knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registered {
    /// Its name.
    pub id: PrincipalId,
    /// Its tenant.
    pub tenant: TenantId,
    /// What kind of actor it is.
    pub kind: PrincipalKind,
    /// Its groups.
    pub groups: Arc<[String]>,
}

/// Knows the holders of tokens.
pub struct Tokens {
    book: TokenBook,
    registered: BTreeMap<PrincipalId, Registered>,
    clock: Arc<dyn Clock>,
    /// The most trust that any of them gives.
    most: Trust,
    held: ArcSwap<HashMap<TokenId, Held>>,
    /// Counts the tables, so that who waits for the end of a token looks again.
    changed: watch::Sender<u64>,
    /// Held by whoever writes down the uses.
    writing: Arc<Mutex<()>>,
}

/// A token of a registered principal.
struct Held {
    digest: Digest,
    principal: Principal,
    record: TokenRecord,
    used: Arc<Use>,
}

/// What tells one state of the file from another; nothing where there is no file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp(Option<Found>);

#[derive(Clone, Copy, PartialEq, Eq)]
struct Found {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

/// What was made of the file last.
#[derive(Default)]
struct Seen {
    /// The state in which it was read. None: it is to be read.
    stamp: Option<Stamp>,
    /// It could not be used.
    refused: bool,
}

impl Tokens {
    /// Reads the tokens of a data directory. Those whose principal is not in `registered`, or is
    /// not what it was when they were made, let nobody in.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn open(
        data_dir: &Path,
        registered: impl IntoIterator<Item = Registered>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, BookError> {
        let registered = registered.into_iter().map(|one| (one.id.clone(), one));
        let tokens = Self {
            book: TokenBook::of(data_dir),
            registered: registered.collect(),
            clock,
            most: Trust::Relayed,
            held: ArcSwap::default(),
            changed: watch::Sender::new(0),
            writing: Arc::default(),
        };
        let (_held, orphans) = tokens.take(tokens.book.read()?, &tokens.book.uses());
        warn_of(orphans);
        Ok(tokens)
    }

    /// The same tokens, where nothing that is served can read them: none of them gives more trust than
    /// this.
    #[must_use]
    pub fn up_to(mut self, most: Trust) -> Self {
        self.most = most;
        let held = self.held.load();
        let records: Vec<TokenRecord> = held.values().map(|held| held.record.clone()).collect();
        self.take(records, &Uses::default());
        self
    }

    /// Follows the file for as long as it is polled, and writes down what was used meanwhile. A disk
    /// that holds the one up does not hold up the other.
    pub async fn follow(&self) {
        tokio::join!(self.follow_file(), self.follow_uses());
    }

    /// A file that cannot be used keeps what was known, and the log says so.
    async fn follow_file(&self) {
        // What was read at the start may have changed since.
        let mut seen = Seen::default();
        loop {
            let stamp = Stamp::of(self.book.path());
            if seen.stamp != Some(stamp) {
                self.look(&mut seen, stamp, self.book.read());
            }
            self.clock.sleep(LOOK_EVERY).await;
        }
    }

    /// Takes what was read of the file in the state of `stamp`.
    fn look(&self, seen: &mut Seen, stamp: Stamp, read: Result<Vec<TokenRecord>, BookError>) {
        match read {
            Ok(records) => {
                let first = seen.stamp.is_none() && !seen.refused;
                let (tokens, orphans) = self.take(records, &Uses::default());
                if !first {
                    tracing::info!(tokens, "the tokens were read again");
                    warn_of(orphans);
                }
                *seen = Seen {
                    stamp: Some(stamp),
                    refused: false,
                };
            }
            Err(error) => {
                // A file that is wrong stays so until somebody touches it. What the system refuses
                // now it may allow in a moment, and nothing of the file tells when.
                let passes = matches!(error, BookError::Io { .. });
                if !(passes && seen.refused) {
                    tracing::error!(
                        %error,
                        "the tokens' file cannot be used: tokens that were made or revoked since \
                         do not count until it is put right"
                    );
                }
                *seen = Seen {
                    stamp: (!passes).then_some(stamp),
                    refused: true,
                };
            }
        }
    }

    /// Writes down when tokens were used last, as often as that has changed. Nothing depends on it.
    async fn follow_uses(&self) {
        let (mut written, mut refused) = (Uses::new(), false);
        loop {
            self.clock.sleep(WRITE_EVERY).await;
            let uses = self.uses();
            if uses == written {
                continue;
            }
            let (book, new) = (self.book.clone(), uses.clone());
            let turn = self.writing.clone();
            let write = move || {
                let _alone = turn.lock().unwrap_or_else(PoisonError::into_inner);
                book.write_uses(&new)
            };
            let done = tokio::task::spawn_blocking(write).await;
            match done.unwrap_or_else(|failed| Err(failed.into())) {
                Ok(()) => (written, refused) = (uses, false),
                // Told once: it is tried again.
                Err(_) if refused => {}
                Err(error) => {
                    refused = true;
                    tracing::warn!(%error, "when tokens were used last cannot be written down");
                }
            }
        }
    }

    /// Writes down what was used and is not written yet: the last word of a server that stops. A
    /// disk that hangs holds up whoever polls it, and nothing else.
    pub(super) async fn settle_uses(&self) {
        let (book, new) = (self.book.clone(), self.uses());
        let turn = self.writing.clone();
        let write = move || {
            // What was being written when nobody followed any more goes first.
            let _alone = turn.lock().unwrap_or_else(PoisonError::into_inner);
            failpoint::reach("tokens::last-uses");
            if book.uses() == new {
                return Ok(());
            }
            book.write_uses(&new)
        };
        let done = tokio::task::spawn_blocking(write).await;
        if let Err(error) = done.unwrap_or_else(|failed| Err(failed.into())) {
            tracing::warn!(%error, "when tokens were used last cannot be written down");
        }
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    fn uses(&self) -> Uses {
        let (held, now) = (self.held.load(), self.clock.now());
        let used = held.iter();
        let used = used.filter_map(|(id, held)| Some((id.clone(), held.used.last(now)?)));
        used.collect()
    }

    /// The holder of a token.
    pub(super) fn holder(
        &self,
        token: &str,
        digest: &Digest,
    ) -> Result<Principal, Unauthenticated> {
        let held = self.held.load();
        let named = bearer::id(token).and_then(TokenId::parse);
        let found = named.and_then(|id| held.get(&id));
        // A name that nobody has costs the same comparison.
        let known = found.map_or(Digest::default(), |held| held.digest);
        let matches = bool::from(known.ct_eq(digest));
        let held = found.filter(|_| matches).ok_or_else(unknown)?;
        let now = self.clock.now();
        if let Some(over) = over(&held.record, now) {
            return Err(over);
        }
        held.used.seen(now);
        Ok(held.principal.clone())
    }

    /// Completes once the token of a principal is over.
    pub(super) async fn ended(&self, principal: &Principal) -> Unauthenticated {
        let id = principal.credential.strip_prefix(CREDENTIAL);
        let Some(id) = id.and_then(TokenId::parse) else {
            return std::future::pending().await;
        };
        let mut changed = self.changed.subscribe();
        let _goes_on = self.held.load().get(&id).map(|held| held.used.open());
        loop {
            changed.borrow_and_update();
            let now = self.clock.now();
            let expires = match self.held.load().get(&id) {
                // Its principal may have lost a group meanwhile.
                Some(held) if held.principal != *principal => return no_more(),
                Some(held) => match over(&held.record, now) {
                    Some(ended) => return ended,
                    None => held.record.expires,
                },
                None => return no_more(),
            };
            let left = async {
                match expires {
                    Some(expires) => self.clock.sleep(expires.since(now).min(CLOCK_LOOK)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                told = changed.changed() => if told.is_err() { return no_more() },
                () = left => {}
            }
        }
    }

    /// C57: only what a person holds, where no agent can read it, says of a text that it was typed.
    fn most_of(&self, kind: PrincipalKind) -> Trust {
        match kind {
            PrincipalKind::Human => self.most,
            PrincipalKind::Service | PrincipalKind::Agent => self.most.min(Trust::Relayed),
        }
    }

    /// How many tokens let somebody in from now on, and how many do not for their principal.
    /// `uses` tells when those were used that are not known yet.
    fn take(&self, records: Vec<TokenRecord>, uses: &Uses) -> (usize, usize) {
        let before = self.held.load();
        let mut table = HashMap::with_capacity(records.len());
        let mut orphans = 0;
        for record in records {
            match self.principal(&record) {
                Some(principal) => {
                    let (digest, id) = (record.digest, record.id.clone());
                    let used = before.get(&id).map(|held| held.used.clone());
                    let used = used.unwrap_or_else(|| {
                        let used = uses.get(&id).map(|at| Use::at(*at));
                        Arc::new(used.unwrap_or_default())
                    });
                    table.insert(
                        id,
                        Held {
                            digest,
                            principal,
                            record,
                            used,
                        },
                    );
                }
                None => orphans += 1,
            }
        }
        let count = table.len();
        self.held.store(Arc::new(table));
        self.changed.send_modify(|tables| *tables += 1);
        (count, orphans)
    }

    /// Who a token stands for now: its groups are those that it was made with and its principal
    /// still has.
    fn principal(&self, record: &TokenRecord) -> Option<Principal> {
        let registered = self.registered.get(&record.principal)?;
        if registered.tenant != record.tenant || registered.kind != record.kind {
            return None;
        }
        let groups = match &record.groups {
            None => registered.groups.clone(),
            Some(groups) => {
                let kept = groups
                    .iter()
                    .filter(|group| registered.groups.contains(group));
                kept.cloned().collect()
            }
        };
        Some(Principal {
            tenant: registered.tenant.clone(),
            id: registered.id.clone(),
            kind: registered.kind,
            groups,
            ceiling: record.ceiling.min(self.most_of(record.kind)),
            credential: format!("{CREDENTIAL}{}", record.id).into(),
        })
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("book", &self.book)
            .finish_non_exhaustive()
    }
}

impl Stamp {
    fn of(path: &Path) -> Self {
        let found = fs::symlink_metadata(path).ok();
        Self(found.map(|found| Found {
            inode: found.ino(),
            bytes: found.len(),
            changed: (found.ctime(), found.ctime_nsec()),
        }))
    }
}

/// Warns of tokens that are as good as none for a reason that nobody sees who made them.
fn warn_of(orphans: usize) {
    if orphans > 0 {
        tracing::warn!(
            tokens = orphans,
            "tokens let nobody in: their principals are not in [identity.principals] as this server \
             read it at its start, or have another tenant or kind there than when the tokens were \
             made"
        );
    }
}

/// Why a token is good for nothing, if it is.
fn over(record: &TokenRecord, now: Timestamp) -> Option<Unauthenticated> {
    let (what, again) = match record.state(now) {
        State::Live => return None,
        State::Expired => ("has expired", "ask for a new one"),
        State::Revoked => ("was revoked", "use its successor, or ask for a new one"),
    };
    Some(Unauthenticated(format!(
        "the token {} {what}; {again} (sessiond token create)",
        record.id
    )))
}

fn no_more() -> Unauthenticated {
    Unauthenticated(
        "the token of this call does not count any more: it was taken away, or its principal has \
         other rights now; call again to see"
            .to_owned(),
    )
}

#[cfg(test)]
#[path = "live/tests.rs"]
mod tests;
