//! Which sessions are not whole, told while everything is gone through. It remembers some dozens of
//! bytes for each session that is not whole, branched off another, or lacks an index; nothing for
//! each record.

use std::collections::BTreeSet;

use sessionplane_core::domain::ids::SessionId;

use super::lookup::parsed;
use crate::adapters::sled::convert::HeadRow;
use crate::adapters::sled::keys::Key;

/// What is known of sessions.
#[derive(Default, Debug)]
pub(super) struct Sessions {
    not_whole: BTreeSet<SessionId>,
    /// A session, and one that branched off it.
    branches: Vec<(SessionId, SessionId)>,
    unled: BTreeSet<(Key, SessionId)>,
    newest_token: u64,
    lost_track: bool,
}

/// What is known at the end.
#[derive(Debug)]
pub(super) struct Known {
    /// Sessions that are not whole, and all that branched off them.
    pub(super) not_whole: BTreeSet<SessionId>,
    /// Keys of indexes that do not lead to the session that is called so.
    pub(super) unled: BTreeSet<(Key, SessionId)>,
    /// The newest token of any head that can be read; 0 without one.
    pub(super) newest_token: u64,
    /// Something could not be read at all, so that a session may lack what nobody missed.
    pub(super) lost_track: bool,
}

impl Sessions {
    pub(super) fn not_whole(&mut self, id: SessionId) {
        self.not_whole.insert(id);
    }

    pub(super) fn branched(&mut self, child: SessionId, parent: SessionId) {
        self.branches.push((parent, child));
    }

    pub(super) fn unled(&mut self, index: Key, session: SessionId) {
        self.unled.insert((index, session));
    }

    pub(super) fn token_of(&mut self, key: &[u8], head: &[u8]) {
        if let Ok(row) = parsed::<HeadRow>(key, head) {
            self.newest_token = self.newest_token.max(row.head.token.0);
        }
    }

    pub(super) fn lost_track(&mut self) {
        self.lost_track = true;
    }

    /// What branched off a session cannot be read without it.
    pub(super) fn known(mut self) -> Known {
        self.branches.sort_unstable();
        let mut next: Vec<SessionId> = self.not_whole.iter().copied().collect();
        while let Some(parent) = next.pop() {
            let first = self.branches.partition_point(|(of, _)| *of < parent);
            let branches = self.branches[first..].iter();
            for (_, child) in branches.take_while(|(of, _)| *of == parent) {
                if self.not_whole.insert(*child) {
                    next.push(*child);
                }
            }
        }
        Known {
            not_whole: self.not_whole,
            unled: self.unled,
            newest_token: self.newest_token,
            lost_track: self.lost_track,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_branched_off_at_any_distance_is_no_more_whole_than_what_it_branched_off() {
        let id = |n| SessionId::from_bytes([n; 16]);
        let mut sessions = Sessions::default();
        // In no order of their ids, with one that goes in a circle, as only damage makes it.
        for (child, parent) in [(1, 5), (5, 3), (9, 5), (3, 8), (2, 4), (7, 2), (8, 9)] {
            sessions.branched(id(child), id(parent));
        }
        sessions.not_whole(id(3));
        let known = sessions.known();
        assert_eq!(known.not_whole, [1, 3, 5, 8, 9].map(id).into());
    }
}
