//! The same keys as an accepted steer writes, through the same committer and sync, and nothing that
//! decides whether they may be written.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use sessionplane::v1 as wire;
use sessionplane_core::domain::access::{Action, PrincipalKind};
use sessionplane_core::domain::audit::{AuditAction, AuditActor, AuditRecord};
use sessionplane_core::domain::binding::{Binding, BindingKey, BoundAnswer, Method};
use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::ids::{
    AgentName, InputId, PrincipalId, RequestId, RunId, SessionId, TenantId,
};
use sessionplane_core::domain::input::{InputFate, InputKind, InputRecord};
use sessionplane_core::domain::lease::{LeaseClause, LeaseToken};
use sessionplane_core::domain::provenance::{Channel, Digest, Origin, Trust};
use sessionplane_core::domain::session::{SessionHead, SessionRecord};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::lease_store::LeaseStore;
use sessionplane_core::ports::repository::Repository;
use sessionplane_server::adapters::sled::{SledStore, StoreOptions};
use tokio::sync::Mutex as AsyncMutex;
use tonic::Status;

use crate::{Failure, Outcome};

const DIGEST: Digest = Digest([7; 32]);
const AT: Timestamp = Timestamp::from_millis(1_760_000_000_000);

/// The store, and a writer for each session.
pub(crate) struct Commits {
    store: SledStore,
    writers: Mutex<HashMap<String, Arc<AsyncMutex<Option<Writer>>>>>,
    tenant: TenantId,
    principal: PrincipalId,
    policies: Arc<[String]>,
}

struct Writer {
    session: SessionId,
    run: RunId,
    head: SessionHead,
    inputs: u32,
}

impl Commits {
    /// Opens a store as `sessiond` does.
    pub(crate) fn open(path: &Path) -> Outcome<Self> {
        let mut options = StoreOptions::new(1);
        options.cache_bytes = 256 * 1024 * 1024;
        Ok(Self {
            store: SledStore::open(path, &options)?,
            writers: Mutex::default(),
            tenant: TenantId::parse("default")?,
            principal: PrincipalId::parse("owner")?,
            policies: ["owner".to_owned()].into(),
        })
    }

    /// Commits an input and answers.
    pub(crate) async fn dispatch(
        &self,
        request: wire::DispatchRequest,
    ) -> Result<wire::DispatchResponse, Status> {
        let committed = self.accept(request).await;
        let input = committed.map_err(|error| Status::internal(error.to_string()))?;
        let accepted = wire::DispatchAccepted {
            run_id: input.run.to_string(),
            input_id: input.to_string(),
            fate: wire::InputFate::Pending.into(),
            ..Default::default()
        };
        Ok(wire::DispatchResponse {
            answer: Some(wire::dispatch_response::Answer::Accepted(accepted)),
        })
    }

    async fn accept(&self, request: wire::DispatchRequest) -> Outcome<InputId> {
        use wire::dispatch_request::Command;
        let Some(wire::session_ref::Ref::Id(session)) = request.session.and_then(|s| s.r#ref)
        else {
            return Err("the floor wants a session's id".into());
        };
        let Some(Command::Steer(wire::Steer { text, .. })) = request.command else {
            return Err("the floor wants a steer".into());
        };
        let writer = {
            let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
            writers.entry(session.clone()).or_default().clone()
        };
        let mut writer = writer.lock().await;
        let writer = match &mut *writer {
            Some(writer) => writer,
            none => none.insert(self.create(session.parse()?).await?),
        };
        writer.inputs += 1;
        let input = InputId {
            run: writer.run,
            ordinal: writer.inputs,
        };
        let commit = self.steer(writer, input, &text, &request.request_id)?;
        writer.head = commit.head.clone();
        self.store.commit(commit).await?;
        Ok(input)
    }

    async fn create(&self, session: SessionId) -> Outcome<Writer> {
        let token = self.store.mint().await?;
        let run = RunId::from_bytes(session.to_bytes());
        let head = SessionHead {
            token,
            ..SessionHead::empty()
        };
        let record = SessionRecord {
            id: session,
            tenant: self.tenant.clone(),
            metadata: Metadata::first(None, AT),
            external_key: None,
            agent: AgentName::parse("scripted")?,
            created_at: AT,
            lineage: None,
        };
        let writer = Writer {
            session,
            run,
            head,
            inputs: 0,
        };
        let commit = Commit {
            create: Some(record),
            ..empty(&writer, LeaseClause::Acquire(token), writer.head.clone())
        };
        self.store.commit(commit).await?;
        Ok(writer)
    }

    fn steer(
        &self,
        writer: &Writer,
        id: InputId,
        text: &str,
        request_id: &str,
    ) -> Result<Commit, Failure> {
        let request_id = RequestId::parse(request_id)?;
        let input = InputRecord {
            id,
            kind: InputKind::Steer,
            text: text.into(),
            data: None,
            origin: Origin {
                principal: self.principal.clone(),
                kind: PrincipalKind::Human,
                channel: Channel::Steer,
                trust: Trust::Relayed,
                digest: DIGEST,
                request_id: Some(request_id.clone()),
            },
            accepted_at: AT,
            fate: InputFate::Pending,
        };
        let answer = BoundAnswer::Dispatched {
            run: Some(id.run),
            input: Some(id),
        };
        let binding = Binding {
            key: BindingKey {
                tenant: self.tenant.clone(),
                principal: self.principal.clone(),
                method: Method::Dispatch,
                request_id: request_id.clone(),
            },
            session: writer.session,
            digest: DIGEST,
            answer,
            at: AT,
        };
        let audit = AuditRecord {
            session: writer.session,
            ordinal: writer.head.audits + 1,
            tenant: self.tenant.clone(),
            at: AT,
            actor: Some(AuditActor {
                principal: self.principal.clone(),
                credential: "owner-token".into(),
                policies: self.policies.clone(),
                trace_id: None,
                via: None,
            }),
            action: AuditAction::Call(Action::Steer),
            request_digest: Some(DIGEST),
            bytes: text.len() as u64,
            request_id: Some(request_id),
            run: Some(id.run),
            entries: Vec::new(),
            outcome: "accepted",
            sandbox: None,
        };
        let mut head = writer.head.clone();
        head.audits += 1;
        Ok(Commit {
            inputs: vec![input],
            bindings: vec![binding],
            audits: vec![audit],
            ..empty(writer, LeaseClause::Hold(token(writer)), head)
        })
    }
}

fn token(writer: &Writer) -> LeaseToken {
    writer.head.token
}

fn empty(writer: &Writer, lease: LeaseClause, head: SessionHead) -> Commit {
    Commit {
        session: writer.session,
        lease,
        holder: writer.run.into(),
        expected_entries: writer.head.entries,
        expected_audits: writer.head.audits,
        create: None,
        head,
        entries: Vec::new(),
        runs: Vec::new(),
        inputs: Vec::new(),
        interactions: Vec::new(),
        bindings: Vec::new(),
        audits: Vec::new(),
    }
}
