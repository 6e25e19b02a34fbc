//! A server that is killed while it writes the rows of the indexes of a directory that an earlier one made,
//! in a round of them and after the last: the next one goes on, and every session is found, once.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use futures_util::StreamExt as _;
use futures_util::stream;
use sessionplane::store::v1::{MetaRecord, RoundRecord};
use sessionplane_client::Client;
use sessionplane_client::contract::CallOptions;
use sessionplane_client::contract::fleet::{CreateSession, Fleet as _, ListSessions};
use sessionplane_client::domain::ids::SessionName;

use crate::daemon::{Home, Started};

/// More than what one round indexes.
const SESSIONS: usize = 4200;
/// Calls under way at the same time.
const AT_ONCE: usize = 64;

fn name(n: usize) -> String {
    format!("s-{n}")
}

async fn create(client: &Client, n: usize) {
    let request = CreateSession {
        name: Some(SessionName::parse(&name(n)).unwrap()),
        ..CreateSession::default()
    };
    let created = client.create_session(request, CallOptions::default()).await;
    created.unwrap_or_else(|error| panic!("{n}: {error:?}"));
}

/// A record as the store keeps it.
fn sealed(key: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut sum = crc32fast::Hasher::new();
    for part in [&[1], key, payload] {
        sum.update(part);
    }
    [&[1], &sum.finalize().to_be_bytes()[..], payload].concat()
}

fn change<T: prost::Message + Default>(db: &sled::Db, key: &[u8], change: impl FnOnce(&mut T)) {
    let value = db.get(key).unwrap().expect("it is there");
    let mut record = T::decode(&value[5..]).unwrap();
    change(&mut record);
    db.insert(key, sealed(key, &record.encode_to_vec()))
        .unwrap();
}

/// Makes the directory one of a server that knew neither indexes nor what the store holds.
fn take_back(store: &Path) {
    let db = sled::open(store).unwrap();
    let rows: Vec<_> = db.scan_prefix(b"f").keys().map(Result::unwrap).collect();
    // Each among all, and among those of its agent.
    assert_eq!(rows.len(), 2 * SESSIONS);
    for row in rows {
        db.remove(row).unwrap();
    }
    change(&db, b"m", |meta: &mut MetaRecord| meta.format_version = 2);
    change(&db, b"w", |round: &mut RoundRecord| {
        (round.keys, round.sum) = (0, Vec::new());
    });
    db.flush().unwrap();
}

/// The names of the sessions that a filter finds, each as often as it is listed.
async fn listed(client: &Client, filter: &str) -> Vec<String> {
    let (mut all, mut page_token) = (Vec::new(), None);
    loop {
        let request = ListSessions {
            filter: filter.to_owned(),
            page_size: 1000,
            page_token: page_token.take(),
            ..ListSessions::default()
        };
        let page = client.list_sessions(request, CallOptions::default()).await;
        let page = page.unwrap();
        let names = page.sessions.iter().map(|session| session.name.clone());
        all.extend(names.map(|name| name.expect("all are named").to_string()));
        match page.next {
            Some(next) => page_token = Some(next),
            None => return all,
        }
    }
}

async fn is_whole(home: &Home) {
    let told = home.store_tool(&home.data_dir(), &["verify"]).await;
    assert_eq!(told.status, Some(0), "{}", told.out);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c44_b54_a_server_that_is_killed_while_it_indexes_a_former_directory_is_gone_on_from() {
    let home = Home::new();
    let daemon = home.start().await;
    let client = daemon.client();
    let creating = stream::iter(0..SESSIONS).map(|n| create(&client, n));
    creating
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<()>>()
        .await;
    daemon.kill().await;
    take_back(&home.data_dir().join("store"));
    // In the round of the first rows, then after that of the last ones.
    for passes in 0..2 {
        let failpoint = format!("store::opening={passes}*off->return(kill)");
        let Started::Ended(status) = home.try_start(Some(&failpoint)).await else {
            panic!("{failpoint} was passed by");
        };
        assert_eq!(status.signal(), Some(9), "{}", home.said());
        is_whole(&home).await;
    }
    let daemon = home.start().await;
    let client = daemon.client();
    let expected: BTreeSet<String> = (0..SESSIONS).map(name).collect();
    for filter in ["", "agent = scripted", "name = \"s-*\""] {
        let found = listed(&client, filter).await;
        assert_eq!(found.len(), SESSIONS, "{filter:?}");
        assert_eq!(BTreeSet::from_iter(found), expected, "{filter:?}");
    }
    daemon.kill().await;
    is_whole(&home).await;
    let told = home
        .store_tool(&home.data_dir(), &["stats", "--json"])
        .await;
    let stats: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(stats["format"], 5);
}
