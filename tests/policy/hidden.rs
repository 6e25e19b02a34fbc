//! What a caller may not see is as if it were not there: in lists and their pages, in watches, in what is
//! refused.

use std::collections::BTreeMap;

use prost::Message as _;
use sessionplane::v1 as wire;
use tonic::{Code, Status, Streaming};

use crate::world::{World, by_id, named, soon};

const OPERATOR: &str = "team/ada/operator";
/// Who sees what is labelled for it.
const READER: &str = "team/rita/readers";
const READERS: &str = "@id(\"readers\") permit (principal in Group::\"readers\", \
    action in Action::\"Look\", resource is Session) \
    when { resource.labels.contains(\"for=readers\") };";
const FOR: (&str, &str) = ("for", "readers");
const LIST: &str = "/sessionplane.v1.Fleet/ListSessions";
const WATCH: &str = "/sessionplane.v1.Fleet/WatchSessions";

/// The pages of a list: names, and whether a token follows.
async fn pages(world: &World, request: &wire::ListSessionsRequest) -> Vec<(Vec<String>, String)> {
    let (mut pages, mut request) = (Vec::new(), request.clone());
    loop {
        let page: Result<wire::ListSessionsResponse, Status> =
            world.ask(READER, LIST, &request).await;
        let page = page.unwrap();
        let names = page.sessions.iter().map(|it| it.name.clone()).collect();
        let next = page.next_page_token;
        pages.push((names, next.clone()));
        if next.is_empty() {
            return pages;
        }
        request.page_token = next;
    }
}

#[tokio::test]
async fn c04_a_list_is_the_same_to_the_byte_whether_what_is_hidden_is_there_or_not() {
    let world = World::new().await;
    world.hold(READERS);
    let mut shown = Vec::new();
    for number in 0..8 {
        shown.push(
            world
                .create(OPERATOR, &format!("shown-{number}"), &[FOR])
                .await,
        );
    }
    let requests: Vec<wire::ListSessionsRequest> = ["id", "id desc", "name", "attention"]
        .into_iter()
        .flat_map(|order| {
            [1, 4, 8, 9].map(|page_size| wire::ListSessionsRequest {
                page_size,
                order_by: order.to_owned(),
                ..Default::default()
            })
        })
        .collect();
    let mut before = Vec::new();
    for request in &requests {
        before.push(pages(&world, request).await);
    }
    // Before, between and behind them, in each order.
    for number in 0..40 {
        for name in ["aaa", "shown-3", "zzz"] {
            world
                .create(OPERATOR, &format!("{name}-{number}"), &[("secret", "yes")])
                .await;
        }
    }
    for (request, before) in requests.iter().zip(before) {
        assert_eq!(pages(&world, request).await, before, "{request:?}");
    }
    let all = wire::ListSessionsRequest::default();
    let all: wire::ListSessionsResponse = world.ask(OPERATOR, LIST, &all).await.unwrap();
    assert_eq!(
        all.sessions.len(),
        100,
        "who may see all of them is shown a full page"
    );
    for filter in ["labels.secret:*", "name=\"aaa-1\"", "labels.secret=\"yes\""] {
        let filtered = wire::ListSessionsRequest {
            filter: filter.to_owned(),
            ..Default::default()
        };
        let found: Result<wire::ListSessionsResponse, Status> =
            world.ask(READER, LIST, &filtered).await;
        if let Ok(found) = found {
            assert_eq!(found, wire::ListSessionsResponse::default(), "{filter}");
        }
    }
}

/// A watch, and what it has told of each session: its name, or that it is gone.
struct Watch {
    stream: Streaming<bytes::Bytes>,
    sessions: BTreeMap<String, String>,
    /// Every id that was ever told.
    told: Vec<String>,
    expired: usize,
}

impl Watch {
    async fn open(world: &World) -> Self {
        let request = wire::WatchSessionsRequest::default().encode_to_vec();
        let stream = world
            .begin(Some(READER), WATCH, request.into())
            .await
            .unwrap();
        Self {
            stream,
            sessions: BTreeMap::new(),
            told: Vec::new(),
            expired: 0,
        }
    }

    /// Reads to the next bookmark.
    async fn bookmark(&mut self) -> String {
        use wire::watch_sessions_response::Item;
        loop {
            let item = soon(self.stream.message()).await.unwrap().unwrap();
            match wire::WatchSessionsResponse::decode(item)
                .unwrap()
                .item
                .unwrap()
            {
                Item::Bookmark(bookmark) => return bookmark.bookmark,
                Item::BookmarkExpired(_) => {
                    self.expired += 1;
                    self.sessions.clear();
                }
                Item::Changed(changed) => {
                    for session in changed.sessions {
                        self.told.push(session.id.clone());
                        self.sessions.insert(session.id, session.name);
                    }
                    for gone in changed.gone_session_ids {
                        self.told.push(gone.clone());
                        self.sessions.remove(&gone);
                    }
                }
            }
        }
    }

    /// Reads until it has told just these.
    async fn until(&mut self, names: &[&str]) {
        loop {
            let mut told: Vec<&str> = self.sessions.values().map(String::as_str).collect();
            told.sort_unstable();
            if told == names {
                return;
            }
            self.bookmark().await;
        }
    }
}

#[tokio::test]
async fn c47_c55_a_watch_adds_what_becomes_visible_removes_what_is_hidden_and_tells_nothing_else() {
    let world = World::new().await;
    world.hold(READERS);
    world.create(OPERATOR, "shown", &[FOR]).await;
    let secret = world.create(OPERATOR, "secret", &[]).await;
    let mut watch = Watch::open(&world).await;
    watch.until(&["shown"]).await;
    // Changes of what is hidden are not told, its end included.
    world.label(OPERATOR, "secret", &[("a", "b")]).await;
    world.label(OPERATOR, "shown", &[FOR, ("a", "b")]).await;
    world.create(OPERATOR, "later", &[]).await;
    world.label(OPERATOR, "later", &[FOR]).await;
    watch.until(&["later", "shown"]).await;
    let delete = wire::DeleteSessionRequest {
        session: named("secret"),
        ..Default::default()
    };
    let path = "/sessionplane.v1.Fleet/DeleteSession";
    let deleted: wire::DeleteSessionResponse = world.ask(OPERATOR, path, &delete).await.unwrap();
    assert!(deleted.answer.is_some());
    world.label(OPERATOR, "later", &[]).await;
    watch.until(&["shown"]).await;
    assert!(!watch.told.contains(&secret), "{:?}", watch.told);
    assert_eq!(watch.expired, 0);
}

#[tokio::test]
async fn c47_c55_a_watch_is_told_anew_when_other_policies_hold_and_its_bookmark_expires() {
    let world = World::new().await;
    world.hold(READERS);
    world.create(OPERATOR, "shown", &[FOR]).await;
    world.create(OPERATOR, "other", &[("for", "others")]).await;
    let mut watch = Watch::open(&world).await;
    let bookmark = watch.bookmark().await;
    watch.until(&["shown"]).await;
    world.hold(&READERS.replace("for=readers", "for=others"));
    watch.until(&["other"]).await;
    assert_eq!(watch.expired, 1);
    let resumed = wire::WatchSessionsRequest {
        bookmark,
        ..Default::default()
    };
    let message = resumed.encode_to_vec().into();
    let stream = world.begin(Some(READER), WATCH, message).await.unwrap();
    let mut resumed = Watch {
        stream,
        sessions: BTreeMap::new(),
        told: Vec::new(),
        expired: 0,
    };
    resumed.until(&["other"]).await;
    assert_eq!((resumed.expired, resumed.told.len()), (1, 1));
}

#[tokio::test]
async fn c04_what_is_refused_names_nothing_that_is_hidden() {
    let world = World::new().await;
    world.hold(
        "@id(\"editors\") permit (principal in Group::\"readers\", action, resource is Session) \
         when { resource.labels.contains(\"for=readers\") };",
    );
    let parent = world.create(OPERATOR, "parent", &[FOR]).await;
    world.create(OPERATOR, "taken", &[]).await;
    let child = wire::CreateSessionRequest {
        name: "child".to_owned(),
        parent_session: by_id(&parent),
        ..Default::default()
    };
    let path = "/sessionplane.v1.Fleet/CreateSession";
    let child: wire::CreateSessionResponse = world.ask(OPERATOR, path, &child).await.unwrap();
    let child = child.session.unwrap().id;
    // Others branch off it, which keeps it; which ones, only who may see them is told.
    let delete = wire::DeleteSessionRequest {
        session: by_id(&parent),
        ..Default::default()
    };
    let path = "/sessionplane.v1.Fleet/DeleteSession";
    for (who, names) in [(READER, false), (OPERATOR, true)] {
        let refused: Result<wire::DeleteSessionResponse, Status> =
            world.ask(who, path, &delete).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
        assert_eq!(refused.message().contains(&child), names, "{refused:?}");
    }
    // Who may not create is not told that a name is taken.
    let rename = wire::UpdateSessionRequest {
        session: by_id(&parent),
        update_mask: Some(prost_types::FieldMask {
            paths: vec!["name".to_owned()],
        }),
        name: "taken".to_owned(),
        ..Default::default()
    };
    let path = "/sessionplane.v1.Fleet/UpdateSession";
    for (who, code) in [
        (READER, Code::PermissionDenied),
        (OPERATOR, Code::AlreadyExists),
    ] {
        let refused: Result<wire::UpdateSessionResponse, Status> =
            world.ask(who, path, &rename).await;
        assert_eq!(refused.unwrap_err().code(), code, "{who}");
    }
}
