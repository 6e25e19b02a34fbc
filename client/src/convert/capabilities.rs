//! What an agent or a session can do.

use sessionplane::v1::{self, get_capabilities_request::Target};
use sessionplane_core::contract::{CapabilityReport, CapabilityTarget};
use sessionplane_core::domain::capabilities::{Capabilities, Steering};
use sessionplane_core::domain::command::CommandKind;

use super::field::{Malformed, duration, required};
use super::session;

/// Asks what a target can do.
pub(crate) fn request(target: CapabilityTarget) -> v1::GetCapabilitiesRequest {
    let target = match target {
        CapabilityTarget::Agent(name) => Target::Agent(name.to_string()),
        CapabilityTarget::Session(named) => Target::Session(session::reference(&named)),
    };
    v1::GetCapabilitiesRequest {
        target: Some(target),
    }
}

/// What it can do, as far as this client knows the words.
pub(crate) fn answer(answer: v1::GetCapabilitiesResponse) -> Result<CapabilityReport, Malformed> {
    let told = required("capabilities", answer.capabilities)?;
    let known = |word: &String| {
        CommandKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == word)
    };
    Ok(CapabilityReport {
        commands: told.commands.iter().filter_map(known).collect(),
        binding_retention: duration(told.request_binding_retention),
        capabilities: Capabilities {
            steering: told.steering.map(|steering| Steering {
                after_tools: steering.after_tools,
                preempts_text: steering.preempts_text,
            }),
            follow_up: told.follow_up,
            tool_progress: told.tool_progress,
            usage: told.usage,
        },
    })
}
