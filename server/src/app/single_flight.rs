//! One call at a time per request binding: two concurrent calls with one request id meet here, and
//! the second finds what the first has bound.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sessionplane_core::domain::binding::BindingKey;
use tokio::sync::OwnedMutexGuard;

type Lock = Arc<tokio::sync::Mutex<()>>;

/// The bindings that are being decided.
#[derive(Default)]
pub struct SingleFlight {
    locks: Arc<Mutex<HashMap<BindingKey, Lock>>>,
}

/// Held while a call decides its binding. It travels with the call into the session's task, so that
/// a caller who gives up and repeats meets its own earlier attempt, not a half-done admission.
pub struct Flight {
    key: BindingKey,
    locks: Arc<Mutex<HashMap<BindingKey, Lock>>>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl SingleFlight {
    /// Waits until no other call decides this binding. Dropping the future gives up the place.
    pub async fn enter(&self, key: BindingKey) -> Flight {
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            locks.entry(key.clone()).or_default().clone()
        };
        // Made before waiting, so that a cancelled wait cleans up as well.
        let mut flight = Flight {
            key,
            locks: self.locks.clone(),
            guard: None,
        };
        flight.guard = Some(lock.lock_owned().await);
        flight
    }

    /// How many bindings are being decided or waited for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        self.guard = None;
        // Under the table's lock nobody can join: the table's own reference is the last one
        // exactly when no other call waits.
        if locks
            .get(&self.key)
            .is_some_and(|lock| Arc::strong_count(lock) == 1)
        {
            locks.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessionplane_core::domain::binding::Method;
    use sessionplane_core::domain::ids::{PrincipalId, RequestId, TenantId};

    fn key(id: &str) -> BindingKey {
        BindingKey {
            tenant: TenantId::parse("t").unwrap(),
            principal: PrincipalId::parse("p").unwrap(),
            method: Method::Invoke,
            request_id: RequestId::parse(id).unwrap(),
        }
    }

    #[tokio::test]
    async fn the_second_call_waits_for_the_first_and_nothing_is_left_behind() {
        let flights = SingleFlight::default();
        let first = flights.enter(key("a")).await;
        let mut second = Box::pin(flights.enter(key("a")));
        let other = flights.enter(key("b")).await;
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(first);
        let second = second.await;
        drop((second, other));
        assert!(flights.is_empty());
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_waiting_leaves_nothing_behind() {
        let flights = SingleFlight::default();
        let first = flights.enter(key("a")).await;
        let mut second = Box::pin(flights.enter(key("a")));
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(second);
        drop(first);
        assert!(flights.is_empty());
    }
}
