//! Clients at work: sessions that are invoked, steered, queued to, aborted and observed all at
//! once, until the server is gone. Whatever they are told goes to the ledger.
//!
//! What must never enter: a judgement of what a restarted server says.

use sessionplane_core::domain::given::Given;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sessionplane_client::Client;
use sessionplane_client::contract::{
    Agent as _, CallOptions, DispatchRequest, EventFilter, EventItem, EventsRequest, InvokeEvent,
    InvokeRequest, OnDisconnect, ResultStream, SessionControl as _,
};
use sessionplane_client::domain::command::Command;
use sessionplane_client::domain::error::Reason;
use sessionplane_client::domain::ids::{RequestId, SessionRef};
use sessionplane_client::domain::interaction::{Interaction, InteractionAnswer, Shape};
use sessionplane_client::domain::view::{SessionView, Status};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::ledger::{Dispatched, Invoked, Known, Shared, unanswered};

/// Callers per session: they meet each other's runs.
const CALLERS: usize = 2;
/// Two questions at once; one of them needs no answer after a while.
const ASKS: &str = "ask may approval \"May I?\"\n\
                    ask word input \"A word?\" within 30ms default \"none\"\n\
                    say \"I wait\"\nwait-answers";
/// How long what was begun may take to end, on a machine that is busy with other tests.
const REST: Duration = Duration::from_secs(60);
/// Streams that one caller reads at a time.
const STREAMS: usize = 6;

/// Works on the sessions until the server is gone. The tasks end by themselves then.
pub(crate) fn start(client: &Client, sessions: &[Shared], round: usize, seed: u64) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for (number, session) in sessions.iter().enumerate() {
        tasks.spawn(observe(client.clone(), session.clone()));
        // The last one changes what is between runs.
        for seat in 0..=CALLERS {
            let salt = (number * (CALLERS + 1) + seat) as u64;
            let caller = Caller {
                client: client.clone(),
                session: session.clone(),
                name: format!("{round}-{number}-{seat}"),
                rng: StdRng::seed_from_u64(seed.wrapping_add(salt)),
                calls: 0,
                streams: JoinSet::new(),
            };
            if seat < CALLERS {
                tasks.spawn(caller.work());
            } else {
                tasks.spawn(caller.change());
            }
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
        filter: EventFilter::default(),
    }
}

/// Waits until nothing holds a session.
pub(crate) async fn at_rest(client: &Client, session: SessionRef) {
    let request = EventsRequest {
        session,
        resume: None,
        entries_since: None,
        filter: EventFilter::default(),
    };
    let rests = async {
        let stream = client.events(request, CallOptions::default()).await;
        let (mut stream, mut view) = (stream.unwrap(), None::<SessionView>);
        while view
            .as_ref()
            .is_none_or(|view| view.status() != Status::Idle)
        {
            match stream.next().await.expect("it goes on").unwrap() {
                EventItem::Snapshot(state) => view = Some(state.view),
                EventItem::Event(told) => {
                    if let Some(view) = &mut view {
                        view.apply(&told.event);
                    }
                }
                _ => {}
            }
        }
    };
    timeout(REST, rests).await.expect("it comes to rest");
}

/// Options with a request id.
pub(crate) fn under(id: &RequestId) -> CallOptions {
    CallOptions {
        request_id: Some(id.clone()),
        deadline: Some(Duration::from_secs(30)),
    }
}

pub(crate) struct Caller {
    client: Client,
    pub(crate) session: Shared,
    name: String,
    pub(crate) rng: StdRng,
    calls: u32,
    streams: JoinSet<()>,
}

/// The server is gone, or going.
pub(crate) struct Gone;

impl Caller {
    async fn work(mut self) {
        loop {
            let done = match self.rng.random_range(0..100) {
                0..38 => self.invoke().await,
                38..54 => {
                    self.dispatch(|text| Command::Steer {
                        text: said(text),
                        given: Given::default(),
                    })
                    .await
                }
                54..70 => {
                    self.dispatch(|text| Command::FollowUp {
                        text: said(text),
                        given: Given::default(),
                    })
                    .await
                }
                70..93 => self.respond().await,
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
            given: Given::default(),
            agent: None,
            parent: None,
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

    /// Answers a question that an observer has seen and nobody is known to have answered.
    async fn respond(&mut self) -> Result<(), Gone> {
        let open: Vec<Interaction> = {
            let ledger = self.session.lock();
            let asked = ledger.asked.values();
            asked
                .filter(|it| it.resolution.is_none())
                .cloned()
                .collect()
        };
        if open.is_empty() {
            return Ok(());
        }
        let picked = &open[self.rng.random_range(0..open.len())];
        let answer = match &picked.question.shape {
            Shape::Approval(choices) | Shape::Select(choices) => {
                InteractionAnswer::Choice(choices[0].id.clone())
            }
            Shape::Confirm => InteractionAnswer::Confirmed(true),
            Shape::Input { .. } => InteractionAnswer::Text("a word".to_owned()),
            Shape::Form(_) => InteractionAnswer::Fields(BTreeMap::new()),
        };
        let interaction = picked.id;
        self.dispatch(|_| Command::Respond {
            interaction,
            answer,
        })
        .await
    }

    /// Sends a command; one that carries a text is given a marker to put there.
    pub(crate) async fn dispatch(
        &mut self,
        command: impl FnOnce(&str) -> Command,
    ) -> Result<(), Gone> {
        let (id, marker) = self.mint();
        let command = command(&marker);
        let carries = matches!(
            command,
            Command::Steer { .. } | Command::FollowUp { .. } | Command::Compact { .. }
        );
        let marker = carries.then_some(marker);
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

fn said(marker: &str) -> Arc<str> {
    format!("Consider {marker}, please.").into()
}

/// A short run of some kind; some hang, and end by an abort or with the server.
fn scenario(rng: &mut StdRng) -> String {
    let words = rng.random_range(1..30);
    match rng.random_range(0..16) {
        0..3 => format!("say-words {words} every 2ms\nusage in=3 out={words}"),
        3..5 => format!(
            "think \"hm\"\ntool search {{}} progress 3 every 4ms\nturn\nsay-words {words} every 2ms"
        ),
        5..7 => format!("wait 10ms\nturn\nwait 10ms\nturn\nsay-words {words} every 1ms"),
        7 => "say \"almost\"\nfail overloaded \"try later\" retryable".to_owned(),
        8 => "say \"and then\"\ncrash".to_owned(),
        9 => format!("tool-big {}KiB\nsay \"long\"", 70 + 10 * words),
        10 => "say \"a lot\"\ncompact \"within a run\" after 5ms\nsay \"and on\"".to_owned(),
        11..14 => ASKS.to_owned(),
        14 => "ask go confirm \"Go on?\"\nsay \"I ask\"\nwait 20ms".to_owned(),
        _ => "say \"I wait\"\nhang".to_owned(),
    }
}
