//! What the engine says, and what of it is kept.

use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::limits::{MAX_OPEN_BYTES_PER_RUN, MAX_OPEN_PER_RUN};

use super::story::Story;

#[test]
fn c60_all_that_an_engine_has_open_keeps_a_common_bound_and_says_what_went() {
    const SAID: usize = 1024 * 1024;
    let mut story = Story::working();
    let name = |n: usize| format!("m{n}");
    for n in 0..MAX_OPEN_PER_RUN {
        // The invariants see the bytes that are open after every step.
        story.starts_message(&name(n), &"x".repeat(SAID - 3));
        story.continues_message(&name(n), "end");
    }
    for n in 0..MAX_OPEN_PER_RUN {
        story.finishes_message(&name(n), None);
        story.shell.settle_disk();
    }
    let mut kept = 0;
    for entry in &story.shell.store.entries[1..] {
        let EntryBody::Assistant { text, .. } = &entry.body else {
            panic!("{entry:?}");
        };
        assert!(text.text.ends_with("end"), "the tail is what is kept");
        assert_eq!(text.text.len() as u64 + text.omitted_bytes, SAID as u64);
        kept += text.text.len();
    }
    let bound = MAX_OPEN_BYTES_PER_RUN;
    assert!(kept <= bound && kept > bound / 2, "{kept} of {bound}");
    story.stops();
    story.ends();
}
