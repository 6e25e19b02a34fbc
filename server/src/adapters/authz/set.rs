//! Policies as they were read: parsed, named, and checked against the schema, all of it or nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr as _;
use std::sync::LazyLock;

use cedar_policy::{
    Policy, PolicyId, PolicySet, PrincipalConstraint, ResourceConstraint, Schema, ValidationMode,
    Validator,
};
use miette::Diagnostic;

use super::SCHEMA;
use super::source::PolicySource;
use super::words::{Kind, tenant_of};

/// Policies at most, of all files together.
const MAX_POLICIES: usize = 5000;
/// Longest id of a policy, in bytes: audit records carry it.
const MAX_ID_BYTES: usize = 100;

/// What is wrong with a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyProblem {
    /// The file, or what else it is of.
    pub source: String,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong, and the way out.
    pub problem: String,
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.source, self.problem),
            None => write!(f, "{}: {}", self.source, self.problem),
        }
    }
}

/// Policies that are right.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) policies: Vec<Policy>,
    /// What is allowed to stand, and is hardly meant.
    pub(super) doubts: Vec<PolicyProblem>,
}

/// The schema; nothing where the one that ships with the server cannot be read, which a test rules out.
pub(super) fn schema() -> Option<&'static Schema> {
    static READ: LazyLock<Option<Schema>> = LazyLock::new(|| {
        let read = Schema::from_cedarschema_str(SCHEMA);
        read.ok().map(|(schema, _)| schema)
    });
    READ.as_ref()
}

/// Reads policies.
///
/// # Errors
/// Everything that is wrong with them.
pub(super) fn check(sources: &[PolicySource]) -> Result<Checked, Vec<PolicyProblem>> {
    let mut problems = Vec::new();
    let mut found = BTreeMap::new();
    for source in sources {
        let mut read = 0;
        for policy in parsed(source, &mut problems) {
            let line = place(source, &policy, &mut read);
            named((source, line), &policy, &mut found, &mut problems);
        }
    }
    if found.len() > MAX_POLICIES {
        let problem = format!("there are {} policies; {MAX_POLICIES} at most", found.len());
        problems.push(about("the policies", None, problem));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let Some(schema) = schema() else {
        return Err(vec![about("the schema", None, "cannot be read".to_owned())]);
    };
    let mut set = PolicySet::new();
    for (_, policy) in found.values() {
        if let Err(error) = set.add(policy.clone()) {
            problems.push(about("the policies", None, error.to_string()));
        }
    }
    let judged = Validator::new(schema.clone()).validate(&set, ValidationMode::Strict);
    let told = |id: &PolicyId, diagnostic: &dyn Diagnostic| {
        let found: Option<&(&PolicySource, Policy)> = found.get(&id.to_string());
        let source = found.map(|(source, _)| *source);
        let line = source.and_then(|source| line(source, diagnostic));
        let problem = with_help(diagnostic);
        about(source.map_or("the policies", |it| &it.name), line, problem)
    };
    problems.extend(
        judged
            .validation_errors()
            .map(|it| told(it.policy_id(), it)),
    );
    if !problems.is_empty() {
        return Err(problems);
    }
    let doubts = judged.validation_warnings();
    let doubts = doubts.map(|it| told(it.policy_id(), it)).collect();
    let policies = found.into_values().map(|(_, policy)| policy).collect();
    Ok(Checked { policies, doubts })
}

fn about(source: &str, line: Option<usize>, problem: String) -> PolicyProblem {
    PolicyProblem {
        source: source.to_owned(),
        line,
        problem,
    }
}

fn parsed(source: &PolicySource, problems: &mut Vec<PolicyProblem>) -> Vec<Policy> {
    match PolicySet::from_str(&source.text) {
        Ok(set) if set.templates().next().is_some() => {
            let problem = "has a template (?principal or ?resource): name them in each policy";
            problems.push(about(&source.name, None, problem.to_owned()));
            Vec::new()
        }
        Ok(set) => set.policies().cloned().collect(),
        Err(errors) => {
            let all = errors.iter().map(|error| {
                let line = line(source, error);
                about(&source.name, line, with_help(error))
            });
            problems.extend(all);
            Vec::new()
        }
    }
}

/// Takes a policy under the name that it has.
fn named<'s>(
    (source, line): (&'s PolicySource, Option<usize>),
    policy: &Policy,
    found: &mut BTreeMap<String, (&'s PolicySource, Policy)>,
    problems: &mut Vec<PolicyProblem>,
) {
    let mut wrong = |problem: String| problems.push(about(&source.name, line, problem));
    let Some(id) = policy.annotation("id") else {
        return wrong("a policy has no name: write @id(\"a-name\") above it".to_owned());
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/".contains(&byte);
    if id.is_empty() || id.len() > MAX_ID_BYTES || !id.bytes().all(plain) {
        let takes = "letters, digits and - . _ : /";
        return wrong(format!("@id({id:?}) must be 1-{MAX_ID_BYTES} {takes}"));
    }
    if let Some((other, _)) = found.get(id) {
        let other = &other.name;
        return wrong(format!(
            "@id({id:?}) is taken, in {other}: each name is one policy's"
        ));
    }
    for problem in nobody(policy) {
        wrong(format!("{id}: {problem}"));
    }
    found.insert(id.to_owned(), (source, policy.new_id(PolicyId::new(id))));
}

/// Scopes that no principal and no session can ever be in: they are misspelt.
fn nobody(policy: &Policy) -> Vec<String> {
    let (of_principal, of_resource) = (policy.principal_constraint(), policy.resource_constraint());
    let principal = match &of_principal {
        PrincipalConstraint::Eq(uid) => Some(uid),
        _ => None,
    };
    let resource = match &of_resource {
        ResourceConstraint::Eq(uid) => Some(uid),
        _ => None,
    };
    let mut wrong = Vec::new();
    if let Some(uid) = principal
        && tenant_of(uid.id().unescaped()).is_none()
    {
        wrong.push(format!(
            "{uid} is nobody: a principal is written as \"TENANT/NAME\""
        ));
    }
    if let Some(uid) = resource
        && uid.type_name().to_string() == Kind::Session.as_str()
        && uid
            .id()
            .unescaped()
            .parse::<sessionplane_core::domain::ids::SessionId>()
            .is_err()
    {
        wrong.push(format!(
            "{uid} is no session: a session is written by its id, of 26 characters"
        ));
    }
    wrong
}

/// The line that a policy begins in: that of its text in the file, after what was read of it. Policies
/// come as they stand there.
fn place(source: &PolicySource, policy: &Policy, read: &mut usize) -> Option<usize> {
    let text = policy.to_cedar()?;
    let after = source.text.get(*read..)?.find(&text);
    let at = after
        .map(|at| *read + at)
        .or_else(|| source.text.find(&text))?;
    *read = at + text.len();
    Some(1 + source.text[..at].matches('\n').count())
}

fn line(source: &PolicySource, diagnostic: &(impl Diagnostic + ?Sized)) -> Option<usize> {
    let label = diagnostic.labels()?.next()?;
    let before = source.text.get(..label.offset())?;
    Some(1 + before.matches('\n').count())
}

fn with_help(diagnostic: &(impl Diagnostic + ?Sized)) -> String {
    let said = diagnostic.to_string();
    let label = diagnostic.labels().and_then(|mut labels| labels.next());
    let label = label.as_ref().and_then(|label| label.label());
    let label = label.map_or_else(String::new, |label| format!(", {label}"));
    let help = diagnostic.help();
    let help = help.map_or_else(String::new, |help| format!(" ({help})"));
    format!("{said}{label}{help}").replace('\n', " ")
}
