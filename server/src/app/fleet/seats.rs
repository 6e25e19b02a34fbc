//! Who watches the fleet, counted: so many in all, and so many of one principal, so that nobody takes
//! the places of all the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessionplane_core::domain::access::Principal;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::ids::{PrincipalId, TenantId};

type Holder = (TenantId, PrincipalId);

/// The places.
pub(crate) struct Seats {
    /// In all.
    most: usize,
    /// Of one principal.
    most_each: usize,
    /// Who holds none is not in it.
    taken: Mutex<HashMap<Holder, usize>>,
}

/// A place, given back when dropped.
pub(crate) struct Seat {
    seats: Arc<Seats>,
    holder: Holder,
}

impl Seats {
    pub(crate) fn new(most: usize, most_each: usize) -> Self {
        Self {
            most,
            most_each,
            taken: Mutex::default(),
        }
    }

    /// C60: one more for a principal, or which limit it has come to.
    pub(crate) fn take(self: &Arc<Self>, principal: &Principal) -> Result<Seat, CallError> {
        let holder = (principal.tenant.clone(), principal.id.clone());
        let mut taken = self.lock();
        let own = taken.get(&holder).copied().unwrap_or_default();
        if own >= self.most_each {
            let most = self.most_each;
            return Err(too_many(&format!(
                "you have {own} watches of sessions open, and limits.max_watches_per_principal is {most}"
            )));
        }
        let all: usize = taken.values().sum();
        if all >= self.most {
            let most = self.most;
            return Err(too_many(&format!(
                "{all} watches of sessions are open, and limits.max_watches is {most}"
            )));
        }
        taken.insert(holder.clone(), own + 1);
        drop(taken);
        Ok(Seat {
            seats: self.clone(),
            holder,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Holder, usize>> {
        // Nothing under the lock can panic and leave it half changed.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.lock();
        if let Some(count) = taken.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.holder);
            }
        }
    }
}

fn too_many(told: &str) -> CallError {
    let message = format!("{told}; end one, or ask with ListSessions");
    CallError::refused(Reason::LimitReached, message)
}
