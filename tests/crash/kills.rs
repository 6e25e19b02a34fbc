//! Kills under load: each picks how the server dies, lets clients work until it does, starts it
//! again and verifies what they were told.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Mutex;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use sessionplane_client::domain::ids::{ExternalKey, SessionName, SessionRef};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::daemon::{Daemon, Home, Started};
use crate::ledger::Shared;
use crate::power::Power;
use crate::{load, verify};

/// Every place that a server under load comes by.
const PLACES: [&str; 11] = [
    "store::before-apply",
    "store::after-apply",
    "store::before-sync",
    "store::after-sync",
    "store::before-ack",
    "session::before-commit",
    "session::before-settle",
    "session::after-commit",
    "session::before-answer",
    "session::before-engine-open",
    "session::before-engine-told",
];
/// Kills on one data directory; then the next begins with a fresh one.
const KILLS_PER_HOME: usize = 4;
/// Sessions that are worked on.
const SESSIONS: usize = 3;
/// How long a server may take to come to its place, and its clients to notice.
const DEATH: Duration = Duration::from_secs(60);

/// How a server dies.
#[derive(Clone, Debug)]
enum Kill {
    /// Killed from outside, after a while.
    Anytime(Duration),
    /// Killed at a place, when it comes there once more than so often.
    At(&'static str, u32),
    /// Its disk fails in a round.
    Disk(&'static str, u32),
    /// Its storage engine panics in a round.
    Panic(&'static str, u32),
    /// Stopped in an orderly way.
    Term(Duration),
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")),
    )
}

/// Every place once, then whatever comes.
fn plan(kills: usize, rng: &mut StdRng) -> Vec<Kill> {
    let often = |rng: &mut StdRng| rng.random_range(0..40);
    let while_ = |rng: &mut StdRng| Duration::from_millis(rng.random_range(5..700));
    let mut plan: Vec<Kill> = PLACES
        .iter()
        .map(|place| Kill::At(place, often(rng)))
        .collect();
    let mut kinds = 0;
    while plan.len() < kills.max(PLACES.len() + 5) {
        let place = PLACES[rng.random_range(0..PLACES.len())];
        let in_store = PLACES[rng.random_range(0..5)];
        plan.push(match kinds % 6 {
            0 | 3 => Kill::Anytime(while_(rng)),
            1 => Kill::Term(while_(rng)),
            2 => Kill::Disk(in_store, often(rng)),
            4 => Kill::Panic(in_store, often(rng)),
            _ => Kill::At(place, often(rng)),
        });
        kinds += 1;
    }
    plan.shuffle(rng);
    plan
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c44_b27_b54_no_kill_loses_doubles_or_wedges_what_was_acknowledged() {
    let kills = setting("SESSIONPLANE_CRASHES").unwrap_or(16);
    let (plan, rng) = planned("SESSIONPLANE_CRASHES", kills);
    survive(plan, rng, &Home::new).await;
}

/// The same, over a layer that drops what was not synced whenever the server has died.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c39_c44_b54_no_power_loss_takes_what_was_acknowledged() {
    let losses = setting("SESSIONPLANE_POWER_LOSSES").unwrap_or(8);
    let (mut plan, mut rng) = planned("SESSIONPLANE_POWER_LOSSES", losses);
    plan.truncate(usize::try_from(losses).unwrap());
    // An orderly end is no better: who acknowledged has synced.
    plan.push(Kill::Term(Duration::from_millis(500)));
    let seed = rng.random();
    survive(plan, rng, &|| powered(StdRng::seed_from_u64(seed))).await;
}

/// A home whose servers lose power when they die: what they have not synced is gone at the next start.
fn powered(rng: StdRng) -> Home {
    let home = Home::new();
    let power = Power::of(home.path(), home.data_dir());
    let environment = power.environment();
    let environment = environment.map(|(name, value)| (name, value.to_owned()));
    let rng = Mutex::new(rng);
    home.under(environment.to_vec(), move || {
        println!("power loss: {:?}", power.lose(&mut rng.lock().unwrap()));
    })
}

fn planned(name: &str, count: u64) -> (Vec<Kill>, StdRng) {
    let seed = setting("SESSIONPLANE_SEED").unwrap_or_else(|| rand::random_range(0..1_000_000));
    println!("SESSIONPLANE_SEED={seed} {name}={count}");
    let mut rng = StdRng::seed_from_u64(seed);
    let plan = plan(usize::try_from(count).unwrap(), &mut rng);
    (plan, rng)
}

async fn survive(plan: Vec<Kill>, mut rng: StdRng, home: &impl Fn() -> Home) {
    for (number, kills) in plan.chunks(KILLS_PER_HOME).enumerate() {
        let home = home();
        let sessions = sessions(number);
        for (round, kill) in kills.iter().enumerate() {
            println!("directory {number}, kill {round}: {kill:?}");
            die(&home, &sessions, round, kill, rng.random()).await;
            let daemon = home.start().await;
            let mut checks = JoinSet::new();
            for session in &sessions {
                let (client, session) = (daemon.client(), session.clone());
                let data_dir = home.data_dir();
                checks.spawn(
                    async move { verify::session(&client, &session, &data_dir, round).await },
                );
            }
            joined(checks).await;
            daemon.kill().await;
        }
        for session in &sessions {
            println!("directory {number}: {}", session.lock().summary());
        }
        assert!(
            !home.said().contains("panicked at") || kills.iter().any(panics),
            "{}",
            home.said()
        );
        // Everything that is left fits together.
        let told = home.store_tool(&home.data_dir(), &["verify"]).await;
        assert_eq!(told.status, Some(0), "{told:?}");
    }
}

fn panics(kill: &Kill) -> bool {
    matches!(kill, Kill::Panic(..))
}

fn sessions(number: usize) -> Vec<Shared> {
    let named = |session: usize| {
        let name = format!("crash-{number}-{session}");
        match session % 2 {
            0 => SessionRef::Name(SessionName::parse(&name).unwrap()),
            _ => SessionRef::ExternalKey(ExternalKey::parse(&name).unwrap()),
        }
    };
    (0..SESSIONS)
        .map(|session| Shared::new(named(session)))
        .collect()
}

/// Starts a server, lets clients work, and sees it die.
async fn die(home: &Home, sessions: &[Shared], round: usize, kill: &Kill, seed: u64) {
    let failpoints = match kill {
        Kill::Anytime(_) | Kill::Term(_) => None,
        Kill::At(place, skip) => Some(format!("{place}={skip}*off->return(kill)")),
        Kill::Disk(place, skip) => Some(format!("{place}={skip}*off->return(no space left)")),
        Kill::Panic(place, skip) => Some(format!("{place}={skip}*off->panic(the engine)")),
    };
    let daemon = match home.try_start(failpoints.as_deref()).await {
        Started::Ready(daemon) => daemon,
        // The place was reached while the last run was being recovered.
        Started::Ended(status) => return died(kill, status),
    };
    let work = load::start(&daemon.client(), sessions, round, seed);
    end(daemon, kill).await;
    joined(work).await;
}

async fn end(daemon: Daemon, kill: &Kill) {
    match kill {
        Kill::Anytime(after) => {
            sleep(*after).await;
            daemon.kill().await;
        }
        Kill::Term(after) => {
            sleep(*after).await;
            daemon.terminate();
            assert_eq!(daemon.ended(DEATH).await.code(), Some(0));
        }
        Kill::At(..) | Kill::Disk(..) | Kill::Panic(..) => died(kill, daemon.ended(DEATH).await),
    }
}

/// Fails unless the server ended by itself, in the way that its kill makes it end.
fn died(kill: &Kill, status: ExitStatus) {
    match kill {
        Kill::Anytime(_) | Kill::Term(_) => panic!("{kill:?}: it ended on its own: {status}"),
        Kill::At(..) => assert_eq!(status.signal(), Some(9), "{kill:?}: it was not killed"),
        Kill::Disk(..) | Kill::Panic(..) => {
            assert_eq!(status.code(), Some(1), "{kill:?}: it did not give up");
        }
    }
}

#[test]
fn an_end_that_is_not_the_kill_that_was_asked_for_is_told() {
    let (refused, killed) = (ExitStatus::from_raw(1 << 8), ExitStatus::from_raw(9));
    let passes = |kill: Kill, status| std::panic::catch_unwind(|| died(&kill, status)).is_ok();
    let after = Duration::ZERO;
    for kill in [Kill::At("x", 0), Kill::Anytime(after), Kill::Term(after)] {
        assert!(!passes(kill, refused));
    }
    for kill in [Kill::Disk("x", 0), Kill::Panic("x", 0), Kill::Term(after)] {
        assert!(!passes(kill, killed));
    }
    assert!(passes(Kill::At("x", 0), killed) && passes(Kill::Disk("x", 0), refused));
}

/// Waits for tasks, and fails with the first that failed.
async fn joined(mut tasks: JoinSet<()>) {
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    };
    timeout(DEATH, all)
        .await
        .expect("the clients end with their server");
}
