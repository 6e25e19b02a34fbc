//! Commands that were typed, on their way. Texts are given one after another, as they were typed; an
//! abort and an answer wait for none of them. What it must not do: hold more than a few.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use sessionplane_core::contract::{CallOptions, DispatchRequest, SessionControl as _};
use sessionplane_core::domain::command::{Command, DispatchAnswer};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::ids::{RequestId, SessionRef};

use crate::clock::mint_request_id;
use crate::connection::Client;

/// Most commands that wait for those before them.
const WAITING: usize = 16;
/// Most aborts and answers that are under way at once.
const URGENT: usize = 16;

/// A command that was typed, with the id that it can be repeated by.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) command: Command,
    pub(super) id: RequestId,
}

impl Given {
    /// Whether it answers a question.
    pub(super) fn is_answer(&self) -> bool {
        matches!(self.command, Command::Respond { .. })
    }

    /// Whether it waits for no text that was typed before it.
    fn is_urgent(&self) -> bool {
        matches!(self.command, Command::Abort | Command::Respond { .. })
    }
}

/// A command and its answer.
pub(super) type Answered = (Given, Result<DispatchAnswer, CallError>);
type UnderWay = Pin<Box<dyn Future<Output = Answered> + Send>>;

/// What was typed and is not answered yet.
pub(super) struct Giving {
    client: Client,
    session: SessionRef,
    under_way: FuturesUnordered<UnderWay>,
    /// One of those that go one after another is under way.
    in_turn: bool,
    waiting: VecDeque<Given>,
}

impl Giving {
    pub(super) fn new(client: Client, session: SessionRef) -> Self {
        Self {
            client,
            session,
            under_way: FuturesUnordered::new(),
            in_turn: false,
            waiting: VecDeque::new(),
        }
    }

    /// No more can be taken of what goes one after another.
    fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING
    }

    /// Whatever comes next can be taken.
    pub(super) fn has_room(&self) -> bool {
        !self.is_full() && self.under_way.len() < URGENT
    }

    /// Everything was answered.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_empty() && self.waiting.is_empty()
    }

    /// Gives a command, at once or after those before it; false if there are too many.
    pub(super) fn give(&mut self, command: Command) -> bool {
        let given = Given {
            command,
            id: mint_request_id(),
        };
        if given.is_urgent() {
            let room = self.under_way.len() < URGENT;
            if room {
                self.start(given);
            }
            return room;
        }
        if self.is_full() {
            return false;
        }
        self.waiting.push_back(given);
        self.go_on();
        true
    }

    /// Takes back what was not given yet, as whoever aborts does not want it any more.
    pub(super) fn take_back(&mut self) -> usize {
        self.waiting.drain(..).count()
    }

    /// The next answer; never, while nothing is under way. Dropping it loses nothing.
    pub(super) async fn answered(&mut self) -> Answered {
        let Some(answered) = self.under_way.next().await else {
            return std::future::pending().await;
        };
        if !answered.0.is_urgent() {
            self.in_turn = false;
            self.go_on();
        }
        answered
    }

    fn go_on(&mut self) {
        if !self.in_turn
            && let Some(given) = self.waiting.pop_front()
        {
            self.in_turn = true;
            self.start(given);
        }
    }

    fn start(&mut self, given: Given) {
        let client = self.client.clone();
        let request = DispatchRequest {
            session: self.session.clone(),
            command: given.command.clone(),
            expected_run: None,
        };
        let options = CallOptions {
            request_id: Some(given.id.clone()),
            deadline: None,
        };
        self.under_way.push(Box::pin(async move {
            let answer = client.dispatch(request, options).await;
            (given, answer)
        }));
    }
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::ids::SessionName;

    use super::*;
    use crate::options::ClientOptions;

    #[tokio::test]
    async fn what_waits_is_bounded_and_an_abort_waits_for_nothing() {
        let client = Client::connect(ClientOptions::new("127.0.0.1:1".parse().unwrap()));
        let session = SessionRef::Name(SessionName::parse("docs").unwrap());
        let mut giving = Giving::new(client.unwrap(), session);
        let steer = || Command::Steer {
            text: "x".into(),
            given: sessionplane_core::domain::given::Given::default(),
        };
        let taken = (0..100).filter(|_| giving.give(steer())).count();
        assert_eq!(taken, WAITING + 1, "one is under way");
        assert!(giving.is_full());
        assert!(giving.give(Command::Abort));
        assert_eq!(giving.under_way.len(), 2);
        assert_eq!(giving.take_back(), WAITING);
        let aborts = (0..100).filter(|_| giving.give(Command::Abort)).count();
        assert_eq!(aborts, URGENT - 2);
        assert!(!giving.is_full() && !giving.has_room());
    }
}
