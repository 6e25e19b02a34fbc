//! What the shell holds of the engine, and what is not handed over because of it.

use sessionplane_core::domain::input::{DiscardCause, InputFate};
use sessionplane_core::ports::engine::{EngineCommand, EngineEvent, StopReason};

use super::story::Story;
use super::words::summary;

#[test]
fn c19_b16_an_end_that_came_after_what_is_waited_for_but_is_in_hand_is_judged_first() {
    let mut story = Story::working();
    story.shell.channel = 1;
    story.steer();
    story.land();
    // The first of these is what the steer waits for; the others are not waited for, but the end.
    story.bursts([
        EngineEvent::TurnStarted,
        EngineEvent::TurnFinished,
        EngineEvent::Stopped {
            prompt: 1,
            reason: StopReason::Completed,
        },
    ]);
    story.shell.channel = 0;
    story.shell.settle_disk();
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

/// What a second compaction holds up is known too, over more than one commit.
#[test]
fn c20_b18_nothing_is_handed_to_an_engine_whose_death_waits_behind_a_commit() {
    let mut story = Story::working();
    story.steer();
    story.says(EngineEvent::CompactionStarted);
    story.says(EngineEvent::CompactionFinished(Ok(summary("short"))));
    story.bursts([EngineEvent::CompactionStarted, EngineEvent::TurnStarted]);
    story.land();
    assert!(story.news().handed().is_empty(), "two reports are unread");
    story.says(EngineEvent::TurnFinished);
    story.gone();
    story.shell.settle_disk();
    assert!(story.news().handed().is_empty());
    assert_eq!(
        story.fate(1),
        InputFate::Discarded(DiscardCause::Failed),
        "it was never handed, so it cannot be lost"
    );
    story.ends();
}
