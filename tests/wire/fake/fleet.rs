//! The fleet of the fake: one session, whatever is asked.

use futures_util::{StreamExt, stream};
use sessionplane_core::contract::fleet::{
    ChangeDirectory, ChangeDirectoryAnswer, CreateSession, DeleteAnswer, DeleteSession, Fleet,
    FleetInteraction, InteractionPage, ListInteractions, ListSessions, SessionPage,
    SessionWatchItem, UpdateSession, WatchSessions,
};
use sessionplane_core::contract::{CallOptions, ResultStream};
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::command::{Rejection, RejectionCode};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue, Labels, Priority};
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{EntryId, InteractionId, SessionRef};
use sessionplane_core::domain::interaction::{Interaction, Question, Shape};
use sessionplane_core::domain::place::{Checkout, Directory, Place};
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::session::{LastRun, Lineage};
use sessionplane_core::domain::settings::SettingsOverride;
use sessionplane_core::domain::usage::Usage;

use super::{AT, Handle, run, session};

/// A session of which everything is told.
pub(crate) fn whole() -> SessionSummary {
    let key = LabelKey::parse("team/x.y").unwrap();
    let value = LabelValue::parse("net: \"a\"").unwrap();
    SessionSummary {
        id: session(),
        name: Some("docs".parse().unwrap()),
        external_key: Some("any text, \u{e4}".parse().unwrap()),
        agent: "demo".parse().unwrap(),
        labels: Labels::of([(key, value)]).unwrap(),
        priority: Priority::parse(-7).unwrap(),
        paused: true,
        place: Some(Place {
            workspace: "home".parse().unwrap(),
            directory: Directory::parse("crates/net").unwrap(),
        }),
        checkout: Some(Checkout {
            branch: Some("fix/flaky".into()),
            commit: Some("ab12".into()),
        }),
        lineage: Some(Lineage {
            parent: session(),
            entry: Some(EntryId {
                session: session(),
                seq: 4,
            }),
        }),
        phase: Phase::NeedsInput,
        since: Some(AT),
        stalled_since: Some(AT),
        active_run: Some(run()),
        last_run: Some(LastRun {
            run: run(),
            outcome: RunOutcome::Completed,
            settled_at: AT,
        }),
        questions: vec![question()],
        queued: 3,
        chosen: SettingsOverride {
            model: Some("deep".to_owned()),
            thinking_level: Some("high".to_owned()),
        },
        usage: Usage {
            input_tokens: Some(5),
            cost_usd: Some(0.25),
            ..Usage::default()
        },
        created_at: AT,
        updated_at: AT,
        metadata_revision: 12,
        revision: 1 << 41,
    }
}

fn question() -> Interaction {
    Interaction {
        id: InteractionId {
            run: run(),
            ordinal: 1,
        },
        question: Question {
            title: "Go on?".to_owned(),
            details: String::new(),
            shape: Shape::Confirm,
            default: None,
        },
        asked_at: AT,
        deadline: None,
        resolution: None,
    }
}

fn busy() -> Rejection {
    Rejection {
        code: RejectionCode::SessionBusy,
        message: "a run is active".to_owned(),
        retryable: true,
    }
}

#[async_trait::async_trait]
impl Fleet for Handle {
    async fn create_session(
        &self,
        _request: CreateSession,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.called(options).await?;
        Ok(whole())
    }
    async fn get_session(
        &self,
        _session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.called(options).await?;
        Ok(whole())
    }
    async fn list_sessions(
        &self,
        request: ListSessions,
        options: CallOptions,
    ) -> Result<SessionPage, CallError> {
        self.called(options).await?;
        Ok(SessionPage {
            sessions: vec![whole()],
            next: Some(format!("{}|{}", request.filter, request.order.as_str())),
        })
    }
    async fn watch_sessions(
        &self,
        request: WatchSessions,
        options: CallOptions,
    ) -> Result<ResultStream<SessionWatchItem>, CallError> {
        self.called(options).await?;
        let items = [
            SessionWatchItem::BookmarkExpired,
            SessionWatchItem::Changed {
                sessions: vec![whole()],
                gone: vec![session()],
            },
            SessionWatchItem::Bookmark(request.bookmark.unwrap_or_default()),
        ];
        let items = stream::iter(items.map(Ok)).chain(self.end());
        Ok(Box::pin(self.counted(items)))
    }
    async fn update_session(
        &self,
        _request: UpdateSession,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.called(options).await?;
        Ok(whole())
    }
    async fn delete_session(
        &self,
        request: DeleteSession,
        options: CallOptions,
    ) -> Result<DeleteAnswer, CallError> {
        self.called(options).await?;
        Ok(if request.abort {
            DeleteAnswer::Deleted
        } else {
            DeleteAnswer::Rejected(busy())
        })
    }
    async fn change_directory(
        &self,
        request: ChangeDirectory,
        options: CallOptions,
    ) -> Result<ChangeDirectoryAnswer, CallError> {
        self.called(options).await?;
        Ok(if request.workspace.is_some() {
            ChangeDirectoryAnswer::Moved {
                session: Box::new(whole()),
                sandbox: SandboxLevel::Confined,
            }
        } else {
            ChangeDirectoryAnswer::Rejected(busy())
        })
    }
    async fn pause_session(
        &self,
        _session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.called(options).await?;
        Ok(whole())
    }
    async fn resume_session(
        &self,
        _session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.called(options).await?;
        Ok(whole())
    }
    async fn list_interactions(
        &self,
        _request: ListInteractions,
        options: CallOptions,
    ) -> Result<InteractionPage, CallError> {
        self.called(options).await?;
        Ok(InteractionPage {
            interactions: vec![FleetInteraction {
                session: session(),
                name: Some("docs".parse().unwrap()),
                interaction: question(),
            }],
            next: None,
        })
    }
}
