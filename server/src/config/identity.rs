//! Who may call beside the owner: `[identity]`.

use std::collections::{BTreeMap, BTreeSet};

use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::ids::{PrincipalId, TenantId};

use super::{ConfigError, value};
use crate::adapters::authn::{OWNER_ID, OWNER_TENANT, Registered};
use crate::adapters::authz::Role;

/// Most groups of a principal.
const GROUPS_AT_MOST: usize = 32;
/// Longest name of a group, in bytes.
const GROUP_BYTES: usize = 64;

/// What a principal is, in the words that are declared.
pub(crate) const KINDS: &[&str] = &["human", "service", "agent"];

/// Who may call beside the owner.
#[derive(Debug, Clone, Default)]
pub struct IdentityConfig {
    /// Principals, by name: those for whom `sessiond token create` makes tokens. Without any only
    /// the owner may call, and the server listens on loopback or a unix socket only.
    pub principals: BTreeMap<String, PrincipalConfig>,
}

/// A principal.
#[derive(Debug, Clone, Default)]
pub struct PrincipalConfig {
    /// The isolation unit it belongs to; without one the owner's.
    pub tenant: Option<String>,
    /// One of the words that are declared.
    pub kind: Option<String>,
    /// What it may do; without any what its kind may.
    pub groups: Option<Vec<String>>,
}

impl IdentityConfig {
    /// The principals, in the order of their names, and what is wrong with the others: a name that
    /// makes no sense or is the owner's, a tenant, a kind, a group.
    #[must_use]
    pub fn registered(&self) -> (Vec<Registered>, Vec<ConfigError>) {
        let (mut all, mut wrong) = (Vec::new(), Vec::new());
        for (name, config) in &self.principals {
            match registered(name, config) {
                Ok(one) => all.push(one),
                Err(error) => wrong.push(error),
            }
        }
        (all, wrong)
    }
}

fn registered(name: &str, config: &PrincipalConfig) -> Result<Registered, ConfigError> {
    let key = format!("identity.principals.{name}");
    let id = PrincipalId::parse(name).map_err(|error| value(&*key, error.to_string()))?;
    if name.eq_ignore_ascii_case(OWNER_ID) {
        return Err(value(
            key,
            "is the name of whoever holds the owner token; choose another one",
        ));
    }
    let tenant = config.tenant.as_deref().unwrap_or(OWNER_TENANT);
    let tenant = TenantId::parse(tenant)
        .map_err(|error| value(format!("{key}.tenant"), format!("{tenant:?}: {error}")))?;
    let kind = match config.kind.as_deref() {
        Some("human") => PrincipalKind::Human,
        Some("service") => PrincipalKind::Service,
        Some("agent") => PrincipalKind::Agent,
        _ => {
            let problem = format!("is missing; use {}", KINDS.join(" or "));
            return Err(value(format!("{key}.kind"), problem));
        }
    };
    let groups = match &config.groups {
        Some(groups) => check_groups(&format!("{key}.groups"), groups)?,
        None => vec![Role::default_of(kind).group().to_owned()],
    };
    let groups = groups.into();
    Ok(Registered {
        id,
        tenant,
        kind,
        groups,
    })
}

fn check_groups(key: &str, groups: &[String]) -> Result<Vec<String>, ConfigError> {
    if groups.len() > GROUPS_AT_MOST {
        let problem = format!("has {}; {GROUPS_AT_MOST} at most", groups.len());
        return Err(value(key, problem));
    }
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
    for group in groups {
        if group.is_empty() || group.len() > GROUP_BYTES || !group.bytes().all(plain) {
            let problem = format!(
                "{group:?} is no group: use 1 to {GROUP_BYTES} of a-z, 0-9, `-`, `.` and `_`"
            );
            return Err(value(key, problem));
        }
    }
    let unique: BTreeSet<&String> = groups.iter().collect();
    Ok(unique.into_iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::super::{Sources, load};
    use super::*;

    fn read(text: &str) -> Result<Vec<Registered>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        std::fs::write(&file, text).unwrap();
        let sources = Sources {
            file: Some(file),
            ..Sources::default()
        };
        let settings = load(&sources).map_err(|error| error.to_string())?;
        Ok(settings.identity.registered().0)
    }

    #[test]
    fn c54_principals_have_their_tenant_their_kind_and_their_groups() {
        let all = read(
            "[identity.principals.ada]\nkind = \"human\"\n\
             [identity.principals.bot]\nkind = \"agent\"\ntenant = \"team\"\n\
             [identity.principals.ci]\nkind = \"service\"\ngroups = [\"observer\", \"ci\", \"observer\"]\n\
             [identity.principals.nobody]\nkind = \"service\"\ngroups = []\n",
        )
        .unwrap();
        let told = all.iter().map(|one| {
            let groups: Vec<&str> = one.groups.iter().map(String::as_str).collect();
            (one.id.as_str(), one.tenant.as_str(), one.kind, groups)
        });
        let told: Vec<_> = told.collect();
        assert_eq!(
            told,
            [
                ("ada", "default", PrincipalKind::Human, vec!["operator"]),
                ("bot", "team", PrincipalKind::Agent, vec!["observer"]),
                (
                    "ci",
                    "default",
                    PrincipalKind::Service,
                    vec!["ci", "observer"]
                ),
                ("nobody", "default", PrincipalKind::Service, vec![]),
            ]
        );
    }

    #[test]
    fn c54_a_principal_that_makes_no_sense_is_refused_with_its_key() {
        for (text, says) in [
            (
                "[identity.principals.owner]\nkind = \"human\"",
                "principals.owner is the name",
            ),
            (
                "[identity.principals.Owner]\nkind = \"human\"",
                "choose another one",
            ),
            (
                "[identity.principals.\"a b\"]\nkind = \"human\"",
                "without spaces",
            ),
            ("[identity.principals.a]\nkind = \"robot\"", "robot"),
            ("[identity.principals.a]\ntenant = \"x\"", "kind"),
            (
                "[identity.principals.a]\nkind = \"human\"\ntenant = \"X Y\"",
                "principals.a.tenant",
            ),
            (
                "[identity.principals.a]\nkind = \"human\"\ngroups = [\"A\"]",
                "principals.a.groups",
            ),
            (
                "[identity.principals.a]\nkind = \"human\"\ngroup = [\"a\"]",
                "group",
            ),
            ("[edge]\nopen_reflektion = true", "open_reflection"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
