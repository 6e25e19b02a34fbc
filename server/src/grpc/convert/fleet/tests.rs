use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::place::Directory;

use super::*;

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, CallError>, field: &str, reason: Reason) {
    let error = answer.unwrap_err();
    assert_eq!(error.violations[0].field, field, "{error}");
    assert_eq!(error.reason, reason, "{error}");
}

#[test]
fn a_session_is_asked_for_with_nothing_or_with_everything() {
    assert_eq!(
        create(wire::CreateSessionRequest::default()),
        Ok(CreateSession::default())
    );
    let asked = create(wire::CreateSessionRequest {
        name: "docs".to_owned(),
        external_key: "any text".to_owned(),
        agent: "demo".to_owned(),
        priority: -3,
        paused: true,
        workspace: "home".to_owned(),
        directory: "./crates//net".to_owned(),
        worktree_branch: "fix/flaky".to_owned(),
        ..Default::default()
    });
    let asked = asked.unwrap();
    assert_eq!(asked.directory, Directory::parse("crates/net").ok());
    assert_eq!(asked.worktree_branch.as_deref(), Some("fix/flaky"));
    assert!(asked.paused);
}

#[test]
fn a_session_that_cannot_be_is_refused_by_field() {
    let with = |change: fn(&mut wire::CreateSessionRequest)| {
        let mut request = wire::CreateSessionRequest::default();
        change(&mut request);
        create(request)
    };
    let invalid = Reason::InvalidArgument;
    refused(with(|it| it.name = "Docs".to_owned()), "name", invalid);
    let ulid = with(|it| it.name = "01arz3ndektsv4rrffq69g5fav".to_owned());
    refused(ulid, "name", invalid);
    refused(with(|it| it.agent = "a b".to_owned()), "agent", invalid);
    refused(with(|it| it.priority = 200), "priority", invalid);
    refused(
        with(|it| it.workspace = "/w".to_owned()),
        "workspace",
        invalid,
    );
    for bad in ["/etc", "..", "a/../..", "a\0b"] {
        let asked = create(wire::CreateSessionRequest {
            directory: bad.to_owned(),
            ..Default::default()
        });
        refused(asked, "directory", invalid);
    }
    let long = with(|it| it.directory = "d".repeat(1025));
    refused(long, "directory", Reason::TooLarge);
    let key = with(|it| it.external_key = "k".repeat(257));
    refused(key, "external_key", Reason::TooLarge);
    for bad in ["-b", "a b", "a\nb"] {
        let asked = create(wire::CreateSessionRequest {
            worktree_branch: bad.to_owned(),
            ..Default::default()
        });
        refused(asked, "worktree_branch", invalid);
    }
    let long = with(|it| it.worktree_branch = "b".repeat(257));
    refused(long, "worktree_branch", Reason::TooLarge);
    let entry = with(|it| it.from_entry_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV-1".to_owned());
    refused(entry, "from_entry_id", invalid);
}

#[test]
fn c60_a_page_has_a_bounded_size_and_an_order_that_is_known() {
    for bad in [-1, 1001, i32::MIN, i32::MAX] {
        let asked = list(wire::ListSessionsRequest {
            page_size: bad,
            ..Default::default()
        });
        refused(asked, "page_size", Reason::InvalidArgument);
        let asked = list_interactions(wire::ListInteractionsRequest {
            page_size: bad,
            ..Default::default()
        });
        refused(asked, "page_size", Reason::InvalidArgument);
    }
    for good in [0, 1, 1000] {
        assert!(page_size(good).is_ok(), "{good}");
    }
    let asked = list(wire::ListSessionsRequest {
        order_by: "age".to_owned(),
        ..Default::default()
    });
    refused(asked, "order_by", Reason::InvalidArgument);
    let newest = list(wire::ListSessionsRequest {
        order_by: " id  desc".to_owned(),
        ..Default::default()
    });
    assert_eq!(newest.unwrap().order, SessionOrder::IdDescending);
}

#[test]
fn an_etag_is_one_that_was_told_and_a_move_says_where_to() {
    let name = wire::session_ref::Ref::Name("docs".to_owned());
    let docs = wire::SessionRef { r#ref: Some(name) };
    let with = |etag: &str| wire::DeleteSessionRequest {
        session: Some(docs.clone()),
        etag: etag.to_owned(),
        ..Default::default()
    };
    assert_eq!(delete(with("")).unwrap().etag, None);
    assert_eq!(delete(with("12")).unwrap().etag, Some(12));
    for bad in ["x", "-1", "+1", " 1", "01", "99999999999999999999"] {
        refused(delete(with(bad)), "etag", Reason::InvalidArgument);
    }
    let nowhere = change_directory(wire::ChangeDirectoryRequest {
        session: Some(docs),
        ..Default::default()
    });
    refused(nowhere, "directory", Reason::InvalidArgument);
}
