//! Reading a tenant's audit trail: pages, and what comes.
//!
//! What must never enter: what a record means.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;
use sessionplane_core::contract::audit::{AuditItem, AuditLog, AuditPage, ListAudit};
use sessionplane_core::contract::{CallOptions, ResultStream};
use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::audit::{Link, genesis};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::ids::{SessionId, TenantId};
use sessionplane_core::ports::audit_trail::StoredLink;

use super::caller::{AppCaller, store};
use super::context::Context;
use super::pages;

/// Records in a page when the caller does not say.
const DEFAULT_PAGE: usize = 100;
/// Records in a page at most.
const MAX_PAGE: usize = 1000;
/// Records that are looked at for a page at most.
const BUDGET: usize = 4096;
/// Records that are asked of the store at a time.
const SLICE: usize = 512;
/// How often a watcher looks for new records.
const EVERY: Duration = Duration::from_millis(250);

impl AppCaller {
    async fn audit_page(&self, request: ListAudit) -> Result<AuditPage, CallError> {
        self.authorize_tenant(Action::ReadAudit).await?;
        let size = pages::size(request.page_size, DEFAULT_PAGE, MAX_PAGE)?;
        let tenant = self.principal().tenant.clone();
        let trail = &self.context.ports.trail;
        let genesis = genesis(trail.store_id(), &tenant);
        let end = trail.chain_end(&tenant).await.map_err(store)?;
        let end = end.unwrap_or(Link {
            seq: 0,
            hash: genesis,
        });
        let mut looking = Looking {
            context: &self.context,
            tenant: &tenant,
            after: request.after,
            end: end.seq,
        };
        let mut items = Vec::new();
        let mut looked_at = 0;
        while looking.after < end.seq && items.len() < size && looked_at < BUDGET {
            let links = looking.next(request.filter.session, size).await?;
            looked_at += links.len();
            for link in links {
                looking.after = link.seq;
                // What cannot be read is told to whoever wants all.
                let wanted = match &link.record {
                    Ok(record) => request.filter.wants(record),
                    Err(_) => request.filter.is_empty(),
                };
                if wanted {
                    items.push(item(link));
                }
                if items.len() == size {
                    break;
                }
            }
        }
        Ok(AuditPage {
            items,
            next: (looking.after < end.seq).then_some(looking.after),
            end,
            genesis,
            tenant: tenant.to_string(),
        })
    }

    async fn audit_stream(&self, after: u64) -> Result<ResultStream<AuditItem>, CallError> {
        self.authorize_tenant(Action::ReadAudit).await?;
        let watching = Watching {
            context: Arc::clone(&self.context),
            tenant: self.principal().tenant.clone(),
            after,
            read: VecDeque::new(),
        };
        let records = stream::try_unfold(watching, |mut watching| async move {
            let item = watching.next().await?;
            Ok(Some((item, watching)))
        });
        Ok(self.guarded_in_tenant(Box::pin(records), Action::ReadAudit))
    }
}

/// Where a page has come to.
struct Looking<'a> {
    context: &'a Context,
    tenant: &'a TenantId,
    after: u64,
    end: u64,
}

impl Looking<'_> {
    /// The next links, of a session or all; those of none lead to the end.
    async fn next(
        &mut self,
        session: Option<SessionId>,
        size: usize,
    ) -> Result<Vec<StoredLink>, CallError> {
        let trail = &self.context.ports.trail;
        let Some(session) = session else {
            let links = trail.links(self.tenant, self.after, SLICE).await;
            return self.some(links.map_err(store)?);
        };
        let numbers = trail.links_of_session(session, self.after, size).await;
        let numbers = numbers.map_err(store)?;
        let mut links = Vec::new();
        for seq in numbers {
            let link = trail.links(self.tenant, seq - 1, 1).await.map_err(store)?;
            // Of another tenant's session the number is that of another chain.
            let own = |link: &StoredLink| match &link.record {
                Ok(record) => record.session == Some(session),
                Err(_) => false,
            };
            links.extend(link.into_iter().filter(own));
        }
        if links.is_empty() {
            self.after = self.end;
        }
        Ok(links)
    }

    fn some(&mut self, links: Vec<StoredLink>) -> Result<Vec<StoredLink>, CallError> {
        if links.is_empty() {
            tracing::error!(after = self.after, "a chain ends before its end");
            return Err(CallError::refused(
                Reason::StoreFailed,
                "the store could not be read; the server's log says more",
            ));
        }
        Ok(links)
    }
}

/// A watcher.
struct Watching {
    context: Arc<Context>,
    tenant: TenantId,
    after: u64,
    read: VecDeque<StoredLink>,
}

impl Watching {
    async fn next(&mut self) -> Result<AuditItem, CallError> {
        loop {
            if let Some(link) = self.read.pop_front() {
                self.after = link.seq;
                return Ok(item(link));
            }
            let ports = &self.context.ports;
            let links = ports.trail.links(&self.tenant, self.after, SLICE).await;
            self.read = links.map_err(store)?.into();
            if !self.read.is_empty() {
                continue;
            }
            tokio::select! {
                () = self.context.draining.cancelled() => {
                    return Err(CallError::stream_ended(
                        Reason::ServerDraining,
                        "the server stops; watch again from the last record",
                    ));
                }
                () = ports.clock.sleep(EVERY) => {}
            }
        }
    }
}

fn item(link: StoredLink) -> AuditItem {
    AuditItem {
        seq: link.seq,
        previous: link.previous,
        hash: link.hash,
        record: link.record,
    }
}

#[async_trait]
impl AuditLog for AppCaller {
    async fn list_audit(
        &self,
        request: ListAudit,
        options: CallOptions,
    ) -> Result<AuditPage, CallError> {
        self.within(options.deadline, self.audit_page(request))
            .await
    }

    async fn watch_audit(
        &self,
        after: u64,
        options: CallOptions,
    ) -> Result<ResultStream<AuditItem>, CallError> {
        self.within(options.deadline, self.audit_stream(after))
            .await
    }
}
