//! Decides by the policies that are loaded. Never across tenants, whatever they say.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use cedar_policy::{AuthorizationError, Authorizer as Cedar, Decision as Decided};
use sessionplane_core::domain::access::{Action, Decision, PolicyContext, Principal, Resource};
use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::ports::authorizer::Authorizer;
use tokio::sync::watch;

use super::entities::{Owner, Question};
use super::mentions::Key;
use super::set::{self, PolicyProblem};
use super::slices::{Slice, Slices};
use super::source::{PolicyError, PolicySource};
use super::words::{self, Kind};

/// Decisions that are kept at most; then they are made anew.
const MAX_KEPT: usize = 8192;
/// A question of more bytes is decided each time that it is put.
const MAX_KEY_BYTES: usize = 1024;

/// Decides by policies.
pub struct CedarAuthorizer {
    owner: Owner,
    current: ArcSwap<Loaded>,
    versions: watch::Sender<u64>,
}

/// Policies, and what they decided so far.
struct Loaded {
    slices: Slices,
    count: usize,
    kept: Mutex<HashMap<Key, Decision>>,
}

impl Loaded {
    fn of(sources: &[PolicySource]) -> Result<(Self, Vec<PolicyProblem>), PolicyError> {
        let checked = set::check(sources).map_err(PolicyError::Wrong)?;
        let loaded = Self {
            slices: Slices::of(&checked.policies),
            count: checked.policies.len(),
            kept: Mutex::default(),
        };
        Ok((loaded, checked.doubts))
    }
}

impl CedarAuthorizer {
    /// Decides by these policies, on a server of `owner`, whose tenant is `tenant`.
    ///
    /// # Errors
    /// When anything is wrong with one of them.
    pub fn open(
        (tenant, owner): (TenantId, PrincipalId),
        sources: &[PolicySource],
    ) -> Result<Self, PolicyError> {
        let (loaded, doubts) = Loaded::of(sources)?;
        tell_doubts(&doubts);
        Ok(Self {
            owner: Owner { tenant, id: owner },
            current: ArcSwap::from_pointee(loaded),
            versions: watch::Sender::new(1),
        })
    }

    /// Decides by these from now on, and by nothing of what it decided by before.
    ///
    /// # Errors
    /// When anything is wrong with one of them: then all stays as it is.
    pub fn replace(&self, sources: &[PolicySource]) -> Result<(), PolicyError> {
        let (loaded, doubts) = Loaded::of(sources)?;
        tell_doubts(&doubts);
        self.current.store(Arc::new(loaded));
        self.versions.send_modify(|version| *version += 1);
        Ok(())
    }

    /// How many policies it decides by.
    #[must_use]
    pub fn count(&self) -> usize {
        self.current.load().count
    }

    /// Decides without looking at what was decided before: what a measure of that needs.
    #[must_use]
    pub fn decide_anew(
        &self,
        asked: (&Principal, Action),
        resource: &Resource<'_>,
        context: &PolicyContext<'_>,
    ) -> Decision {
        let loaded = self.current.load();
        match loaded.slices.get(resource.tenant(), asked.1) {
            Some(slice) if asked.0.tenant == *resource.tenant() => {
                self.decide(slice, asked, resource, context)
            }
            _ => nothing(),
        }
    }

    fn decide(
        &self,
        slice: &Slice,
        asked: (&Principal, Action),
        resource: &Resource<'_>,
        context: &PolicyContext<'_>,
    ) -> Decision {
        let question = match Question::put(&self.owner, asked, resource, context, None) {
            Ok(question) => question,
            Err(error) => {
                tracing::error!(%error, action = asked.1.as_str(), "a call is refused");
                return nothing();
            }
        };
        let answer = Cedar::new().is_authorized(&question.request, &slice.set, &question.entities);
        // What would forbid must not fail to for a defect of its own.
        let failed = answer.diagnostics().errors().map(|error| match error {
            AuthorizationError::PolicyEvaluationError(error) => error.policy_id().to_string(),
        });
        let failed: Vec<String> = failed.filter(|id| slice.forbidding.contains(id)).collect();
        let allowed = answer.decision() == Decided::Allow && failed.is_empty();
        let mut policies: Vec<String> = if failed.is_empty() {
            let reasons = answer.diagnostics().reason();
            reasons.map(ToString::to_string).collect()
        } else {
            failed
        };
        policies.sort();
        let ways_in = if allowed || !policies.is_empty() {
            Vec::new()
        } else {
            let groups = slice.groups.iter();
            groups.map(|group| format!("the group {group}")).collect()
        };
        Decision {
            allowed,
            policies: policies.into(),
            ways_in: ways_in.into(),
        }
    }
}

fn nothing() -> Decision {
    Decision {
        allowed: false,
        policies: Arc::new([]),
        ways_in: Arc::new([]),
    }
}

fn tell_doubts(doubts: &[PolicyProblem]) {
    for doubt in doubts {
        tracing::warn!(%doubt, "a policy is hardly meant as it stands");
    }
}

/// What a decision depends on, of a question to a slice.
fn key(
    slice: &Slice,
    (principal, action): (&Principal, Action),
    resource: &Resource<'_>,
    context: &PolicyContext<'_>,
) -> Key {
    let mut key = Key::default();
    key.text(action.as_str());
    key.text(principal.tenant.as_str());
    key.text(Kind::of(principal.kind).as_str());
    key.text(principal.id.as_str());
    key.text(words::trust(principal.ceiling));
    principal.groups.iter().for_each(|group| key.text(group));
    key.text("");
    key.optional(match resource {
        Resource::Tenant(_) => Some("tenant"),
        Resource::Session(_) => None,
    });
    if let Resource::Session(session) = resource {
        slice.mentions.key_of_session(&mut key, session);
    }
    slice.mentions.key_of_context(&mut key, context);
    key
}

#[async_trait]
impl Authorizer for CedarAuthorizer {
    async fn authorize(
        &self,
        principal: &Principal,
        action: Action,
        resource: &Resource<'_>,
        context: &PolicyContext<'_>,
    ) -> Decision {
        if principal.tenant != *resource.tenant() {
            return nothing();
        }
        let loaded = self.current.load();
        let Some(slice) = loaded.slices.get(resource.tenant(), action) else {
            return nothing();
        };
        let asked = (principal, action);
        let key = key(slice, asked, resource, context);
        let kept = || loaded.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(decision) = kept().get(&key) {
            return decision.clone();
        }
        let decision = self.decide(slice, asked, resource, context);
        if key.len() <= MAX_KEY_BYTES {
            let mut kept = kept();
            if kept.len() >= MAX_KEPT {
                kept.clear();
            }
            kept.insert(key, decision.clone());
        }
        decision
    }

    fn version(&self) -> u64 {
        *self.versions.borrow()
    }

    async fn changed_from(&self, version: u64) {
        let mut versions = self.versions.subscribe();
        // The sender lives as long as this is borrowed, so that it ends by a change alone.
        let _ = versions.wait_for(|now| *now != version).await;
    }

    fn asks_of_sharing(&self, action: Action) -> bool {
        self.current.load().slices.ask_of_sharing(action)
    }
}

#[cfg(test)]
mod tests;
