//! Where a conversation does not go on from the entry that was shown before. Values only.

use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::ids::EntryId;

/// The entry that was shown last.
#[derive(Debug, Default)]
pub(crate) struct Thread(Option<EntryId>);

impl Thread {
    /// Entries are shown from this one on, which is itself not shown.
    pub(crate) fn after(entry: Option<EntryId>) -> Self {
        Self(entry)
    }

    /// The entry that was shown last, if any was.
    pub(super) fn last(&self) -> Option<EntryId> {
        self.0
    }

    /// The next entry to be shown; a line to show before it, if it does not follow the last one. Nothing
    /// for one that was shown before.
    pub(crate) fn turn(&mut self, entry: &Entry) -> Option<String> {
        if self.0.is_some_and(|last| entry.id.seq <= last.seq) {
            return None;
        }
        let last = self.0.replace(entry.id)?;
        match entry.parent {
            Some(parent) if parent == last => None,
            Some(parent) => Some(format!("-- after entry {} --", parent.seq)),
            None => Some("-- from the beginning --".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::entry::{EntryBody, PathMarks};
    use sessionplane_core::domain::time::Timestamp;

    use super::*;

    fn id(seq: u64) -> EntryId {
        let id = format!("01K00000000000000000000001-{seq}");
        id.parse().unwrap()
    }

    fn entry(seq: u64, parent: Option<u64>) -> Entry {
        Entry {
            id: id(seq),
            parent: parent.map(id),
            run: None,
            path: PathMarks::default(),
            at: Timestamp::default(),
            body: EntryBody::Notice {
                code: "n".to_owned(),
                text: String::new(),
            },
        }
    }

    #[test]
    fn c24_each_entry_that_does_not_follow_the_last_one_says_which_it_follows() {
        let mut thread = Thread::default();
        let mut turn = |seq, parent| thread.turn(&entry(seq, parent));
        assert_eq!(turn(3, Some(2)), None, "what came before was not shown");
        assert_eq!(turn(4, Some(3)), None);
        let after = |seq: u64| Some(format!("-- after entry {seq} --"));
        assert_eq!(turn(5, Some(2)), after(2));
        assert_eq!(turn(6, Some(5)), None);
        assert_eq!(turn(4, Some(3)), None, "told again");
        assert_eq!(turn(7, None), Some("-- from the beginning --".to_owned()));
        let mut thread = Thread::after(Some(id(4)));
        assert_eq!(thread.turn(&entry(5, Some(1))), after(1));
    }
}
