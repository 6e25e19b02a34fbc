//! The fleet's requests, and its answers apart from the sessions in them.

use sessionplane::v1 as wire;
use sessionplane_core::contract::Parent;
use sessionplane_core::contract::fleet::{
    ChangeDirectory, ChangeDirectoryAnswer, CreateSession, DeleteAnswer, DeleteSession,
    FleetInteraction, InteractionPage, ListInteractions, ListSessions, SessionOrder, SessionPage,
    SessionWatchItem, WatchSessions,
};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::place::MAX_BRANCH_BYTES;
use wire::watch_sessions_response::Item;

use super::{capabilities, command, field, interaction, labels, session, summary};

/// Sessions, or questions, in one page at most.
pub(crate) const MAX_PAGE: u32 = 1000;

/// A request for a new session.
pub(crate) fn create(request: wire::CreateSessionRequest) -> Result<CreateSession, CallError> {
    Ok(CreateSession {
        name: field::optional_id("name", &request.name)?,
        external_key: session::optional_key("external_key", &request.external_key)?,
        agent: field::optional_id("agent", &request.agent)?,
        labels: labels::all(request.labels)?,
        priority: labels::priority(request.priority)?,
        paused: request.paused,
        workspace: field::optional_id("workspace", &request.workspace)?,
        directory: field::optional_directory("directory", &request.directory)?,
        worktree_branch: branch(request.worktree_branch)?,
        parent: parent(request.parent_session, &request.from_entry_id)?,
    })
}

/// A branch's name, as far as anybody can judge it who does not know the repository.
fn branch(name: String) -> Result<Option<String>, CallError> {
    const FIELD: &str = "worktree_branch";
    if name.len() > MAX_BRANCH_BYTES {
        let way_out = "use a shorter name";
        return Err(CallError::too_large(
            FIELD,
            name.len(),
            MAX_BRANCH_BYTES,
            way_out,
        ));
    }
    if name.starts_with('-') || name.chars().any(|c| c.is_control() || c == ' ') {
        return Err(CallError::invalid(
            FIELD,
            "must be the name of a branch: without spaces and control characters, and not \
             beginning with `-`",
        ));
    }
    Ok((!name.is_empty()).then_some(name))
}

fn parent(named: Option<wire::SessionRef>, from: &str) -> Result<Option<Parent>, CallError> {
    let entry = field::optional_id("from_entry_id", from)?;
    match named {
        None if entry.is_some() => Err(CallError::invalid(
            "from_entry_id",
            "is set without `parent_session`; name the session to branch off",
        )),
        None => Ok(None),
        Some(_) => Ok(Some(Parent {
            session: session::reference_at("parent_session", named)?,
            entry,
        })),
    }
}

/// A request for a page of sessions.
pub(crate) fn list(request: wire::ListSessionsRequest) -> Result<ListSessions, CallError> {
    let order = SessionOrder::parse(&request.order_by).ok_or_else(|| {
        CallError::invalid(
            "order_by",
            "is no order of sessions; use `id`, `id desc`, `name` or `attention`",
        )
    })?;
    Ok(ListSessions {
        filter: request.filter,
        order,
        page_token: field::optional_text(request.page_token),
        page_size: page_size(request.page_size)?,
    })
}

fn page_size(size: i32) -> Result<u32, CallError> {
    let within = u32::try_from(size).ok().filter(|size| *size <= MAX_PAGE);
    within.ok_or_else(|| {
        let problem =
            format!("is {size}; use 1 to {MAX_PAGE}, or 0 for 100, and go on with the page token");
        CallError::invalid("page_size", problem)
    })
}

/// A page of sessions.
pub(crate) fn page(page: &SessionPage) -> wire::ListSessionsResponse {
    wire::ListSessionsResponse {
        sessions: page.sessions.iter().map(summary::to_wire).collect(),
        next_page_token: page.next.clone().unwrap_or_default(),
    }
}

/// A request to watch.
pub(crate) fn watch(request: wire::WatchSessionsRequest) -> WatchSessions {
    WatchSessions {
        filter: request.filter,
        bookmark: field::optional_text(request.bookmark),
    }
}

/// One item of a watch.
pub(crate) fn watched(item: &SessionWatchItem) -> wire::WatchSessionsResponse {
    let item = match item {
        SessionWatchItem::BookmarkExpired => Item::BookmarkExpired(wire::BookmarkExpired {}),
        SessionWatchItem::Changed { sessions, gone } => Item::Changed(wire::SessionsChanged {
            sessions: sessions.iter().map(summary::to_wire).collect(),
            gone_session_ids: gone.iter().map(ToString::to_string).collect(),
        }),
        SessionWatchItem::Bookmark(bookmark) => Item::Bookmark(wire::WatchBookmark {
            bookmark: bookmark.clone(),
        }),
    };
    wire::WatchSessionsResponse { item: Some(item) }
}

/// A request for an end.
pub(crate) fn delete(request: wire::DeleteSessionRequest) -> Result<DeleteSession, CallError> {
    Ok(DeleteSession {
        session: session::reference(request.session)?,
        etag: field::etag(&request.etag)?,
        abort: request.abort,
    })
}

/// What became of a deletion.
pub(crate) fn deleted(answer: &DeleteAnswer) -> wire::DeleteSessionResponse {
    use wire::delete_session_response::Answer;
    let answer = match answer {
        DeleteAnswer::Deleted => Answer::Deleted(wire::SessionDeleted {}),
        DeleteAnswer::Rejected(rejection) => Answer::Rejected(command::rejected(rejection)),
    };
    wire::DeleteSessionResponse {
        answer: Some(answer),
    }
}

/// A request for another directory.
pub(crate) fn change_directory(
    request: wire::ChangeDirectoryRequest,
) -> Result<ChangeDirectory, CallError> {
    Ok(ChangeDirectory {
        session: session::reference(request.session)?,
        workspace: field::optional_id("workspace", &request.workspace)?,
        directory: field::directory("directory", &request.directory)?,
    })
}

/// What became of a move.
pub(crate) fn moved(answer: &ChangeDirectoryAnswer) -> wire::ChangeDirectoryResponse {
    use wire::change_directory_response::Answer;
    let answer = match answer {
        ChangeDirectoryAnswer::Moved { session, sandbox } => {
            Answer::Changed(wire::DirectoryChanged {
                session: Some(summary::to_wire(session)),
                sandbox: capabilities::sandbox(*sandbox).into(),
            })
        }
        ChangeDirectoryAnswer::Rejected(rejection) => {
            Answer::Rejected(command::rejected(rejection))
        }
    };
    wire::ChangeDirectoryResponse {
        answer: Some(answer),
    }
}

/// A request for a page of questions.
pub(crate) fn list_interactions(
    request: wire::ListInteractionsRequest,
) -> Result<ListInteractions, CallError> {
    Ok(ListInteractions {
        filter: request.filter,
        page_token: field::optional_text(request.page_token),
        page_size: page_size(request.page_size)?,
    })
}

/// A page of questions.
pub(crate) fn interactions(page: &InteractionPage) -> wire::ListInteractionsResponse {
    let asked = |asked: &FleetInteraction| wire::FleetInteraction {
        session_id: asked.session.to_string(),
        session_name: asked
            .name
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        interaction: Some(interaction::to_wire(&asked.interaction)),
    };
    wire::ListInteractionsResponse {
        interactions: page.interactions.iter().map(asked).collect(),
        next_page_token: page.next.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
