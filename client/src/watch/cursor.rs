//! How far an observer has come, and what of a stream is new to it. Pure; nothing here waits.

use std::collections::VecDeque;

use sessionplane_core::contract::{EventFilter, EventItem, EventsRequest};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::event::{EventBody, EventEnvelope};
use sessionplane_core::domain::ids::{EntryId, SessionId, SessionRef};
use sessionplane_core::domain::position::Position;

use super::WatchItem;
use crate::convert::observation::Received;
use crate::reconnect::Progress;

/// How far an observer has come.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// The session, once the server resolved it: a rename does not lose it.
    session: Option<SessionId>,
    position: Option<Position>,
    /// The incarnation of the last subscription.
    epoch: Option<u64>,
    last_entry: Option<EntryId>,
    /// The present stream sends all entries again, and that was told.
    starts_over: bool,
}

impl Cursor {
    pub(super) fn new(position: Option<Position>, last_entry: Option<EntryId>) -> Self {
        Self {
            session: None,
            epoch: position.map(|position| position.epoch),
            position,
            last_entry,
            starts_over: false,
        }
    }

    pub(super) fn position(&self) -> Option<Position> {
        self.position
    }

    pub(super) fn last_entry(&self) -> Option<EntryId> {
        self.last_entry
    }

    /// Whether the session was subscribed to before.
    pub(super) fn is_known(&self) -> bool {
        self.session.is_some()
    }

    /// The one call that goes on from here.
    pub(super) fn request(&self, named: &SessionRef, filter: &EventFilter) -> EventsRequest {
        EventsRequest {
            session: self.session.map_or_else(|| named.clone(), SessionRef::Id),
            resume: self.position,
            entries_since: self.last_entry.map(|entry| entry.to_string()),
            filter: filter.clone(),
        }
    }

    /// Takes what came, adds what is new of it to `out`, and tells whether the observer came
    /// further by it: an event or an entry that it had not seen, or a sign that nothing happened.
    pub(super) fn admit(&mut self, received: Received, out: &mut VecDeque<WatchItem>) -> Progress {
        match received {
            Received::Unknown {
                event_type,
                position,
            } => {
                if !self.advance(position) {
                    return Progress::Same;
                }
                out.push_back(WatchItem::Unknown {
                    event_type,
                    position,
                });
                Progress::Further
            }
            Received::Item(item) => self.item(item, out),
        }
    }

    fn item(&mut self, item: EventItem, out: &mut VecDeque<WatchItem>) -> Progress {
        match item {
            EventItem::Subscribed {
                session,
                epoch,
                resumed,
                gap,
                ..
            } => {
                self.subscribed((session, epoch), resumed, gap, out);
                Progress::Same
            }
            EventItem::Entries {
                entries,
                full_backfill,
            } => self.entries(entries, full_backfill, out),
            EventItem::Snapshot(state) => {
                self.position = Some(state.position);
                out.push_back(WatchItem::Snapshot(state));
                Progress::Same
            }
            EventItem::Event(envelope) => self.event(envelope, out),
            EventItem::Heartbeat(position) => {
                self.advance(position);
                out.push_back(WatchItem::Heartbeat(position));
                Progress::Further
            }
        }
    }

    fn subscribed(
        &mut self,
        (session, epoch): (SessionId, u64),
        resumed: bool,
        gap: bool,
        out: &mut VecDeque<WatchItem>,
    ) {
        self.starts_over = false;
        if self.session.replace(session).is_some() {
            out.push_back(WatchItem::Reconnected { resumed });
        } else {
            out.push_back(WatchItem::Subscribed { session, epoch });
        }
        if let Some(from) = self.epoch.replace(epoch).filter(|from| *from != epoch) {
            out.push_back(WatchItem::EpochChanged { from, to: epoch });
        }
        if gap {
            out.push_back(WatchItem::Gap);
        }
        if !resumed {
            // Asking for the lost place once more would tell of the same gap once more.
            self.position = None;
        }
    }

    fn entries(
        &mut self,
        mut entries: Vec<Entry>,
        full_backfill: bool,
        out: &mut VecDeque<WatchItem>,
    ) -> Progress {
        // A server may say it in every page; what a page told is not to be forgotten with the next.
        let full_backfill = full_backfill && !std::mem::replace(&mut self.starts_over, true);
        if full_backfill {
            self.last_entry = None;
        }
        entries.retain(|entry| self.is_new(entry.id));
        if let Some(last) = entries.last() {
            self.last_entry = Some(last.id);
        }
        let new = !entries.is_empty();
        if full_backfill || new {
            out.push_back(WatchItem::Entries {
                entries,
                full_backfill,
            });
        }
        if new {
            Progress::Further
        } else {
            Progress::Same
        }
    }

    fn event(&mut self, envelope: EventEnvelope, out: &mut VecDeque<WatchItem>) -> Progress {
        let place = Position {
            epoch: envelope.epoch,
            seq: envelope.seq,
        };
        if !self.advance(place) {
            return Progress::Same;
        }
        if let EventBody::EntryAppended { entry } = &envelope.event.body {
            if !self.is_new(entry.id) {
                return Progress::Further;
            }
            self.last_entry = Some(entry.id);
        }
        out.push_back(WatchItem::Event(envelope));
        Progress::Further
    }

    /// Moves on to a place, unless it was passed before.
    fn advance(&mut self, place: Position) -> bool {
        let passed = self
            .position
            .is_some_and(|at| at.epoch == place.epoch && at.seq >= place.seq);
        if !passed {
            self.position = Some(place);
        }
        !passed
    }

    fn is_new(&self, entry: EntryId) -> bool {
        self.last_entry
            .is_none_or(|last| last.session != entry.session || last.seq < entry.seq)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sessionplane_core::domain::access::PrincipalKind;
    use sessionplane_core::domain::entry::{EntryBody, PathMarks};
    use sessionplane_core::domain::event::Event;
    use sessionplane_core::domain::ids::{PrincipalId, RunId};
    use sessionplane_core::domain::provenance::{Channel, Digest, Origin, Trust};
    use sessionplane_core::domain::time::Timestamp;

    use super::*;

    fn session() -> SessionId {
        SessionId::mint(Timestamp::from_millis(1), 1)
    }

    fn entry(seq: u64) -> Entry {
        Entry {
            id: EntryId {
                session: session(),
                seq,
            },
            parent: None,
            run: Some(RunId::mint(Timestamp::from_millis(1), 2)),
            path: PathMarks::default(),
            at: Timestamp::from_millis(5),
            body: EntryBody::User {
                text: Arc::from("hi"),
                omitted_bytes: 0,
                origin: Origin {
                    principal: PrincipalId::parse("ada").unwrap(),
                    kind: PrincipalKind::Human,
                    channel: Channel::Invoke,
                    trust: Trust::Typed,
                    digest: Digest([0; 32]),
                    request_id: None,
                },
                input: None,
                data: None,
            },
        }
    }

    fn event(epoch: u64, seq: u64, body: EventBody) -> Received {
        Received::Item(EventItem::Event(EventEnvelope {
            session: session(),
            epoch,
            seq,
            event: Event {
                at: Timestamp::from_millis(5),
                run: None,
                body,
            },
        }))
    }

    fn turn(epoch: u64, seq: u64) -> Received {
        event(epoch, seq, EventBody::TurnStarted { turn: 1 })
    }

    fn subscribed(epoch: u64, resumed: bool, gap: bool) -> Received {
        Received::Item(EventItem::Subscribed {
            session: session(),
            epoch,
            resumed,
            gap,
            heartbeat_interval: None,
        })
    }

    fn page(seqs: impl IntoIterator<Item = u64>, full_backfill: bool) -> Received {
        Received::Item(EventItem::Entries {
            entries: seqs.into_iter().map(entry).collect(),
            full_backfill,
        })
    }

    fn play(cursor: &mut Cursor, all: impl IntoIterator<Item = Received>) -> Vec<WatchItem> {
        let mut out = VecDeque::new();
        for received in all {
            cursor.admit(received, &mut out);
        }
        out.into()
    }

    fn seqs(items: &[WatchItem]) -> Vec<u64> {
        let seq = |item: &WatchItem| match item {
            WatchItem::Event(envelope) => Some(envelope.seq),
            _ => None,
        };
        items.iter().filter_map(seq).collect()
    }

    #[test]
    fn only_what_was_not_known_before_is_progress() {
        let (mut cursor, mut out) = (Cursor::default(), VecDeque::new());
        let heartbeat = Received::Item(EventItem::Heartbeat(Position { epoch: 3, seq: 2 }));
        for (received, expected) in [
            (subscribed(3, false, false), Progress::Same),
            (page(1..=3, false), Progress::Further),
            (page(2..=3, false), Progress::Same),
            (turn(3, 1), Progress::Further),
            (turn(3, 1), Progress::Same),
            (heartbeat, Progress::Further),
        ] {
            assert_eq!(cursor.admit(received, &mut out), expected, "{out:?}");
        }
    }

    #[test]
    fn c32_an_event_that_comes_again_is_told_once() {
        let mut cursor = Cursor::default();
        play(
            &mut cursor,
            [subscribed(3, false, false), turn(3, 1), turn(3, 2)],
        );
        let again = play(
            &mut cursor,
            [subscribed(3, true, false), turn(3, 2), turn(3, 3)],
        );
        assert_eq!(seqs(&again), [3]);
        assert_eq!(again[0], WatchItem::Reconnected { resumed: true });
    }

    #[test]
    fn c31_one_call_goes_on_from_the_last_place_and_the_last_entry() {
        let mut cursor = Cursor::default();
        play(
            &mut cursor,
            [
                subscribed(3, false, false),
                page(1..=4, false),
                event(
                    3,
                    7,
                    EventBody::EntryAppended {
                        entry: Box::new(entry(5)),
                    },
                ),
            ],
        );
        let name = SessionRef::Id(session());
        let request = cursor.request(&name, &EventFilter::default());
        assert_eq!(request.resume, Some(Position { epoch: 3, seq: 7 }));
        assert_eq!(request.entries_since, Some(entry(5).id.to_string()));
    }

    #[test]
    fn c31_a_gap_and_a_new_epoch_are_items_and_told_once() {
        let mut cursor = Cursor::default();
        play(&mut cursor, [subscribed(3, false, false), turn(3, 9)]);
        let name = SessionRef::Id(session());
        let items = play(&mut cursor, [subscribed(4, false, true)]);
        assert_eq!(
            items,
            [
                WatchItem::Reconnected { resumed: false },
                WatchItem::EpochChanged { from: 3, to: 4 },
                WatchItem::Gap,
            ]
        );
        assert_eq!(cursor.request(&name, &EventFilter::default()).resume, None);
        assert_eq!(seqs(&play(&mut cursor, [turn(4, 1)])), [1]);
    }

    #[test]
    fn c29_entries_are_told_once_unless_all_are_sent_again() {
        let mut cursor = Cursor::default();
        play(
            &mut cursor,
            [subscribed(3, false, false), page(1..=3, false)],
        );
        let more = play(&mut cursor, [page(2..=4, false)]);
        assert_eq!(
            more,
            [WatchItem::Entries {
                entries: vec![entry(4)],
                full_backfill: false,
            }]
        );
        assert_eq!(play(&mut cursor, [page(1..=4, false)]), []);
        let all = play(&mut cursor, [page(1..=2, true)]);
        assert!(matches!(
            &all[..],
            [WatchItem::Entries { entries, full_backfill: true }] if entries.len() == 2
        ));
    }

    #[test]
    fn c29_to_forget_what_was_read_is_told_once_and_not_with_every_page() {
        let mut cursor = Cursor::default();
        let told = |items: &[WatchItem]| -> Vec<(usize, bool)> {
            let page = |item: &WatchItem| match item {
                WatchItem::Entries {
                    entries,
                    full_backfill,
                } => Some((entries.len(), *full_backfill)),
                _ => None,
            };
            items.iter().filter_map(page).collect()
        };
        let items = play(
            &mut cursor,
            [
                subscribed(3, false, false),
                page(1..=256, true),
                page(257..=512, true),
                page(500..=520, true),
            ],
        );
        assert_eq!(told(&items), [(256, true), (256, false), (8, false)]);
        let anew = play(&mut cursor, [subscribed(4, false, true), page(1..=4, true)]);
        assert_eq!(
            told(&anew),
            [(4, true)],
            "another stream, another beginning"
        );
    }

    #[test]
    fn c33_a_heartbeat_moves_the_place_to_resume_from() {
        let mut cursor = Cursor::default();
        let at = Position { epoch: 3, seq: 8 };
        play(
            &mut cursor,
            [
                subscribed(3, false, false),
                Received::Item(EventItem::Heartbeat(at)),
            ],
        );
        assert_eq!(cursor.position(), Some(at));
    }

    #[test]
    fn c34_an_event_of_an_unknown_type_is_surfaced_and_passed() {
        let mut cursor = Cursor::default();
        let unknown = Received::Unknown {
            event_type: "weather_changed".to_owned(),
            position: Position { epoch: 3, seq: 1 },
        };
        let items = play(
            &mut cursor,
            [subscribed(3, false, false), unknown, turn(3, 2)],
        );
        assert!(
            matches!(&items[1], WatchItem::Unknown { event_type, .. } if event_type == "weather_changed")
        );
        assert_eq!(seqs(&items), [2]);
    }
}
