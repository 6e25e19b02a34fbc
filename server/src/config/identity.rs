//! Who may call beside the owner: `[identity]`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::ids::{PrincipalId, TenantId};

use super::{ConfigError, value};
use crate::adapters::authn::{OWNER_ID, OWNER_TENANT, Registered};
use crate::adapters::authz::Role;

/// Most groups of a principal.
const GROUPS_AT_MOST: usize = 32;
/// Longest name of a group, in bytes.
const GROUP_BYTES: usize = 64;

/// Who may call beside the owner.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IdentityConfig {
    /// Principals, by name: those for whom `sessiond token create` makes tokens. Without any only
    /// the owner may call, and the server listens on loopback or a unix socket only.
    pub principals: BTreeMap<String, PrincipalConfig>,
    /// Whether reflection answers callers that are not known; default false. Health always does.
    pub open_reflection: bool,
}

/// A principal.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrincipalConfig {
    /// The isolation unit it belongs to: it sees nothing of another one. Default: `default`, the
    /// owner's.
    pub tenant: Option<String>,
    /// What it is.
    pub kind: KindConfig,
    /// What it may do: `admin` everything, `operator` everything but administer, `observer` look
    /// on. Other groups are names for policies, and allow nothing. Default: `operator`, for an
    /// agent `observer`.
    pub groups: Option<Vec<String>>,
}

/// What a principal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KindConfig {
    /// A person.
    Human,
    /// A program: CI, an orchestrator.
    Service,
    /// A program that a model drives.
    Agent,
}

impl From<KindConfig> for PrincipalKind {
    fn from(kind: KindConfig) -> Self {
        match kind {
            KindConfig::Human => Self::Human,
            KindConfig::Service => Self::Service,
            KindConfig::Agent => Self::Agent,
        }
    }
}

impl IdentityConfig {
    /// The principals, in the order of their names.
    ///
    /// # Errors
    /// When a name makes no sense, or is the owner's.
    pub fn registered(&self) -> Result<Vec<Registered>, ConfigError> {
        let principals = self.principals.iter();
        principals
            .map(|(name, config)| registered(name, config))
            .collect()
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
    let kind = config.kind.into();
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
    use super::*;

    fn read(text: &str) -> Result<Vec<Registered>, String> {
        let config = toml::from_str::<IdentityConfig>(text).map_err(|error| error.to_string())?;
        config.registered().map_err(|error| error.to_string())
    }

    #[test]
    fn c54_principals_have_their_tenant_their_kind_and_their_groups() {
        let all = read(
            "[principals.ada]\nkind = \"human\"\n\
             [principals.bot]\nkind = \"agent\"\ntenant = \"team\"\n\
             [principals.ci]\nkind = \"service\"\ngroups = [\"observer\", \"ci\", \"observer\"]\n\
             [principals.nobody]\nkind = \"service\"\ngroups = []\n",
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
                "[principals.owner]\nkind = \"human\"",
                "principals.owner: is the name",
            ),
            ("[principals.Owner]\nkind = \"human\"", "choose another one"),
            ("[principals.\"a b\"]\nkind = \"human\"", "without spaces"),
            ("[principals.a]\nkind = \"robot\"", "robot"),
            ("[principals.a]\ntenant = \"x\"", "kind"),
            (
                "[principals.a]\nkind = \"human\"\ntenant = \"X Y\"",
                "principals.a.tenant",
            ),
            (
                "[principals.a]\nkind = \"human\"\ngroups = [\"A\"]",
                "principals.a.groups",
            ),
            ("[principals.a]\nkind = \"human\"\ngroup = [\"a\"]", "group"),
            ("open_reflektion = true", "open_reflektion"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
