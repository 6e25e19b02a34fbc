//! A filter wants what its words say, and no index term loses a session that it wants.

use proptest::prelude::*;

use super::*;
use crate::domain::fleet::labels::Labels;
use crate::domain::ids::{SessionId, SessionName};
use crate::domain::place::{Checkout, Directory, Place};
use crate::domain::settings::SettingsOverride;
use crate::domain::usage::Usage;

fn session() -> SessionSummary {
    let label = |key, value| {
        (
            LabelKey::parse(key).unwrap(),
            LabelValue::parse(value).unwrap(),
        )
    };
    SessionSummary {
        id: SessionId::mint(Timestamp::from_millis(1_000), 1),
        name: Some(SessionName::parse("fix-flaky-tests").unwrap()),
        external_key: None,
        agent: AgentName::parse("demo").unwrap(),
        labels: Labels::of([label("team", "net")]).unwrap(),
        priority: Priority::parse(5).unwrap(),
        paused: false,
        place: Some(Place {
            workspace: WorkspaceName::parse("main").unwrap(),
            directory: Directory::parse("crates/net").unwrap(),
        }),
        checkout: Some(Checkout {
            branch: Some("fix/flaky".into()),
            commit: None,
        }),
        lineage: None,
        phase: Phase::Working,
        since: None,
        stalled_since: None,
        active_run: None,
        last_run: None,
        questions: Vec::new(),
        queued: 0,
        chosen: SettingsOverride::default(),
        usage: Usage::default(),
        created_at: Timestamp::from_millis(1_000),
        updated_at: Timestamp::from_millis(2_000),
        metadata_revision: 1,
        revision: 1,
    }
}

fn prefix(text: &str) -> Pattern {
    Pattern::Prefix(text.to_owned())
}

#[test]
fn a_condition_holds_for_what_it_says() {
    let session = session();
    let holds = |condition: Condition| Filter::Is(condition).wants(&session);
    let key = |text| LabelKey::parse(text).unwrap();
    let value = |text| LabelValue::parse(text).unwrap();
    let at = Timestamp::from_millis;
    for yes in [
        Condition::Phase(Phase::Working),
        Condition::Stalled(false),
        Condition::HasLabel(key("team")),
        Condition::Label(key("team"), value("net")),
        Condition::Name(prefix("fix-")),
        Condition::Name(Pattern::Whole("fix-flaky-tests".to_owned())),
        Condition::Directory(prefix("crates/")),
        Condition::Branch(prefix("fix/")),
        Condition::Priority(Comparison::AtLeast, Priority::parse(5).unwrap()),
        Condition::Time(Time::Created, Comparison::Less, at(1_001)),
        Condition::Time(Time::Updated, Comparison::Equal, at(2_000)),
    ] {
        assert!(holds(yes.clone()), "{yes:?}");
    }
    for no in [
        Condition::Phase(Phase::NeedsInput),
        Condition::Label(key("team"), value("ne")),
        Condition::HasLabel(key("job")),
        Condition::Name(Pattern::Whole("fix-".to_owned())),
        Condition::ExternalKey(prefix("")),
        Condition::Priority(Comparison::Greater, Priority::parse(5).unwrap()),
        Condition::Time(Time::LastRun, Comparison::Greater, at(0)),
    ] {
        assert!(!holds(no.clone()), "{no:?}");
    }
}

#[test]
fn nothing_said_wants_all_and_no_choice_wants_none() {
    assert!(Filter::default().wants(&session()));
    assert!(!Filter::Any(Vec::new()).wants(&session()));
}

#[test]
fn the_term_with_the_fewest_sessions_leads() {
    let agent = Filter::Is(Condition::Agent(AgentName::parse("demo").unwrap()));
    let working = Filter::Is(Condition::Phase(Phase::Working));
    let dormant = Filter::Is(Condition::Phase(Phase::Dormant));
    let both = Filter::All(vec![agent.clone(), working.clone()]);
    assert_eq!(both.index_term(), IndexTerm::Live);
    let either = Filter::Any(vec![agent.clone(), working.clone()]);
    assert_eq!(either.index_term(), IndexTerm::Stored(StoredTerm::Every));
    let agreed = Filter::Any(vec![
        both,
        Filter::All(vec![agent.clone(), dormant.clone()]),
    ]);
    assert!(matches!(
        agreed.index_term(),
        IndexTerm::Stored(StoredTerm::Agent(_))
    ));
    assert_eq!(dormant.index_term(), IndexTerm::Stored(StoredTerm::Every));
    // What only one session can have leads to it, whatever else is asked.
    let whole = |text: &str| Pattern::Whole(text.to_owned());
    let named = Filter::Is(Condition::Name(whole("a")));
    let one = Filter::All(vec![working.clone(), agent, named]);
    let name = SessionName::parse("a").unwrap();
    assert_eq!(one.index_term(), IndexTerm::Name(name));
    let keyed = Filter::Is(Condition::ExternalKey(whole("job 7")));
    let key = ExternalKey::parse("job 7").unwrap();
    assert_eq!(keyed.index_term(), IndexTerm::ExternalKey(key));
    let not = Filter::Not(Box::new(working));
    assert_eq!(not.index_term(), IndexTerm::Stored(StoredTerm::Every));
}

/// The sessions that an index has under a term, judged without any index.
fn has(term: &IndexTerm, session: &SessionSummary) -> bool {
    let term = match term {
        IndexTerm::Name(name) => return session.name.as_ref() == Some(name),
        IndexTerm::ExternalKey(key) => return session.external_key.as_ref() == Some(key),
        IndexTerm::Live => {
            let elsewhere = [Phase::Dormant, Phase::Paused, Phase::Queued];
            return !elsewhere.contains(&session.phase);
        }
        IndexTerm::Stored(term) => term,
    };
    match term {
        StoredTerm::NamePrefix(text) => prefix(text).matches(
            session
                .name
                .as_ref()
                .map(crate::domain::ids::SessionName::as_str),
        ),
        StoredTerm::Label(key, value) => session.labels.get(key) == Some(value),
        StoredTerm::Parent(id) => session.lineage.is_some_and(|it| it.parent == *id),
        StoredTerm::Workspace(name) => session
            .place
            .as_ref()
            .is_some_and(|it| it.workspace == *name),
        StoredTerm::Agent(name) => session.agent == *name,
        StoredTerm::Paused => session.paused,
        StoredTerm::Every => true,
    }
}

fn conditions() -> impl Strategy<Value = Condition> {
    let phase = prop::sample::select(Phase::ALL.to_vec());
    prop_oneof![
        phase.prop_map(Condition::Phase),
        any::<bool>().prop_map(Condition::Stalled),
        any::<bool>().prop_map(Condition::Paused),
        "[ab]".prop_map(|text| Condition::Agent(AgentName::parse(&text).unwrap())),
        "[ab]".prop_map(|text| Condition::Workspace(WorkspaceName::parse(&text).unwrap())),
        "[ab]{1,2}".prop_map(|text| Condition::Name(Pattern::Prefix(text))),
        "[ab]{1,2}".prop_map(|text| Condition::Name(Pattern::Whole(text))),
        "[ab]".prop_map(|text| {
            let key = LabelKey::parse("l").unwrap();
            Condition::Label(key, LabelValue::parse(&text).unwrap())
        }),
    ]
}

fn filters() -> impl Strategy<Value = Filter> {
    conditions()
        .prop_map(Filter::Is)
        .prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Filter::All),
                prop::collection::vec(inner.clone(), 0..3).prop_map(Filter::Any),
                inner.prop_map(|filter| Filter::Not(Box::new(filter))),
            ]
        })
}

fn sessions() -> impl Strategy<Value = SessionSummary> {
    let phase = prop::sample::select(Phase::ALL.to_vec());
    (phase, any::<bool>(), "[ab]", "[ab]", "[ab]{1,2}", "[ab]").prop_map(
        |(phase, stalled, agent, workspace, name, label)| {
            let mut session = session();
            session.phase = phase;
            session.paused = phase == Phase::Paused;
            let works = matches!(phase, Phase::Working | Phase::Compacting);
            session.stalled_since = (works && stalled).then_some(session.created_at);
            session.agent = AgentName::parse(&agent).unwrap();
            session.name = Some(SessionName::parse(&name).unwrap());
            session.place = Some(Place {
                workspace: WorkspaceName::parse(&workspace).unwrap(),
                directory: Directory::root(),
            });
            let key = LabelKey::parse("l").unwrap();
            session.labels = Labels::of([(key, LabelValue::parse(&label).unwrap())]).unwrap();
            session
        },
    )
}

proptest! {
    #[test]
    fn no_index_term_loses_a_wanted_session(filter in filters(), session in sessions()) {
        if filter.wants(&session) {
            let term = filter.index_term();
            prop_assert!(has(&term, &session), "{:?} of {:?}", term, filter);
        }
    }
}

fn key(text: &str) -> LabelKey {
    LabelKey::parse(text).unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn parsed(text: &str) -> Filter {
    Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn what_callers_spell_is_what_is_asked() {
    let is = Filter::Is;
    let named = |text: &str| Condition::Name(Pattern::Whole(text.to_owned()));
    for (text, expected) in [
        ("", Filter::default()),
        (
            "phase = NEEDS_INPUT",
            is(Condition::Phase(Phase::NeedsInput)),
        ),
        ("phase=working", is(Condition::Phase(Phase::Working))),
        ("name = \"fix-*\"", is(Condition::Name(prefix("fix-")))),
        ("name = fix-flaky-tests", is(named("fix-flaky-tests"))),
        ("stalled = true", is(Condition::Stalled(true))),
        ("labels.team:*", is(Condition::HasLabel(key("team")))),
        (
            "branch = \"release/1.2\"",
            is(Condition::Branch(Pattern::Whole("release/1.2".into()))),
        ),
        (
            "created_at > \"2026-11-30T00:00:00Z\"",
            is(Condition::Time(
                Time::Created,
                Comparison::Greater,
                at(1_795_996_800_000),
            )),
        ),
        (
            "priority >= -5",
            is(Condition::Priority(
                Comparison::AtLeast,
                Priority::parse(-5).unwrap(),
            )),
        ),
        (
            "NOT phase = DORMANT",
            Filter::Not(Box::new(is(Condition::Phase(Phase::Dormant)))),
        ),
        (
            "paused != true",
            Filter::Not(Box::new(is(Condition::Paused(true)))),
        ),
        (
            "phase = WORKING OR phase = READY",
            Filter::Any(vec![
                is(Condition::Phase(Phase::Working)),
                is(Condition::Phase(Phase::Ready)),
            ]),
        ),
        (
            "name = a AND NOT (stalled = true OR paused = true)",
            Filter::All(vec![
                is(named("a")),
                Filter::Not(Box::new(Filter::Any(vec![
                    is(Condition::Stalled(true)),
                    is(Condition::Paused(true)),
                ]))),
            ]),
        ),
    ] {
        assert_eq!(parsed(text), expected, "{text}");
    }
}

#[test]
fn c60_a_filter_that_is_wrong_is_told_what_would_be_right() {
    for (text, told) in [
        ("phase = BUSY", "NEEDS_INPUT"),
        ("colour = red", "no field `colour`; fields are phase"),
        ("labels.Team = x", "a-z"),
        ("priority = high", "whole number"),
        ("priority = 1000", "-100 to 100"),
        ("name > a", "use = or !="),
        ("name = \"*x\"", "elsewhere than at its end"),
        ("created_at > yesterday", "2026-11-30T12:00:00Z"),
        ("stalled = maybe", "true or false"),
        (
            "flaky",
            "the word `flaky`, which is compared with nothing; a condition is FIELD OPERATOR VALUE, \
             with one of = != < <= > >= or :, for example `name = \"fix-*\"`",
        ),
        ("stalled", "write `stalled = true`"),
        ("dormant", "write `phase = DORMANT`"),
        (
            "name = \"a\" or name = \"api\"",
            "the word `or` where a condition should be; write OR",
        ),
        (
            "not stalled = true",
            "the word `not` where a condition should be; write NOT",
        ),
        (
            "name ~ \"x\"",
            "the word `name`, which is compared with nothing; a condition is",
        ),
        ("priority", "for example `priority > 0`"),
        ("phase = ", "ends too soon"),
        ("phase = stalled", "write `stalled = true`"),
        (
            "parent = me",
            "compares `parent` with \"me\", which is no session's id (a ULID",
        ),
        (
            "agent = \"A B\"",
            "compares `agent` with \"A B\", which cannot be",
        ),
        ("labels.a.b.c() = 1", ""),
        (
            "labels.team = \"web\" AND",
            "ends with AND; the condition after it is missing",
        ),
        (
            "phase = READY OR",
            "ends with OR; the condition after it is missing",
        ),
        (
            "phase = READY AND OR name = a",
            "has OR where a condition should be, before \"name = a\"",
        ),
        ("phase = READY)", "from \")\" on (byte 13)"),
        ("name = \"fix", "is no filter"),
    ] {
        let error = Filter::parse(text).expect_err(text).to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}

#[test]
fn the_page_of_the_fleet_has_every_field_and_phase_and_filters_that_are_some() {
    let page = include_str!("../../../../../../docs/fleet.md");
    for field in super::parse::FIELDS {
        assert!(page.contains(&format!("| `{field}` |")), "{field}");
    }
    for phase in Phase::ALL {
        let phase = phase.as_str().to_lowercase();
        assert!(page.contains(&format!("| `{phase}` |")), "{phase}");
    }
    let block = page
        .split("```filter\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let filters: Vec<_> = block.unwrap_or_default().lines().collect();
    assert!(filters.len() > 3, "{filters:?}");
    for filter in filters {
        parsed(filter);
    }
    // The binding that the page tells.
    let both = parsed("paused = true AND stalled = true OR phase = READY");
    assert!(matches!(both, Filter::All(parts) if parts.len() == 2));
}

#[test]
fn c60_a_filter_has_bounds_that_are_told() {
    let long = format!("name = \"{}\"", "a".repeat(MAX_FILTER_BYTES));
    assert!(
        Filter::parse(&long)
            .unwrap_err()
            .to_string()
            .contains("2048")
    );
    let many = vec!["stalled = true"; MAX_CONDITIONS + 1].join(" AND ");
    assert!(
        Filter::parse(&many)
            .unwrap_err()
            .to_string()
            .contains("more than 64")
    );
    let deep = format!("{}stalled = true{}", "(".repeat(200), ")".repeat(200));
    assert!(Filter::parse(&deep).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,80}") {
        let _ = Filter::parse(&text);
    }
}
