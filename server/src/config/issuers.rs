//! Issuers whose JWTs let principals in: `[identity.issuers]`, and the claims that make one.

use std::path::PathBuf;
use std::time::Duration;

use super::identity::{IdentityConfig, ceiling, registered};
use super::setting::{Kind, Number, Said, Setting, Value, of};
use super::{ConfigError, value};
use crate::adapters::authn::jwt::{Algorithm, Claimed, IssuerSettings, KeyUrl, Rule};

/// The ways of signing that are accepted unless others are named.
const ALGORITHMS: [&str; 3] = ["RS256", "ES256", "EdDSA"];

/// An issuer of JWTs.
#[derive(Debug, Clone)]
pub struct IssuerConfig {
    /// What its tokens say that it is.
    pub issuer: Option<String>,
    /// For whom its tokens are.
    pub audiences: Option<Vec<String>>,
    /// How its tokens are signed; without any, by the usual ways.
    pub algorithms: Option<Vec<String>>,
    /// Where its keys are.
    pub jwks_url: Option<String>,
    /// Where they are, if that is a file.
    pub jwks_file: Option<PathBuf>,
    /// The authorities that vouch for the server behind the URL.
    pub jwks_ca_file: Option<PathBuf>,
    /// How far its clock may be ahead.
    pub leeway: Duration,
    /// How often its keys are read.
    pub refresh: Duration,
    /// How long its keys count when they cannot be read.
    pub stale: Duration,
}

impl Default for IssuerConfig {
    fn default() -> Self {
        Self {
            issuer: None,
            audiences: None,
            algorithms: None,
            jwks_url: None,
            jwks_file: None,
            jwks_ca_file: None,
            leeway: Duration::from_secs(30),
            refresh: Duration::from_secs(300),
            stale: Duration::from_secs(3600),
        }
    }
}

/// Where the keys of an issuer are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlace {
    /// Behind a URL, for whose server these authorities vouch.
    Url(String, Option<PathBuf>),
    /// In a file.
    File(PathBuf),
}

impl IdentityConfig {
    /// The issuers, and what is wrong with the others.
    #[must_use]
    pub fn issuers(&self) -> (Vec<(IssuerSettings, KeyPlace)>, Vec<ConfigError>) {
        let (mut all, mut wrong) = (Vec::new(), Vec::new());
        for (name, config) in &self.issuers {
            match config.settings(name) {
                Ok(one) => all.push(one),
                Err(error) => wrong.push(error),
            }
        }
        for (at, (one, _)) in all.iter().enumerate() {
            let mut before = all[..at].iter();
            if let Some((other, _)) = before.find(|(other, _)| other.issuer == one.issuer) {
                let key = format!("identity.issuers.{}.issuer", one.name);
                let problem = format!("is that of {} already; one of them only", other.name);
                wrong.push(value(key, problem));
            }
        }
        (all, wrong)
    }

    /// The principals that claims make, and what is wrong with what is said of claims.
    #[must_use]
    pub fn claimed(&self) -> (Vec<Claimed>, Vec<ConfigError>) {
        let (mut all, mut wrong) = (Vec::new(), Vec::new());
        for (name, config) in &self.principals {
            let key = format!("identity.principals.{name}.claims");
            let mut rules = Vec::new();
            for text in config.claims.iter().flatten() {
                match self.rule(text) {
                    Ok(rule) => rules.push(rule),
                    Err(problem) => wrong.push(value(&*key, problem)),
                }
            }
            // Both are told of where principals are read.
            let (holder, ceiling) = (registered(name, config), ceiling(name, config));
            if let (false, Ok(holder), Ok(ceiling)) = (rules.is_empty(), holder, ceiling) {
                all.push(Claimed {
                    holder,
                    ceiling,
                    rules,
                });
            }
        }
        (all, wrong)
    }

    fn rule(&self, text: &str) -> Result<Rule, String> {
        let rule: Rule = text.parse().map_err(|error| format!("{error}"))?;
        let issuer = self.issuers.get(&rule.issuer);
        let issuer = issuer.ok_or_else(|| {
            format!(
                "{text:?} names the issuer {:?}; there is no [identity.issuers.{}]",
                rule.issuer, rule.issuer
            )
        })?;
        let said = issuer.issuer.as_deref().unwrap_or_default();
        let narrow = rule.narrow_enough(said);
        narrow.map_err(|needed| {
            format!(
                "{text:?} lets anybody in who can use that issuer; name one of {}",
                needed.join(", ")
            )
        })?;
        Ok(rule)
    }
}

impl IssuerConfig {
    fn settings(&self, name: &str) -> Result<(IssuerSettings, KeyPlace), ConfigError> {
        let key = |last: &str| format!("identity.issuers.{name}.{last}");
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.len() > 63 || !name.bytes().all(plain) {
            let problem = "is no name: use 1 to 63 of a-z, 0-9 and `-`";
            return Err(value(format!("identity.issuers.{name}"), problem));
        }
        let missing = |last: &str, what: &str| value(key(last), format!("is missing; use {what}"));
        let issuer = self.issuer.clone();
        let issuer = issuer.ok_or_else(|| missing("issuer", "what its tokens say in iss"))?;
        let audiences = self.audiences.clone().unwrap_or_default();
        if audiences.is_empty() {
            let what = "a list of what its tokens for this server say in aud";
            return Err(missing("audiences", what));
        }
        let usual = || ALGORITHMS.map(str::to_owned).to_vec();
        let named = self.algorithms.clone().unwrap_or_else(usual);
        let algorithms = named.iter().map(|name| {
            Algorithm::named(name).ok_or_else(|| {
                let known = Algorithm::NAMES.map(|(name, _)| name).join(", ");
                value(
                    key("algorithms"),
                    format!("{name:?} is none; there are {known}"),
                )
            })
        });
        let algorithms: Vec<Algorithm> = algorithms.collect::<Result<_, _>>()?;
        let place = match (&self.jwks_url, &self.jwks_file) {
            (Some(url), None) => {
                let checked = KeyUrl::check(url);
                checked.map_err(|problem| value(key("jwks_url"), format!("{url:?}: {problem}")))?;
                KeyPlace::Url(url.clone(), self.jwks_ca_file.clone())
            }
            (None, Some(file)) => KeyPlace::File(file.clone()),
            _ => {
                let problem = "is where its keys are: set it, or jwks_file, and not both";
                return Err(value(key("jwks_url"), problem));
            }
        };
        let settings = IssuerSettings {
            name: name.to_owned(),
            issuer,
            audiences,
            algorithms,
            leeway: self.leeway,
            refresh: self.refresh,
            stale: self.stale,
        };
        Ok((settings, place))
    }
}

/// Texts in a field of an issuer.
macro_rules! issuer_list {
    ($key:literal, $kind:expr, $field:ident, $about:literal) => {
        Setting {
            key: $key,
            kind: $kind,
            flag: None,
            variable: None,
            about: $about,
            needed: false,
            set: |settings, name, value| {
                if let Value::List(values) = value {
                    of(&mut settings.identity.issuers, name).$field = Some(values);
                }
            },
            get: |settings, name| {
                let found = settings.identity.issuers.get(name)?;
                found.$field.clone().map(Value::List)
            },
        }
    };
}

/// Seconds in a field of an issuer.
macro_rules! issuer_seconds {
    ($key:literal, $range:expr, $field:ident, $about:literal) => {
        Setting {
            key: $key,
            kind: Kind::Whole($range),
            flag: None,
            variable: None,
            about: $about,
            needed: false,
            set: |settings, name, value| {
                if let Value::Whole(value) = value {
                    of(&mut settings.identity.issuers, name).$field = Number::put(value, 1);
                }
            },
            get: |settings, name| {
                let found = settings.identity.issuers.get(name).cloned();
                Some(Value::Whole(found.unwrap_or_default().$field.took(1)))
            },
        }
    };
}

pub(super) const ISSUER: Setting = Setting {
    needed: true,
    ..named!(
        "identity.issuers.*.issuer",
        Kind::Text("what its tokens say in iss"),
        identity.issuers,
        issuer,
        "What JWTs of the issuer say that it is (`iss`), to the letter."
    )
};

pub(super) const AUDIENCES: Setting = Setting {
    needed: true,
    ..issuer_list!(
        "identity.issuers.*.audiences",
        Kind::List("what tokens for this server say in aud"),
        audiences,
        "For whom its JWTs must be (`aud`): one of these."
    )
};

pub(super) const ALGORITHMS_OF: Setting = issuer_list!(
    "identity.issuers.*.algorithms",
    Kind::List("RS256, RS384, RS512, PS256, ES256, ES384 or EdDSA"),
    algorithms,
    "How its JWTs may be signed. Without it RS256, ES256 and EdDSA."
);

pub(super) const URL: Setting = named!(
    "identity.issuers.*.jwks_url",
    Kind::Text("https://HOST/PATH"),
    identity.issuers,
    jwks_url,
    "Where its keys are (a JWK set). No redirect is followed. http only on this host."
);

pub(super) const FILE: Setting = named!(
    "identity.issuers.*.jwks_file",
    Kind::Text("a JSON file's path"),
    identity.issuers,
    jwks_file,
    "Or the file with them."
);

pub(super) const CA_FILE: Setting = named!(
    "identity.issuers.*.jwks_ca_file",
    Kind::Text("a PEM file's path"),
    identity.issuers,
    jwks_ca_file,
    "The authorities that vouch for the server at the URL; without it the system's."
);

pub(super) const LEEWAY: Setting = issuer_seconds!(
    "identity.issuers.*.leeway_seconds",
    0..=300,
    leeway,
    "How far the issuer's clock may be ahead of this one. A JWT never counts beyond its end."
);

pub(super) const REFRESH: Setting = issuer_seconds!(
    "identity.issuers.*.refresh_seconds",
    1..=86_400,
    refresh,
    "How often its keys are read. A key that is not known has them read at once, twice a minute at \
     most."
);

pub(super) const STALE: Setting = issuer_seconds!(
    "identity.issuers.*.stale_seconds",
    0..=604_800,
    stale,
    "How long its keys still count after that when they cannot be read. Then its JWTs let nobody in."
);

/// The claims that make a principal.
pub(super) const CLAIMS: Setting = Setting {
    key: "identity.principals.*.claims",
    kind: Kind::List("ISSUER: CLAIM=VALUE, CLAIM=VALUE"),
    flag: None,
    variable: None,
    about: "Which JWTs are its: all conditions of one of these must hold. A value may end with * for \
            whatever follows; of a claim that is a list one value must fit.",
    needed: false,
    set: |settings, name, value| {
        if let Value::List(claims) = value {
            of(&mut settings.identity.principals, name).claims = Some(claims);
        }
    },
    get: |settings, name| {
        let found = settings.identity.principals.get(name)?;
        found.claims.clone().map(Value::List)
    },
};

#[cfg(test)]
mod tests {
    use super::super::testing::settings;

    const GITHUB: &str = "[identity.issuers.github]\n\
        issuer = \"https://token.actions.githubusercontent.com\"\naudiences = [\"sessionplane\"]\n\
        jwks_url = \"https://token.actions.githubusercontent.com/.well-known/jwks\"\n";

    #[test]
    fn c54_issuers_and_claims_are_read() {
        let read = settings(&format!(
            "{GITHUB}leeway_seconds = 5\n[identity.principals.ci]\nkind = \"service\"\n\
             claims = [\"github: repository=acme/app, ref=refs/heads/main\"]\n"
        ))
        .unwrap();
        let (issuers, wrong) = read.identity.issuers();
        assert!(wrong.is_empty(), "{wrong:?}");
        let (one, _) = &issuers[0];
        assert_eq!((one.leeway.as_secs(), one.algorithms.len()), (5, 3));
        let (claimed, wrong) = read.identity.claimed();
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(
            (claimed[0].holder.id.as_str(), claimed[0].rules.len()),
            ("ci", 1)
        );
    }

    #[test]
    fn c54_an_issuer_or_a_claim_that_makes_no_sense_is_refused_with_its_key() {
        let principal = |claims: &str| {
            format!("{GITHUB}[identity.principals.ci]\nkind = \"service\"\nclaims = [{claims:?}]\n")
        };
        for (text, says) in [
            (
                "[identity.issuers.x]\nissuer = \"i\"\naudiences = []\njwks_file = \"/f\"\n"
                    .to_owned(),
                "audiences",
            ),
            (
                "[identity.issuers.x]\nissuer = \"i\"\naudiences = [\"a\"]\n".to_owned(),
                "not both",
            ),
            (format!("{GITHUB}jwks_file = \"/f\"\n"), "not both"),
            (
                format!("{GITHUB}algorithms = [\"HS256\"]\n"),
                "\"HS256\" is none",
            ),
            (
                format!("{GITHUB}algorithms = [\"none\"]\n"),
                "\"none\" is none",
            ),
            (
                GITHUB.replace("jwks_url = \"https", "jwks_url = \"http"),
                "https://HOST/PATH",
            ),
            (
                format!("{GITHUB}{}", GITHUB.replace(".github]", ".other]")),
                "is that of github already",
            ),
            (
                principal("other: repository=a/b"),
                "there is no [identity.issuers.other]",
            ),
            (principal("github"), "names no issuer"),
            (principal("github: ref=refs/heads/main"), "lets anybody in"),
        ] {
            let error = settings(&text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
