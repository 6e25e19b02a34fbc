//! An audit trail that has nothing.

use futures_util::{StreamExt as _, stream};
use sessionplane_core::contract::audit::{AuditItem, AuditLog, AuditPage, ListAudit};
use sessionplane_core::contract::{CallOptions, ResultStream};
use sessionplane_core::domain::audit::Link;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::provenance::Digest;

use super::Handle;

#[async_trait::async_trait]
impl AuditLog for Handle {
    async fn list_audit(
        &self,
        _request: ListAudit,
        options: CallOptions,
    ) -> Result<AuditPage, CallError> {
        self.called(options).await?;
        let genesis = Digest([0; 32]);
        Ok(AuditPage {
            items: Vec::new(),
            next: None,
            end: Link {
                seq: 0,
                hash: genesis,
            },
            genesis,
            tenant: "default".to_owned(),
        })
    }

    async fn watch_audit(
        &self,
        _after: u64,
        options: CallOptions,
    ) -> Result<ResultStream<AuditItem>, CallError> {
        self.called(options).await?;
        Ok(stream::pending().boxed())
    }
}
