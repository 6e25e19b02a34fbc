//! Which claims make a principal: `ISSUER: CLAIM=VALUE, CLAIM=VALUE`, all of which must hold.
//!
//! What must never enter: a token that is not proved, and what a principal may do.

use std::str::FromStr;

use serde_json::{Map, Value};

/// Most conditions of one rule.
const CONDITIONS_AT_MOST: usize = 16;
/// What anybody in the world can get a token of, by its issuer; and the claims of which a rule must
/// name one, so that it is not for anybody.
const PUBLIC: &[(&str, &[&str])] = &[(
    "https://token.actions.githubusercontent.com",
    &[
        "sub",
        "repository",
        "repository_id",
        "repository_owner",
        "repository_owner_id",
        "job_workflow_ref",
        "enterprise_id",
    ],
)];

/// Conditions on the claims of one issuer's tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The issuer, by its name in the configuration.
    pub issuer: String,
    conditions: Vec<(String, Pattern)>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Pattern {
    Exactly(String),
    Begins(String),
}

/// Why a text is no rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{text:?} {problem}; use \"ISSUER: CLAIM=VALUE, CLAIM=VALUE\", where a VALUE may end with * for \
     whatever follows"
)]
pub struct NoRule {
    text: String,
    problem: &'static str,
}

impl FromStr for Rule {
    type Err = NoRule;

    fn from_str(text: &str) -> Result<Self, NoRule> {
        let wrong = |problem| NoRule {
            text: text.to_owned(),
            problem,
        };
        let (issuer, conditions) = text.split_once(':').ok_or(wrong("names no issuer"))?;
        let conditions = conditions.split(',').map(|condition| {
            let (claim, value) = condition
                .split_once('=')
                .ok_or(wrong("has a condition without ="))?;
            let (claim, value) = (claim.trim(), value.trim());
            if claim.is_empty() || value.is_empty() {
                return Err(wrong("has an empty claim or value"));
            }
            let pattern = match value.strip_suffix('*') {
                Some("") => return Err(wrong("has a value that everything fits")),
                Some(beginning) => Pattern::Begins(beginning.to_owned()),
                None => Pattern::Exactly(value.to_owned()),
            };
            Ok((claim.to_owned(), pattern))
        });
        let conditions: Vec<(String, Pattern)> = conditions.collect::<Result<_, NoRule>>()?;
        if conditions.len() > CONDITIONS_AT_MOST {
            return Err(wrong("has more than 16 conditions"));
        }
        Ok(Self {
            issuer: issuer.trim().to_owned(),
            conditions,
        })
    }
}

impl Rule {
    /// Whether all conditions hold.
    #[must_use]
    pub fn holds(&self, claims: &Map<String, Value>) -> bool {
        let holds = |(claim, pattern): &(String, Pattern)| {
            claims.get(claim).is_some_and(|value| pattern.fits(value))
        };
        self.conditions.iter().all(holds)
    }

    /// What a rule must say more of, where its issuer gives tokens to anybody.
    ///
    /// # Errors
    /// The claims of which it must name one.
    pub fn narrow_enough(&self, issuer: &str) -> Result<(), &'static [&'static str]> {
        let Some((_, needed)) = PUBLIC.iter().find(|(public, _)| *public == issuer) else {
            return Ok(());
        };
        let names = |(claim, _): &(String, Pattern)| needed.contains(&claim.as_str());
        self.conditions
            .iter()
            .any(names)
            .then_some(())
            .ok_or(needed)
    }
}

impl Pattern {
    /// A list fits if one of it does.
    fn fits(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => match self {
                Self::Exactly(wanted) => text == wanted,
                Self::Begins(beginning) => text.starts_with(beginning),
            },
            Value::Bool(_) | Value::Number(_) => {
                let text = value.to_string();
                matches!(self, Self::Exactly(wanted) if *wanted == text)
            }
            Value::Array(values) => {
                let texts = values.iter().filter(|value| value.is_string());
                texts.into_iter().any(|value| self.fits(value))
            }
            Value::Null | Value::Object(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(rule: &str, claims: &Value) -> bool {
        rule.parse::<Rule>()
            .unwrap()
            .holds(claims.as_object().unwrap())
    }

    #[test]
    fn c54_a_rule_holds_where_all_its_conditions_do() {
        let claims = json!({
            "repository": "acme/app", "ref": "refs/tags/v1", "environment": "prod",
            "groups": ["dev", "ops"], "email_verified": true, "repository_id": 7, "odd": {"a": "b"}
        });
        for rule in [
            "gh: repository=acme/app, ref=refs/tags/*, environment=prod",
            "gh:groups=ops",
            "gh: email_verified=true , repository_id=7",
        ] {
            assert!(holds(rule, &claims), "{rule}");
        }
        for rule in [
            "gh: repository=acme/app, ref=refs/heads/main",
            "gh: repository=acme/app2",
            "gh: repository=acme",
            "gh: repository=ACME/app",
            "gh: absent=x",
            "gh: groups=op",
            "gh: repository_id=70",
            "gh: repository_id=7*",
            "gh: odd=b",
        ] {
            assert!(!holds(rule, &claims), "{rule}");
        }
    }

    #[test]
    fn c54_a_rule_that_says_nothing_or_lets_the_world_in_is_none() {
        for text in [
            "", "gh", "gh:", "gh: a", "gh: a=", "gh: =b", "gh: a=*", "gh: a=b,",
        ] {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
        let github = "https://token.actions.githubusercontent.com";
        let wide: Rule = "gh: ref=refs/heads/main, environment=prod".parse().unwrap();
        assert!(wide.narrow_enough(github).is_err());
        assert!(wide.narrow_enough("https://id.acme.test").is_ok());
        let narrow: Rule = "gh: repository=acme/app".parse().unwrap();
        assert!(narrow.narrow_enough(github).is_ok());
    }
}
