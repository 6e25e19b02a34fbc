//! What keeps an agent's processes in their workspace: whether that must be there.

use super::setting::{Kind, Setting, Value, of};

/// Whether an agent is served where nothing keeps it in.
pub(super) const REQUIRE_SANDBOX: Setting = Setting {
    key: "agents.*.require_sandbox",
    kind: Kind::Bool,
    flag: None,
    variable: None,
    about: "Whether the server refuses to start where nothing keeps the agent's tools in its \
            workspace. Without it such an agent is served, and says so in its capabilities.",
    needed: false,
    set: |settings, name, value| {
        if let Value::Bool(value) = value {
            of(&mut settings.agents, name).require_sandbox = value;
        }
    },
    get: |settings, name| {
        let agent = settings.agents.get(name)?;
        Some(Value::Bool(agent.require_sandbox))
    },
};
