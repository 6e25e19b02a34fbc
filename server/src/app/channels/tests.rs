//! Which channels stay, and what they keep.

use futures_util::StreamExt as _;
use sessionplane_core::domain::compaction::CompactionOutcome;
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::ids::{AgentName, InteractionId, RunId, TenantId};
use sessionplane_core::domain::interaction::{
    Interaction, InteractionAnswer, Question, Resolution, ResolutionCause, Shape,
};
use sessionplane_core::domain::run::Failure;

use super::*;
use crate::app::cursor::{Cursor, Cut};
use crate::app::ring_budget::Ring as _;

fn record(number: u128) -> SessionRecord {
    SessionRecord {
        id: SessionId::mint(Timestamp::from_millis(1), number),
        tenant: TenantId::parse("t").unwrap(),
        metadata: Metadata::first(None, Timestamp::from_millis(1)),
        external_key: None,
        agent: AgentName::parse("a").unwrap(),
        created_at: Timestamp::from_millis(1),
        lineage: None,
    }
}

fn fill(channel: &Channel, events: u32) {
    for turn in 0..events {
        let body = EventBody::TurnStarted { turn };
        channel.publish([Event {
            at: Timestamp::from_millis(2),
            run: None,
            body,
        }]);
    }
}

#[test]
fn c35_all_rings_together_keep_a_bounded_number_of_bytes() {
    const LIMIT: usize = 256 * 1024;
    let config = AppConfig {
        ring_bytes: 64 * 1024,
        all_rings_bytes: LIMIT,
        ..AppConfig::default()
    };
    let channels = Channels::new(config, Arc::new(Hub::keeping(1)));
    let made: Vec<_> = (1..=64)
        .map(|number| channels.unborn(&record(number), &ModelPolicy::default(), 1))
        .collect();
    // One after the other, so that those that are quiet again hold what the next one wants.
    for (at, channel) in made.iter().enumerate() {
        fill(channel, 200);
        let alive: usize = made.iter().map(|channel| channel.bytes()).sum();
        assert_eq!(channels.budget.used(), alive);
        assert!(alive <= LIMIT, "{alive} bytes in {} rings", at + 1);
    }
    assert!(
        made.iter().all(|channel| channel.retained() > 0),
        "each keeps its newest"
    );
    // Where many others have come to rest, one that is hot has all that it may have.
    for channel in &made[1..] {
        channel.rest(1024);
    }
    fill(&made[0], 200);
    assert!(made[0].bytes() > 62 * 1024, "{} bytes", made[0].bytes());
}

/// One reader, run after run, each in a session of its own: what rests gives way to what is read.
#[tokio::test]
async fn c35_sessions_that_have_settled_do_not_cut_the_readers_of_the_one_that_runs() {
    const RING: usize = 64 * 1024;
    let config = AppConfig {
        ring_bytes: RING,
        all_rings_bytes: 8 * RING,
        idle_ring_bytes: 1024,
        ..AppConfig::default()
    };
    let channels = Channels::new(config, Arc::new(Hub::keeping(1)));
    let mut kept = Vec::new();
    for number in 1..=40 {
        let channel = channels.unborn(&record(number), &ModelPolicy::default(), 1);
        let mut reader = Cursor::after(channel.clone(), 0);
        // It reads nothing until all is there: so much it may be behind.
        fill(&channel, 60);
        for seq in 1..=60 {
            let read = reader.next().await;
            let told = matches!(&read, Some(Ok(event)) if event.envelope().seq == seq);
            assert!(told, "session {number} at event {seq}");
        }
        kept.push(channel);
        assert!(channels.budget.used() <= 8 * RING);
    }
}

#[test]
fn c27_who_made_a_channel_too_late_takes_the_one_that_is_there() {
    let config = AppConfig {
        idle_channels: 1,
        ..AppConfig::default()
    };
    let channels = Channels::new(config, Arc::new(Hub::keeping(1)));
    // Two readers found none; the second has minted the later epoch and is done first.
    let told = channels.unborn(&record(1), &ModelPolicy::default(), 2);
    let position = told.position();
    drop(told);
    let late = channels.unborn(&record(1), &ModelPolicy::default(), 1);
    assert!(
        late.position() >= position,
        "{position:?} was told, and then {:?}",
        late.position()
    );
}

/// C35: what a ring may keep is bounded in bytes, whatever the events are that hold them.
#[test]
fn c35_the_texts_of_questions_answers_and_failures_count_in_a_ring() {
    let run = RunId::mint(Timestamp::from_millis(1), 1);
    let id = InteractionId { run, ordinal: 1 };
    let answer = InteractionAnswer::Text("a".repeat(10_000));
    let question = Question {
        title: String::new(),
        details: "d".repeat(20_000),
        shape: Shape::Input { secret: false },
        default: Some(answer.clone()),
    };
    let interaction = Interaction {
        id,
        question,
        asked_at: Timestamp::default(),
        deadline: None,
        resolution: None,
    };
    let resolution = Resolution {
        at: Timestamp::default(),
        cause: ResolutionCause::Answered,
        answer: Some(answer),
        origin: None,
    };
    let failure = Failure {
        code: "x".to_owned(),
        details: "f".repeat(4000),
        retryable: false,
    };
    let bodies = [
        EventBody::InteractionRequested {
            interaction: Box::new(interaction),
        },
        EventBody::InteractionResolved {
            id,
            resolution: Box::new(resolution),
        },
        EventBody::CompactionFinished {
            outcome: CompactionOutcome::Failed(failure),
        },
    ];
    let channels = Channels::new(AppConfig::default(), Arc::new(Hub::keeping(1)));
    for (body, least) in bodies.into_iter().zip([30_000, 10_000, 4000]) {
        let channel = channels.unborn(&record(least as u128), &ModelPolicy::default(), 1);
        let at = Timestamp::default();
        channel.publish([Event {
            at,
            run: None,
            body,
        }]);
        assert!(channel.bytes() >= least, "{} of {least}", channel.bytes());
    }
}

#[test]
fn channels_that_serve_nobody_go_and_the_look_for_them_is_rare() {
    let config = AppConfig {
        idle_channels: 16,
        ..AppConfig::default()
    };
    let channels = Channels::new(config, Arc::new(Hub::keeping(1)));
    let mut number = 0;
    let mut open = || {
        number += 1;
        channels.unborn(&record(number), &ModelPolicy::default(), 1)
    };
    let in_use: Vec<_> = (0..100).map(|_| open()).collect();
    let idle: Vec<_> = (0..20).map(|_| open().session()).collect();
    // Not each insertion looks through all that are in use.
    let kept = idle.iter().filter(|id| channels.get(**id).is_some());
    assert_eq!(kept.count(), 20);
    for _ in 0..1000 {
        drop(open());
        assert!(channels.lock().channels.len() <= 2 * in_use.len());
    }
    drop(in_use);
    for _ in 0..1000 {
        drop(open());
    }
    assert!(channels.lock().channels.len() <= 16);
}

#[tokio::test]
async fn c35_a_watched_session_that_comes_to_rest_keeps_little_and_cuts_nobody_up_to_date() {
    let channels = Channels::new(AppConfig::default(), Arc::new(Hub::keeping(1)));
    let channel = channels.unborn(&record(1), &ModelPolicy::default(), 1);
    let (mut reading, mut stalled) = (
        Cursor::after(channel.clone(), 0),
        Cursor::after(channel.clone(), 0),
    );
    fill(&channel, 1000);
    for _ in 0..1000 {
        assert!(matches!(reading.next().await, Some(Ok(_))));
    }
    channel.rest(8 * 1024);
    assert!(channels.budget.used() <= 8 * 1024);
    fill(&channel, 1);
    assert!(
        matches!(reading.next().await, Some(Ok(event)) if event.envelope().seq == 1001),
        "who was up to date reads on"
    );
    assert!(matches!(stalled.next().await, Some(Err(Cut::Lapped))));
}

#[test]
fn c35_a_session_without_a_task_keeps_little_and_still_knows_its_place() {
    let channels = Channels::new(AppConfig::default(), Arc::new(Hub::keeping(1)));
    let channel = channels.unborn(&record(1), &ModelPolicy::default(), 1);
    fill(&channel, 1000);
    channel.rest(8 * 1024);
    assert!(channel.retained() <= 8, "{} events", channel.retained());
    let (_, position) = channel
        .resume_after(1000)
        .expect("who was up to date resumes");
    assert_eq!(position.seq, 1000);
    assert!(
        channel.resume_after(10).is_none(),
        "who was not is told a gap"
    );
    let used = channels.budget.used();
    drop(channels.forget(channel.session()));
    drop(channel);
    assert!(used > 0);
    assert_eq!(channels.budget.used(), 0, "a dropped ring gives all back");
}

/// What a session without a channel is said to be differs from what its channel said last (it knew since
/// when): the two must not have one number.
#[test]
fn c46_what_is_said_without_a_channel_is_newer_than_all_that_channels_said() {
    let config = AppConfig {
        idle_channels: 1,
        ..AppConfig::default()
    };
    let channels = Channels::new(config, Arc::new(Hub::keeping(8)));
    let at = Timestamp::from_millis(2);
    let shown = |number| {
        let channel = channels.unborn(&record(number), &ModelPolicy::default(), 1);
        channel.publish_at([], (None, None), at);
        channel
    };
    let last = |channel: &Channel| channel.shown().expect("it exists").revision;
    let first = shown(1);
    let (id, said) = (first.session(), last(&first));
    drop(first);
    let second = channels.unborn(&record(2), &ModelPolicy::default(), 1);
    assert!(channels.get(id).is_none(), "the table was swept");
    assert!(channels.ticket().revision > said);
    second.publish_at([], (None, None), at);
    let said = last(&second);
    assert!(said > channels.ticket().revision);
    channels.forget(second.session());
    assert!(channels.ticket().revision > said);
}

#[test]
fn c47_the_sessions_of_another_tenant_take_no_place_and_no_room_in_a_page() {
    let channels = Channels::new(AppConfig::default(), Arc::new(Hub::keeping(1)));
    let other = TenantId::parse("u").unwrap();
    for number in 1..=9 {
        let mut record = record(number);
        if !number.is_multiple_of(3) {
            record.tenant = other.clone();
        }
        channels.unborn(&record, &ModelPolicy::default(), 1);
    }
    let (tenant, id) = (record(1).tenant, |number| record(number).id);
    let beside = |place, descending, max| {
        let channels = channels.beside(&tenant, place, descending, max);
        channels.iter().map(|it| it.session()).collect::<Vec<_>>()
    };
    assert_eq!(beside(None, false, 2), [id(3), id(6)]);
    assert_eq!(beside(Some(id(6)), false, 2), [id(9)]);
    assert_eq!(beside(None, true, 2), [id(9), id(6)]);
    assert_eq!(beside(Some(id(3)), true, 2), []);
}
