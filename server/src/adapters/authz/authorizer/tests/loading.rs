//! What becomes of policies when they are loaded: refused, taken in the place of others, cut into slices,
//! and their decisions kept.

use super::*;

#[test]
fn c55_a_policy_that_makes_no_sense_is_refused_with_its_file_and_line() {
    for (text, says) in [
        (
            "permit (principal, action, resource);",
            "policies.cedar:1: a policy has no name",
        ),
        (
            "\n@id(\"a\")\npermit (principal action, resource);",
            "policies.cedar:3",
        ),
        (
            "@id(\"a\") permit (principal, action == Action::\"Invok\", resource);",
            "Invok",
        ),
        (
            "@id(\"a\") permit (principal, action == Action::\"Invoke\", resource) when { resource.labls.isEmpty() };",
            "labls",
        ),
        (
            "@id(\"a\") permit (principal, action == Action::\"Invoke\", resource) when { context.size > \"7\" };",
            "policies.cedar:1",
        ),
        (
            "@id(\"a\") permit (principal, action == Action::\"Observe\", resource) when { resource.name == \"x\" };",
            "name",
        ),
        (
            "@id(\"a\") permit (principal == User::\"ada\", action, resource);",
            "TENANT/NAME",
        ),
        (
            "@id(\"a\") permit (principal, action, resource == Session::\"docs\");",
            "is no session",
        ),
        (
            "@id(\"a b\") permit (principal, action, resource);",
            "must be 1-100",
        ),
        (
            "@id(\"a\") permit (principal, action, resource);\n@id(\"a\") permit (principal, action, resource);",
            "policies.cedar:2: @id(\"a\") is taken",
        ),
        (
            "@id(\"a\") permit (principal == ?principal, action, resource);",
            "template",
        ),
        (
            "@id(\"a\") permit (principal, action, resource == Sesion::\"x\");",
            "Sesion",
        ),
    ] {
        let told = wrong(text);
        assert!(told.contains(says), "{text}\n{told}");
    }
    assert_eq!(
        wrong("@id(\"a\") permit (principal, action, resource);"),
        ""
    );
}

#[tokio::test]
async fn c55_other_policies_hold_at_once_and_bad_ones_never() {
    let authorizer = authorizer();
    let (ada, session) = (
        principal("team", "ada", &["staff"]),
        Session::of("team", &[]),
    );
    let version = authorizer.version();
    assert!(!asked(&authorizer, &ada, Action::Observe, &session).await);
    let bad = authorizer.replace(&[source("permit (")]);
    assert!(matches!(bad, Err(PolicyError::Wrong(_))));
    assert_eq!(authorizer.version(), version);
    let staff = "@id(\"staff\") permit (principal in Group::\"staff\", action, resource);";
    let heard = authorizer.changed_from(version);
    authorizer.replace(&[source(staff)]).unwrap();
    heard.await;
    assert!(asked(&authorizer, &ada, Action::Observe, &session).await);
    let operator = principal("team", "bob", &["operator"]);
    assert!(!asked(&authorizer, &operator, Action::Observe, &session).await);
    assert_eq!(authorizer.count(), 1);
}

#[test]
fn c55_a_decision_looks_at_the_policies_of_its_action_and_tenant_only() {
    let policies = (0..50).flat_map(|tenant| {
        ["Invoke", "Observe", "Abort"].map(|action| {
            format!(
                "@id(\"t{tenant}-{action}\") permit (principal in Group::\"g\", \
                 action == Action::\"{action}\", resource in Tenant::\"t{tenant}\");\n\
                 @id(\"t{tenant}-{action}-u\") permit (principal == User::\"t{tenant}/ada\", \
                 action == Action::\"{action}\", resource);\n"
            )
        })
    });
    let text: String = policies.collect();
    let loaded = with(&text);
    let loaded = loaded.current.load();
    let count = |tenant: &str, action| {
        let tenant = TenantId::parse(tenant).unwrap();
        loaded
            .slices
            .get(&tenant, action)
            .unwrap()
            .set
            .policies()
            .count()
    };
    assert_eq!(loaded.count, 306);
    // Two of its own, and those of the default set.
    assert_eq!(count("t7", Action::Invoke), 2 + 3);
    assert_eq!(count("t7", Action::Observe), 2 + 4);
    assert_eq!(count("elsewhere", Action::Invoke), 3);
    assert_eq!(count("t7", Action::Administer), 2);
}

#[tokio::test]
async fn c55_sessions_that_are_the_same_in_what_is_asked_take_one_decision() {
    let netted = with(
        "@id(\"net\") permit (principal in Group::\"net\", action == Action::\"Observe\", resource) \
         when { resource.labels.contains(\"team=net\") };",
    );
    let ada = principal("team", "ada", &["net"]);
    let context = PolicyContext::default();
    for number in 0..1000 {
        let mut session = Session::of("team", &[("n", &number.to_string()), ("team", "net")]);
        if number % 2 == 0 {
            session.labels = Labels::default();
        }
        session.id = SessionId::mint(Timestamp::from_millis(1), number);
        let resource = session.resource();
        let decided = netted.authorize(&ada, Action::Observe, &resource, &context);
        assert_eq!(decided.await.allowed, number % 2 == 1);
    }
    assert_eq!(netted.current.load().kept.lock().unwrap().len(), 2);
    assert!(!netted.asks_of_sharing(Action::Create));
    let apart = with(
        "@id(\"apart\") forbid (principal, action == Action::\"Create\", resource) \
         when { context.shared };",
    );
    assert!(apart.asks_of_sharing(Action::Create));
    assert!(!apart.asks_of_sharing(Action::ChangeDirectory));
}
