//! Compactions: begun, and waited for until their own end is told.

use sessionplane::v1::{self, dispatch_request::Command as Given, session_event::Payload};

use super::cli::{ran, sends};
use super::fake::{Fake, Stage, Step};
use super::wire;

fn finished(seq: u64, outcome: v1::CompactionOutcome) -> v1::EventsResponse {
    let finished = v1::CompactionFinished {
        outcome: outcome.into(),
        entry_id: wire::entry_id(3),
        code: "overloaded".to_owned(),
        details: "try later".to_owned(),
        retryable: true,
    };
    wire::between_runs(seq, Payload::CompactionFinished(finished))
}

fn at(seq: u64, status: v1::SessionStatus) -> v1::SessionState {
    v1::SessionState {
        status: status.into(),
        position: Some(wire::position(seq)),
        ..wire::state(false)
    }
}

const IDLE: v1::SessionStatus = v1::SessionStatus::Idle;
const COMPACTING: v1::SessionStatus = v1::SessionStatus::Compacting;

fn snapshot(seq: u64, status: v1::SessionStatus) -> v1::EventsResponse {
    wire::snapshot_of(at(seq, status))
}

fn summary(seq: u64) -> v1::Entry {
    v1::Entry {
        kind: "compaction".to_owned(),
        run_id: String::new(),
        body: Some(v1::entry::Body::Compaction(v1::CompactionEntry {
            summary: "all of it".to_owned(),
            ..v1::CompactionEntry::default()
        })),
        ..wire::user_entry(seq, "")
    }
}

/// A session that was found so at position 5, in which a compaction is begun, and what its watcher
/// is told.
async fn found(status: v1::SessionStatus, watched: Vec<Vec<Step<v1::EventsResponse>>>) -> Fake {
    let open = |mut steps: Vec<_>| {
        steps.push(Step::Hang);
        Ok(steps)
    };
    Fake::start(Stage {
        dispatches: [Ok(wire::dispatch_done())].into(),
        states: [Ok(wire::state_answer(at(5, status)))].into(),
        events: watched.into_iter().map(open).collect(),
        ..Stage::default()
    })
    .await
}

#[tokio::test]
async fn c22_compact_tells_that_it_began_and_waits_for_the_outcome_if_asked() {
    let fake = found(IDLE, Vec::new()).await;
    let words = ["compact", "docs", "--instructions", "keep it short"];
    let (code, out, _) = ran(&fake, &words).await;
    assert_eq!(code, 0);
    assert!(out.starts_with("compacting\n"), "{out}");
    let expected = Given::Compact(v1::Compact {
        instructions: "keep it short".to_owned(),
    });
    let given = fake.look(|stage| stage.dispatched[0].command.clone());
    assert_eq!(given, Some(expected));
    for (outcome, exit, words) in [
        (
            v1::CompactionOutcome::Completed,
            0,
            "compaction completed, entry 3",
        ),
        (
            v1::CompactionOutcome::Failed,
            1,
            "failed (overloaded: try later)",
        ),
        (v1::CompactionOutcome::Aborted, 1, "compaction aborted"),
    ] {
        for json in [false, true] {
            let steps = sends([
                wire::subscribed(true, false),
                snapshot(6, COMPACTING),
                finished(7, outcome),
            ]);
            let fake = found(IDLE, vec![steps]).await;
            let all = [&["--json", "compact", "docs", "--wait"][usize::from(!json)..]].concat();
            let (code, out, err) = ran(&fake, &all).await;
            assert_eq!(code, exit, "{out}{err}");
            if json {
                let last = out.lines().last().unwrap();
                let last: serde_json::Value = serde_json::from_str(last).unwrap();
                assert!(last["compaction_finished"]["outcome"].is_string(), "{out}");
            } else {
                assert!((out + &err).contains(words));
            }
            fake.look(|stage| {
                let observed = &stage.observed[0];
                let filter = observed.filter.clone().unwrap();
                assert_eq!(filter.types, ["compaction_finished"]);
                assert_eq!(observed.resume, Some(wire::position(5)));
                assert_eq!(observed.entries_since, wire::entry_id(2));
            });
        }
    }
}

#[tokio::test]
async fn c22_a_compaction_that_ended_while_the_connection_was_lost_is_told_by_its_entry() {
    for (entries, exit) in [(vec![summary(3)], 0), (vec![], 3)] {
        let before = sends([wire::subscribed(true, false), snapshot(6, COMPACTING)]);
        let after = sends([
            wire::subscribed(false, true),
            wire::entries(entries),
            snapshot(9, IDLE),
        ]);
        let fake = found(IDLE, vec![after]).await;
        fake.stage.lock().unwrap().events.push_front(Ok(before));
        let (code, out, err) = ran(&fake, &["compact", "docs", "--wait"]).await;
        assert_eq!(code, exit, "{out}{err}");
        assert_eq!(out.contains("completed, entry 3"), exit == 0, "{out}");
    }
}

#[tokio::test]
async fn c22_the_end_of_an_earlier_compaction_is_not_taken_for_the_new_ones() {
    use v1::CompactionOutcome::{Aborted, Completed};
    for (found_as, told) in [
        // An abort and a compact in a row: the one that is being aborted ends while ours begins.
        (
            COMPACTING,
            vec![
                finished(6, Aborted),
                snapshot(7, COMPACTING),
                finished(8, Completed),
            ],
        ),
        // And ours may be over, too, before anybody looks.
        (
            COMPACTING,
            vec![
                finished(6, Aborted),
                finished(8, Completed),
                snapshot(8, IDLE),
            ],
        ),
        (IDLE, vec![finished(8, Completed), snapshot(8, IDLE)]),
    ] {
        let steps = sends([wire::subscribed(true, false)].into_iter().chain(told));
        let fake = found(found_as, vec![steps]).await;
        let (code, out, err) = ran(&fake, &["compact", "docs", "--wait"]).await;
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        assert!(out.contains("compaction completed, entry 3"), "{out}");
    }
}

#[tokio::test]
async fn c03_c22_a_repeated_compact_finds_out_what_became_of_its_compaction() {
    // The entries are of the year 2026; the first id was made before, the second long after.
    for (id, code, words) in [
        ("01K0000000000000000000000A", 0, "completed, entry 2"),
        ("7ZZZZZZZZZ000000000000000A", 3, "nobody was told"),
        ("r-1", 3, "the newest summary is entry 2"),
    ] {
        let steps = sends([wire::subscribed(true, false), snapshot(5, IDLE)]);
        let fake = found(IDLE, vec![steps]).await;
        let page = v1::ListEntriesResponse {
            entries: vec![wire::user_entry(1, "hi"), summary(2)],
            next_since: wire::entry_id(2),
            ..v1::ListEntriesResponse::default()
        };
        fake.stage.lock().unwrap().pages = [Ok(page)].into();
        let words_of = ["compact", "docs", "--wait", "--request-id", id];
        let (exit, out, err) = ran(&fake, &words_of).await;
        assert_eq!(exit, code, "{id}: {out}{err}");
        assert!((out + &err).contains(words), "{id}: {err}");
        fake.look(|stage| assert_eq!(stage.dispatched[0].request_id, id));
    }
}

#[tokio::test]
async fn c22_a_compaction_that_is_not_over_in_time_goes_on_and_is_not_unknown() {
    let steps = sends([wire::subscribed(true, false), snapshot(6, COMPACTING)]);
    let fake = found(IDLE, vec![steps]).await;
    let words = ["compact", "docs", "--wait", "--timeout", "1s"];
    let (code, out, err) = ran(&fake, &words).await;
    assert_eq!((code, out.as_str()), (3, "compacting\n"), "{err}");
    let told = "error: the compaction of \"docs\" is not over within 1s; it goes on\n  \
                wait on: sessionctl wait docs\n";
    assert_eq!(err, told);
}

#[tokio::test]
async fn c22_wait_waits_for_a_compaction_too() {
    for (outcome, exit) in [
        (v1::CompactionOutcome::Completed, 0),
        (v1::CompactionOutcome::Aborted, 1),
    ] {
        let steps = sends([
            wire::subscribed(true, false),
            snapshot(5, COMPACTING),
            finished(6, outcome),
        ]);
        let fake = found(COMPACTING, vec![steps]).await;
        let (code, out, err) = ran(&fake, &["wait", "docs"]).await;
        assert_eq!(code, exit, "{out}{err}");
        assert!((out + &err).contains("compaction "));
        fake.look(|stage| assert!(stage.waited.is_empty()));
    }
}
