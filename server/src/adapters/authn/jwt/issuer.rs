//! One issuer of JWTs: its keys as they are now, and whether a token of it holds.
//!
//! What must never enter: who a token's holder is here.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use serde_json::{Map, Value};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::clock::Clock;
use tokio::sync::{Notify, watch};

use super::compact::{Algorithm, Compact};
use super::fetch::KeySource;
use super::jwks::{self, Judged, Key};

/// How often a token with a key that is not known may have the keys read again: whoever sends tokens
/// of their own invention makes the issuer no more work than that.
const UNKNOWN_KEY_EVERY: Duration = Duration::from_secs(30);
/// How long such a call waits for them.
const WAITS_FOR_KEYS: Duration = Duration::from_secs(3);
/// How often keys that could not be read are asked for again, unless they are read more often.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// What is accepted of an issuer.
#[derive(Clone, Debug)]
pub struct IssuerSettings {
    /// Its name here.
    pub name: String,
    /// What its tokens say that it is (`iss`).
    pub issuer: String,
    /// For whom its tokens may be (`aud`); one of them must be there.
    pub audiences: Vec<String>,
    /// How they may be signed.
    pub algorithms: Vec<Algorithm>,
    /// How far its clock may be ahead of ours.
    pub leeway: Duration,
    /// How often its keys are read.
    pub refresh: Duration,
    /// How long its keys count after the last time that they could be read.
    pub stale: Duration,
}

/// Keys, and when they were read.
struct Keys {
    all: Vec<Key>,
    read_at: Timestamp,
}

/// A token that holds.
pub(super) struct Held {
    pub(super) until: Timestamp,
    /// The mark of the key that signed it.
    pub(super) key: [u8; 32],
}

/// Why one does not.
pub(super) enum NotHeld {
    /// It is not proved to be of this issuer.
    Unproved,
    /// It is, and not good here or now.
    Unfit(&'static str),
}

/// An issuer.
pub struct Issuer {
    pub(super) settings: IssuerSettings,
    source: Arc<dyn KeySource>,
    clock: Arc<dyn Clock>,
    keys: ArcSwapOption<Keys>,
    /// Asks for the keys to be read before their time.
    hurry: Notify,
    /// When that was last, and how often the keys had been read before.
    hurried: Mutex<Option<(Timestamp, u64)>>,
    /// Counts the times that keys were read, or could not be.
    tries: watch::Sender<u64>,
}

impl Issuer {
    /// One whose keys are in `source`. They are read by [`Self::follow`].
    #[must_use]
    pub fn new(
        settings: IssuerSettings,
        source: Arc<dyn KeySource>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            settings,
            source,
            clock,
            keys: ArcSwapOption::empty(),
            hurry: Notify::new(),
            hurried: Mutex::default(),
            tries: watch::Sender::new(0),
        }
    }

    /// Follows the keys for as long as it is polled.
    pub(super) async fn follow(&self) {
        let mut failing = false;
        loop {
            let read = self.source.fetch().await;
            let read = read.and_then(|bytes| jwks::read(&bytes).map_err(|error| error.to_string()));
            let (name, refresh) = (self.settings.name.as_str(), self.settings.refresh);
            let next = match read {
                Ok(all) => {
                    self.take(all, failing);
                    failing = false;
                    refresh
                }
                Err(problem) => {
                    if !failing {
                        tracing::error!(
                            issuer = name,
                            problem,
                            "the keys of an issuer cannot be read: those that were read last count \
                             for {} s more",
                            self.settings.stale.as_secs()
                        );
                    }
                    failing = true;
                    refresh.min(TRY_AGAIN)
                }
            };
            self.tries.send_modify(|tries| *tries += 1);
            tokio::select! {
                () = self.clock.sleep(next) => {}
                () = self.hurry.notified() => {}
            }
        }
    }

    fn take(&self, all: Vec<Key>, failing: bool) {
        let before = self.keys.load();
        let changed = before.as_ref().is_none_or(|before| before.all != all);
        if changed || failing {
            let (issuer, keys) = (self.settings.name.as_str(), all.len());
            tracing::info!(issuer, keys, "the keys of an issuer were read");
        }
        let read_at = self.clock.now();
        self.keys.store(Some(Arc::new(Keys { all, read_at })));
    }

    /// The keys, as long as they count.
    fn keys(&self, now: Timestamp) -> Option<Arc<Keys>> {
        let keys = self.keys.load_full()?;
        let counts = self.settings.refresh.saturating_add(self.settings.stale);
        (now.since(keys.read_at) <= counts).then_some(keys)
    }

    /// Whether the key with this mark still counts.
    pub(super) fn has(&self, mark: &[u8; 32]) -> bool {
        let keys = self.keys(self.clock.now());
        keys.is_some_and(|keys| keys.all.iter().any(|key| key.mark == *mark))
    }

    /// Completes when keys may have changed.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.tries.subscribe()
    }

    /// Whether a token that says it is of this issuer holds.
    pub(super) async fn judge(&self, token: &Compact<'_>) -> Result<Held, NotHeld> {
        if !self.settings.algorithms.contains(&token.algorithm) {
            return Err(NotHeld::Unproved);
        }
        let key = match self.signed(token) {
            Judged::Signed(key) => key,
            Judged::Forged => return Err(NotHeld::Unproved),
            Judged::NoSuchKey => {
                self.read_again().await;
                match self.signed(token) {
                    Judged::Signed(key) => key,
                    Judged::Forged | Judged::NoSuchKey => return Err(NotHeld::Unproved),
                }
            }
        };
        let until = self.fits(&token.claims).map_err(NotHeld::Unfit)?;
        Ok(Held { until, key })
    }

    fn signed(&self, token: &Compact<'_>) -> Judged {
        let keys = self.keys(self.clock.now());
        keys.map_or(Judged::NoSuchKey, |keys| jwks::judge(&keys.all, token))
    }

    /// Has the keys read again, as often as that may be, and waits for it.
    async fn read_again(&self) {
        let mut tries = self.tries.subscribe();
        let before = *tries.borrow_and_update();
        {
            let now = self.clock.now();
            let mut hurried = self.hurried.lock().unwrap_or_else(PoisonError::into_inner);
            match *hurried {
                // They are being read for the first time.
                _ if before == 0 => {}
                // Somebody has asked already, and is not answered yet.
                Some((_, tries)) if tries == before => {}
                Some((at, _)) if now.since(at) < UNKNOWN_KEY_EVERY => return,
                _ => {
                    *hurried = Some((now, before));
                    self.hurry.notify_one();
                }
            }
        }
        tokio::select! {
            _changed = tries.changed() => {}
            () = self.clock.sleep(WAITS_FOR_KEYS) => {}
        }
    }

    /// What a proved token says of itself: for whom, from when, and until when.
    fn fits(&self, claims: &Map<String, Value>) -> Result<Timestamp, &'static str> {
        let now = self.clock.now();
        let until = time(claims, "exp")?.ok_or("it has no end (exp)")?;
        if until <= now {
            return Err("it has expired");
        }
        let latest = now.after(self.settings.leeway);
        for (claim, problem) in [
            ("nbf", "it is not valid yet (nbf)"),
            ("iat", "it is of the future (iat)"),
        ] {
            if time(claims, claim)?.is_some_and(|begins| begins > latest) {
                return Err(problem);
            }
        }
        let ours = |value: &Value| {
            let text = value.as_str();
            text.is_some_and(|text| self.settings.audiences.iter().any(|one| one == text))
        };
        let for_us = match claims.get("aud") {
            Some(Value::Array(all)) => all.iter().any(ours),
            Some(one) => ours(one),
            None => false,
        };
        if !for_us {
            return Err("it is not for this server (aud)");
        }
        Ok(until)
    }
}

/// A time in seconds since 1970. What is there and is none is an error, never as if it were not there.
fn time(claims: &Map<String, Value>, claim: &str) -> Result<Option<Timestamp>, &'static str> {
    let Some(value) = claims.get(claim) else {
        return Ok(None);
    };
    let whole = value.as_u64().map(|seconds| seconds.saturating_mul(1000));
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded just before"
    )]
    let part = || {
        let seconds = value
            .as_f64()
            .filter(|seconds| (0.0..1e12).contains(seconds))?;
        Some((seconds * 1000.0) as u64)
    };
    let millis = whole.or_else(part).ok_or("it has a time that is none")?;
    Ok(Some(Timestamp::from_millis(millis)))
}
