//! What agents and sessions can do.

use sessionplane::v1 as wire;
use sessionplane_core::contract::{
    CapabilityReport, CapabilityTarget, CommandTarget, OfferedCommand,
};
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::settings::Model;
use wire::get_capabilities_request::Target;
use wire::list_commands_request::Target as CommandsOf;

use super::{field, interaction, session, time};
use crate::app::pages;

/// What is asked about.
pub(crate) fn target(request: wire::GetCapabilitiesRequest) -> Result<CapabilityTarget, CallError> {
    match request.target {
        Some(Target::Agent(agent)) => field::id("agent", &agent).map(CapabilityTarget::Agent),
        Some(Target::Session(address)) => {
            session::reference(Some(address)).map(CapabilityTarget::Session)
        }
        None => Err(untargeted()),
    }
}

/// What a composer's offers are asked of.
pub(crate) fn commands_target(target: Option<CommandsOf>) -> Result<CapabilityTarget, CallError> {
    match target {
        Some(CommandsOf::Agent(agent)) => field::id("agent", &agent).map(CapabilityTarget::Agent),
        Some(CommandsOf::Session(address)) => {
            session::reference(Some(address)).map(CapabilityTarget::Session)
        }
        None => Err(untargeted()),
    }
}

fn untargeted() -> CallError {
    CallError::invalid("target", "exactly one of `agent` and `session` must be set")
}

/// A page of what a composer may offer. The token is the number of names before the page.
pub(crate) fn commands_page(
    offered: &[OfferedCommand],
    page_size: u32,
    page_token: &str,
) -> Result<wire::ListCommandsResponse, CallError> {
    let size = pages::size(page_size, 100, 1000)?;
    let from = if page_token.is_empty() {
        0
    } else {
        page_token.parse::<usize>().map_err(|_| {
            CallError::invalid(
                "page_token",
                "is not one that ListCommands gave; start without",
            )
        })?
    };
    let rest = offered.get(from..).unwrap_or_default();
    // A token is a caller's word: it may name any place.
    let next = from.saturating_add(size);
    Ok(wire::ListCommandsResponse {
        commands: rest.iter().take(size).map(offer).collect(),
        next_page_token: if next < offered.len() {
            next.to_string()
        } else {
            String::new()
        },
    })
}

fn offer(command: &OfferedCommand) -> wire::OfferedCommand {
    let target = match command.target {
        CommandTarget::Dispatch(_) => wire::CommandTarget::Dispatch,
        CommandTarget::Prompt => wire::CommandTarget::Prompt,
    };
    wire::OfferedCommand {
        name: command.name.clone(),
        description: command.description.clone(),
        target: target.into(),
    }
}

fn model(model: &Model) -> wire::Model {
    wire::Model {
        spec: model.spec.clone(),
        thinking_levels: model.thinking_levels.clone(),
        default_level: model.default_level.clone().unwrap_or_default(),
    }
}

/// How far an engine is held in.
pub(crate) fn sandbox(level: SandboxLevel) -> wire::SandboxLevel {
    match level {
        SandboxLevel::None => wire::SandboxLevel::None,
        SandboxLevel::Confined => wire::SandboxLevel::Confined,
        SandboxLevel::Enforced => wire::SandboxLevel::Enforced,
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
        manual_compaction: capabilities.manual_compaction,
        model_selection: capabilities.model_selection,
        thinking: capabilities.thinking,
        navigate: capabilities.navigate,
        interactions: capabilities
            .interactions
            .iter()
            .map(|kind| interaction::kind(*kind).into())
            .collect(),
        sandbox: sandbox(capabilities.sandbox).into(),
        models: report.models.models.iter().map(model).collect(),
        default_model: report.models.default.model.clone().unwrap_or_default(),
        default_thinking_level: report
            .models
            .default
            .thinking_level
            .clone()
            .unwrap_or_default(),
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

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::command::CommandKind;

    use super::*;

    #[test]
    fn c64_a_place_behind_the_last_name_is_an_empty_last_page() {
        let offered = CommandKind::ALL.map(|kind| OfferedCommand {
            name: kind.as_str().to_owned(),
            description: String::new(),
            target: CommandTarget::Dispatch(kind),
        });
        for token in ["8", "9", &usize::MAX.to_string()] {
            let page = commands_page(&offered, 0, token).unwrap();
            assert_eq!((page.commands.len(), &*page.next_page_token), (0, ""));
        }
        let page = commands_page(&offered, 3, "3").unwrap();
        assert_eq!((page.commands.len(), &*page.next_page_token), (3, "6"));
        let error = commands_page(&offered, 0, "-1").unwrap_err();
        assert_eq!(error.violations[0].field, "page_token");
    }
}
