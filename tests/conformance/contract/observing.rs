//! C33: how soon an observer hears, whatever the session does.

use std::time::{Duration, Instant};

use super::desk::Desk;
use super::world::{Worlds, quick};

/// So soon a stream answers its first message.
const FIRST_WITHIN: Duration = Duration::from_millis(50);

/// C33: a stream of a session in which nothing happens answers at once, not with the first event or
/// heartbeat. The median of some: the machine may be busy with other tests.
pub(crate) async fn c33_a_quiet_stream_answers_within_50_ms(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "first");
    desk.run("say \"x\"").await;
    let mut waits = Vec::new();
    for _ in 0..15 {
        #[allow(clippy::disallowed_methods, reason = "how long a caller really waits")]
        let asked = Instant::now();
        // Subscribed, entries, snapshot.
        let watch = desk.watch().await;
        waits.push(asked.elapsed());
        drop(watch);
    }
    waits.sort_unstable();
    let median = waits[waits.len() / 2];
    assert!(median < FIRST_WITHIN, "{waits:?}");
}
