//! Who may call beside the owner: `[identity]`.

use std::collections::{BTreeMap, BTreeSet};

use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::certificate::CertificateName;
use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::domain::provenance::Trust;

use super::issuers::IssuerConfig;
use super::setting::{Kind, Setting, Value, of};
use super::{ConfigError, value};
use crate::adapters::authn::{Certified, Forwarding, OWNER_ID, OWNER_TENANT, Registered};
use crate::adapters::authz::Role;

/// Most groups of a principal.
const GROUPS_AT_MOST: usize = 32;
/// Longest name of a group, in bytes.
const GROUP_BYTES: usize = 64;

/// What a principal is, in the words that are declared.
pub(crate) const KINDS: &[&str] = &["human", "service", "agent"];

/// The most trust that it can give to a text, in the words that are declared.
pub(crate) const TRUSTS: &[&str] = &["untrusted", "relayed", "typed"];

/// What the names of sessions' own agents begin with.
const OF_SESSIONS: &str = "agent:";

/// What certificates call a principal.
pub(super) const CERTIFICATES: Setting = Setting {
    key: "identity.principals.*.certificates",
    kind: Kind::List("spiffe://DOMAIN/PATH, dns:NAME or subject:CN=..."),
    flag: None,
    variable: None,
    about: "What its client certificates call it: their one SPIFFE id, else their one DNS name, else \
            their subject. They need tls.client_auth.",
    needed: false,
    set: |settings, name, value| {
        if let Value::List(names) = value {
            of(&mut settings.identity.principals, name).certificates = Some(names);
        }
    },
    get: |settings, name| {
        let found = settings.identity.principals.get(name)?;
        found.certificates.clone().map(Value::List)
    },
};

/// The most trust that credentials without a trust of their own can give.
pub(super) const TRUST: Setting = Setting {
    key: "identity.principals.*.trust",
    kind: Kind::OneOf(TRUSTS),
    flag: None,
    variable: None,
    about: "The most trust that its certificates and JWTs can give to a text; `typed` only of a human. \
            Without one it is `relayed`. A token has its own.",
    needed: false,
    set: |settings, name, value| {
        if let Value::Text(trust) = value {
            of(&mut settings.identity.principals, name).trust = Some(trust);
        }
    },
    get: |settings, name| {
        let found = settings.identity.principals.get(name)?;
        found.trust.clone().map(Value::Text)
    },
};

/// Who may call beside the owner.
#[derive(Debug, Clone, Default)]
pub struct IdentityConfig {
    /// Principals, by name: those for whom `sessiond token create` makes tokens. Without any only
    /// the owner may call, and the server listens on loopback or a unix socket only.
    pub principals: BTreeMap<String, PrincipalConfig>,
    /// Whose word is taken for the certificate of who calls them.
    pub forwarded: ForwardedConfig,
    /// Issuers of JWTs, by name.
    pub issuers: BTreeMap<String, IssuerConfig>,
}

/// From whom `x-forwarded-client-cert` is believed; without any from nobody.
#[derive(Debug, Clone, Default)]
pub struct ForwardedConfig {
    /// The names of their certificates.
    pub peers: Vec<String>,
    /// Everybody who reaches a listener of loopback.
    pub loopback_only: bool,
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
    /// What its certificates call it.
    pub certificates: Option<Vec<String>>,
    /// One of the words that are declared; none means relayed.
    pub trust: Option<String>,
    /// Which JWTs are its.
    pub claims: Option<Vec<String>>,
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

    /// The principals that certificates name, and what is wrong with what is said of certificates.
    #[must_use]
    pub fn certified(&self) -> (Vec<Certified>, Vec<ConfigError>) {
        let (mut all, mut wrong) = (Vec::new(), Vec::new());
        let mut claimed: BTreeMap<CertificateName, &str> = BTreeMap::new();
        for (name, config) in &self.principals {
            let ceiling = ceiling(name, config).unwrap_or_else(|error| {
                wrong.push(error);
                Trust::Untrusted
            });
            let key = format!("identity.principals.{name}.certificates");
            let texts = config.certificates.iter().flatten();
            let mut names = Vec::new();
            for text in texts {
                match text.parse::<CertificateName>() {
                    Ok(found) => match claimed.get(&found) {
                        Some(other) if *other != name => {
                            let problem =
                                format!("{found} is of {other} already; one of them only");
                            wrong.push(value(&*key, problem));
                        }
                        _ => {
                            claimed.insert(found.clone(), name);
                            names.push(found);
                        }
                    },
                    Err(error) => wrong.push(value(&*key, error.to_string())),
                }
            }
            if let (false, Ok(holder)) = (names.is_empty(), registered(name, config)) {
                all.push(Certified {
                    holder,
                    ceiling,
                    names,
                });
            }
        }
        (all, wrong)
    }

    /// Whose word is taken for the certificate of who calls them, and what is wrong with that.
    /// `listens_on_loopback`: only this host reaches the listener.
    #[must_use]
    pub fn forwarding(&self, listens_on_loopback: bool) -> (Forwarding, Vec<ConfigError>) {
        let (mut forwarding, mut wrong) = (Forwarding::default(), Vec::new());
        let (certified, _told) = self.certified();
        for text in &self.forwarded.peers {
            let of = |name: &CertificateName| {
                let mut all = certified.iter();
                all.find(|one| one.names.contains(name))
                    .map(|one| one.holder.id.clone())
            };
            match text.parse::<CertificateName>() {
                Ok(name) => match of(&name) {
                    Some(id) => wrong.push(value(
                        "identity.forwarded.peers",
                        format!("{name} is a certificate of {id}, and a proxy is nobody itself"),
                    )),
                    None => drop(forwarding.peers.insert(name)),
                },
                Err(error) => wrong.push(value("identity.forwarded.peers", error.to_string())),
            }
        }
        if self.forwarded.loopback_only {
            if listens_on_loopback {
                forwarding.loopback_only = true;
            } else {
                wrong.push(value(
                    "identity.forwarded.loopback_only",
                    "needs a listener that only this host reaches: set listen to 127.0.0.1:PORT or \
                     unix:/PATH, or name the proxy in identity.forwarded.peers",
                ));
            }
        }
        (forwarding, wrong)
    }
}

/// The most trust that certificates and JWTs of a principal give to a text.
pub(super) fn ceiling(name: &str, config: &PrincipalConfig) -> Result<Trust, ConfigError> {
    match config.trust.as_deref() {
        Some("untrusted") => Ok(Trust::Untrusted),
        Some("typed") if config.kind.as_deref() != Some("human") => Err(value(
            format!("identity.principals.{name}.trust"),
            "is typed, and only a human types: use relayed or untrusted",
        )),
        Some("typed") => Ok(Trust::Typed),
        _ => Ok(Trust::Relayed),
    }
}

pub(super) fn registered(name: &str, config: &PrincipalConfig) -> Result<Registered, ConfigError> {
    let key = format!("identity.principals.{name}");
    let id = PrincipalId::parse(name).map_err(|error| value(&*key, error.to_string()))?;
    if name.eq_ignore_ascii_case(OWNER_ID) {
        return Err(value(
            key,
            "is the name of whoever holds the owner token; choose another one",
        ));
    }
    if name.starts_with(OF_SESSIONS) {
        return Err(value(
            key,
            "has a name as the agents of sessions get it (agent:...); choose another one",
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
    use super::super::testing::settings;
    use super::*;

    fn read(text: &str) -> Result<Vec<Registered>, String> {
        Ok(settings(text)?.identity.registered().0)
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

    #[test]
    fn c54_certificates_of_a_principal_are_read_with_their_trust() {
        let read = settings(
            "[identity.principals.ada]\nkind = \"human\"\ntrust = \"typed\"\n\
             certificates = [\"dns:ada.test\", \"subject:CN=ada\"]\n\
             [identity.principals.ci]\nkind = \"service\"\n\
             certificates = [\"spiffe://acme.test/ci\"]\n\
             [identity.forwarded]\npeers = [\"spiffe://acme.test/proxy\"]\nloopback_only = true\n",
        )
        .unwrap();
        let (all, wrong) = read.identity.certified();
        assert!(wrong.is_empty(), "{wrong:?}");
        let told = all.iter().map(|one| {
            let names = one.names.iter().map(ToString::to_string);
            (
                one.holder.id.as_str(),
                one.ceiling,
                names.collect::<Vec<_>>().join(" "),
            )
        });
        let told: Vec<_> = told.collect();
        assert_eq!(
            told,
            [
                (
                    "ada",
                    Trust::Typed,
                    "dns:ada.test subject:CN=ada".to_owned()
                ),
                ("ci", Trust::Relayed, "spiffe://acme.test/ci".to_owned()),
            ]
        );
        let (forwarding, wrong) = read.identity.forwarding(true);
        assert!(wrong.is_empty(), "{wrong:?}");
        assert!(forwarding.loopback_only && forwarding.peers.len() == 1);
    }

    #[test]
    fn c54_what_is_said_of_certificates_and_makes_no_sense_is_refused_with_its_key() {
        let two = "[identity.principals.a]\nkind = \"service\"\ncertificates = [\"dns:x.test\"]\n\
                   [identity.principals.b]\nkind = \"service\"\ncertificates = [\"dns:X.test\"]\n";
        let error = settings(two).unwrap_err();
        assert!(error.contains("principals.b.certificates"), "{error}");
        assert!(error.contains("is of a already"), "{error}");
        for (text, says) in [
            (
                "[identity.principals.a]\nkind = \"service\"\ncertificates = [\"ci\"]",
                "spiffe://DOMAIN/PATH",
            ),
            (
                "[identity.principals.a]\nkind = \"service\"\ntrust = \"typed\"",
                "only a human types",
            ),
            (
                "[identity.principals.a]\nkind = \"human\"\ntrust = \"much\"",
                "untrusted or relayed",
            ),
            (
                "[identity.principals.\"agent:x\"]\nkind = \"agent\"",
                "choose another one",
            ),
            (
                "[identity.forwarded]\npeers = [\"proxy\"]",
                "identity.forwarded.peers",
            ),
            (
                "[identity.principals.a]\nkind = \"service\"\ncertificates = [\"dns:x\"]\n\
                 [identity.forwarded]\npeers = [\"dns:x\"]",
                "a proxy is nobody itself",
            ),
            (
                "listen = \"0.0.0.0:1\"\n[identity.forwarded]\nloopback_only = true",
                "only this host reaches",
            ),
        ] {
            let error = settings(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
