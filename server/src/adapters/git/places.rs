//! How many packs may be open at a time, for all readers of the process together: each costs two
//! descriptors, and those are the connections' too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::GitError;
use crate::adapters::boundary::Refusal;

/// How often who waits looks whether anybody still waits for it.
const LOOK: Duration = Duration::from_millis(50);

/// Places that are taken and given back.
#[derive(Debug)]
pub(super) struct Places {
    free: Mutex<usize>,
    given_back: Condvar,
}

/// Places that somebody has, until it is dropped.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    places: &'a Places,
    count: usize,
}

impl Places {
    pub(super) const fn new(free: usize) -> Self {
        Self {
            free: Mutex::new(free),
            given_back: Condvar::new(),
        }
    }

    /// Takes so many places at once, or waits for them. All at once: who has some never waits for
    /// more, so that no two wait for each other. More than there are is never to be asked for.
    pub(super) fn take(&self, count: usize, stop: &AtomicBool) -> Result<Taken<'_>, GitError> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free < count {
            if stop.load(Ordering::Relaxed) {
                return Err(Refusal::Stopped.into());
            }
            let waited = self.given_back.wait_timeout(free, LOOK);
            free = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *free -= count;
        drop(free);
        Ok(Taken {
            places: self,
            count,
        })
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut free = self
            .places
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *free += self.count;
        drop(free);
        self.places.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;
    use std::thread;

    use super::*;

    static RUNNING: AtomicBool = AtomicBool::new(false);

    #[test]
    fn b48_readers_of_many_packs_wait_for_each_other_and_no_place_is_lost() {
        let places = Places::new(4);
        let three = places.take(3, &RUNNING).expect("free");
        let one = places.take(1, &RUNNING).expect("free");
        let (done, waited) = sync_channel(1);
        thread::scope(|scope| {
            scope.spawn(|| {
                let taken = places.take(4, &RUNNING);
                done.send(taken.is_ok()).expect("heard");
            });
            drop(one);
            assert!(waited.try_recv().is_err(), "it took what others have");
            drop(three);
            let took = waited.recv_timeout(Duration::from_secs(20));
            assert_eq!(took, Ok(true));
        });
        assert!(places.take(4, &RUNNING).is_ok(), "all are given back");
    }

    #[test]
    fn b48_who_is_no_longer_waited_for_waits_no_longer() {
        let places = Places::new(1);
        let _one = places.take(1, &RUNNING);
        let refused = places.take(1, &AtomicBool::new(true)).err();
        assert_eq!(refused, Some(GitError::Refused(Refusal::Stopped)));
    }
}
