//! C22, B50: a server that is killed at any step of a compaction. The transcript is as it was, or
//! the compaction is whole; nothing waits for it, and it can be asked for again.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane_client::Client;
use sessionplane_client::contract::{
    Agent as _, CallOptions, DispatchRequest, InvokeEvent, ListEntriesRequest, SessionControl as _,
};
use sessionplane_client::detached;
use sessionplane_client::domain::command::{Command, DispatchAnswer, RejectionCode};
use sessionplane_client::domain::entry::{Entry, EntryBody};
use sessionplane_client::domain::error::{CallError, Outcome};
use sessionplane_client::domain::ids::{RequestId, SessionName, SessionRef};
use sessionplane_client::domain::view::Status;

use crate::changes::{instructions, summary};
use crate::daemon::{Daemon, Home, Started};
use crate::load::{at_rest, under};

/// How long a server may take to come to its place.
const DEATH: Duration = Duration::from_secs(60);
const MARKER: &str = "<m:compaction>";

/// What a killed compaction must have left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Left {
    /// The transcript as it was.
    Nothing,
    /// All of it.
    Whole,
    /// Either: the write was on its way.
    Either,
}

fn at() -> SessionRef {
    SessionRef::Name(SessionName::parse("compacted").unwrap())
}

async fn say(client: &Client, text: &str) {
    let request = detached(at(), format!("say \"{text}\""));
    let stream = client.invoke(request, CallOptions::default()).await;
    let last = stream.unwrap().collect::<Vec<_>>().await.pop();
    assert!(
        matches!(last, Some(Ok(InvokeEvent::Completed { .. }))),
        "{last:?}"
    );
}

async fn entries(client: &Client) -> Vec<Entry> {
    let request = ListEntriesRequest {
        session: at(),
        since: None,
        page_size: 500,
    };
    let page = client.list_entries(request, CallOptions::default()).await;
    page.unwrap().entries
}

async fn compact(
    client: &Client,
    id: &str,
    instructions: &str,
) -> Result<DispatchAnswer, CallError> {
    let request = DispatchRequest {
        session: at(),
        command: Command::Compact {
            instructions: Some(instructions.into()),
        },
        expected_run: None,
    };
    let id = RequestId::parse(id).unwrap();
    client.dispatch(request, under(&id)).await
}

/// A directory with a conversation, and its entries.
async fn talked() -> (Home, Vec<Entry>) {
    let home = Home::new();
    let daemon = home.start().await;
    say(&daemon.client(), "one").await;
    say(&daemon.client(), "two").await;
    let before = entries(&daemon.client()).await;
    daemon.kill().await;
    (home, before)
}

/// Whether these are the entries from before and a whole summary after them.
fn is_whole(entries: &[Entry], before: &[Entry]) -> bool {
    let Some((last, rest)) = entries.split_last() else {
        return false;
    };
    let EntryBody::Compaction { summary: found, .. } = &last.body else {
        return false;
    };
    let parent = before.last().map(|entry| entry.id);
    rest == before && (last.parent, last.run) == (parent, None) && found.text == summary(MARKER)
}

/// Starts anew and judges what is there; gives whether the compaction is.
async fn judge(home: &Home, before: &[Entry], left: Left, place: &str) -> (Daemon, bool) {
    let daemon = home.start().await;
    let client = daemon.client();
    let state = client.get_state(at(), None, CallOptions::default()).await;
    let view = state.unwrap().view;
    assert_eq!(view.status(), Status::Idle, "{place}");
    let found = entries(&client).await;
    assert_eq!(view.leaf, found.last().map(|entry| entry.id), "{place}");
    let whole = is_whole(&found, before);
    assert!(whole || found == before, "{place}: {found:?}");
    assert!(
        left == Left::Either || whole == (left == Left::Whole),
        "{place}: whole is {whole}, not {left:?}"
    );
    (daemon, whole)
}

/// Kills a server at a place of a compaction, and judges what the next one finds.
async fn killed(place: &str, failpoint: &str, acknowledged: Option<bool>, left: Left) {
    let (home, before) = talked().await;
    let failpoint = format!("{place}={failpoint}return(kill)");
    let Started::Ready(daemon) = home.try_start(Some(&failpoint)).await else {
        panic!("{failpoint}: reached by a start");
    };
    let told = compact(&daemon.client(), "once", &instructions(MARKER, 0)).await;
    let accepted = matches!(told, Ok(DispatchAnswer::Accepted(_)));
    if !accepted {
        let error = told.expect_err("it is idle");
        assert_eq!(error.outcome, Outcome::Unknown, "{failpoint}");
    }
    assert!(acknowledged.is_none_or(|it| it == accepted), "{failpoint}");
    let status = daemon.ended(DEATH).await;
    assert_eq!(status.signal(), Some(9), "{failpoint}: {status}");

    let (daemon, whole) = judge(&home, &before, left, &failpoint).await;
    let client = daemon.client();
    // The same call again: it was accepted, then nothing is done; else it is done now.
    let again = compact(&client, "once", &instructions(MARKER, 0)).await;
    assert!(
        matches!(again, Ok(DispatchAnswer::Accepted(_))),
        "{again:?}"
    );
    at_rest(&client, at()).await;
    let found = entries(&client).await;
    assert!(found == before || is_whole(&found, &before), "{failpoint}");
    assert!(
        !accepted || is_whole(&found, &before) == whole,
        "{failpoint}: done twice"
    );
    // And another one, where there is something to compact.
    let other = compact(&client, "other", &instructions(MARKER, 0))
        .await
        .unwrap();
    if is_whole(&found, &before) {
        let DispatchAnswer::Rejected(no) = other else {
            panic!("{failpoint}: {other:?}");
        };
        assert_eq!(no.code, RejectionCode::NothingToCompact);
    } else {
        at_rest(&client, at()).await;
        assert!(is_whole(&entries(&client).await, &before), "{failpoint}");
    }
    say(&client, "three").await;
}

#[tokio::test]
async fn c22_b50_a_kill_at_the_admission_of_a_compaction_leaves_the_transcript_as_it_was() {
    for place in [
        "session::before-commit",
        "store::before-apply",
        "store::after-apply",
        "store::before-sync",
        "store::after-sync",
        "session::after-commit",
        "session::before-answer",
    ] {
        killed(place, "", Some(false), Left::Nothing).await;
    }
}

#[tokio::test]
async fn c22_b50_a_kill_while_an_engine_compacts_leaves_the_transcript_as_it_was() {
    for place in ["session::before-engine-open", "session::before-engine-told"] {
        killed(place, "", None, Left::Nothing).await;
    }
    let (home, before) = talked().await;
    let daemon = home.start().await;
    let told = compact(&daemon.client(), "once", "say \"half of it\"\nhang").await;
    assert!(matches!(told, Ok(DispatchAnswer::Accepted(_))), "{told:?}");
    daemon.kill().await;
    let (daemon, _) = judge(&home, &before, Left::Nothing, "hang").await;
    say(&daemon.client(), "three").await;
}

#[tokio::test]
async fn c22_b50_a_kill_at_the_end_of_a_compaction_leaves_all_of_it_or_nothing() {
    for (place, left) in [
        ("session::before-commit", Left::Nothing),
        ("store::before-apply", Left::Nothing),
        ("store::after-apply", Left::Either),
        ("store::before-sync", Left::Either),
        ("store::after-sync", Left::Whole),
        ("session::after-commit", Left::Whole),
    ] {
        killed(place, "1*off->", None, left).await;
    }
    killed("session::before-settle", "", None, Left::Nothing).await;
}

#[tokio::test]
async fn c22_b50_a_kill_while_a_cut_compaction_is_given_up_is_made_good_by_the_next_start() {
    let (home, before) = talked().await;
    let daemon = home.start().await;
    let told = compact(&daemon.client(), "once", "hang").await;
    assert!(matches!(told, Ok(DispatchAnswer::Accepted(_))), "{told:?}");
    daemon.kill().await;
    for place in ["recovery::before-settle", "recovery::after-settle"] {
        let failpoint = format!("{place}=return(kill)");
        let Started::Ended(status) = home.try_start(Some(&failpoint)).await else {
            panic!("{place} was passed by");
        };
        assert_eq!(status.signal(), Some(9), "{place}: {status}");
    }
    let (daemon, _) = judge(&home, &before, Left::Nothing, "recovery").await;
    say(&daemon.client(), "three").await;
}
