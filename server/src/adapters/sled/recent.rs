//! Sessions that were read a short while ago, as they were decoded: a page that is read again, as every
//! screen of sessions does, finds them here. Reading one anew means two ways through the tree and two
//! messages to decode, which was half of the time of a page.
//!
//! What is here is what a reader may see, at any time:
//!
//! - A round that is shown takes its sessions out in the same step (see `InFlight::clear`). Until then
//!   readers see what was before the round, and so does who looks here.
//! - What a reader read while a round was shown is not kept: it may be of before or of after it, or
//!   half of each. So who does not find a session here is told how many rounds were shown by then.
//!
//! There are two halves, and a session that is asked for is in the younger one. Once that is full it
//! becomes the older one, and what that held goes: what nobody asked for in the meantime.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::session::StoredSession;

/// Bytes of a half, as [`Kept::bytes`] counts them.
const HALF_BYTES: usize = 8 * 1024 * 1024;
/// What a session takes beside its texts.
const EACH_BYTES: usize = 256 + size_of::<StoredSession>();

/// How many rounds were shown when a reading began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reading(u64);

/// The sessions.
#[derive(Default)]
pub(super) struct Recent {
    halves: Mutex<Halves>,
}

#[derive(Default)]
struct Halves {
    shown: u64,
    young: Half,
    old: HashMap<SessionId, Kept>,
}

#[derive(Default)]
struct Half {
    sessions: HashMap<SessionId, Kept>,
    bytes: usize,
}

struct Kept {
    session: Arc<StoredSession>,
    bytes: usize,
}

impl Halves {
    fn insert(&mut self, id: SessionId, kept: Kept) {
        if self.young.bytes + kept.bytes > HALF_BYTES {
            self.old = std::mem::take(&mut self.young).sessions;
        }
        self.young.bytes += kept.bytes;
        if let Some(former) = self.young.sessions.insert(id, kept) {
            self.young.bytes -= former.bytes;
        }
    }

    fn remove(&mut self, id: SessionId) {
        if let Some(former) = self.young.sessions.remove(&id) {
            self.young.bytes -= former.bytes;
        }
        self.old.remove(&id);
    }
}

impl Recent {
    /// A session; or, if it is not here, what its reader has to show to have it kept.
    pub(super) fn get(&self, id: SessionId) -> Result<Arc<StoredSession>, Reading> {
        let mut halves = self.lock();
        if let Some(kept) = halves.young.sessions.get(&id) {
            return Ok(Arc::clone(&kept.session));
        }
        let Some(kept) = halves.old.remove(&id) else {
            return Err(Reading(halves.shown));
        };
        let session = Arc::clone(&kept.session);
        halves.insert(id, kept);
        Ok(session)
    }

    /// Keeps what was read, unless a round was shown meanwhile. `texts` is how long its rows are.
    pub(super) fn keep(&self, reading: Reading, session: &Arc<StoredSession>, texts: usize) {
        let mut halves = self.lock();
        if halves.shown == reading.0 {
            let kept = Kept {
                session: Arc::clone(session),
                bytes: EACH_BYTES + texts,
            };
            halves.insert(session.record.id, kept);
        }
    }

    /// A round is shown that wrote rows of these sessions, or of none.
    pub(super) fn show(&self, written: impl Iterator<Item = SessionId>) {
        let mut halves = self.lock();
        halves.shown += 1;
        for id in written {
            halves.remove(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Halves> {
        self.halves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::fleet::metadata::Metadata;
    use sessionplane_core::domain::session::{SessionHead, SessionRecord};
    use sessionplane_core::domain::time::Timestamp;

    use super::*;

    fn id(n: u128) -> SessionId {
        SessionId::from_bytes(n.to_be_bytes())
    }

    fn session(n: u128) -> Arc<StoredSession> {
        let at = Timestamp::from_millis(1);
        let record = SessionRecord {
            id: id(n),
            tenant: "acme".parse().unwrap(),
            metadata: Metadata::first(None, at),
            external_key: None,
            agent: "coder".parse().unwrap(),
            created_at: at,
            lineage: None,
        };
        let head = SessionHead::empty();
        Arc::new(StoredSession { record, head })
    }

    fn kept(recent: &Recent, n: u128, texts: usize) {
        let reading = recent.get(id(n)).unwrap_err();
        recent.keep(reading, &session(n), texts);
    }

    #[test]
    fn c39_what_was_read_while_a_round_was_shown_is_not_kept() {
        let recent = Recent::default();
        let reading = recent.get(id(1)).unwrap_err();
        recent.show([id(2)].into_iter());
        recent.keep(reading, &session(1), 0);
        assert!(recent.get(id(1)).is_err());
    }

    #[test]
    fn c39_a_round_takes_out_what_it_wrote_and_nothing_else() {
        let recent = Recent::default();
        for n in [1, 2] {
            kept(&recent, n, 0);
        }
        // One of the older half and one of the younger.
        kept(&recent, 3, HALF_BYTES - EACH_BYTES);
        assert!(recent.get(id(2)).is_ok());
        recent.show([id(1), id(3)].into_iter());
        let there = [1, 2, 3].map(|n| recent.get(id(n)).is_ok());
        assert_eq!(there, [false, true, false]);
    }

    #[test]
    fn what_nobody_asks_for_goes_and_what_somebody_does_stays() {
        let recent = Recent::default();
        let texts = HALF_BYTES / 10;
        kept(&recent, 0, texts);
        kept(&recent, 1, texts);
        for n in 2..100 {
            kept(&recent, n, texts);
            assert!(recent.get(id(1)).is_ok(), "{n}");
        }
        assert!(recent.get(id(0)).is_err());
        let halves = recent.lock();
        assert!(halves.young.sessions.len() + halves.old.len() <= 20);
        let counted: usize = halves.young.sessions.values().map(|it| it.bytes).sum();
        assert_eq!(counted, halves.young.bytes);
    }
}
