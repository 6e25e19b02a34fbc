//! What agents and sessions can do.

use sessionplane::v1 as wire;
use sessionplane_core::contract::{CapabilityReport, CapabilityTarget};
use sessionplane_core::domain::error::CallError;
use wire::get_capabilities_request::Target;

use super::{field, session, time};

/// What is asked about.
pub(crate) fn target(request: wire::GetCapabilitiesRequest) -> Result<CapabilityTarget, CallError> {
    match request.target {
        Some(Target::Agent(agent)) => field::id("agent", &agent).map(CapabilityTarget::Agent),
        Some(Target::Session(address)) => {
            session::reference(Some(address)).map(CapabilityTarget::Session)
        }
        None => Err(CallError::invalid(
            "target",
            "exactly one of `agent` and `session` must be set",
        )),
    }
}

/// What it can do.
pub(crate) fn report(report: &CapabilityReport) -> wire::Capabilities {
    let capabilities = &report.capabilities;
    let steering = capabilities.steering.map(|steering| wire::Steering {
        after_tools: steering.after_tools,
        preempts_text: steering.preempts_text,
    });
    wire::Capabilities {
        steering,
        follow_up: capabilities.follow_up,
        tool_progress: capabilities.tool_progress,
        usage: capabilities.usage,
        commands: report
            .commands
            .iter()
            .map(|kind| kind.as_str().to_owned())
            .collect(),
        request_binding_retention: Some(time::duration(report.binding_retention)),
    }
}
