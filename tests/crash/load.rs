//! Clients at work: sessions that are invoked, steered, queued to, aborted and observed all at
//! once, until the server is gone. Whatever they are told goes to the ledger.
//!
//! What must never enter: a judgement of what a restarted server says.

use std::time::Duration;

use futures_util::StreamExt as _;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sessionplane_client::Client;
use sessionplane_client::contract::{
    Agent as _, CallOptions, DispatchRequest, EventsRequest, InvokeEvent, InvokeRequest,
    OnDisconnect, ResultStream, SessionControl as _,
};
use sessionplane_client::domain::command::Command;
use sessionplane_client::domain::error::Reason;
use sessionplane_client::domain::ids::RequestId;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::ledger::{Dispatched, Invoked, Known, Shared, unanswered};

/// Callers per session: they meet each other's runs.
const CALLERS: usize = 2;
/// Streams that one caller reads at a time.
const STREAMS: usize = 6;

/// Works on the sessions until the server is gone. The tasks end by themselves then.
pub(crate) fn start(client: &Client, sessions: &[Shared], round: usize, seed: u64) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for (number, session) in sessions.iter().enumerate() {
        tasks.spawn(observe(client.clone(), session.clone()));
        for caller in 0..CALLERS {
            let salt = (number * CALLERS + caller) as u64;
            let caller = Caller {
                client: client.clone(),
                session: session.clone(),
                name: format!("{round}-{number}-{caller}"),
                rng: StdRng::seed_from_u64(seed.wrapping_add(salt)),
                calls: 0,
                streams: JoinSet::new(),
            };
            tasks.spawn(caller.work());
        }
    }
    tasks
}

/// Observes a session, from where its observer stood, until the server is gone.
async fn observe(client: Client, session: Shared) {
    loop {
        let request = resumption(&session);
        match client.events(request, CallOptions::default()).await {
            Ok(mut stream) => {
                while let Some(Ok(item)) = stream.next().await {
                    session.lock().observed(&item);
                }
            }
            // The first invoke is on its way.
            Err(error) if error.reason == Reason::NoSuchSession => {
                sleep(Duration::from_millis(2)).await;
            }
            Err(_) => return,
        }
    }
}

/// One call that takes up an observation where it stood.
pub(crate) fn resumption(session: &Shared) -> EventsRequest {
    let ledger = session.lock();
    EventsRequest {
        session: ledger.at.clone(),
        resume: ledger.position,
        entries_since: ledger
            .entries
            .values()
            .next_back()
            .map(|entry| entry.id.to_string()),
    }
}

/// Options with a request id.
pub(crate) fn under(id: &RequestId) -> CallOptions {
    CallOptions {
        request_id: Some(id.clone()),
        deadline: Some(Duration::from_secs(30)),
    }
}

struct Caller {
    client: Client,
    session: Shared,
    name: String,
    rng: StdRng,
    calls: u32,
    streams: JoinSet<()>,
}

/// The server is gone, or going.
struct Gone;

impl Caller {
    async fn work(mut self) {
        loop {
            let done = match self.rng.random_range(0..100) {
                0..45 => self.invoke().await,
                45..68 => {
                    self.dispatch(|text| Command::Steer { text: text.into() })
                        .await
                }
                68..90 => {
                    self.dispatch(|text| Command::FollowUp { text: text.into() })
                        .await
                }
                _ => self.dispatch(|_| Command::Abort).await,
            };
            if done.is_err() {
                break;
            }
            while let Some(read) = self.streams.try_join_next() {
                read.unwrap();
            }
            // The load's own pace, not a wait for something.
            sleep(Duration::from_millis(self.rng.random_range(0..10))).await;
        }
        while let Some(read) = self.streams.join_next().await {
            read.unwrap();
        }
    }

    /// A request id and a marker that nobody else uses.
    fn mint(&mut self) -> (RequestId, String) {
        self.calls += 1;
        let id = format!("{}-{}", self.name, self.calls);
        (RequestId::parse(&id).unwrap(), format!("<m:{id}>"))
    }

    async fn invoke(&mut self) -> Result<(), Gone> {
        if self.streams.len() >= STREAMS {
            return Ok(());
        }
        let (id, marker) = self.mint();
        let detached = self.rng.random_bool(0.7);
        let request = InvokeRequest {
            session: self.session.lock().at.clone(),
            prompt: format!("# {marker}\n{}", scenario(&mut self.rng)),
            agent: None,
            must_exist: false,
            on_disconnect: if detached {
                OnDisconnect::Detach
            } else {
                OnDisconnect::Cancel
            },
        };
        let (known, terminal) = (Known::Unknown, None);
        let invoked = Invoked {
            request: request.clone(),
            marker,
            known,
            terminal,
        };
        self.session.lock().invokes.insert(id.clone(), invoked);
        match self.client.invoke(request, under(&id)).await {
            Ok(stream) => {
                let leaves = self.rng.random_bool(0.2);
                let read = read(self.session.clone(), id, stream, leaves);
                self.streams.spawn(read);
                Ok(())
            }
            Err(error) => {
                let mut ledger = self.session.lock();
                ledger.invokes.get_mut(&id).unwrap().known = unanswered(&error);
                Err(Gone)
            }
        }
    }

    async fn dispatch(&mut self, command: impl FnOnce(&str) -> Command) -> Result<(), Gone> {
        let (id, marker) = self.mint();
        let command = command(&format!("Consider {marker}, please."));
        let marker = (command != Command::Abort).then_some(marker);
        let session = self.session.lock().at.clone();
        let request = DispatchRequest {
            session,
            command,
            expected_run: None,
        };
        let known = Known::Unknown;
        let dispatched = Dispatched {
            request: request.clone(),
            marker,
            known,
        };
        self.session
            .lock()
            .dispatches
            .insert(id.clone(), dispatched);
        let answer = self.client.dispatch(request, under(&id)).await;
        self.session.lock().answer(&id, &answer);
        match answer {
            Err(error) if error.reason != Reason::NoSuchSession => Err(Gone),
            _ => Ok(()),
        }
    }
}

/// Reads a run's stream to its end, or leaves early.
async fn read(session: Shared, id: RequestId, stream: ResultStream<InvokeEvent>, leaves: bool) {
    let mut stream = stream;
    let mut first = true;
    while let Some(Ok(event)) = stream.next().await {
        let mut ledger = session.lock();
        match event {
            InvokeEvent::Accepted { run, joined, .. } => {
                assert!(first && !joined, "{id} was sent once");
                ledger.invokes.get_mut(&id).unwrap().known = Known::Accepted(run);
                if leaves {
                    return;
                }
            }
            InvokeEvent::Failed { run: None, .. } => {
                assert!(first, "an admitted run has a record");
                ledger.invokes.get_mut(&id).unwrap().known = Known::Nothing;
            }
            terminal if terminal.is_terminal() => ledger.terminal(&id, terminal),
            _ => {}
        }
        first = false;
    }
}

/// A short run of some kind; some hang, and end by an abort or with the server.
fn scenario(rng: &mut StdRng) -> String {
    let words = rng.random_range(1..30);
    match rng.random_range(0..10) {
        0..3 => format!("say-words {words} every 2ms\nusage in=3 out={words}"),
        3..5 => format!(
            "think \"hm\"\ntool search {{}} progress 3 every 4ms\nturn\nsay-words {words} every 2ms"
        ),
        5..7 => format!("wait 10ms\nturn\nwait 10ms\nturn\nsay-words {words} every 1ms"),
        7 => "say \"almost\"\nfail overloaded \"try later\" retryable".to_owned(),
        8 => "say \"and then\"\ncrash".to_owned(),
        _ => "say \"I wait\"\nhang".to_owned(),
    }
}
