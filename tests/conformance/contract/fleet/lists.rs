//! Pages of sessions.

use sessionplane_core::contract::fleet::{CreateSession, ListSessions, SessionOrder};
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::fleet::labels::Priority;
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::ids::ExternalKey;

use super::super::desk::named;
use super::FleetWorlds;
use super::crew::{Crew, labels, names, new};

/// Sessions `s-00` and so on; their names in the order of their ids.
async fn many(crew: &Crew, count: u32) -> Vec<String> {
    let mut made = Vec::new();
    for number in 0..count {
        made.push(crew.create(new(&format!("s-{number:02}"))).await);
    }
    made.sort_by_key(|session| session.id);
    names(&made)
}

pub(crate) async fn c47_b43_every_page_size_lists_each_session_once(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    let mut expected = many(&crew, 23).await;
    let mut sorted = expected.clone();
    sorted.sort();
    for page in [1, 2, 5, 22, 23, 24, 0] {
        let by_id = crew.list_by("", SessionOrder::Id, page).await;
        assert_eq!(names(&by_id), expected, "pages of {page}");
        let by_name = crew.list_by("", SessionOrder::Name, page).await;
        assert_eq!(names(&by_name), sorted, "pages of {page}");
    }
    expected.reverse();
    let newest = crew.list_by("", SessionOrder::IdDescending, 4).await;
    assert_eq!(names(&newest), expected);
    let attention = crew.list_by("", SessionOrder::Attention, 4).await;
    assert_eq!(names(&attention), expected);
    // The one whose name sorts last is found, whatever the listing spans.
    let last = newest.iter().max_by_key(|it| it.name.clone());
    let found = crew.get("s-22").await.id;
    assert_eq!(Some(found), last.map(|it| it.id));
}

pub(crate) async fn c47_what_comes_and_goes_between_pages_doubles_nothing(
    worlds: &dyn FleetWorlds,
) {
    let crew = Crew::new(worlds).await;
    let mut expected = many(&crew, 12).await;
    for order in [SessionOrder::Id, SessionOrder::Name] {
        let (mut seen, mut page_token) = (Vec::new(), None);
        for turn in 0.. {
            let request = ListSessions {
                order,
                page_token,
                page_size: 3,
                ..ListSessions::default()
            };
            let page = crew.try_page(request).await.expect("a page");
            seen.extend(names(&page.sessions));
            page_token = page.next;
            if page_token.is_none() {
                break;
            }
            // The last session of the page goes, and others come before and after it.
            let last = seen.last().expect("a session").clone();
            let deleted = crew.try_delete(named(&last), false, None).await;
            deleted.expect("deleted");
            expected.retain(|name| *name != last);
            let kind = if order == SessionOrder::Id { "x" } else { "y" };
            crew.create(new(&format!("a-{kind}-{turn}"))).await;
        }
        let throughout = expected.iter().filter(|it| it.starts_with("s-"));
        for name in throughout {
            let times = seen.iter().filter(|it| *it == name).count();
            assert_eq!(times, 1, "{name} in {seen:?}");
        }
        let mut once = seen.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), seen.len(), "a name twice in {seen:?}");
    }
}

pub(crate) async fn c47_a_filter_finds_what_it_says_by_every_term(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    let request = |name: &str, label: &str, priority| CreateSession {
        labels: labels(&[label]),
        priority: Priority::parse(priority).expect("a priority"),
        ..new(name)
    };
    crew.create(request("fix-a", "team=net", 5)).await;
    crew.create(request("fix-b", "team=docs", 0)).await;
    crew.create(request("new-a", "team=net", -5)).await;
    crew.pause("new-a", true).await;
    let run = crew.desk("fix-b").invoke("say \"x\"\nhang").await;
    for (filter, expected) in [
        ("", &["fix-a", "fix-b", "new-a"][..]),
        ("labels.team = net", &["fix-a", "new-a"]),
        ("labels.team = net AND name = \"fix-*\"", &["fix-a"]),
        ("name = \"new-a\"", &["new-a"]),
        ("NOT labels.team = net", &["fix-b"]),
        ("phase = WORKING", &["fix-b"]),
        ("phase = PAUSED OR phase = WORKING", &["fix-b", "new-a"]),
        ("NOT phase = DORMANT", &["fix-b", "new-a"]),
        ("paused = true", &["new-a"]),
        ("agent = scripted AND priority > 0", &["fix-a"]),
        ("agent = demo", &[]),
    ] {
        assert_eq!(crew.names(filter).await, expected, "{filter}");
        let by_name = crew.list_by(filter, SessionOrder::Name, 1).await;
        assert_eq!(names(&by_name), expected, "{filter}, by name");
    }
    // What leads to one session alone, in every order.
    let keyed = CreateSession {
        external_key: ExternalKey::parse("job 7").ok(),
        ..CreateSession::default()
    };
    let keyed = crew.create(keyed).await.id;
    for order in [
        SessionOrder::Id,
        SessionOrder::IdDescending,
        SessionOrder::Name,
        SessionOrder::Attention,
    ] {
        let one = crew.list_by("name = fix-a AND labels.team = net", order, 1);
        assert_eq!(names(&one.await), ["fix-a"], "{order:?}");
        let none = crew.list_by("name = fix-a AND labels.team = docs", order, 1);
        assert_eq!(names(&none.await), [""; 0], "{order:?}");
        let by_key = crew.list_by("external_key = \"job 7\"", order, 1).await;
        let ids: Vec<_> = by_key.iter().map(|it| it.id).collect();
        let listed = if order == SessionOrder::Name {
            vec![]
        } else {
            vec![keyed]
        };
        assert_eq!(
            ids, listed,
            "{order:?}: one without a name has no place in theirs"
        );
        let other = crew.list_by("external_key = \"job 8\" OR name = fix-b", order, 1);
        assert_eq!(names(&other.await), ["fix-b"], "{order:?}");
    }
    crew.desk("fix-b").abort().await;
    run.finish().await;
    assert_eq!(crew.names("phase = WORKING").await, [""; 0]);
}

pub(crate) async fn c64_a_token_is_good_for_its_own_question_only(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    many(&crew, 3).await;
    let first = ListSessions {
        page_size: 1,
        ..ListSessions::default()
    };
    let token = crew.try_page(first.clone()).await.expect("a page").next;
    assert!(token.is_some());
    let with = |filter: &str, order, page_token: Option<String>, page_size| ListSessions {
        filter: filter.to_owned(),
        order,
        page_token,
        page_size,
    };
    for (request, field) in [
        (
            with("paused = false", SessionOrder::Id, token.clone(), 1),
            "page_token",
        ),
        (with("", SessionOrder::Name, token.clone(), 1), "page_token"),
        (
            with("", SessionOrder::Id, Some("x".to_owned()), 1),
            "page_token",
        ),
        (with("", SessionOrder::Id, token, 1001), "page_size"),
        (with("phase = SLEEPY", SessionOrder::Id, None, 1), "filter"),
    ] {
        let error = crew.try_page(request).await.expect_err("refused");
        assert_eq!(error.reason, Reason::InvalidArgument);
        assert_eq!(error.violations[0].field, field, "{error}");
    }
}

pub(crate) async fn c46_who_needs_people_is_listed_first(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    for name in ["sleeps", "works", "asks", "held", "slept"] {
        crew.create(new(name)).await;
    }
    crew.pause("held", true).await;
    let works = crew.desk("works").invoke("say \"x\"\nhang").await;
    let asks = crew.desk("asks");
    let asking = asks.invoke("ask q confirm \"Go on?\"\nwait-answers").await;
    let mut watch = asks.watch().await;
    while watch.snapshot.view.open_interactions().next().is_none() {
        let _ = watch.next().await.expect("an event");
        if asks.state().await.view.open_interactions().next().is_some() {
            break;
        }
    }
    let mut dormant = [crew.get("slept").await, crew.get("sleeps").await];
    dormant.sort_by_key(|it| std::cmp::Reverse(it.id));
    let dormant = names(&dormant);
    let expected = ["asks", "works", "held", &dormant[0], &dormant[1]];
    for page in [1, 2, 0] {
        let listed = crew.list_by("", SessionOrder::Attention, page).await;
        assert_eq!(names(&listed), expected, "pages of {page}");
        assert_eq!(listed[0].phase, Phase::NeedsInput);
    }
    let alive = "phase = WORKING OR phase = NEEDS_INPUT";
    let live = crew.list_by(alive, SessionOrder::Attention, 0).await;
    assert_eq!(names(&live), ["asks", "works"]);
    for (name, run) in [("asks", asking), ("works", works)] {
        crew.desk(name).abort().await;
        run.finish().await;
    }
}
