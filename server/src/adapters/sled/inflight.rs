//! What keeps readers from seeing a round before it is synced: the values that the round replaces.
//!
//! Before a batch is applied, every key it touches goes into the map with the value it has now
//! (`None`: it is new). After the sync the map is emptied. A reader reads the store *first* and
//! asks the map *second*. That order is right, and only that order:
//!
//! - If the store's answer came from an unsynced batch, the key entered the map before the batch
//!   was applied, so before the read. When the reader asks, either the key is still there, and it
//!   takes the old value; or the map was emptied in between, and then the value it saw is synced.
//! - If the store's answer was the synced one, what the map holds is that same value, or a newer
//!   synced one that a later round is about to replace.
//! - The other way round, a key that is not yet in the map when it is asked may enter it, and its
//!   batch the store, before the store is read: the reader would show what is not durable.
//!
//! A scan that has to be of one moment holds the map still while it reads, see [`InFlight::hold`].
//!
//! Beside it, while somebody reads everything as of one round, the values that later rounds replaced:
//! see [`Kept`] and `snapshot`.
//! What is written, and by whom, must never enter.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ::sled::IVec;
use sessionplane_core::domain::ids::SessionId;
use tokio::sync::watch;

use super::keys::{Named, named};
use super::recent::Recent;
use super::snapshot::Kept;

/// Keys of the round in flight, with the values they had before it.
pub(super) type Replaced = BTreeMap<IVec, Option<IVec>>;

/// The map of the round in flight, empty between rounds; and what is kept for a snapshot.
#[derive(Default)]
pub(super) struct InFlight {
    state: RwLock<State>,
    /// Sessions that were read a short while ago, as readers may see them.
    pub(super) recent: Recent,
    /// Whether there is a snapshot, for who waits until there is none.
    pub(super) snapshots: watch::Sender<bool>,
}

/// What [`InFlight::hold`] keeps still.
#[derive(Default)]
pub(super) struct State {
    /// What the round in flight replaces.
    pub(super) replaced: Replaced,
    /// What rounds since the snapshot's replaced, while there is one.
    pub(super) kept: Option<Kept>,
}

impl InFlight {
    /// Hides a round that is about to be applied.
    pub(super) fn begin(&self, replaced: Replaced) {
        let mut state = self.change();
        if let Some(kept) = &mut state.kept {
            kept.keep(&replaced);
        }
        state.replaced = replaced;
    }

    /// Shows the round: it is synced. What was read of the sessions that it wrote goes in the same step.
    pub(super) fn clear(&self) {
        let mut state = self.change();
        let shown = std::mem::take(&mut state.replaced);
        self.recent.show(shown.keys().filter_map(|key| row_of(key)));
    }

    /// What a reader may see of a key under which the store held `seen` just now.
    pub(super) fn settled(&self, key: &[u8], seen: Option<IVec>) -> Option<IVec> {
        match self.hold().replaced.get(key) {
            Some(old) => old.clone(),
            None => seen,
        }
    }

    /// Keeps the map as it is while the guard lives: no round can be shown (or begun) meanwhile, so
    /// a scan under the guard shows each round as a whole or not at all. It holds the committer
    /// up: only for short scans.
    pub(super) fn hold(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// To change it, between scans.
    pub(super) fn change(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session whose record or head lies under a key.
fn row_of(key: &[u8]) -> Option<SessionId> {
    match named(key) {
        Some(Named::Session(id) | Named::Head(id)) => Some(id),
        _ => None,
    }
}

/// What a scan of `prefix`, from `first` on and before `end`, may show, given what the store held
/// there and what the round in flight replaces: new keys vanish, changed ones show their old value,
/// deleted ones reappear.
pub(super) fn settled_scan(
    prefix: &[u8],
    first: &[u8],
    end: Option<&[u8]>,
    seen: BTreeMap<IVec, IVec>,
    replaced: &Replaced,
) -> BTreeMap<IVec, IVec> {
    let mut settled = seen;
    let touched = replaced
        .range(IVec::from(first)..)
        .take_while(|(key, _)| key.starts_with(prefix))
        .take_while(|(key, _)| end.is_none_or(|end| key.as_ref() < end));
    for (key, old) in touched {
        match old {
            Some(value) => settled.insert(key.clone(), value.clone()),
            None => settled.remove(key),
        };
    }
    settled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> IVec {
        IVec::from(text.as_bytes())
    }

    #[test]
    fn c39_a_scan_during_a_round_shows_what_was_before_it() {
        let before = [("a1", "old"), ("a2", "old"), ("b1", "old")];
        let after = [("a1", "new"), ("a3", "new"), ("b1", "old")];
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<IVec, IVec> {
            pairs.iter().map(|(k, v)| (value(k), value(v))).collect()
        };
        let replaced = Replaced::from([
            (value("a1"), Some(value("old"))),
            (value("a2"), Some(value("old"))),
            (value("a3"), None),
        ]);
        let whole = settled_scan(b"", b"", None, map(&after), &replaced);
        assert_eq!(whole, map(&before));
        let only_a = settled_scan(b"a", b"a", None, map(&after[..2]), &replaced);
        assert_eq!(only_a, map(&before[..2]));
        let first_page = settled_scan(b"a", b"a", Some(b"a2"), map(&after[..1]), &replaced);
        assert_eq!(first_page, map(&before[..1]));
        let second_page = settled_scan(b"a", b"a2", None, map(&after[1..2]), &replaced);
        assert_eq!(second_page, map(&before[1..2]));
    }

    #[test]
    fn c39_a_read_takes_the_old_value_until_the_round_is_shown() {
        let inflight = InFlight::default();
        inflight.begin(Replaced::from([(value("k"), None)]));
        assert_eq!(inflight.settled(b"k", Some(value("new"))), None);
        assert_eq!(
            inflight.settled(b"other", Some(value("v"))),
            Some(value("v"))
        );
        inflight.clear();
        assert_eq!(
            inflight.settled(b"k", Some(value("new"))),
            Some(value("new"))
        );
    }
}
