//! The audit trail, called: `AuditLog` for a [`Client`].

use async_trait::async_trait;
use sessionplane_core::contract::audit::{AuditItem, AuditLog, AuditPage, ListAudit};
use sessionplane_core::contract::{CallOptions, ResultStream};
use sessionplane_core::domain::error::CallError;

use crate::connection::Client;
use crate::convert::audit;
use crate::opening::{answered, messages, open, readable};
use crate::retry::{Effect, call};

#[async_trait]
impl AuditLog for Client {
    async fn list_audit(
        &self,
        request: ListAudit,
        options: CallOptions,
    ) -> Result<AuditPage, CallError> {
        let wire = audit::list(request);
        let answer = call(self.patience(&options, Effect::Reads), || {
            let (mut stub, request) = (self.audit_stub(), self.timed(wire.clone(), &options));
            async move { answered(stub.list_audit_records(request)).await }
        })
        .await?;
        readable(audit::page(answer))
    }

    /// Opens with the first record that comes: give no deadline to wait for one as long as it takes.
    async fn watch_audit(
        &self,
        after: u64,
        options: CallOptions,
    ) -> Result<ResultStream<AuditItem>, CallError> {
        let wire = audit::watch(after);
        let opened = call(self.patience(&options, Effect::Reads), || {
            let (mut stub, request) = (self.audit_stub(), self.request(wire));
            async move { open(stub.watch_audit(request)).await }
        })
        .await?;
        Ok(Box::pin(messages(opened, audit::watched, |_| false)))
    }
}
