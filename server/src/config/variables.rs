//! Environment variables that begin as ours do and are none of a setting: which of them were meant for
//! one.
//!
//! The clients have variables of the same beginning, and so do orchestrators for a service of this
//! name; what is not like one of ours is theirs, and passed over.

use super::declared::DECLARED;
use super::load::Sources;
use super::problem::{Problem, Source};
use super::setting::{ENV_PREFIX, Setting};

/// The variable of the file's path, which is no setting.
const FILE: &str = "CONFIG";

/// Variables of `sessionctl`.
const CLIENTS: [&str; 6] = [
    "ADDRESS",
    "TOKEN",
    "TOKEN_FILE",
    "TLS_CA",
    "TLS_CERT",
    "TLS_KEY",
];

/// How alike two names are that are taken for one of them misspelt.
const ALIKE: f64 = 0.9;

/// Whether a variable stands in a section of the file and is misspelt: no start goes on with it.
pub(super) fn misspelt(name: &str) -> Option<String> {
    let name = own(name)?;
    let section = |name: &str| name.split('_').next().map(str::to_owned);
    let ours = DECLARED.iter().filter(|setting| setting.key.contains('.'));
    let ours = ours.filter_map(Setting::variable);
    let ours = ours.filter_map(|ours| Some(ours.strip_prefix(ENV_PREFIX)?.to_owned()));
    nearest(name, ours.filter(|ours| section(ours) == section(name)))
}

/// Variables that are like ones of ours, and may be somebody else's all the same: a start goes on and
/// warns of them.
#[must_use]
pub fn doubtful(sources: &Sources) -> Vec<Problem> {
    let names = sources.variables.iter().map(|(name, _)| name);
    let told = names.filter_map(|name| {
        let what = doubt(name)?;
        Some(Problem::new(Source::Variable(name.clone()), "", what))
    });
    told.collect()
}

fn doubt(name: &str) -> Option<String> {
    // What is told as misspelt is told once.
    if misspelt(name).is_some() {
        return None;
    }
    let own = own(name)?;
    let settings: Vec<&Setting> = DECLARED.iter().filter(|one| !one.is_named()).collect();
    let ours = || settings.iter().filter_map(|one| one.variable());
    if own == FILE || ours().any(|ours| ours == name) {
        return None;
    }
    // One whose section was left out.
    let last = |one: &&&Setting| {
        one.key
            .rsplit('.')
            .next()
            .unwrap_or_default()
            .to_uppercase()
            == own
    };
    if let Some(meant) = settings.iter().find(last).and_then(|one| one.variable()) {
        return Some(suggestion(&meant));
    }
    let ours = ours().filter_map(|ours| Some(ours.strip_prefix(ENV_PREFIX)?.to_owned()));
    nearest(own, ours.chain([FILE.to_owned()]))
}

/// A name without what all have in common; nothing for a client's.
fn own(name: &str) -> Option<&str> {
    let name = name.strip_prefix(ENV_PREFIX)?;
    (!CLIENTS.contains(&name)).then_some(name)
}

fn nearest(name: &str, ours: impl Iterator<Item = String>) -> Option<String> {
    let near = ours.map(|ours| (strsim::jaro_winkler(&ours, name), ours));
    let near = near.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (near.0 > ALIKE).then(|| suggestion(&format!("{ENV_PREFIX}{}", near.1)))
}

fn suggestion(meant: &str) -> String {
    format!("is no variable of a setting; did you mean {meant}?")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str) -> Vec<String> {
        let sources = Sources {
            variables: vec![(format!("{ENV_PREFIX}{name}"), "x".into())],
            ..Sources::default()
        };
        doubtful(&sources).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn a_variable_that_is_like_one_of_ours_is_told_with_it() {
        for (name, meant) in [
            ("LISTN", "LISTEN"),
            ("DATADIR", "DATA_DIR"),
            ("DATA_DIRECTORY", "DATA_DIR"),
            ("CONFG", "CONFIG"),
            ("HEALTH_LISTN", "HEALTH_LISTEN"),
            ("MAX_CONNECTIONS", "LIMITS_MAX_CONNECTIONS"),
            ("LIMIT_MAX_CONNECTIONS", "LIMITS_MAX_CONNECTIONS"),
            ("DEFAULT_AGNT", "DEFAULT_AGENT"),
        ] {
            let expected = format!(
                "{ENV_PREFIX}{name}: is no variable of a setting; did you mean {ENV_PREFIX}{meant}?"
            );
            assert_eq!(told(name), [expected]);
        }
    }

    #[test]
    fn one_that_is_anothers_or_is_told_otherwise_is_passed_over() {
        for name in [
            // Ours, and a client's.
            "LISTEN",
            "CONFIG",
            "LOG",
            "ADDRESS",
            "TOKEN",
            "TOKEN_FILE",
            "TLS_CA",
            "TLS_CERT",
            // An orchestrator's, for services named sessionplane and sessionplane-headless.
            "SERVICE_HOST",
            "SERVICE_PORT",
            "SERVICE_PORT_GRPC",
            "PORT",
            "PORT_50051_TCP",
            "PORT_50051_TCP_ADDR",
            "PORT_50051_TCP_PORT",
            "PORT_50051_TCP_PROTO",
            "NAME",
            "HEADLESS_SERVICE_HOST",
            "HEADLESS_SERVICE_PORT",
            "HEADLESS_PORT",
            // Of tests.
            "SEED",
            "SEEDS",
            "CRASHES",
            "CASES",
            "READS",
            "UPDATES",
            "OBSERVERS",
            "DORMANT",
            "DAMAGES",
            "DAMAGED_PLACES",
            "POWER_LOSSES",
            "OPEN_ALONE",
            "TEST_BOUND",
            // It is an error, which is told as one.
            "LIMITS_RING_EVENT",
        ] {
            assert_eq!(told(name), [""; 0], "{name}");
        }
    }
}
