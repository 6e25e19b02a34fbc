//! One seed: a world, its life, and what is judged at its end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane_core::contract::{
    Agent as _, CallOptions, DispatchRequest, InvokeEvent, InvokeRequest, OnDisconnect,
    SessionControl as _, SessionState,
};
use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::{AgentName, SessionName, SessionRef};
use sessionplane_core::domain::interaction::ResolutionCause;
use sessionplane_core::domain::limits::Limits;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::view::Status;
use sessionplane_server::app::config::AppConfig;
use tokio_util::sync::CancellationToken;

use crate::books::{Books, Inner};
use crate::chronicle::Chronicle;
use crate::client::{Client, Place};
use crate::disk::Disk;
use crate::engines::Wire;
use crate::executor::{Executor, Stepped, lock};
use crate::ledger::Ledger;
use crate::log::Log;
use crate::reader::{Reader, Shared};
use crate::rng::{Fingerprint, Rng};
use crate::server::{Ending, Host};
use crate::tally::Tally;

/// Acts of a client.
const ACTIONS: u32 = 22;
/// How long a world may live, in virtual time: more is a life that does not come to rest.
const LIFETIME: Duration = Duration::from_secs(3600);
/// How long a world that nobody disturbs may take to come to rest.
pub(crate) const REST: Duration = Duration::from_secs(300);
/// So many quiet seconds in a row are rest: more than a slow disk takes for what waits for it.
const QUIET: u32 = 10;
/// Steps of the executor after which something spins.
const STEPS: u64 = 20_000_000;

/// What a seed came to.
pub(crate) struct Lived {
    pub(crate) fingerprint: (Fingerprint, u64),
    pub(crate) elapsed: Duration,
    pub(crate) tally: Tally,
}

/// Lives one seed. Panics with the first thing that is wrong.
pub(crate) fn live(seed: u64) -> Lived {
    let mut rng = Rng::new(seed);
    let executor = Executor::new(rng.fork());
    let log = Log::new(executor.clone());
    let books = Books::new(log.clone());
    let chronicle = Chronicle::new(log.clone(), books.clone());
    let wire = Wire::new(log.clone(), books.clone());
    let disk = Disk::new(executor.clone(), books.clone(), rng.fork());
    let places = places(&mut rng);
    let hostile = hostile(&places);
    let config = config(&mut rng);
    let parts = (log.clone(), books.clone(), wire, disk);
    let host = Host::new(&executor, parts, config, hostile, &mut rng);
    let books_of_ledger = books.clone();
    let world = World {
        shared: Shared {
            host,
            books,
            chronicle,
            ledger: Ledger::new(log.clone(), books_of_ledger),
            log: log.clone(),
            listeners: Arc::default(),
            done: CancellationToken::new(),
        },
        places,
        rng,
    };
    let tally = Arc::default();
    let ended = executor.go(world.live(Arc::clone(&tally)));
    drive(&executor, &log, &ended);
    let tally = lock(&tally).clone();
    Lived {
        fingerprint: log.fingerprint(),
        elapsed: executor.elapsed(),
        tally,
    }
}

fn drive(executor: &Executor, log: &Log, ended: &CancellationToken) {
    let panics = crate::panics::seen();
    for _ in 0..STEPS {
        let stepped = executor.step();
        if let Some(problem) = log.verdict() {
            panic!("{problem}");
        }
        if crate::panics::seen() != panics {
            log.wrong("a task of the server panicked");
        }
        if ended.is_cancelled() {
            return;
        }
        if stepped == Stepped::Dead {
            log.wrong("nothing will ever happen again");
        }
        if executor.elapsed() > LIFETIME {
            log.wrong("the world does not come to rest");
        }
    }
    panic!("something spins");
}

fn places(rng: &mut Rng) -> Vec<Place> {
    let count = 1 + rng.index(3);
    let name = |at: usize| SessionName::parse(&format!("s{at}")).expect("a name");
    (0..count)
        .map(|at| {
            let agent = if rng.one_in(4) {
                format!("hostile-{}", rng.below(500))
            } else {
                "scripted".to_owned()
            };
            Place {
                name: name(at),
                agent: AgentName::parse(&agent).expect("an agent's name"),
                parent: (at > 0 && rng.one_in(2)).then(|| name(at - 1)),
            }
        })
        .collect()
}

fn hostile(places: &[Place]) -> Vec<u64> {
    let agents = places.iter().map(|place| place.agent.as_str());
    let seeds = agents.filter_map(|agent| agent.strip_prefix("hostile-"));
    let seeds: BTreeSet<u64> = seeds.filter_map(|seed| seed.parse().ok()).collect();
    seeds.into_iter().collect()
}

fn config(rng: &mut Rng) -> AppConfig {
    let grace = Duration::from_millis(300);
    AppConfig {
        limits: Limits {
            max_pending_inputs: [3, 256][rng.index(2)],
            cancel_grace: grace,
            rejoin_grace: grace,
            abort_grace: grace,
        },
        ring_events: [16, 100, 16 * 1024][rng.index(3)],
        idle_ring_bytes: [32 * 1024, 32 * 1024 * 1024][rng.index(2)],
        idle_channels: [1, 4096][rng.index(2)],
        fleet_changes: [4, 64, 32 * 1024][rng.index(3)],
        idle_ttl: [Duration::from_millis(5), Duration::from_secs(60)][rng.index(2)],
        heartbeat: [Duration::from_millis(200), Duration::from_secs(15)][rng.index(2)],
        position_wait: Duration::from_millis(200),
        ..AppConfig::default()
    }
}

pub(crate) struct World {
    pub(crate) shared: Shared,
    pub(crate) places: Vec<Place>,
    pub(crate) rng: Rng,
}

impl World {
    async fn live(mut self, tally: Arc<std::sync::Mutex<Tally>>) {
        let executor = self.shared.host.executor.clone();
        self.shared.host.start().await;
        let readers = self.readers();
        let lookouts = self.lookouts();
        let mut clients = self.clients();
        clients.extend(self.crews());
        let calm = CancellationToken::new();
        let chaos = executor.go(chaos(
            self.shared.host.clone(),
            calm.clone(),
            self.rng.fork(),
        ));
        for client in clients {
            client.cancelled().await;
        }
        calm.cancel();
        chaos.cancelled().await;
        self.come_to_rest().await;
        self.look_over_the_fleet().await;
        // C5: each stream has come to its end by now.
        let listeners = std::mem::take(&mut *lock(&self.shared.listeners));
        for listener in listeners {
            let ended = executor.within(REST, listener.cancelled()).await;
            self.ensure(ended.is_some(), "C5: the stream of an invoke never ends");
        }
        self.shared.done.cancel();
        for reader in readers.into_iter().chain(lookouts) {
            let ended = executor.within(REST, reader.cancelled()).await;
            self.ensure(ended.is_some(), "an observer does not come to its end");
        }
        self.begin_anew().await;
        self.account(&mut lock(&tally));
    }

    fn ensure(&self, holds: bool, what: &str) {
        self.shared.log.ensure(holds, || what.to_owned());
    }

    /// One faithful observer of each session, and some that come and go.
    fn readers(&mut self) -> Vec<CancellationToken> {
        let mut readers = Vec::new();
        for place in &self.places {
            for number in 0..=1 + self.rng.below(3) {
                let reader = Reader::new(
                    self.shared.clone(),
                    format!("o-{}-{number}", place.name),
                    place.name.clone(),
                    number == 0,
                    self.rng.fork(),
                );
                readers.push(self.shared.host.executor.go(reader.run()));
            }
        }
        readers
    }

    fn clients(&mut self) -> Vec<CancellationToken> {
        let count = 2 + self.rng.below(4);
        let mut clients = Vec::new();
        for number in 0..count {
            let client = Client::new(
                self.shared.clone(),
                format!("c{number}"),
                self.places.clone(),
                self.rng.fork(),
            );
            clients.push(self.shared.host.executor.go(client.run(ACTIONS)));
        }
        clients
    }

    async fn state(&self, place: &Place) -> Option<SessionState> {
        let connection = self.shared.host.connect().await;
        let caller = connection.caller();
        let call = caller.get_state(place.reference(), None, CallOptions::default());
        let state = connection.call(call).await.ok()?.ok()?;
        let id = state.view.session.id;
        self.shared.chronicle.state(id, &state);
        Some(state)
    }

    /// Nobody starts anything any more and the disk is well: in the end somebody aborts what still
    /// runs, and then everything that was begun has ended (C10, C20, C25, C44).
    async fn come_to_rest(&mut self) {
        let executor = self.shared.host.executor.clone();
        let patience = executor.elapsed() + REST;
        let mut quiet = 0;
        loop {
            executor.sleep(Duration::from_secs(1)).await;
            let mut busy = false;
            for place in self.places.clone() {
                let state = self.state(&place).await;
                if state.is_some_and(|state| state.view.status() != Status::Idle) {
                    busy = true;
                    self.abort(place.reference()).await;
                }
            }
            busy |= self.rest_of_the_fleet().await;
            let unfinished = self.shared.books.read().unfinished();
            // What a client gave up on may still be on its way to a slow disk.
            quiet = if busy || unfinished.is_some() {
                0
            } else {
                quiet + 1
            };
            if quiet > QUIET {
                return;
            }
            if executor.elapsed() > patience {
                let what = format!("C44: it never ends: {unfinished:?}");
                return self.shared.log.wrong(what);
            }
        }
    }

    pub(crate) async fn abort(&self, session: SessionRef) {
        let connection = self.shared.host.connect().await;
        let request = DispatchRequest {
            session,
            command: Command::Abort,
            expected_run: None,
        };
        let caller = connection.caller();
        let call = caller.dispatch(request, CallOptions::default());
        // Whatever the answer, the state says whether it helped.
        let _ = connection.call(call).await;
    }

    /// C31, C38, C43: a new start shows what the old one did, leaves nothing of the old one behind,
    /// and every session takes a run.
    async fn begin_anew(&mut self) {
        let mut before = Vec::new();
        for place in self.places.clone() {
            before.push(self.state(&place).await.map(|state| state.view));
        }
        let fleet = self.fleet().await;
        let endings = [Ending::Killed, Ending::Dropped, Ending::Stopped];
        let ending = endings[self.rng.index(3)];
        let host = self.shared.host.clone();
        host.end(ending).await;
        host.start().await;
        self.same_fleet(fleet).await;
        for (place, before) in self.places.clone().iter().zip(before) {
            let after = self.state(place).await.map(|state| state.view);
            self.shared.log.ensure(before == after, || {
                format!("C31: before the start {before:?}, after it {after:?}")
            });
            if let Some(before) = before {
                let expected = before.resolved.settings;
                self.run_once(place, &expected).await;
            }
        }
        host.end(Ending::Dropped).await;
        host.executor.sleep(Duration::from_secs(20)).await;
        let left = host.leftovers();
        self.shared.log.ensure(left.is_empty(), || {
            format!("C44: a start that ended left tasks behind: {left:?}")
        });
    }

    async fn run_once(
        &self,
        place: &Place,
        expected: &sessionplane_core::domain::run::RunSettings,
    ) {
        let connection = self.shared.host.connect().await;
        let request = InvokeRequest {
            session: place.reference(),
            prompt: "the last words".to_owned(),
            given: Given::default(),
            agent: None,
            parent: None,
            must_exist: true,
            on_disconnect: OnDisconnect::Detach,
        };
        let caller = connection.caller();
        let answer = caller.invoke(request, CallOptions::default()).await;
        let Ok(stream) = answer else {
            return self.ensure(false, "C44: an idle session takes no run");
        };
        // It may be cut for being slow: the run's record tells of its end all the same.
        let executor = &self.shared.host.executor;
        let events = executor.within(REST, stream.collect::<Vec<_>>()).await;
        let first = events.as_ref().and_then(|events| events.first());
        let Some(Ok(InvokeEvent::Accepted { run, .. })) = first else {
            return self
                .shared
                .log
                .wrong(format!("C44: the last run is {events:?}"));
        };
        let waiting = caller.wait_run(*run, CallOptions::default());
        let Some(Ok(record)) = executor.within(REST, waiting).await else {
            return self.ensure(false, "C16: nobody hears of the last run's end");
        };
        self.shared.log.ensure(record.settings == *expected, || {
            format!(
                "C23: the state says {expected:?}, the run used {:?}",
                record.settings
            )
        });
    }

    /// What the whole life came to.
    fn account(&self, tally: &mut Tally) {
        self.shared.chronicle.judge_all(tally);
        tally.add("starts", self.shared.host.starts());
        let disk = &self.shared.host.disk;
        tally.add("failed commits", disk.failed.load(Ordering::SeqCst));
        tally.add("failed reads", disk.unread.load(Ordering::SeqCst));
        let books = self.shared.books.read();
        tally.count(&books);
        for (what, count) in books.fates() {
            tally.add(what, count);
        }
        self.account_questions(&books, tally);
    }

    /// C25: an answer that was accepted is told once, if its run came to its own end.
    fn account_questions(&self, books: &Inner, tally: &mut Tally) {
        for asked in books.interactions.values() {
            let cause = asked.resolution.as_ref().map(|it| it.cause);
            let run = books.runs.get(&asked.id.run);
            let whole = run.and_then(|run| run.settled.as_ref());
            let whole = whole.is_some_and(|it| it.outcome == RunOutcome::Completed);
            let tame = asked.question.title.starts_with("q-");
            let told = self.shared.host.wire.told(asked.id);
            if tame && whole && cause == Some(ResolutionCause::Answered) {
                tally.add("answers told", told);
                self.shared.log.ensure(told == 1, || {
                    format!("C25: an answer was told {told} times: {asked:?}")
                });
            }
        }
    }
}

/// Ends the server now and then, and whenever its disk fails, and starts it anew.
async fn chaos(host: Arc<Host>, calm: CancellationToken, mut rng: Rng) {
    let every = [3_000, 20_000, 1_000_000][rng.index(3)];
    while !calm.is_cancelled() {
        let sleep = host.executor.sleep(rng.millis(every));
        let ending = tokio::select! {
            biased;
            () = calm.cancelled() => break,
            () = host.fatal() => Ending::Killed,
            () = sleep => [Ending::Killed, Ending::Dropped, Ending::Stopped][rng.index(3)],
        };
        // A process with a broken disk lives on for a moment.
        let grace = rng.millis(40);
        host.executor.sleep(grace).await;
        host.end(ending).await;
        let down = rng.millis(500);
        host.executor.sleep(down).await;
        host.start().await;
    }
    host.disk.heal();
    if host.store().fatal().borrow().is_some() {
        host.end(Ending::Killed).await;
        host.start().await;
    }
}
