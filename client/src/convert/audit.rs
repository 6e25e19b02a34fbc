//! Audit records.

use sessionplane::v1 as wire;
use sessionplane_core::contract::audit::{AuditItem, AuditPage, ListAudit};
use sessionplane_core::domain::audit::{ChainRecord, Link};
use sessionplane_core::domain::ids::RunId;
use sessionplane_core::domain::provenance::Digest;

use super::Malformed;
use super::field::id;

/// A question for records.
pub(crate) fn list(request: ListAudit) -> wire::ListAuditRecordsRequest {
    let filter = request.filter;
    wire::ListAuditRecordsRequest {
        after_seq: request.after,
        page_size: i32::try_from(request.page_size).unwrap_or(i32::MAX),
        session_id: filter.session.map(|id| id.to_string()).unwrap_or_default(),
        principal: filter.principal.unwrap_or_default(),
        action: filter.action.unwrap_or_default(),
        decision: filter.decision.unwrap_or_default(),
        since_ms: filter.since_ms.unwrap_or_default(),
        until_ms: filter.until_ms.unwrap_or_default(),
    }
}

/// A question for what comes after a number.
pub(crate) fn watch(after_seq: u64) -> wire::WatchAuditRequest {
    wire::WatchAuditRequest { after_seq }
}

/// A page.
pub(crate) fn page(page: wire::ListAuditRecordsResponse) -> Result<AuditPage, Malformed> {
    let items = page.records.into_iter().map(item);
    Ok(AuditPage {
        items: items.collect::<Result<_, _>>()?,
        next: page.has_more.then_some(page.next_after_seq),
        end: Link {
            seq: page.end_seq,
            hash: digest("end_hash", &page.end_hash)?,
        },
        genesis: digest("genesis", &page.genesis)?,
        tenant: page.tenant,
    })
}

/// The next record of a watch.
pub(crate) fn watched(message: wire::WatchAuditResponse) -> Result<Option<AuditItem>, Malformed> {
    message.record.map(item).transpose()
}

fn item(record: wire::AuditRecord) -> Result<AuditItem, Malformed> {
    let (seq, previous) = (record.seq, digest("prev_hash", &record.prev_hash)?);
    let hash = digest("hash", &record.hash)?;
    let record = match record.damage {
        Some(problem) => Err(problem),
        None => Ok(read(record)?),
    };
    Ok(AuditItem {
        seq,
        previous,
        hash,
        record,
    })
}

fn read(record: wire::AuditRecord) -> Result<ChainRecord, Malformed> {
    let session = record.session_id.as_deref();
    let run = record.run_id.as_deref();
    let request_digest = record.request_digest.as_deref();
    let message = record.message_id.as_deref();
    let message = message.map(|text| id::<RunId>("message_id", text));
    Ok(ChainRecord {
        seq: record.seq,
        time_ms: record.time_ms,
        tenant: record.tenant,
        principal: record.principal,
        credential: record.credential,
        via: record.via,
        action: record.action,
        session: session.map(|text| id("session_id", text)).transpose()?,
        decision: record.decision,
        policies: record.policies,
        request_digest: request_digest
            .map(|text| digest("request_digest", text))
            .transpose()?,
        bytes: record.bytes,
        request_id: record.request_id,
        trace_id: record.trace_id,
        outcome: record.outcome,
        run: run.map(|text| id("run_id", text)).transpose()?,
        entries: record.entries,
        message: message.transpose()?.map(RunId::to_bytes),
        series: record.series,
        ordinal: record.ordinal,
        sandbox: record.sandbox,
        peer: record.peer,
        reason: record.reason,
        count: record.count,
        last_time_ms: record.last_time_ms,
    })
}

fn digest(field: &'static str, text: &str) -> Result<Digest, Malformed> {
    Digest::parse(text).ok_or_else(|| Malformed {
        field,
        problem: "is not 64 hexadecimal digits".to_owned(),
    })
}
