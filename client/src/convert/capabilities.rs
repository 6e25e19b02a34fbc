//! What an agent or a session can do.

use sessionplane::v1::{self, get_capabilities_request::Target};
use sessionplane_core::contract::{
    CapabilityReport, CapabilityTarget, CommandTarget, OfferedCommand,
};
use sessionplane_core::domain::capabilities::{Capabilities, SandboxLevel, Steering};
use sessionplane_core::domain::command::CommandKind;
use sessionplane_core::domain::settings::{Model, ModelPolicy};

use super::field::{Malformed, duration, required};
use super::{interaction, run, session};

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
        models: ModelPolicy {
            default: run::settings(
                told.default_model.clone(),
                told.default_thinking_level.clone(),
            ),
            models: told.models.iter().map(model).collect(),
        },
        capabilities: Capabilities {
            manual_compaction: told.manual_compaction,
            model_selection: told.model_selection,
            thinking: told.thinking,
            navigate: told.navigate,
            interactions: told.interactions().filter_map(interaction::kind).collect(),
            sandbox: sandbox(told.sandbox()),
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

/// How far an engine is held in. A level that this client does not know is not relied on.
pub(crate) fn sandbox(level: v1::SandboxLevel) -> SandboxLevel {
    match level {
        v1::SandboxLevel::Confined => SandboxLevel::Confined,
        v1::SandboxLevel::Enforced => SandboxLevel::Enforced,
        v1::SandboxLevel::None | v1::SandboxLevel::Unspecified => SandboxLevel::None,
    }
}

fn model(model: &v1::Model) -> Model {
    Model {
        spec: model.spec.clone(),
        thinking_levels: model.thinking_levels.clone(),
        default_level: (!model.default_level.is_empty()).then(|| model.default_level.clone()),
    }
}

/// Asks what a composer may offer.
pub(crate) fn commands_request(
    target: CapabilityTarget,
    page_token: String,
) -> v1::ListCommandsRequest {
    use v1::list_commands_request::Target;
    let target = match target {
        CapabilityTarget::Agent(name) => Target::Agent(name.to_string()),
        CapabilityTarget::Session(named) => Target::Session(session::reference(&named)),
    };
    v1::ListCommandsRequest {
        target: Some(target),
        page_size: 0,
        page_token,
    }
}

/// A page of offers, without those this client does not know where to send.
pub(crate) fn offered(commands: Vec<v1::OfferedCommand>) -> Vec<OfferedCommand> {
    let offer = |command: v1::OfferedCommand| {
        let target = match command.target() {
            v1::CommandTarget::Prompt => CommandTarget::Prompt,
            v1::CommandTarget::Dispatch => {
                let named = |kind: &CommandKind| kind.as_str() == command.name;
                CommandTarget::Dispatch(CommandKind::ALL.into_iter().find(named)?)
            }
            v1::CommandTarget::Unspecified => return None,
        };
        Some(OfferedCommand {
            name: command.name,
            description: command.description,
            target,
        })
    };
    commands.into_iter().filter_map(offer).collect()
}
