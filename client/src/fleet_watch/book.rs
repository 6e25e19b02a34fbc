//! What a watcher was told of each session, and what of a stream is new to it. Pure; nothing here
//! waits.

use std::collections::{HashMap, HashSet, VecDeque};

use sessionplane_core::contract::fleet::SessionWatchItem;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionId;

use super::FleetWatchItem;
use crate::reconnect::Progress;

/// What was told.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// The last place in the stream; none before the first snapshot is complete.
    bookmark: Option<String>,
    /// The revision of each session that is wanted.
    told: HashMap<SessionId, u64>,
    /// The sessions of a snapshot that is under way: what was told before and is not among them is
    /// not wanted any more.
    snapshot: Option<HashSet<SessionId>>,
    known: bool,
}

impl Book {
    pub(super) fn bookmark(&self) -> Option<&str> {
        self.bookmark.as_deref()
    }

    /// Whether a server has told anything.
    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    /// A snapshot follows.
    pub(super) fn anew(&mut self) {
        self.snapshot = Some(HashSet::new());
    }

    /// Takes what came, adds what is new of it to `out`, and tells whether there was any.
    pub(super) fn admit(
        &mut self,
        item: SessionWatchItem,
        out: &mut VecDeque<FleetWatchItem>,
    ) -> Progress {
        self.known = true;
        match item {
            SessionWatchItem::BookmarkExpired => {
                // Asked for once more, it would be as old.
                self.bookmark = None;
                self.anew();
                Progress::Same
            }
            SessionWatchItem::Changed { sessions, gone } => self.changed(sessions, gone, out),
            SessionWatchItem::Bookmark(bookmark) => self.current(bookmark, out),
        }
    }

    fn changed(
        &mut self,
        mut sessions: Vec<SessionSummary>,
        mut gone: Vec<SessionId>,
        out: &mut VecDeque<FleetWatchItem>,
    ) -> Progress {
        sessions.retain(|session| self.is_new(session));
        gone.retain(|id| {
            if let Some(seen) = &mut self.snapshot {
                seen.remove(id);
            }
            self.told.remove(id).is_some()
        });
        if sessions.is_empty() && gone.is_empty() {
            return Progress::Same;
        }
        out.push_back(FleetWatchItem::Changed { sessions, gone });
        Progress::Further
    }

    /// Whether a session was not told so before. A snapshot may be of another server, whose numbers
    /// are others: there only the same number is the same session.
    fn is_new(&mut self, session: &SessionSummary) -> bool {
        let before = self.told.get(&session.id);
        let new = match &mut self.snapshot {
            Some(seen) => {
                seen.insert(session.id);
                before != Some(&session.revision)
            }
            None => before.is_none_or(|before| *before < session.revision),
        };
        if new {
            self.told.insert(session.id, session.revision);
        }
        new
    }

    fn current(&mut self, bookmark: String, out: &mut VecDeque<FleetWatchItem>) -> Progress {
        if let Some(seen) = self.snapshot.take() {
            let left = self.told.keys().filter(|id| !seen.contains(id));
            let gone: Vec<_> = left.copied().collect();
            if !gone.is_empty() {
                self.told.retain(|id, _| seen.contains(id));
                let sessions = Vec::new();
                out.push_back(FleetWatchItem::Changed { sessions, gone });
            }
        }
        let further = self.bookmark.as_ref() != Some(&bookmark);
        self.bookmark = Some(bookmark);
        out.push_back(FleetWatchItem::Current);
        if further {
            Progress::Further
        } else {
            Progress::Same
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::testing::session;

    fn changed(sessions: &[(u128, u64)], gone: &[u128]) -> SessionWatchItem {
        SessionWatchItem::Changed {
            sessions: sessions
                .iter()
                .map(|(id, revision)| SessionSummary {
                    revision: *revision,
                    ..session(*id)
                })
                .collect(),
            gone: gone.iter().map(|id| session(*id).id).collect(),
        }
    }

    fn bookmark(text: &str) -> SessionWatchItem {
        SessionWatchItem::Bookmark(text.to_owned())
    }

    /// What is told, as `+id@revision`, `-id` and `=`.
    fn play(book: &mut Book, items: impl IntoIterator<Item = SessionWatchItem>) -> Vec<String> {
        let mut out = VecDeque::new();
        for item in items {
            book.admit(item, &mut out);
        }
        let name = |id: &SessionId| {
            let known = (1..10).find(|number| session(*number).id == *id);
            known.unwrap().to_string()
        };
        let words = |item: FleetWatchItem| match item {
            FleetWatchItem::Changed { sessions, gone } => {
                let new = sessions.iter();
                let new = new.map(|it| format!("+{}@{}", name(&it.id), it.revision));
                let gone = gone.iter().map(|id| format!("-{}", name(id)));
                new.chain(gone).collect::<Vec<_>>()
            }
            FleetWatchItem::Current => vec!["=".to_owned()],
            FleetWatchItem::Reconnecting { .. } => unreachable!("nothing is lost here"),
        };
        let mut told: Vec<_> = out.into_iter().map(words).collect();
        for words in &mut told {
            words.sort();
        }
        told.concat()
    }

    #[test]
    fn c47_a_change_that_comes_again_is_told_once() {
        let mut book = Book::default();
        book.anew();
        let first = [changed(&[(1, 5), (2, 6)], &[]), bookmark("a")];
        assert_eq!(play(&mut book, first), ["+1@5", "+2@6", "="]);
        assert_eq!(book.bookmark(), Some("a"));
        let again = [
            changed(&[(1, 5), (2, 7)], &[]),
            changed(&[(2, 6)], &[3]),
            changed(&[], &[1]),
            changed(&[], &[1]),
            bookmark("b"),
        ];
        assert_eq!(play(&mut book, again), ["+2@7", "-1", "="]);
    }

    #[test]
    fn c47_after_a_bookmark_that_expired_only_what_differs_is_told() {
        let mut book = Book::default();
        book.anew();
        let first = [changed(&[(1, 5), (2, 6), (3, 7)], &[]), bookmark("a")];
        play(&mut book, first);
        let expired = [
            SessionWatchItem::BookmarkExpired,
            changed(&[(2, 6), (3, 2)], &[]),
            changed(&[(4, 1)], &[]),
            bookmark("b"),
        ];
        let told = play(&mut book, expired);
        assert_eq!(told, ["+3@2", "+4@1", "-1", "="]);
        assert_eq!(play(&mut book, [changed(&[(3, 2)], &[])]), [""; 0]);
    }

    #[test]
    fn c47_a_snapshot_that_was_cut_is_begun_again_and_loses_nothing() {
        let mut book = Book::default();
        book.anew();
        assert_eq!(play(&mut book, [changed(&[(1, 5), (2, 6)], &[])]).len(), 2);
        assert_eq!(book.bookmark(), None, "it is not complete");
        book.anew();
        let told = play(&mut book, [changed(&[(2, 6), (3, 1)], &[]), bookmark("a")]);
        assert_eq!(told, ["+3@1", "-1", "="]);
    }
}
