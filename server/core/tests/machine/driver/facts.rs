//! Facts as an app layer would give them to the machine. Every request gets a digest of its own,
//! so that a record tells which call it is of.

use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::audit::AuditActor;
use sessionplane_core::domain::binding::{BindingKey, Method};
use sessionplane_core::domain::capabilities::{Capabilities, SandboxLevel, Steering};
use sessionplane_core::domain::command::{Command, CommandKind};
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::{
    AgentName, EntryId, InteractionId, PrincipalId, RequestId, RunId, SessionId, SessionName,
    TenantId, WorkspaceName,
};
use sessionplane_core::domain::interaction::{InteractionAnswer, InteractionKind};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::{
    AgentFacts, CallFacts, DispatchFacts, InvokeFacts, PlaceFacts, StreamId,
};
use sessionplane_core::domain::limits::Limits;
use sessionplane_core::domain::place::{Checkout, Directory, Place};
use sessionplane_core::domain::provenance::{Channel, Digest, Origin, Trust};
use sessionplane_core::domain::run::RunSettings;
use sessionplane_core::domain::session::SessionRecord;
use sessionplane_core::domain::settings::{Model, ModelPolicy};
use sessionplane_core::domain::time::Timestamp;

/// When every test starts.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub(crate) fn limits() -> Limits {
    Limits {
        max_pending_inputs: 4,
        cancel_grace: Duration::from_secs(10),
        rejoin_grace: Duration::from_secs(60),
        abort_grace: Duration::from_secs(5),
    }
}

pub(crate) fn record() -> SessionRecord {
    SessionRecord {
        id: SessionId::mint(START, 1),
        tenant: TenantId::parse("acme").unwrap(),
        metadata: Metadata::first(Some(SessionName::parse("fix-flaky-tests").unwrap()), START),
        external_key: None,
        agent: AgentName::parse("coder").unwrap(),
        created_at: START,
        lineage: None,
    }
}

/// The id of the session's `n`th run.
pub(crate) fn run_id(n: u64) -> RunId {
    RunId::mint(START, u128::from(n))
}

pub(crate) fn everything() -> Capabilities {
    Capabilities {
        steering: Some(Steering {
            after_tools: true,
            preempts_text: false,
        }),
        follow_up: true,
        manual_compaction: true,
        model_selection: true,
        thinking: true,
        navigate: true,
        interactions: InteractionKind::ALL.into(),
        tool_progress: true,
        usage: true,
        sandbox: SandboxLevel::None,
    }
}

/// A model without thinking levels, which is the default, and one with two.
pub(crate) fn models() -> ModelPolicy {
    let swift = Model {
        spec: "swift".to_owned(),
        thinking_levels: Vec::new(),
        default_level: None,
    };
    let deep = Model {
        spec: "deep".to_owned(),
        thinking_levels: vec!["low".to_owned(), "high".to_owned()],
        default_level: Some("low".to_owned()),
    };
    ModelPolicy {
        models: vec![swift, deep],
        default: RunSettings {
            model: Some("swift".to_owned()),
            thinking_level: None,
        },
    }
}

/// An agent that can do everything.
pub(crate) fn agent() -> AgentFacts {
    AgentFacts {
        capabilities: everything(),
        models: models(),
        workspaces: Vec::new(),
        ..AgentFacts::default()
    }
}

/// What tells one call from another.
pub(crate) fn digest(call: u64) -> Digest {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&call.to_be_bytes());
    Digest(bytes)
}

/// The facts of the `n`th call, with a request id if `keyed`.
pub(crate) fn call(n: u64, method: Method, keyed: bool) -> CallFacts {
    let request_id = keyed.then(|| RequestId::parse(&format!("r{n}")).unwrap());
    let principal = PrincipalId::parse("ada").unwrap();
    let binding = request_id.clone().map(|request_id| BindingKey {
        tenant: record().tenant,
        principal: principal.clone(),
        method,
        request_id,
    });
    CallFacts {
        actor: AuditActor {
            principal,
            credential: Arc::from("key-1"),
            policies: Arc::from(["owner".to_owned()]),
            trace_id: None,
            via: None,
        },
        digest: digest(n),
        request_id,
        binding,
    }
}

pub(crate) fn origin(call: &CallFacts, channel: Channel) -> Origin {
    Origin {
        principal: call.actor.principal.clone(),
        kind: PrincipalKind::Human,
        channel,
        trust: Trust::Relayed,
        digest: call.digest,
        request_id: call.request_id.clone(),
    }
}

/// The `n`th call invokes run `n` under token `token`.
pub(crate) fn invoke(n: u64, token: u64, keyed: bool, on_disconnect: OnDisconnect) -> InvokeFacts {
    let call = call(n, Method::Invoke, keyed);
    InvokeFacts {
        run: run_id(n),
        token: LeaseToken(token),
        text: Arc::from(format!("prompt {n}")),
        data: None,
        origin: origin(&call, Channel::Invoke),
        agent: Arc::new(agent()),
        stream: StreamId(n),
        on_disconnect,
        paused: false,
        place: None,
        checkout: None,
        call,
    }
}

/// A directory of the one workspace.
pub(crate) fn place(directory: &str) -> Place {
    Place {
        workspace: WorkspaceName::parse("repo").unwrap(),
        directory: Directory::parse(directory).unwrap(),
    }
}

pub(crate) fn checkout(branch: &str) -> Checkout {
    Checkout {
        branch: Some(branch.into()),
        commit: None,
    }
}

/// The `n`th call moves the session, or creates it there.
pub(crate) fn placing(n: u64, token: u64, method: Method, place: Option<Place>) -> PlaceFacts {
    PlaceFacts {
        call: call(n, method, true),
        token: LeaseToken(token),
        place,
        within: None,
        checkout: None,
        sandbox: SandboxLevel::None,
    }
}

pub(crate) fn command(kind: CommandKind, n: u64) -> Command {
    let text = Arc::from(format!("{} {n}", kind.as_str()));
    let given = Given::default();
    match kind {
        CommandKind::Steer => Command::Steer { text, given },
        CommandKind::FollowUp => Command::FollowUp { text, given },
        CommandKind::Abort => Command::Abort,
        CommandKind::Compact => Command::Compact { instructions: None },
        CommandKind::SetModel => Command::SetModel { model: None },
        CommandKind::SetThinking => Command::SetThinking { level: None },
        CommandKind::Navigate => Command::Navigate {
            entry: EntryId {
                session: record().id,
                seq: 1,
            },
        },
        CommandKind::Respond => Command::Respond {
            interaction: InteractionId {
                run: run_id(n),
                ordinal: 1,
            },
            answer: InteractionAnswer::Confirmed(true),
        },
    }
}

/// The `n`th call dispatches a command.
pub(crate) fn dispatch(
    n: u64,
    kind: CommandKind,
    keyed: bool,
    expected_run: Option<RunId>,
) -> DispatchFacts {
    let call = call(n, Method::Dispatch, keyed);
    let channel = match kind {
        CommandKind::FollowUp => Channel::FollowUp,
        CommandKind::Steer => Channel::Steer,
        CommandKind::Respond => Channel::Respond,
        CommandKind::Abort
        | CommandKind::Compact
        | CommandKind::SetModel
        | CommandKind::SetThinking
        | CommandKind::Navigate => Channel::Control,
    };
    DispatchFacts {
        command: command(kind, n),
        origin: origin(&call, channel),
        data: None,
        expected_run,
        agent: Arc::new(agent()),
        token: None,
        target: None,
        paused: false,
        call,
    }
}
