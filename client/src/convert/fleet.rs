//! The fleet's requests, and its answers apart from the sessions in them.

use std::collections::HashMap;

use sessionplane::v1::{self, watch_sessions_response::Item};
use sessionplane_core::contract::fleet::{
    ChangeDirectory, ChangeDirectoryAnswer, CreateSession, DeleteAnswer, DeleteSession,
    FleetInteraction, InteractionPage, ListInteractions, ListSessions, SessionPage,
    SessionWatchItem, UpdateSession, WatchSessions,
};
use sessionplane_core::domain::fleet::labels::{LabelValue, Labels};
use sessionplane_core::domain::fleet::metadata::{LabelsChange, MetadataChange};
use sessionplane_core::domain::ids::{RequestId, SessionRef};

use super::field::{Malformed, id, optional_id, optional_text, required};
use super::{capabilities, command, interaction, session, summary};

/// Asks for a new session.
pub(crate) fn create(request: CreateSession, request_id: &RequestId) -> v1::CreateSessionRequest {
    let parent = request.parent.as_ref();
    v1::CreateSessionRequest {
        request_id: request_id.to_string(),
        name: text(request.name.as_ref()),
        external_key: text(request.external_key.as_ref()),
        agent: text(request.agent.as_ref()),
        labels: labels(&request.labels),
        priority: request.priority.get().into(),
        paused: request.paused,
        workspace: text(request.workspace.as_ref()),
        directory: text(request.directory.as_ref()),
        parent_session: parent.map(|parent| session::reference(&parent.session)),
        from_entry_id: text(parent.and_then(|parent| parent.entry).as_ref()),
        worktree_branch: request.worktree_branch.unwrap_or_default(),
    }
}

fn text<T: ToString>(value: Option<&T>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

fn labels(labels: &Labels) -> HashMap<String, String> {
    labels
        .iter()
        .map(|(key, value)| (key.as_str().to_owned(), value.as_str().to_owned()))
        .collect()
}

/// Asks for a page of sessions.
pub(crate) fn list(request: ListSessions) -> v1::ListSessionsRequest {
    v1::ListSessionsRequest {
        page_size: page_size(request.page_size),
        page_token: request.page_token.unwrap_or_default(),
        filter: request.filter,
        order_by: request.order.as_str().to_owned(),
    }
}

/// One that no server takes stays one that no server takes.
fn page_size(size: u32) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}

/// A page of sessions.
pub(crate) fn page(page: v1::ListSessionsResponse) -> Result<SessionPage, Malformed> {
    Ok(SessionPage {
        sessions: summary::all(page.sessions)?,
        next: optional_text(page.next_page_token),
    })
}

/// Asks to watch.
pub(crate) fn watch(request: WatchSessions) -> v1::WatchSessionsRequest {
    v1::WatchSessionsRequest {
        filter: request.filter,
        bookmark: request.bookmark.unwrap_or_default(),
    }
}

/// Reads one item of a watch; none if this client does not know it.
pub(crate) fn watched(
    response: v1::WatchSessionsResponse,
) -> Result<Option<SessionWatchItem>, Malformed> {
    let Some(item) = response.item else {
        return Ok(None);
    };
    Ok(Some(match item {
        Item::BookmarkExpired(_) => SessionWatchItem::BookmarkExpired,
        Item::Changed(changed) => SessionWatchItem::Changed {
            sessions: summary::all(changed.sessions)?,
            gone: changed
                .gone_session_ids
                .iter()
                .map(|gone| id("changed.gone_session_ids", gone))
                .collect::<Result<_, _>>()?,
        },
        Item::Bookmark(bookmark) => SessionWatchItem::Bookmark(bookmark.bookmark),
    }))
}

/// Asks for other metadata.
pub(crate) fn update(request: UpdateSession, request_id: &RequestId) -> v1::UpdateSessionRequest {
    let MetadataChange {
        name,
        labels: changed,
        priority,
        paused: _,
    } = request.change;
    let mut paths = Vec::new();
    let mut wire = v1::UpdateSessionRequest {
        session: Some(session::reference(&request.session)),
        request_id: request_id.to_string(),
        etag: text(request.etag.as_ref()),
        ..Default::default()
    };
    if let Some(name) = name {
        paths.push("name".to_owned());
        wire.name = text(name.as_ref());
    }
    match changed {
        None => {}
        Some(LabelsChange::Replace(all)) => {
            paths.push("labels".to_owned());
            wire.labels = labels(&all);
        }
        Some(LabelsChange::Merge(changes)) => {
            for (key, value) in changes {
                paths.push(format!("labels.{}", key.as_str()));
                let set = value.as_ref().map(LabelValue::as_str);
                let set = set.map(|value| (key.as_str().to_owned(), value.to_owned()));
                wire.labels.extend(set);
            }
        }
    }
    if let Some(priority) = priority {
        paths.push("priority".to_owned());
        wire.priority = priority.get().into();
    }
    wire.update_mask = Some(prost_types::FieldMask { paths });
    wire
}

/// Asks for an end.
pub(crate) fn delete(request: &DeleteSession, request_id: &RequestId) -> v1::DeleteSessionRequest {
    v1::DeleteSessionRequest {
        session: Some(session::reference(&request.session)),
        request_id: request_id.to_string(),
        etag: text(request.etag.as_ref()),
        abort: request.abort,
    }
}

/// What became of a deletion.
pub(crate) fn deleted(answer: v1::DeleteSessionResponse) -> Result<DeleteAnswer, Malformed> {
    use v1::delete_session_response::Answer;
    Ok(match required("answer", answer.answer)? {
        Answer::Deleted(_) => DeleteAnswer::Deleted,
        Answer::Rejected(rejected) => DeleteAnswer::Rejected(command::rejection(rejected)),
    })
}

/// Asks for another directory.
pub(crate) fn change_directory(
    request: &ChangeDirectory,
    request_id: &RequestId,
) -> v1::ChangeDirectoryRequest {
    v1::ChangeDirectoryRequest {
        session: Some(session::reference(&request.session)),
        request_id: request_id.to_string(),
        workspace: text(request.workspace.as_ref()),
        directory: request.directory.to_string(),
    }
}

/// What became of a move.
pub(crate) fn moved(
    answer: v1::ChangeDirectoryResponse,
) -> Result<ChangeDirectoryAnswer, Malformed> {
    use v1::change_directory_response::Answer;
    Ok(match required("answer", answer.answer)? {
        Answer::Changed(changed) => ChangeDirectoryAnswer::Moved {
            sandbox: capabilities::sandbox(changed.sandbox()),
            session: Box::new(summary::required_read(changed.session)?),
        },
        Answer::Rejected(rejected) => ChangeDirectoryAnswer::Rejected(command::rejection(rejected)),
    })
}

/// Asks for a page of questions.
pub(crate) fn list_interactions(request: ListInteractions) -> v1::ListInteractionsRequest {
    v1::ListInteractionsRequest {
        page_size: page_size(request.page_size),
        page_token: request.page_token.unwrap_or_default(),
        filter: request.filter,
    }
}

/// A page of questions, without those of a kind that this client does not know.
pub(crate) fn interactions(
    page: v1::ListInteractionsResponse,
) -> Result<InteractionPage, Malformed> {
    let mut interactions = Vec::with_capacity(page.interactions.len());
    for asked in page.interactions {
        let question = required("interactions.interaction", asked.interaction)?;
        if let Some(interaction) = interaction::read(question)? {
            interactions.push(FleetInteraction {
                session: id("interactions.session_id", &asked.session_id)?,
                name: optional_id("interactions.session_name", &asked.session_name)?,
                interaction,
            });
        }
    }
    Ok(InteractionPage {
        interactions,
        next: optional_text(page.next_page_token),
    })
}

/// Asks for one session.
pub(crate) fn get(session: &SessionRef) -> v1::GetSessionRequest {
    v1::GetSessionRequest {
        session: Some(session::reference(session)),
    }
}

/// Asks for a pause.
pub(crate) fn pause(session: &SessionRef, request_id: &RequestId) -> v1::PauseSessionRequest {
    v1::PauseSessionRequest {
        session: Some(session::reference(session)),
        request_id: request_id.to_string(),
    }
}

/// Asks to go on.
pub(crate) fn resume(session: &SessionRef, request_id: &RequestId) -> v1::ResumeSessionRequest {
    v1::ResumeSessionRequest {
        session: Some(session::reference(session)),
        request_id: request_id.to_string(),
    }
}
