//! A server that answers from a script and remembers what it was asked.

pub(crate) mod fleet;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use sessionplane::v1::fleet_server::FleetServer;
use sessionplane::v1::invoke_server::{Invoke, InvokeServer};
use sessionplane::v1::session_control_server::{SessionControl, SessionControlServer};
use sessionplane::v1::{self, InvokeRequest};
use sessionplane_client::{Client, ClientOptions, Token};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status, async_trait};

use fleet::FleetStage;

/// Longest wait of a test for anything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// One step of a stream.
#[derive(Clone)]
pub(crate) enum Step<T> {
    /// Sends a message.
    Send(T),
    /// Waits until the test says so.
    Wait(Arc<Notify>),
    /// Ends with a status.
    Fail(Status),
    /// Stays silent and open.
    Hang,
}

/// How a call is answered.
pub(crate) type Script<T> = Result<T, Status>;

/// What is to be played and what was asked.
#[derive(Default)]
pub(crate) struct Stage {
    pub(crate) invokes: VecDeque<Script<Vec<Step<v1::InvokeResponse>>>>,
    pub(crate) events: VecDeque<Script<Vec<Step<v1::EventsResponse>>>>,
    pub(crate) dispatches: VecDeque<Script<v1::DispatchResponse>>,
    pub(crate) states: VecDeque<Script<v1::GetStateResponse>>,
    pub(crate) pages: VecDeque<Script<v1::ListEntriesResponse>>,
    pub(crate) run_pages: VecDeque<Script<v1::ListRunsResponse>>,
    /// How `WaitRun` is answered; none of these: not before its deadline.
    pub(crate) waits: VecDeque<Script<v1::WaitRunResponse>>,
    pub(crate) invoked: Vec<InvokeRequest>,
    pub(crate) observed: Vec<v1::EventsRequest>,
    pub(crate) dispatched: Vec<v1::DispatchRequest>,
    pub(crate) listed: Vec<v1::ListEntriesRequest>,
    pub(crate) runs_listed: Vec<v1::ListRunsRequest>,
    pub(crate) waited: Vec<v1::WaitRunRequest>,
    pub(crate) offers_asked: Vec<v1::ListCommandsRequest>,
    pub(crate) metadata: Vec<MetadataMap>,
    /// What `GetRun` answers; a completed run without one.
    pub(crate) run: Option<v1::RunRecord>,
    /// Told at every dispatch.
    pub(crate) on_dispatch: Option<Arc<Notify>>,
    /// Dispatches are never answered.
    pub(crate) mute: bool,
    /// Steers are never answered.
    pub(crate) slow_steers: bool,
    /// How many calls of `GetRun` are answered; without it, all.
    pub(crate) runs_told: Option<Arc<Semaphore>>,
    /// `GetRun` knows no run.
    pub(crate) no_run: bool,
    /// What `ListCommands` answers to every call; two pages without one.
    pub(crate) offers: Option<v1::ListCommandsResponse>,
    pub(crate) fleet: FleetStage,
}

/// A served stage.
pub(crate) struct Fake {
    pub(crate) stage: Arc<Mutex<Stage>>,
    pub(crate) address: SocketAddr,
    stop: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Fake {
    pub(crate) async fn start(stage: Stage) -> Self {
        let stage = Arc::new(Mutex::new(stage));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = Service(stage.clone());
        let stop = Arc::new(Notify::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            tonic::transport::Server::builder()
                .add_service(InvokeServer::new(service.clone()))
                .add_service(SessionControlServer::new(service.clone()))
                .add_service(FleetServer::new(service))
                .serve_with_incoming_shutdown(TcpListenerStream::new(listener), async move {
                    stopped.notified().await;
                })
                .await
                .unwrap();
        });
        Self {
            stage,
            address,
            stop,
            task,
        }
    }

    /// Takes no more calls and tells its connections so (GOAWAY); open streams go on.
    pub(crate) fn go_away(&self) {
        self.stop.notify_one();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn client(&self) -> Client {
        client_of(&self.url())
    }

    /// Reads what was asked.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Stage) -> T) -> T {
        look(&self.stage.lock().unwrap())
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A client with a token.
pub(crate) fn client_of(url: &str) -> Client {
    let options = ClientOptions::new(url.parse().unwrap());
    Client::connect(options.token(Token::parse("sp_test").unwrap())).unwrap()
}

/// Waits, but not for ever.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, what)
        .await
        .expect("nothing happened in time")
}

#[derive(Clone)]
struct Service(Arc<Mutex<Stage>>);

type Played<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Service {
    fn note<T>(&self, request: Request<T>, note: impl FnOnce(&mut Stage, T)) {
        let (metadata, _, message) = request.into_parts();
        let mut stage = self.0.lock().unwrap();
        stage.metadata.push(metadata);
        note(&mut stage, message);
    }

    fn next<T>(&self, queue: impl FnOnce(&mut Stage) -> &mut VecDeque<Script<T>>) -> Script<T> {
        let mut stage = self.0.lock().unwrap();
        let over = || Err(Status::failed_precondition("the script is over"));
        queue(&mut stage).pop_front().unwrap_or_else(over)
    }
}

fn played<T: Send + 'static>(steps: Vec<Step<T>>) -> Played<T> {
    let played = stream::iter(steps).filter_map(|step| async {
        match step {
            Step::Send(message) => Some(Ok(message)),
            Step::Fail(status) => Some(Err(status)),
            Step::Wait(told) => {
                told.notified().await;
                None
            }
            Step::Hang => std::future::pending().await,
        }
    });
    Box::pin(played)
}

#[async_trait]
impl Invoke for Service {
    type InvokeStream = Played<v1::InvokeResponse>;

    async fn invoke(
        &self,
        request: Request<InvokeRequest>,
    ) -> Result<Response<Self::InvokeStream>, Status> {
        self.note(request, |stage, asked| stage.invoked.push(asked));
        self.next(|stage| &mut stage.invokes)
            .map(|steps| Response::new(played(steps)))
    }

    async fn get_run(
        &self,
        request: Request<v1::GetRunRequest>,
    ) -> Result<Response<v1::GetRunResponse>, Status> {
        let told = self.0.lock().unwrap().runs_told.clone();
        if let Some(told) = told {
            told.acquire().await.unwrap().forget();
        }
        let completed = || super::wire::settled(v1::RunOutcome::Completed, "");
        if self.0.lock().unwrap().no_run {
            return Err(super::wire::ours(Code::NotFound, "NO_SUCH_RUN", "refused"));
        }
        let run = self.0.lock().unwrap().run.clone();
        let run = Some(v1::RunRecord {
            run_id: request.into_inner().run_id,
            ..run.unwrap_or_else(completed)
        });
        Ok(Response::new(v1::GetRunResponse { run }))
    }

    async fn list_runs(
        &self,
        request: Request<v1::ListRunsRequest>,
    ) -> Result<Response<v1::ListRunsResponse>, Status> {
        self.note(request, |stage, asked| stage.runs_listed.push(asked));
        self.next(|stage| &mut stage.run_pages).map(Response::new)
    }

    async fn wait_run(
        &self,
        request: Request<v1::WaitRunRequest>,
    ) -> Result<Response<v1::WaitRunResponse>, Status> {
        self.note(request, |stage, asked| stage.waited.push(asked));
        let answer = self.0.lock().unwrap().waits.pop_front();
        match answer {
            Some(answer) => answer.map(Response::new),
            None => std::future::pending().await,
        }
    }
}

#[async_trait]
impl SessionControl for Service {
    type EventsStream = Played<v1::EventsResponse>;

    async fn dispatch(
        &self,
        request: Request<v1::DispatchRequest>,
    ) -> Result<Response<v1::DispatchResponse>, Status> {
        self.note(request, |stage, asked| stage.dispatched.push(asked));
        let steers = matches!(
            self.0.lock().unwrap().dispatched.last(),
            Some(v1::DispatchRequest {
                command: Some(v1::dispatch_request::Command::Steer(_)),
                ..
            })
        );
        let (mute, slow) = {
            let stage = self.0.lock().unwrap();
            (stage.mute, stage.slow_steers)
        };
        if mute || (slow && steers) {
            std::future::pending::<()>().await;
        }
        if let Some(told) = &self.0.lock().unwrap().on_dispatch {
            told.notify_one();
        }
        self.next(|stage| &mut stage.dispatches).map(Response::new)
    }

    async fn get_capabilities(
        &self,
        _: Request<v1::GetCapabilitiesRequest>,
    ) -> Result<Response<v1::GetCapabilitiesResponse>, Status> {
        let capabilities = Some(super::wire::capabilities());
        Ok(Response::new(v1::GetCapabilitiesResponse { capabilities }))
    }

    async fn list_commands(
        &self,
        request: Request<v1::ListCommandsRequest>,
    ) -> Result<Response<v1::ListCommandsResponse>, Status> {
        self.note(request, |stage, asked| stage.offers_asked.push(asked));
        let (asked, page) = {
            let stage = self.0.lock().unwrap();
            (stage.offers_asked.len(), stage.offers.clone())
        };
        let page = page.unwrap_or_else(|| super::wire::offers(asked));
        Ok(Response::new(page))
    }

    async fn get_state(
        &self,
        request: Request<v1::GetStateRequest>,
    ) -> Result<Response<v1::GetStateResponse>, Status> {
        self.note(request, |_, _| {});
        self.next(|stage| &mut stage.states).map(Response::new)
    }

    async fn list_entries(
        &self,
        request: Request<v1::ListEntriesRequest>,
    ) -> Result<Response<v1::ListEntriesResponse>, Status> {
        self.note(request, |stage, asked| stage.listed.push(asked));
        self.next(|stage| &mut stage.pages).map(Response::new)
    }

    async fn events(
        &self,
        request: Request<v1::EventsRequest>,
    ) -> Result<Response<Self::EventsStream>, Status> {
        self.note(request, |stage, asked| stage.observed.push(asked));
        self.next(|stage| &mut stage.events)
            .map(|steps| Response::new(played(steps)))
    }
}
