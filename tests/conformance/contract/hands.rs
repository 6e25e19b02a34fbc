//! What people do at a session besides talking to it: its runs, its questions, and what is done
//! between runs.

use std::time::Duration;

use sessionplane_core::contract::{CallOptions, ListRunsRequest, RunPage};
use sessionplane_core::domain::command::{Command, DispatchAnswer, Rejection, RejectionCode};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::event::{EventBody, EventEnvelope};
use sessionplane_core::domain::ids::{EntryId, InteractionId, RunId};
use sessionplane_core::domain::interaction::{Interaction, InteractionAnswer, Resolution};
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::view::{SessionView, Status};

use super::desk::{Desk, within};
use super::run::said;
use super::watch::Watch;

pub(crate) fn set_model(model: Option<&str>) -> Command {
    Command::SetModel {
        model: model.map(str::to_owned),
    }
}

pub(crate) fn set_thinking(level: Option<&str>) -> Command {
    Command::SetThinking {
        level: level.map(str::to_owned),
    }
}

pub(crate) fn navigate(entry: EntryId) -> Command {
    Command::Navigate { entry }
}

pub(crate) fn compact(instructions: &str) -> Command {
    Command::Compact {
        instructions: (!instructions.is_empty()).then(|| instructions.into()),
    }
}

pub(crate) fn respond(interaction: InteractionId, answer: InteractionAnswer) -> Command {
    Command::Respond {
        interaction,
        answer,
    }
}

pub(crate) fn choice(id: &str) -> InteractionAnswer {
    InteractionAnswer::Choice(id.to_owned())
}

impl Desk {
    pub(crate) async fn try_runs(
        &self,
        before: Option<RunId>,
        page_size: u32,
    ) -> Result<RunPage, CallError> {
        let request = ListRunsRequest {
            session: self.session.clone(),
            before,
            page_size,
        };
        let caller = self.caller();
        within("runs", caller.list_runs(request, CallOptions::default())).await
    }

    /// Every run, by pages of a size.
    pub(crate) async fn runs(&self, page_size: u32) -> Vec<RunRecord> {
        let mut runs = Vec::<RunRecord>::new();
        loop {
            let before = runs.last().map(|run| run.id);
            let page = self.try_runs(before, page_size).await;
            let page = page.unwrap_or_else(|error| panic!("runs: {error:?}"));
            let size = page.runs.len();
            assert!(page_size == 0 || size <= page_size as usize, "too many");
            assert!(!page.has_more || size > 0, "no progress");
            runs.extend(page.runs);
            if !page.has_more {
                return runs;
            }
        }
    }

    pub(crate) async fn wait_run(
        &self,
        run: RunId,
        deadline: Option<Duration>,
    ) -> Result<RunRecord, CallError> {
        let options = CallOptions {
            request_id: None,
            deadline,
        };
        within("wait_run", self.caller().wait_run(run, options)).await
    }

    /// A dispatch that must be rejected: all of the answer.
    pub(crate) async fn rejection(&self, command: Command) -> Rejection {
        match self.try_dispatch(command.clone(), None, None).await {
            Ok(DispatchAnswer::Rejected(rejection)) => rejection,
            other => panic!("{command:?}: {other:?}"),
        }
    }

    /// A dispatch that something in the way must reject: the same may succeed later.
    pub(crate) async fn in_the_way(&self, command: Command) {
        let told = format!("{command:?}");
        let Rejection {
            code, retryable, ..
        } = self.rejection(command).await;
        let busy = (RejectionCode::SessionBusy, true);
        assert_eq!((code, retryable), busy, "{told}");
    }

    pub(crate) async fn view(&self) -> SessionView {
        self.state().await.view
    }

    /// Everything that can be read of the session, and where its events are.
    pub(crate) async fn all(&self) -> All {
        All {
            entries: self.entries().await,
            view: self.view().await,
            runs: self.runs(0).await,
        }
    }

    /// What the engine was opened with: at which entry, and which texts.
    pub(crate) async fn recall(&self) -> String {
        said(&self.run("recall").await, TEXT)
    }

    /// The questions that are open, in the order in which they were asked.
    pub(crate) async fn questions(&self) -> Vec<Interaction> {
        self.view().await.open_interactions().cloned().collect()
    }
}

const TEXT: sessionplane_core::domain::event::OutputChannel =
    sessionplane_core::domain::event::OutputChannel::Text;

/// A session as it can be read.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct All {
    pub(crate) entries: Vec<Entry>,
    pub(crate) view: SessionView,
    pub(crate) runs: Vec<RunRecord>,
}

impl Watch {
    /// Reads up to the end of the next question that ends.
    pub(crate) async fn resolved(&mut self) -> (InteractionId, Resolution) {
        let events = self.until_type("interaction_resolved").await;
        let Some(EventBody::InteractionResolved { id, resolution }) =
            events.into_iter().last().map(|event| event.event.body)
        else {
            unreachable!("it was read up to there");
        };
        (id, *resolution)
    }
}

/// A fold of events onto what a snapshot says.
pub(crate) fn fold(mut view: SessionView, events: &[EventEnvelope]) -> SessionView {
    for event in events {
        view.apply(&event.event);
    }
    view
}

impl Desk {
    /// Waits until nothing holds the session.
    pub(crate) async fn watch_idle(&self) -> SessionView {
        let mut watch = self.watch().await;
        let mut view = watch.snapshot.view.clone();
        while view.status() != Status::Idle {
            view.apply(&watch.event().await.event);
        }
        view
    }
}

impl Desk {
    /// Aborts what runs, if something still does.
    pub(crate) async fn abort_if_active(&self) {
        let answer = self.try_dispatch(Command::Abort, None, None).await;
        let answer = answer.expect("an answer");
        if let DispatchAnswer::Rejected(rejection) = answer {
            let over = [RejectionCode::NoActiveRun, RejectionCode::RunCommandFailed];
            assert!(over.contains(&rejection.code), "{rejection:?}");
        }
    }
}
