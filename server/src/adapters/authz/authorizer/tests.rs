use sessionplane_core::domain::access::{PrincipalKind, SessionFacts};
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue, Labels};
use sessionplane_core::domain::ids::{AgentName, SessionId, SessionName};
use sessionplane_core::domain::place::{Directory, Place};
use sessionplane_core::domain::provenance::{Channel, Trust};
use sessionplane_core::domain::time::Timestamp;

use super::*;

mod loading;

fn principal(tenant: &str, id: &str, groups: &[&str]) -> Principal {
    Principal {
        tenant: TenantId::parse(tenant).unwrap(),
        id: PrincipalId::parse(id).unwrap(),
        kind: PrincipalKind::Human,
        groups: groups.iter().map(ToString::to_string).collect(),
        ceiling: Trust::Relayed,
        credential: "test".into(),
    }
}

fn owner() -> (TenantId, PrincipalId) {
    let owner = principal("default", "owner", &[]);
    (owner.tenant, owner.id)
}

fn authorizer() -> CedarAuthorizer {
    CedarAuthorizer::open(owner(), &[PolicySource::default_set()]).unwrap()
}

fn with(text: &str) -> CedarAuthorizer {
    CedarAuthorizer::open(owner(), &[PolicySource::default_set(), source(text)]).unwrap()
}

fn source(text: &str) -> PolicySource {
    PolicySource {
        name: "policies.cedar".to_owned(),
        text: text.to_owned(),
    }
}

fn wrong(text: &str) -> String {
    let opened = CedarAuthorizer::open(owner(), &[source(text)]);
    opened
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

/// A session, as its parts.
struct Session {
    tenant: TenantId,
    id: SessionId,
    name: SessionName,
    agent: AgentName,
    labels: Labels,
    place: Option<Place>,
}

impl Session {
    fn of(tenant: &str, labels: &[(&str, &str)]) -> Self {
        let labels = labels.iter().map(|(key, value)| {
            let key = LabelKey::parse(key).unwrap();
            (key, LabelValue::parse(value).unwrap())
        });
        Self {
            tenant: TenantId::parse(tenant).unwrap(),
            id: SessionId::mint(Timestamp::from_millis(1), 1),
            name: "docs".parse().unwrap(),
            agent: "coder".parse().unwrap(),
            labels: Labels::of(labels).unwrap(),
            place: Some(Place {
                workspace: "main".parse().unwrap(),
                directory: Directory::root(),
            }),
        }
    }

    fn resource(&self) -> Resource<'_> {
        Resource::Session(SessionFacts {
            tenant: &self.tenant,
            id: self.id,
            name: Some(&self.name),
            external_key: None,
            agent: &self.agent,
            labels: &self.labels,
            place: self.place.as_ref(),
            paused: false,
            parent: None,
        })
    }
}

async fn ask(
    authorizer: &CedarAuthorizer,
    who: &Principal,
    action: Action,
    resource: &Resource<'_>,
    context: &PolicyContext<'_>,
) -> Decision {
    let decision = authorizer.authorize(who, action, resource, context).await;
    // What was kept of a decision is the decision.
    let anew = authorizer.decide_anew((who, action), resource, context);
    assert_eq!(decision, anew, "{action:?}");
    decision
}

async fn asked(
    authorizer: &CedarAuthorizer,
    who: &Principal,
    action: Action,
    of: &Session,
) -> bool {
    let context = PolicyContext::default();
    let decision = ask(authorizer, who, action, &of.resource(), &context).await;
    assert_eq!(
        decision.allowed,
        decision.allowed && !decision.policies.is_empty()
    );
    decision.allowed
}

/// What a principal may do in a tenant, and what says so.
async fn allowed(who: &Principal, tenant: &str) -> Vec<(Action, String)> {
    let (authorizer, session) = (authorizer(), Session::of(tenant, &[]));
    let context = PolicyContext::default();
    let mut allowed = Vec::new();
    for action in Action::ALL {
        let whole = Resource::Tenant(&session.tenant);
        let whole = ask(&authorizer, who, action, &whole, &context).await;
        let session = ask(&authorizer, who, action, &session.resource(), &context).await;
        assert_eq!(whole, session);
        assert_eq!(whole.allowed, !whole.policies.is_empty());
        allowed.extend(whole.policies.iter().map(|policy| (action, policy.clone())));
    }
    allowed
}

#[tokio::test]
async fn c55_the_owner_may_do_everything_in_its_tenant_and_nothing_elsewhere() {
    let owner = principal("default", "owner", &[]);
    let all = allowed(&owner, "default").await;
    assert_eq!(all, Action::ALL.map(|action| (action, "owner".to_owned())));
    assert_eq!(allowed(&owner, "others").await, []);
    // Its name means nothing in another tenant, and its group is nobody's to be configured into.
    for named in [
        principal("others", "owner", &[]),
        principal("default", "Owner", &[]),
        principal("default", "ada", &["(owner)"]),
    ] {
        assert_eq!(allowed(&named, named.tenant.as_str()).await, []);
    }
}

#[tokio::test]
async fn c55_groups_allow_what_the_table_says_and_only_in_their_tenant() {
    let looking = [Action::Observe, Action::ReadMetadata, Action::ReadArtifact];
    let administering = [Action::ReadAudit, Action::ManageTokens, Action::Administer];
    let operating: Vec<_> = Action::ALL
        .into_iter()
        .filter(|action| !administering.contains(action))
        .collect();
    for (groups, policy, actions) in [
        (&["admin"][..], "group:admin", &Action::ALL[..]),
        (&["operator"], "group:operator", &operating),
        (&["observer"], "group:observer", &looking),
        (&["Admin", "operators", ""], "", &[]),
        // No session here accepts them.
        (&["ci"], "", &[]),
        (&[], "", &[]),
    ] {
        let who = principal("team", "ada", groups);
        let told = actions.iter().map(|action| (*action, policy.to_owned()));
        let mut told: Vec<_> = told.collect();
        let mut found = allowed(&who, "team").await;
        let at = |action: Action| Action::ALL.iter().position(|one| *one == action);
        told.sort_by_key(|(action, _)| at(*action));
        found.sort_by_key(|(action, _)| at(*action));
        assert_eq!(found, told, "{groups:?}");
        assert_eq!(allowed(&who, "default").await, [], "{groups:?}");
    }
    // Everything that decided is told.
    let both = principal("team", "ada", &["observer", "operator"]);
    let both = allowed(&both, "team").await;
    let observing: Vec<_> = both
        .iter()
        .filter(|(it, _)| *it == Action::Observe)
        .collect();
    let told: Vec<_> = observing
        .iter()
        .map(|(_, policy)| policy.as_str())
        .collect();
    assert_eq!(told, ["group:observer", "group:operator"]);
}

#[tokio::test]
async fn c55_who_is_refused_is_told_the_groups_that_would_do_and_a_stranger_nothing() {
    let session = Session::of("team", &[]);
    for (groups, of, action, told) in [
        (
            &["observer"][..],
            "team",
            Action::Invoke,
            &["admin", "operator"][..],
        ),
        (
            &[],
            "team",
            Action::Observe,
            &["admin", "operator", "observer"],
        ),
        (&["operator"], "team", Action::Administer, &["admin"]),
        (&["operator"], "team", Action::Invoke, &[]),
        (&["operator"], "others", Action::Invoke, &[]),
    ] {
        let who = principal(of, "ada", groups);
        let context = PolicyContext::default();
        let decision = ask(&authorizer(), &who, action, &session.resource(), &context).await;
        let told: Vec<_> = told
            .iter()
            .map(|group| format!("the group {group}"))
            .collect();
        assert_eq!(*decision.ways_in, *told, "{groups:?} of {of}");
    }
}

#[tokio::test]
async fn c55_ci_may_write_to_what_accepts_it_and_an_agent_may_list_and_write_and_no_more() {
    let (accepting, other) = (
        Session::of("team", &[("accepts", "ci")]),
        Session::of("team", &[("accepts", "cd")]),
    );
    let ci = principal("team", "builds", &["ci"]);
    let agent = Principal {
        kind: PrincipalKind::Agent,
        ..principal("team", "session", &[])
    };
    for action in Action::ALL {
        let sends = action == Action::SendMessage;
        assert_eq!(asked(&authorizer(), &ci, action, &accepting).await, sends);
        assert!(!asked(&authorizer(), &ci, action, &other).await);
        let may = sends || action == Action::ReadMetadata;
        assert_eq!(
            asked(&authorizer(), &agent, action, &other).await,
            may,
            "{action:?}"
        );
    }
}

#[tokio::test]
async fn c55_no_policy_reaches_beyond_its_callers_tenant() {
    let everything = with("@id(\"all\") permit (principal, action, resource);");
    let stranger = principal("others", "eve", &["admin"]);
    let session = Session::of("team", &[]);
    for action in Action::ALL {
        let context = PolicyContext::default();
        for resource in [session.resource(), Resource::Tenant(&session.tenant)] {
            let decision = ask(&everything, &stranger, action, &resource, &context).await;
            assert_eq!(decision, nothing(), "{action:?}");
        }
        let own = principal("team", "nobody", &[]);
        assert!(
            asked(&everything, &own, action, &session).await,
            "{action:?}"
        );
    }
}

#[tokio::test]
async fn c55_what_forbids_goes_before_what_allows_and_is_told_for_the_record() {
    let frozen = with(
        "@id(\"frozen\") forbid (principal, action in Action::\"Speak\", resource is Session) \
         when { resource.labels.contains(\"frozen=yes\") };",
    );
    let ada = principal("team", "ada", &["admin"]);
    let session = Session::of("team", &[("frozen", "yes")]);
    let context = PolicyContext::default();
    let decision = ask(&frozen, &ada, Action::Invoke, &session.resource(), &context).await;
    assert_eq!(
        (decision.allowed, &*decision.policies),
        (false, &["frozen".to_owned()][..])
    );
    assert!(decision.ways_in.is_empty());
    assert!(asked(&frozen, &ada, Action::Observe, &session).await);
    assert!(asked(&frozen, &ada, Action::Invoke, &Session::of("team", &[])).await);
}

#[tokio::test]
async fn c55_what_would_forbid_does_so_where_it_cannot_be_told() {
    // The parent is not among what is told, so that its labels cannot be.
    let kin = with(
        "@id(\"kin\") forbid (principal, action == Action::\"Invoke\", resource) \
         when { resource has parent && resource.parent.labels.contains(\"x=y\") };",
    );
    let ada = principal("team", "ada", &["operator"]);
    let session = Session::of("team", &[]);
    assert!(asked(&kin, &ada, Action::Invoke, &session).await);
    let Resource::Session(facts) = session.resource() else {
        unreachable!("it is one");
    };
    let child = Resource::Session(SessionFacts {
        parent: Some(SessionId::mint(Timestamp::from_millis(2), 2)),
        ..facts
    });
    let decision = ask(
        &kin,
        &ada,
        Action::Invoke,
        &child,
        &PolicyContext::default(),
    )
    .await;
    assert_eq!(
        (decision.allowed, &*decision.policies),
        (false, &["kin".to_owned()][..])
    );
}

#[allow(clippy::too_many_lines, reason = "a table")]
#[tokio::test]
async fn c55_every_part_of_a_session_and_of_a_call_can_decide() {
    let session = Session::of("team", &[("team", "net")]);
    let ada = principal("team", "ada", &["staff"]);
    let labels = Labels::default();
    let context = PolicyContext {
        channel: Some(Channel::Invoke),
        trust: Some(Trust::Relayed),
        size: Some(7),
        model: Some("deep"),
        level: Some("high"),
        agent: Some(&session.agent),
        name: Some(&session.name),
        labels: Some(&labels),
        place: session.place.as_ref(),
        shared: Some(true),
    };
    let id = session.id;
    for (action, condition) in [
        ("Observe", "resource.name == \"docs\"".to_owned()),
        ("Observe", "resource.agent == \"coder\"".to_owned()),
        ("Observe", "resource in Workspace::\"main\"".to_owned()),
        (
            "Observe",
            "resource in AgentDefinition::\"coder\"".to_owned(),
        ),
        ("Observe", "resource in Tenant::\"team\"".to_owned()),
        ("Observe", format!("resource == Session::\"{id}\"")),
        ("Observe", format!("resource.id == \"{id}\"")),
        (
            "Observe",
            "resource.workspace == \"main\" && resource.directory == \".\"".to_owned(),
        ),
        (
            "Observe",
            "resource.labels.containsAny([\"team=net\", \"a=b\"])".to_owned(),
        ),
        (
            "Observe",
            "!resource.paused && principal.trust == \"RELAYED\"".to_owned(),
        ),
        (
            "Observe",
            "principal == User::\"team/ada\" && principal.id == \"ada\"".to_owned(),
        ),
        (
            "Observe",
            "principal in Group::\"staff\" && principal in Tenant::\"team\"".to_owned(),
        ),
        (
            "Invoke",
            "context.channel == \"INVOKE\" && context.size < 8".to_owned(),
        ),
        ("Invoke", "context.trust == \"RELAYED\"".to_owned()),
        (
            "SetModel",
            "context has model && context.model == \"deep\"".to_owned(),
        ),
        (
            "SetThinking",
            "context has level && context.level == \"high\"".to_owned(),
        ),
        (
            "Create",
            "context.agent == \"coder\" && context.shared".to_owned(),
        ),
        (
            "Create",
            "context has name && context.name == \"docs\"".to_owned(),
        ),
        ("Update", "context.labels.isEmpty()".to_owned()),
        (
            "ChangeDirectory",
            "context.workspace == \"main\" && context.directory == \".\"".to_owned(),
        ),
    ] {
        let guarded =
            condition.replace("resource.name ==", "resource has name && resource.name ==");
        let guarded = guarded.replace(
            "resource.workspace ==",
            "resource has workspace && resource has directory && resource.workspace ==",
        );
        let (is, not) = (
            with(&format!(
                "@id(\"p\") permit (principal, action == Action::\"{action}\", resource) when {{ {guarded} }};"
            )),
            with(&format!(
                "@id(\"p\") permit (principal, action == Action::\"{action}\", resource) unless {{ {guarded} }};"
            )),
        );
        let action = Action::named(action).unwrap();
        let resource = match action {
            Action::Create => Resource::Tenant(&session.tenant),
            _ => session.resource(),
        };
        let yes = ask(&is, &ada, action, &resource, &context).await;
        assert!(yes.allowed, "{condition}");
        let no = ask(&not, &ada, action, &resource, &context).await;
        assert!(!no.allowed, "{condition}");
    }
}

#[tokio::test]
async fn c55_each_question_is_one_of_those_that_policies_are_checked_against() {
    let schema = set::schema().unwrap();
    let session = Session::of("team", &[("a", "b")]);
    let (whole, one) = (Resource::Tenant(&session.tenant), session.resource());
    let owner = Owner {
        tenant: owner().0,
        id: owner().1,
    };
    for kind in [
        PrincipalKind::Human,
        PrincipalKind::Service,
        PrincipalKind::Agent,
    ] {
        let who = Principal {
            kind,
            ..principal("team", "ada", &["x"])
        };
        for action in Action::ALL {
            let context = PolicyContext::default();
            let put =
                |resource| Question::put(&owner, (&who, action), resource, &context, Some(schema));
            let fits = [put(&whole), put(&one)].map(|question| question.is_ok());
            let of_tenant = matches!(
                action,
                Action::Create | Action::ManageTokens | Action::Administer
            );
            let of_both = matches!(action, Action::ReadMetadata | Action::ReadAudit);
            assert_eq!(fits, [of_tenant || of_both, !of_tenant], "{action:?}");
        }
    }
}
