//! Sessions that nobody drives cost a start nothing: neither time nor memory.

use std::time::{Duration, Instant};

use sessionplane_server::adapters::sled::tools::Inspection;

use crate::daemon::Home;
use crate::{count, engine, fill};

/// What a start may take beyond the engine's own opening.
const TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2000 } else { 100 });
/// Memory beyond the engine's own, in bytes.
const MEMORY: usize = if cfg!(debug_assertions) { 40 } else { 20 } * 1024 * 1024;
/// The best of so many is told: another process may be in the way of one.
const TRIES: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_on_sessions_at_rest_costs_what_the_engine_costs_and_little_more() {
    let sessions = count("SESSIONPLANE_DORMANT", 2_000);
    let home = Home::new();
    // Makes the directory, with its tokens.
    home.start().await.kill().await;
    let store = home.data_dir().join("store");
    let begun = Instant::now();
    fill::dormant(&store, sessions).await;
    println!("{sessions} sessions written in {:?}", begun.elapsed());
    if sessions <= 10_000 {
        let findings = Inspection::open(&store)
            .unwrap()
            .verify(None, &mut |_, _| {});
        assert!(findings.whole(), "{:?}", &findings.faults[..1]);
        assert_eq!(findings.sessions, sessions);
    }
    let (mut alone, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..TRIES {
        let begun = Instant::now();
        let daemon = home.start().await;
        let taken = begun.elapsed();
        ours.push((taken, engine::anonymous(daemon.pid())));
        daemon.kill().await;
        let opening = engine::open(&store);
        alone.push((opening.time, opening.memory));
    }
    let best = |of: &[(Duration, usize)]| {
        let time = of.iter().map(|(time, _)| *time).min().unwrap();
        let memory = of.iter().map(|(_, memory)| *memory).min().unwrap();
        (time, memory)
    };
    let ((ours, ours_memory), (alone, alone_memory)) = (best(&ours), best(&alone));
    println!("ready after {ours:?} with {ours_memory} bytes");
    println!("the engine alone {alone:?} with {alone_memory} bytes");
    assert!(ours <= alone + TIME, "{ours:?} against {alone:?}");
    assert!(
        ours_memory <= alone_memory + MEMORY,
        "{ours_memory} against {alone_memory}"
    );
}
