//! Steers and follow-ups: their order, one at a time, and what becomes of each.

use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::event::{EventBody, QueueChange};
use sessionplane_core::domain::input::{DiscardCause, InputFate};
use sessionplane_core::domain::lifecycle::{Effect, Input};
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::ports::engine::{EngineCommand, EngineEvent, StopReason};

use super::story::Story;

#[test]
fn c20_the_engine_is_handed_an_input_only_once_its_acceptance_is_durable() {
    let mut story = Story::working();
    story.steer();
    assert!(story.news().handed().is_empty());
    story.land();
    assert_eq!(story.news().handed(), [1]);
}

#[test]
fn c19_steers_go_in_order_and_the_next_only_after_the_engine_has_shown_one() {
    let mut story = Story::working();
    for _ in 0..3 {
        story.steer();
    }
    story.shell.settle_disk();
    assert_eq!(story.news().handed(), [1]);
    story.shows(1);
    assert_eq!(
        story.news().handed(),
        [2],
        "shown is enough, it need not be durable"
    );
    story.land();
    assert!(story.news().handed().is_empty());
    story.shows(2);
    assert_eq!(story.news().handed(), [3]);
}

#[test]
fn c19_a_follow_up_waits_until_the_run_would_stop() {
    let mut story = Story::working();
    story.follow_up();
    story.land();
    assert!(
        story.news().handed().is_empty(),
        "it never enters the engine's own queue"
    );
    story.stops();
    let news = story.news();
    let prompt = |command: &&EngineCommand| matches!(command, EngineCommand::Prompt { .. });
    assert_eq!(
        (
            news.handed(),
            news.told().iter().filter(|it| prompt(it)).count()
        ),
        (vec![1], 1)
    );
}

#[test]
fn c19_at_rest_steers_go_before_follow_ups_and_each_kind_in_order() {
    let mut story = Story::working();
    story.follow_up();
    story.follow_up();
    story.steer();
    story.steer();
    story.shell.settle_disk();
    assert_eq!(story.news().handed(), [3], "the first steer goes at once");
    story.shows(3);
    assert_eq!(story.news().handed(), [4]);
    story.shows(4);
    story.stops();
    story.shell.settle_disk();
    assert_eq!(story.news().handed(), [1]);
    story.shows(1);
    story.stops();
    story.shell.settle_disk();
    assert_eq!(story.news().handed(), [2]);
}

#[test]
fn c19_a_steer_that_never_entered_a_turn_continues_the_run_before_any_follow_up() {
    let mut story = Story::working();
    story.follow_up();
    story.steer();
    story.steer();
    story.shell.settle_disk();
    assert_eq!(story.news().handed(), [2]);
    story.stops();
    assert_eq!(
        story.fate(2),
        InputFate::Pending,
        "its end is not durable yet"
    );
    story.shell.settle_disk();
    assert_eq!(story.fate(2), InputFate::Discarded(DiscardCause::Lost));
    assert_eq!(
        story.news().handed(),
        [3],
        "the waiting steer, then the follow-up"
    );
    story.shows(3);
    story.stops();
    story.shell.settle_disk();
    assert_eq!(story.news().handed(), [1]);
}

#[test]
fn c19_what_the_engine_takes_back_goes_first_again() {
    let mut story = Story::working();
    story.steer();
    story.steer();
    story.shell.settle_disk();
    assert_eq!(story.news().handed(), [1]);
    story.takes_back(1);
    let news = story.news();
    assert!(
        news.handed().is_empty(),
        "not in the turn that gave it back"
    );
    assert!(
        matches!(
            news.events()[..],
            [EventBody::QueueChanged { change: QueueChange::Returned(id), depth: 2 }]
                if id.ordinal == 1
        ),
        "{:?}",
        news.events()
    );
    let handed = |story: &Story| {
        let pending = story.shell.view().pending.values();
        pending.filter(|input| input.handed).count()
    };
    assert_eq!(handed(&story), 0, "state says that it waits again");
    story.says(EngineEvent::TurnFinished);
    assert_eq!(story.news().handed(), [1], "and not the second");
    assert_eq!(handed(&story), 1);
    story.shows(1);
    assert_eq!(story.news().handed(), [2]);
}

#[test]
fn c19_what_the_engine_takes_back_continues_the_run_when_it_stops() {
    let mut story = Story::working();
    story.steer();
    story.land();
    story.takes_back(1);
    story.stops();
    assert_eq!(story.news().handed(), [1, 1]);
    story.shows(1);
    story.stops();
    story.shell.settle_disk();
    assert!(matches!(story.fate(1), InputFate::Delivered(_)));
    story.ends();
}

#[test]
fn c20_an_input_that_the_engine_gives_back_again_and_again_is_lost() {
    use sessionplane_core::domain::limits::MAX_RETURNS;
    let mut story = Story::working();
    story.steer();
    story.land();
    for _ in 0..MAX_RETURNS {
        assert_eq!(story.news().handed(), [1]);
        story.takes_back(1);
        story.says(EngineEvent::TurnStarted);
    }
    assert!(story.news().handed().is_empty(), "it has an end");
    story.land();
    assert_eq!(story.fate(1), InputFate::Discarded(DiscardCause::Lost));
    assert!(story.shell.view().pending.is_empty());
    story.stops();
    story.ends();
}

#[test]
fn c19_accepted_handed_delivered_and_completed_are_told_each() {
    let mut story = Story::working();
    story.steer();
    story.land();
    story.shows(1);
    story.land();
    story.stops();
    story.land();
    let news = story.news();
    let queue = |event: &&EventBody| match event {
        EventBody::QueueChanged { change, depth } => Some((
            match change {
                QueueChange::Added(_) => "added",
                QueueChange::Handed(_) => "handed",
                QueueChange::Returned(_) => "returned",
                QueueChange::Removed(_) => "removed",
            },
            *depth,
        )),
        _ => None,
    };
    let changes: Vec<_> = news.events().iter().filter_map(queue).collect();
    assert_eq!(changes, [("added", 1), ("handed", 1), ("removed", 0)]);
    let types = news.event_types();
    let place = |name| types.iter().position(|it| *it == name).expect("it is told");
    assert!(place("queue_changed") < place("entry_appended"));
    assert!(place("entry_appended") < place("input_delivered"));
    assert!(place("input_delivered") < place("run_settled"));
    story.ends();
}

#[test]
fn c20_a_shown_input_becomes_an_entry_and_delivered_in_one_commit() {
    let mut story = Story::working();
    story.steer();
    story.land();
    story.shows(1);
    assert_eq!(story.fate(1), InputFate::Pending);
    story.land();
    let entry = story
        .shell
        .store
        .entries
        .last()
        .expect("there are entries")
        .clone();
    assert_eq!(story.fate(1), InputFate::Delivered(entry.id));
    let input = story.shell.store.inputs[&story.input(1)].clone();
    assert!(
        matches!(&entry.body, EntryBody::User { text, origin, input: Some(id), .. }
            if *id == input.id && *text == input.text && *origin == input.origin),
        "text and sender are those of the dispatch: {entry:?}"
    );
    story.stops();
    story.ends();
}

#[test]
fn c20_b16_every_accepted_input_ends_once_and_the_run_record_lists_the_undelivered() {
    let mut story = Story::working();
    story.steer();
    story.steer();
    story.follow_up();
    story.shell.settle_disk();
    story.shows(1);
    let failure = sessionplane_core::domain::run::Failure {
        code: "rate_limited".to_owned(),
        details: "try later".to_owned(),
        retryable: true,
    };
    story.stops_with(StopReason::Failed(failure));
    story.shell.settle_disk();
    assert!(matches!(story.fate(1), InputFate::Delivered(_)));
    assert_eq!(
        story.fate(2),
        InputFate::Discarded(DiscardCause::Lost),
        "handed, never shown"
    );
    assert_eq!(
        story.fate(3),
        InputFate::Discarded(DiscardCause::Failed),
        "never handed"
    );
    let listed: Vec<_> = story
        .stored_run()
        .undelivered
        .iter()
        .map(|it| (it.id.ordinal, it.cause))
        .collect();
    assert_eq!(listed, [(2, DiscardCause::Lost), (3, DiscardCause::Failed)]);
    story.ends();
}

#[test]
fn c20_c10_what_the_engine_has_not_shown_by_its_own_end_is_lost_and_holds_nothing_open() {
    let mut story = Story::working();
    story.steer();
    story.land();
    story.stops();
    story.land();
    assert_eq!(story.fate(1), InputFate::Discarded(DiscardCause::Lost));
    assert_eq!(story.outcome(), Some(&RunOutcome::Completed));
    story.ends();
}

#[test]
fn c20_the_list_of_the_undelivered_survives_a_crash_before_the_settlement() {
    let mut story = Story::working();
    story.steer();
    story.follow_up();
    story.shell.settle_disk();
    story.stops();
    // The steer is lost and the follow-up continues the run; then the process dies.
    story.land();
    story.shell.crash(false);
    let listed: Vec<_> = story
        .stored_run()
        .undelivered
        .iter()
        .map(|it| it.cause)
        .collect();
    assert_eq!(listed, [DiscardCause::Lost, DiscardCause::Interrupted]);
    story.ends();
}

#[test]
fn c19_b16_a_steer_is_not_handed_to_an_engine_that_is_known_to_have_stopped() {
    let mut story = Story::working();
    story.steer();
    // The stop waits behind the commit that accepts the steer.
    story.stops();
    story.land();
    let news = story.news();
    assert!(
        matches!(
            news.told()[..],
            [EngineCommand::Prompt { input: Some(_), .. }]
        ),
        "it continues the run instead of being lost: {:?}",
        news.told()
    );
    story.shows(1);
    story.stops();
    story.shell.settle_disk();
    assert!(matches!(story.fate(1), InputFate::Delivered(_)));
    story.ends();
}

#[test]
fn c19_b16_a_steer_is_not_handed_to_an_engine_whose_end_came_in_the_same_burst() {
    let mut story = Story::working();
    story.steer();
    story.steer();
    story.shell.settle_disk();
    assert_eq!(story.news().handed(), [1]);
    let input = story.input(1);
    story.bursts([
        EngineEvent::InputShown { input },
        EngineEvent::TurnStarted,
        EngineEvent::TurnFinished,
        EngineEvent::Stopped {
            prompt: 1,
            reason: StopReason::Completed,
        },
    ]);
    let news = story.news();
    assert!(
        matches!(
            news.told()[..],
            [EngineCommand::Prompt { input: Some(id), .. }] if id.ordinal == 2
        ),
        "it continues the run instead of being lost: {:?}",
        news.told()
    );
    story.shell.settle_disk();
    story.shows(2);
    story.stops();
    story.shell.settle_disk();
    assert!(matches!(story.fate(2), InputFate::Delivered(_)));
    story.ends();
}

#[test]
fn c20_b18_nothing_is_handed_to_an_engine_whose_death_is_already_there() {
    let mut story = Story::working();
    story.follow_up();
    story.land();
    let tag = story.tag();
    let event = EngineEvent::Stopped {
        prompt: 1,
        reason: StopReason::Completed,
    };
    let reason = "exit status 0".to_owned();
    story.shell.send_burst([
        Input::Engine { tag, event },
        Input::EngineGone { tag, reason },
    ]);
    assert!(story.news().handed().is_empty());
    story.shell.settle_disk();
    assert_eq!(
        story.fate(1),
        InputFate::Discarded(DiscardCause::Failed),
        "it was never handed, so it cannot be lost"
    );
    story.ends();
}

#[test]
fn c19_a_stop_that_is_said_again_does_not_end_the_continuation() {
    let mut story = Story::working();
    story.follow_up();
    story.land();
    story.stops();
    assert_eq!(story.news().handed(), [1], "it continues the run");
    for reason in [StopReason::Completed, StopReason::Aborted] {
        story.says(EngineEvent::Stopped { prompt: 1, reason });
        assert!(story.news().has(|it| matches!(it, Effect::Ignored { .. })));
    }
    story.shell.settle_disk();
    assert_eq!(
        story.outcome(),
        None,
        "the engine answers the second prompt"
    );
    story.shows(1);
    story.stops();
    story.shell.settle_disk();
    assert!(matches!(story.fate(1), InputFate::Delivered(_)));
    assert_eq!(story.outcome(), Some(&RunOutcome::Completed));
    story.ends();
}

#[test]
fn c19_b16_what_waits_in_the_engines_channel_is_judged_before_a_steer_is_handed() {
    let mut story = Story::working();
    story.shell.channel = 2;
    story.steer();
    story.land();
    assert!(
        story.news().handed().is_empty(),
        "one of them may be its end"
    );
    story.says(EngineEvent::TurnStarted);
    assert!(story.news().handed().is_empty());
    // It never pauses: what it says from here on is not waited for.
    story.says(EngineEvent::TurnFinished);
    assert_eq!(story.news().handed(), [1]);
}

#[test]
fn c20_a_repeated_or_invented_report_of_an_input_changes_nothing() {
    let mut story = Story::working();
    story.steer();
    story.land();
    story.shows(1);
    story.land();
    let before = story.shell.store.clone();
    story.shows(1);
    story.takes_back(1);
    story.shows(9);
    assert!(!story.shell.in_flight());
    assert_eq!(story.shell.store, before);
    assert_eq!(story.news().told().len(), 1, "nothing is sent again");
}

#[test]
fn c39_the_depth_told_at_a_hand_over_counts_nothing_that_is_not_durable() {
    let mut story = Story::working();
    story.steer();
    story.steer();
    story.shell.settle_disk();
    story.news();
    // The first one's delivery is not durable when the second is handed over.
    story.shows(1);
    let news = story.news();
    let [
        EventBody::QueueChanged {
            change: QueueChange::Handed(_),
            depth,
        },
    ] = news.events()[..]
    else {
        panic!("{:?}", news.event_types());
    };
    assert_eq!(
        *depth, 2,
        "observers have not been told that one was delivered"
    );
}
