//! A place in a channel's ring that moves on as its reader reads. A reader never slows the writer:
//! when the place leaves the ring, the cursor says so and ends.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use sessionplane_core::domain::position::Position;
use tokio_stream::wrappers::WatchStream;

use super::channel::{Channel, Read};
use super::observation::Published;

/// Events that are taken from the ring at a time at most.
const BURST: usize = 64;
/// Bytes that they keep alive at most, unless the first alone has more. What a reader has taken and
/// not yet yielded is all that it keeps alive beyond the ring.
const BURST_BYTES: usize = 256 * 1024;

/// Why a cursor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Its place left the ring.
    Lapped,
    /// The channel was closed: this face lost the session.
    Closed,
}

/// A reader's place in a channel.
pub struct Cursor {
    channel: Arc<Channel>,
    /// The number of the last event that was taken from the ring.
    seq: u64,
    taken: VecDeque<Arc<Published>>,
    wake: WatchStream<u64>,
    ended: bool,
}

impl Cursor {
    /// A cursor that yields the events after `seq`.
    #[must_use]
    pub fn after(channel: Arc<Channel>, seq: u64) -> Self {
        let wake = WatchStream::from_changes(channel.subscribe());
        Self {
            channel,
            seq,
            taken: VecDeque::new(),
            wake,
            ended: false,
        }
    }

    /// Goes on after `seq`, also if its place had left the ring.
    pub(crate) fn go_on_after(&mut self, seq: u64) {
        self.seq = seq;
        self.taken.clear();
        self.ended = false;
    }

    /// The place of the last event that it has yielded, or where it began.
    #[must_use]
    pub fn position(&self) -> Position {
        Position {
            epoch: self.channel.epoch(),
            seq: self.seq - self.taken.len() as u64,
        }
    }

    /// The channel it reads.
    #[must_use]
    pub fn channel(&self) -> &Arc<Channel> {
        &self.channel
    }
}

impl Stream for Cursor {
    type Item = Result<Arc<Published>, Cut>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.taken.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            let (channel, taken) = (&this.channel, &mut this.taken);
            match channel.read_after(this.seq, BURST, BURST_BYTES, taken) {
                Read::Events(count) => this.seq += count,
                Read::Lapped => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(Cut::Lapped)));
                }
                Read::Closed => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(Cut::Closed)));
                }
                // The wake was subscribed before this read: what is published from here on makes
                // the next poll ready, so no publication is ever slept through.
                Read::CaughtUp => match Pin::new(&mut this.wake).poll_next(cx) {
                    Poll::Ready(Some(_)) => {}
                    Poll::Ready(None) => this.ended = true,
                    Poll::Pending => return Poll::Pending,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, poll};
    use sessionplane_core::domain::event::{Event, EventBody};
    use sessionplane_core::domain::fleet::metadata::Metadata;
    use sessionplane_core::domain::ids::{AgentName, SessionId, TenantId};
    use sessionplane_core::domain::session::SessionRecord;
    use sessionplane_core::domain::settings::ModelPolicy;
    use sessionplane_core::domain::time::Timestamp;

    use super::*;
    use crate::app::channels::Channels;
    use crate::app::config::AppConfig;

    fn channel() -> Arc<Channel> {
        let record = SessionRecord {
            id: SessionId::mint(Timestamp::from_millis(1), 1),
            tenant: TenantId::parse("t").unwrap(),
            metadata: Metadata::first(None, Timestamp::from_millis(1)),
            external_key: None,
            agent: AgentName::parse("a").unwrap(),
            created_at: Timestamp::from_millis(1),
            lineage: None,
        };
        Channels::new(AppConfig::default(), Arc::default()).unborn(
            &record,
            &ModelPolicy::default(),
            7,
        )
    }

    fn event(turn: u32) -> Event {
        Event {
            at: Timestamp::from_millis(2),
            run: None,
            body: EventBody::TurnStarted { turn },
        }
    }

    #[tokio::test]
    async fn c33_its_place_is_what_it_has_yielded_not_what_was_published() {
        let channel = channel();
        let mut cursor = Cursor::after(channel.clone(), 0);
        assert!(poll!(cursor.next()).is_pending());
        channel.publish([event(1), event(2)]);
        let place = |seq| Position { epoch: 7, seq };
        assert_eq!(
            (cursor.position(), channel.position()),
            (place(0), place(2))
        );
        assert!(matches!(cursor.next().await, Some(Ok(_))));
        assert_eq!(cursor.position(), place(1));
        assert!(matches!(cursor.next().await, Some(Ok(_))));
        assert_eq!(cursor.position(), place(2));
    }
}
