//! Digests of what callers ask of the fleet, each decoded field with its length.

use sessionplane_core::contract::Parent;
use sessionplane_core::contract::fleet::{
    ChangeDirectory, CreateSession, DeleteSession, UpdateSession,
};
use sessionplane_core::domain::fleet::metadata::{LabelsChange, MetadataChange};
use sessionplane_core::domain::ids::{SessionRef, TenantId};
use sessionplane_core::domain::provenance::Digest;

use crate::app::digest::Fields;

pub(super) fn of_create(request: &CreateSession) -> Digest {
    let CreateSession {
        name,
        external_key,
        agent,
        labels,
        priority,
        paused,
        workspace,
        directory,
        worktree_branch,
        parent,
    } = request;
    let mut fields = Fields::new("CreateSession");
    fields.optional(name.as_ref().map(|it| it.as_str()));
    fields.optional(external_key.as_ref().map(|it| it.as_str()));
    fields.optional(agent.as_ref().map(|it| it.as_str()));
    for (key, value) in labels.iter() {
        fields.text(key.as_str());
        fields.optional(Some(value.as_str()));
    }
    fields.text(&priority.to_string());
    fields.text(if *paused { "1" } else { "0" });
    fields.optional(workspace.as_ref().map(|it| it.as_str()));
    fields.optional(directory.as_ref().map(|it| it.as_str()));
    fields.optional(worktree_branch.as_deref());
    if let Some(Parent { session, entry }) = parent {
        fields.session(session);
        fields.text(&entry.map(|id| id.to_string()).unwrap_or_default());
    }
    fields.finish()
}

pub(super) fn of_update(request: &UpdateSession) -> Digest {
    let UpdateSession {
        session,
        change,
        etag,
    } = request;
    let MetadataChange {
        name,
        labels,
        priority,
        paused,
    } = change;
    let mut fields = Fields::new("UpdateSession");
    fields.session(session);
    fields.text(if name.is_some() { "1" } else { "0" });
    fields.optional(name.iter().flatten().next().map(|it| it.as_str()));
    match labels {
        None => fields.text("none"),
        Some(LabelsChange::Replace(labels)) => {
            fields.text("replace");
            for (key, value) in labels.iter() {
                fields.text(key.as_str());
                fields.optional(Some(value.as_str()));
            }
        }
        Some(LabelsChange::Merge(changes)) => {
            fields.text("merge");
            for (key, value) in changes {
                fields.text(key.as_str());
                fields.optional(value.as_ref().map(|it| it.as_str()));
            }
        }
    }
    // After the labels, whose number is not told: no label looks like it.
    fields.text("priority");
    fields.optional(priority.map(|it| it.to_string()).as_deref());
    fields.optional(paused.map(|it| it.to_string()).as_deref());
    fields.optional(etag.map(|it| it.to_string()).as_deref());
    fields.finish()
}

pub(super) fn of_delete(request: &DeleteSession) -> Digest {
    let DeleteSession {
        session,
        etag,
        abort,
    } = request;
    let mut fields = Fields::new("DeleteSession");
    fields.session(session);
    fields.optional(etag.map(|it| it.to_string()).as_deref());
    fields.text(if *abort { "1" } else { "0" });
    fields.finish()
}

pub(super) fn of_move(request: &ChangeDirectory) -> Digest {
    let ChangeDirectory {
        session,
        workspace,
        directory,
    } = request;
    let mut fields = Fields::new("ChangeDirectory");
    fields.session(session);
    fields.optional(workspace.as_ref().map(|it| it.as_str()));
    fields.text(directory.as_str());
    fields.finish()
}

pub(super) fn of_pause(session: &SessionRef, paused: bool) -> Digest {
    let mut fields = Fields::new(if paused {
        "PauseSession"
    } else {
        "ResumeSession"
    });
    fields.session(session);
    fields.finish()
}

/// What a page token or a bookmark is bound to.
pub(super) fn of_question(tenant: &TenantId, filter: &str, order: &str) -> Digest {
    let mut fields = Fields::new("fleet");
    fields.text(tenant.as_str());
    fields.text(filter);
    fields.text(order);
    fields.finish()
}
