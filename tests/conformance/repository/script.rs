//! One session's story as commits: what a run writes from its prompt to its end, built as the
//! state machine builds it, so that a test says only what happens.

use std::sync::Arc;

use sessionplane_core::domain::access::{Action, PrincipalKind};
use sessionplane_core::domain::audit::{AuditAction, AuditActor, AuditRecord};
use sessionplane_core::domain::binding::{Binding, BindingKey, BoundAnswer, Method};
use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::compaction::CompactionTrigger;
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::ids::{
    EntryId, ExternalKey, InputId, InteractionId, RunId, SessionId, SessionName, TenantId,
};
use sessionplane_core::domain::input::{InputFate, InputKind, InputRecord};
use sessionplane_core::domain::interaction::{
    Interaction, InteractionAnswer, Question, Resolution, ResolutionCause, Shape,
};
use sessionplane_core::domain::lease::{Holder, LeaseClause, LeaseToken};
use sessionplane_core::domain::provenance::{Channel, Digest, Origin, Trust};
use sessionplane_core::domain::run::{RunOutcome, RunRecord, RunSettings, Settlement};
use sessionplane_core::domain::session::{LastRun, SessionHead, SessionRecord};
use sessionplane_core::domain::settings::SettingsOverride;
use sessionplane_core::domain::text::BoundedText;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::lease_store::HeldLease;
use sessionplane_core::ports::repository::{CommitError, Repository};

/// A session's id from a number.
pub(crate) fn session_id(n: u64) -> SessionId {
    SessionId::mint(Timestamp::from_millis(1_000 + n), u128::from(n))
}

/// A binding's key from a word.
pub(crate) fn binding_key(tenant: &str, word: &str) -> BindingKey {
    BindingKey {
        tenant: tenant.parse().unwrap(),
        principal: "ann".parse().unwrap(),
        method: Method::Invoke,
        request_id: word.parse().unwrap(),
    }
}

/// A text of a user.
pub(crate) fn user(text: &str, channel: Channel) -> (Arc<str>, Origin) {
    let origin = Origin {
        principal: "ann".parse().unwrap(),
        kind: PrincipalKind::Human,
        channel,
        trust: Trust::Relayed,
        digest: Digest([7; 32]),
        request_id: Some("call-1".parse().unwrap()),
    };
    (text.into(), origin)
}

/// What a model said.
pub(crate) fn said(text: &str) -> EntryBody {
    EntryBody::Assistant {
        message: "m1".to_owned(),
        model: Some("large".to_owned()),
        text: BoundedText {
            text: text.to_owned(),
            omitted_bytes: 0,
        },
        thinking: BoundedText::default(),
        partial: false,
        usage: Usage {
            output_tokens: Some(3),
            ..Usage::default()
        },
    }
}

/// A session as its writer knows it.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) record: SessionRecord,
    pub(crate) head: SessionHead,
    pub(crate) created: bool,
    /// The active run.
    pub(crate) run: Option<RunRecord>,
    pub(crate) token: LeaseToken,
    /// The session is held for something that is no run.
    pub(crate) boundary: bool,
    pub(crate) inputs: u32,
    /// What the active run has asked.
    pub(crate) asked: Vec<Interaction>,
    pub(crate) now: u64,
    runs: u64,
}

impl Script {
    /// A session that is not created yet.
    pub(crate) fn new(n: u64) -> Self {
        let record = SessionRecord {
            id: session_id(n),
            tenant: "acme".parse().unwrap(),
            metadata: Metadata::first(None, Timestamp::from_millis(n)),
            external_key: None,
            agent: "coder".parse().unwrap(),
            created_at: Timestamp::from_millis(n),
            lineage: None,
        };
        Self {
            record,
            head: SessionHead::empty(),
            created: false,
            run: None,
            token: LeaseToken(0),
            boundary: false,
            inputs: 0,
            asked: Vec::new(),
            now: 10_000,
            runs: 0,
        }
    }

    pub(crate) fn tenant(mut self, tenant: &str) -> Self {
        self.record.tenant = TenantId::parse(tenant).unwrap();
        self
    }

    pub(crate) fn named(mut self, name: &str) -> Self {
        self.record.metadata.name = Some(SessionName::parse(name).unwrap());
        self
    }

    pub(crate) fn keyed(mut self, key: &str) -> Self {
        self.record.external_key = Some(ExternalKey::parse(key).unwrap());
        self
    }

    pub(crate) fn id(&self) -> SessionId {
        self.record.id
    }

    pub(crate) fn run_id(&self) -> RunId {
        self.run.as_ref().expect("a run is active").id
    }

    /// The lease record that an unreleased lease leaves.
    pub(crate) fn lease(&self) -> HeldLease {
        let run = self.run.as_ref().map(|run| run.id);
        assert!(run.is_some() != self.boundary, "one holds it");
        HeldLease {
            session: self.id(),
            holder: run.into(),
            token: self.token,
        }
    }

    /// A commit that appends these entries, with an audit record, on the present head.
    pub(super) fn commit(
        &self,
        lease: LeaseClause,
        holder: Holder,
        bodies: Vec<EntryBody>,
    ) -> Commit {
        let mut head = self.head.clone();
        head.token = lease.token();
        let mut entries = Vec::new();
        for body in bodies {
            let id = EntryId {
                session: self.id(),
                seq: head.entries + 1,
            };
            let parent = head.leaf.map(|leaf| leaf.seq);
            head.path = head.path.then(parent, id.seq, &body);
            if let EntryBody::Settings { chosen } = &body {
                head.chosen = chosen.clone();
            }
            entries.push(Entry {
                id,
                parent: head.leaf,
                run: holder.run(),
                at: Timestamp::from_millis(self.now),
                path: head.path,
                body,
            });
            head.entries = id.seq;
            head.leaf = Some(id);
        }
        head.audits += 1;
        let audit = AuditRecord {
            run: holder.run(),
            entries: entries.iter().map(|entry| entry.id).collect(),
            ..self.audit(head.audits, Action::Invoke)
        };
        Commit {
            session: self.id(),
            lease,
            holder,
            expected_entries: self.head.entries,
            expected_audits: self.head.audits,
            create: None,
            head,
            entries,
            runs: Vec::new(),
            inputs: Vec::new(),
            interactions: Vec::new(),
            bindings: Vec::new(),
            audits: vec![audit],
        }
    }

    pub(super) fn audit(&self, ordinal: u64, action: Action) -> AuditRecord {
        AuditRecord {
            session: self.id(),
            ordinal,
            tenant: self.record.tenant.clone(),
            at: Timestamp::from_millis(self.now),
            actor: Some(AuditActor {
                principal: "ann".parse().unwrap(),
                credential: "laptop".into(),
                policies: vec!["owner".to_owned()].into(),
                trace_id: None,
                via: None,
            }),
            action: AuditAction::Call(action),
            request_digest: Some(Digest([1; 32])),
            bytes: 5,
            request_id: None,
            run: None,
            entries: Vec::new(),
            outcome: "accepted",
            sandbox: None,
        }
    }

    /// Admits a run with a prompt; creates the session if it is not there yet.
    pub(crate) fn admit(&self, token: LeaseToken, prompt: &str) -> Commit {
        let n = u64::from_be_bytes(self.id().to_bytes()[8..].try_into().unwrap());
        let run = RunId::mint(
            Timestamp::from_millis(self.now + self.runs),
            u128::from(n) << 32 | u128::from(self.runs),
        );
        let (text, origin) = user(prompt, Channel::Invoke);
        let body = EntryBody::User {
            text,
            omitted_bytes: 0,
            origin: origin.clone(),
            input: None,
            data: None,
        };
        let mut commit = self.commit(LeaseClause::Acquire(token), run.into(), vec![body]);
        commit.create = (!self.created).then(|| self.record.clone());
        let first = commit.entries[0].id;
        commit.runs.push(RunRecord {
            id: run,
            session: self.id(),
            agent: self.record.agent.clone(),
            request_id: None,
            origin,
            started_at: Timestamp::from_millis(self.now),
            first_entry: first,
            final_entry: None,
            usage: Usage::default(),
            undelivered: Vec::new(),
            settings: RunSettings::default(),
            abort_requested: false,
            settled: None,
        });
        commit
    }

    /// The run says something.
    pub(crate) fn say(&self, bodies: Vec<EntryBody>) -> Commit {
        self.commit(LeaseClause::Hold(self.token), self.run_id().into(), bodies)
    }

    /// An input joins the run.
    pub(crate) fn steer(&self, text: &str) -> Commit {
        let mut commit = self.say(Vec::new());
        let (text, origin) = user(text, Channel::Steer);
        commit.inputs.push(InputRecord {
            id: InputId {
                run: self.run_id(),
                ordinal: self.inputs + 1,
            },
            kind: InputKind::Steer,
            text,
            data: None,
            origin,
            accepted_at: Timestamp::from_millis(self.now),
            fate: InputFate::Pending,
        });
        commit
    }

    /// The run asks for a text of at most so many bytes.
    pub(crate) fn ask(&self, title: &str) -> Commit {
        let mut commit = self.say(Vec::new());
        commit.interactions.push(Interaction {
            id: InteractionId {
                run: self.run_id(),
                ordinal: u32::try_from(self.asked.len()).unwrap() + 1,
            },
            question: Question {
                title: "A word?".to_owned(),
                details: title.to_owned(),
                shape: Shape::Input { secret: false },
                default: None,
            },
            asked_at: Timestamp::from_millis(self.now),
            deadline: Some(Timestamp::from_millis(self.now + 9)),
            resolution: None,
        });
        commit
    }

    /// One of the questions is answered; which one is up to the present time.
    pub(crate) fn answer(&self, text: &str) -> Commit {
        let mut commit = self.say(Vec::new());
        let place = usize::try_from(self.now).unwrap() % self.asked.len();
        let mut answered = self.asked[place].clone();
        answered.resolution = Some(Resolution {
            at: Timestamp::from_millis(self.now),
            cause: ResolutionCause::Answered,
            answer: Some(InteractionAnswer::Text(text.to_owned())),
            origin: Some(user(text, Channel::Respond).1),
        });
        commit.interactions.push(answered);
        commit
    }

    /// A change between runs, taken and over in one commit: a model is chosen.
    pub(crate) fn choose(&self, token: LeaseToken, model: &str) -> Commit {
        let chosen = SettingsOverride {
            model: Some(model.to_owned()),
            ..self.head.chosen.clone()
        };
        let body = EntryBody::Settings { chosen };
        self.commit(LeaseClause::Recover(token), Holder::Boundary, vec![body])
    }

    /// A change between runs: the leaf moves to an entry, with what was chosen there.
    pub(crate) fn navigate(
        &self,
        token: LeaseToken,
        to: &Entry,
        chosen: SettingsOverride,
    ) -> Commit {
        let mut commit = self.commit(LeaseClause::Recover(token), Holder::Boundary, Vec::new());
        commit.head.leaf = Some(to.id);
        commit.head.path = to.path;
        commit.head.chosen = chosen;
        commit
    }

    /// A compaction begins.
    pub(crate) fn compact(&self, token: LeaseToken) -> Commit {
        self.commit(LeaseClause::Acquire(token), Holder::Boundary, Vec::new())
    }

    /// The compaction is done.
    pub(crate) fn compacted(&self, summary: &str) -> Commit {
        let body = EntryBody::Compaction {
            summary: BoundedText {
                text: summary.to_owned(),
                omitted_bytes: 0,
            },
            first_kept: self.head.leaf,
            tokens_before: Some(9),
            tokens_after: None,
            trigger: CompactionTrigger::Manual,
        };
        self.commit(
            LeaseClause::Release(self.token),
            Holder::Boundary,
            vec![body],
        )
    }

    /// A compaction that was cut is given up under a fresh token.
    pub(crate) fn give_up(&self, token: LeaseToken) -> Commit {
        self.commit(LeaseClause::Recover(token), Holder::Boundary, Vec::new())
    }

    /// The run settles.
    pub(crate) fn settle(&self) -> Commit {
        self.end(LeaseClause::Release(self.token))
    }

    /// A cut run is settled under a fresh token.
    pub(crate) fn recover(&self, token: LeaseToken) -> Commit {
        self.end(LeaseClause::Recover(token))
    }

    fn end(&self, lease: LeaseClause) -> Commit {
        let body = EntryBody::Notice {
            code: "end".to_owned(),
            text: "the end".to_owned(),
        };
        let mut commit = self.commit(lease, self.run_id().into(), vec![body]);
        let mut run = self.run.clone().expect("a run is active");
        run.final_entry = Some(commit.entries[0].id);
        run.usage.input_tokens = Some(11);
        run.settled = Some(Settlement {
            at: Timestamp::from_millis(self.now),
            outcome: RunOutcome::Completed,
        });
        commit.head.last_run = LastRun::of(&run);
        commit.head.usage = commit.head.usage.plus(run.usage);
        commit.runs.push(run);
        commit
    }

    /// Binds a request id to what the commit is of, as part of a commit of this session.
    pub(crate) fn bind(&self, commit: &mut Commit, key: BindingKey) {
        commit.bindings.push(Binding {
            key,
            session: self.id(),
            digest: Digest([9; 32]),
            answer: match commit.holder {
                Holder::Run(run) => BoundAnswer::Run(run),
                Holder::Boundary => BoundAnswer::Dispatched {
                    run: None,
                    input: None,
                },
            },
            at: Timestamp::from_millis(self.now),
        });
    }

    /// Goes on from an accepted commit.
    pub(crate) fn accepted(&mut self, commit: &Commit) {
        self.created = true;
        self.head = commit.head.clone();
        self.inputs = commit
            .inputs
            .iter()
            .map(|input| input.id.ordinal)
            .fold(self.inputs, u32::max);
        self.now += 1;
        if let Some(run) = commit.runs.last() {
            self.run = Some(run.clone());
        }
        for asked in &commit.interactions {
            match self.asked.iter_mut().find(|it| it.id == asked.id) {
                Some(earlier) => earlier.clone_from(asked),
                None => self.asked.push(asked.clone()),
            }
        }
        match commit.lease {
            LeaseClause::Acquire(token) => {
                self.token = token;
                self.inputs = 0;
                self.asked.clear();
                self.boundary = commit.holder == Holder::Boundary;
                self.runs += 1;
            }
            LeaseClause::Hold(_) => {}
            LeaseClause::Release(_) | LeaseClause::Recover(_) => {
                self.run = None;
                self.boundary = false;
            }
        }
    }

    /// Commits and goes on.
    pub(crate) async fn write(
        &mut self,
        store: &(impl Repository + ?Sized),
        commit: Commit,
    ) -> Result<(), CommitError> {
        store.commit(commit.clone()).await?;
        self.accepted(&commit);
        Ok(())
    }
}
