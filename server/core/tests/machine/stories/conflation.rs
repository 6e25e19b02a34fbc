//! Tool progress and usage: at most ten a second per tool, always ending with the newest.

use std::time::Duration;

use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::limits::CONFLATION_INTERVAL;

use super::story::{News, Story};

const TICK: Duration = Duration::from_millis(1);

/// What was shown of a call's progress.
fn shown(news: &News, of: &str) -> Vec<String> {
    let of_call = |body: &&EventBody| match body {
        EventBody::ToolProgress { call, output } if call == of => Some(output.text.clone()),
        _ => None,
    };
    news.events().iter().filter_map(of_call).collect()
}

#[test]
fn c30_progress_is_shown_at_most_ten_times_in_any_second_and_tool() {
    let mut story = Story::working();
    story.starts_tool("a");
    story.starts_tool("b");
    let mut times = Vec::new();
    for tick in 0_u64..3_000 {
        // The two run against each other, so that one's timer falls between the other's.
        story.progresses("a", "a");
        if tick % 101 > 90 {
            story.progresses("b", "b");
        }
        story.passes(TICK);
        times.extend(shown(&story.news(), "b").iter().map(|_| tick));
    }
    assert!(times.len() > 10, "it is shown at all: {times:?}");
    for ten in times.windows(11) {
        assert!(ten[10] - ten[0] >= 1_000, "eleven within a second: {ten:?}");
    }
}

#[test]
fn c30_the_newest_progress_is_shown_when_its_time_has_come() {
    let mut story = Story::working();
    story.starts_tool("c");
    story.news();
    for line in ["1", "2", "3"] {
        story.progresses("c", line);
    }
    assert_eq!(shown(&story.news(), "c"), ["1"]);
    story.passes(CONFLATION_INTERVAL.saturating_sub(TICK));
    assert!(story.news().0.is_empty());
    story.passes(TICK);
    assert_eq!(shown(&story.news(), "c"), ["3"], "the second was replaced");
    story.passes(CONFLATION_INTERVAL);
    assert!(story.news().0.is_empty(), "and not again");
}

#[test]
fn c30_nothing_older_than_a_tools_finish_follows_it() {
    let mut story = Story::working();
    story.starts_tool("c");
    story.progresses("c", "1");
    story.progresses("c", "2");
    story.news();
    story.finishes_tool("c");
    story.land();
    story.passes(CONFLATION_INTERVAL);
    assert_eq!(
        story.news().event_types(),
        ["tool_finished", "entry_appended"]
    );
}

#[test]
fn c30_the_newest_is_shown_before_the_run_is_seen_to_end() {
    let mut story = Story::working();
    story.starts_tool("c");
    story.progresses("c", "1");
    story.progresses("c", "2");
    story.news();
    story.stops();
    story.land();
    let news = story.news();
    assert_eq!(shown(&news, "c"), ["2"]);
    assert_eq!(news.event_types(), ["tool_progress", "run_settled"]);
    story.ends();
}

#[test]
fn c30_the_newest_usage_is_shown_before_the_run_is_seen_to_end() {
    let mut story = Story::working();
    for message in ["m", "n"] {
        story.starts_message(message, "hello");
        story.finishes_message(message, Some(5));
        story.land();
    }
    story.stops();
    story.land();
    let news = story.news();
    let usage = |body: &&EventBody| match body {
        EventBody::UsageUpdated { usage, .. } => usage.output_tokens,
        _ => None,
    };
    let totals: Vec<_> = news.events().iter().filter_map(usage).collect();
    assert_eq!(totals, [5, 10], "running totals");
    assert_eq!(story.stored_run().usage.output_tokens, Some(10));
    story.ends();
}

#[test]
fn c30_tools_that_the_engine_left_open_are_forgotten_when_it_comes_to_rest() {
    let mut story = Story::working();
    story.follow_up();
    story.land();
    for n in 0..20 {
        let call = format!("c{n}");
        story.starts_tool(&call);
        story.progresses(&call, "1");
    }
    // The invariants would see lanes without a tool.
    story.stops();
    story.shows(1);
    story.stops();
    story.ends();
}

#[test]
fn c30_a_run_that_goes_on_shows_no_usage_twice_within_the_interval() {
    let mut story = Story::working();
    story.follow_up();
    story.land();
    for message in ["m", "n"] {
        story.starts_message(message, "hello");
        story.finishes_message(message, Some(5));
        story.land();
    }
    let usage = |news: &News| {
        let types = news.event_types();
        types.iter().filter(|it| **it == "usage_updated").count()
    };
    assert_eq!(usage(&story.news()), 1, "the second is held back");
    story.stops();
    story.shell.settle_disk();
    story.shows(1);
    story.shell.settle_disk();
    story.starts_message("o", "hello");
    story.finishes_message("o", Some(5));
    story.shell.settle_disk();
    assert_eq!(usage(&story.news()), 0, "also beyond the engine's rest");
    story.passes(CONFLATION_INTERVAL);
    assert_eq!(usage(&story.news()), 1);
    story.stops();
    story.ends();
}
