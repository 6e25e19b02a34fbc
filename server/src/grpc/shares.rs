//! What each principal holds of something that all have together, so that none takes it all.
//!
//! What must never enter: what it is, or what a refusal says.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sessionplane_core::domain::access::Principal;
use sessionplane_core::domain::ids::{PrincipalId, TenantId};

type Holder = (TenantId, PrincipalId);

/// So many at a time for each principal.
pub(crate) struct Shares {
    most: usize,
    /// Who holds nothing is not in it.
    held: Mutex<HashMap<Holder, usize>>,
}

/// One of a principal's; given back when dropped.
pub(crate) struct Share<'a> {
    of: &'a Shares,
    holder: Holder,
}

impl Shares {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            held: Mutex::default(),
        }
    }

    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// One more for a principal; nothing where it has as many as one may.
    pub(crate) fn take(&self, principal: &Principal) -> Option<Share<'_>> {
        let holder = (principal.tenant.clone(), principal.id.clone());
        let mut held = self.lock();
        let count = held.entry(holder.clone()).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        drop(held);
        Some(Share { of: self, holder })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Holder, usize>> {
        // Nothing under the lock can panic and leave it half changed.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut held = self.of.lock();
        if let Some(count) = held.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.holder);
            }
        }
    }
}
