//! Audit records.

use sessionplane::v1 as wire;
use sessionplane_core::contract::audit::{AuditFilter, AuditItem, AuditPage, ListAudit};
use sessionplane_core::domain::audit::ChainRecord;
use sessionplane_core::domain::error::CallError;

use super::field;

/// A question for records.
pub(crate) fn list(message: wire::ListAuditRecordsRequest) -> Result<ListAudit, CallError> {
    let page_size = u32::try_from(message.page_size)
        .map_err(|_| CallError::invalid("page_size", "must not be negative"))?;
    Ok(ListAudit {
        after: message.after_seq,
        page_size,
        filter: AuditFilter {
            session: field::optional_id("session_id", &message.session_id)?,
            principal: field::optional_text(message.principal),
            action: field::optional_text(message.action),
            decision: field::optional_text(message.decision),
            since_ms: (message.since_ms > 0).then_some(message.since_ms),
            until_ms: (message.until_ms > 0).then_some(message.until_ms),
        },
    })
}

/// A page.
pub(crate) fn page(page: AuditPage) -> wire::ListAuditRecordsResponse {
    wire::ListAuditRecordsResponse {
        records: page.items.into_iter().map(record).collect(),
        next_after_seq: page.next.unwrap_or_default(),
        has_more: page.next.is_some(),
        end_seq: page.end.seq,
        end_hash: page.end.hash.to_string(),
        genesis: page.genesis.to_string(),
        tenant: page.tenant,
    }
}

/// The next record of a watch.
pub(crate) fn watched(item: AuditItem) -> wire::WatchAuditResponse {
    wire::WatchAuditResponse {
        record: Some(record(item)),
    }
}

fn record(item: AuditItem) -> wire::AuditRecord {
    let (record, damage) = match item.record {
        Ok(record) => (record, None),
        Err(problem) => (ChainRecord::default(), Some(problem)),
    };
    wire::AuditRecord {
        seq: item.seq,
        time_ms: record.time_ms,
        tenant: record.tenant,
        principal: record.principal,
        credential: record.credential,
        via: record.via,
        action: record.action,
        session_id: record.session.map(|id| id.to_string()),
        decision: record.decision,
        policies: record.policies,
        request_digest: record.request_digest.map(|digest| digest.to_string()),
        bytes: record.bytes,
        request_id: record.request_id,
        trace_id: record.trace_id,
        outcome: record.outcome,
        run_id: record.run.map(|id| id.to_string()),
        entries: record.entries,
        // Reserved: nothing sets it before there are inboxes.
        message_id: None,
        series: record.series,
        ordinal: record.ordinal,
        sandbox: record.sandbox,
        peer: record.peer,
        reason: record.reason,
        count: record.count,
        last_time_ms: record.last_time_ms,
        prev_hash: item.previous.to_string(),
        hash: item.hash.to_string(),
        damage,
    }
}
