//! What an engine can do. No code outside an engine's adapter asks for its name; it asks here.

use std::collections::BTreeSet;

use super::command::CommandKind;
use super::interaction::InteractionKind;

/// When a steer reaches the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steering {
    /// After the current turn's tool calls, before the next model call. Always so.
    pub after_tools: bool,
    /// It also interrupts text that is being written.
    pub preempts_text: bool,
}

/// What keeps an engine's tools inside their directory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SandboxLevel {
    /// Nothing but the engine's own good will.
    #[default]
    None,
    /// The engine has no tool that could leave it: all file access is ours.
    Confined,
    /// It runs in processes of its own, whose files the operating system bounds: whatever its tools do.
    Enforced,
}

impl SandboxLevel {
    /// The level as it stands in messages and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Confined => "confined",
            Self::Enforced => "enforced",
        }
    }
}

/// What an engine can do, told honestly: what is absent is refused before anything else.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a capability of its own, and every combination exists"
)]
pub struct Capabilities {
    /// Whether and how a run can be steered.
    pub steering: Option<Steering>,
    /// Whether a run can be given a follow-up.
    pub follow_up: bool,
    /// Whether the transcript can be compacted on request.
    pub manual_compaction: bool,
    /// Whether the model of a session can be chosen.
    pub model_selection: bool,
    /// Whether the thinking level of a session can be chosen.
    pub thinking: bool,
    /// Whether a session can go on from an earlier entry.
    pub navigate: bool,
    /// The kinds of questions that a run may ask.
    pub interactions: BTreeSet<InteractionKind>,
    /// Whether tools report progress.
    pub tool_progress: bool,
    /// Whether usage is reported.
    pub usage: bool,
    /// What keeps the engine's tools inside their directory.
    pub sandbox: SandboxLevel,
}

impl Capabilities {
    /// Whether a command is in what the engine can do. `abort` always is.
    #[must_use]
    pub fn allows(&self, kind: CommandKind) -> bool {
        match kind {
            CommandKind::Steer => self.steering.is_some(),
            CommandKind::FollowUp => self.follow_up,
            CommandKind::Abort => true,
            CommandKind::Compact => self.manual_compaction,
            CommandKind::SetModel => self.model_selection,
            CommandKind::SetThinking => self.thinking,
            CommandKind::Navigate => self.navigate,
            CommandKind::Respond => !self.interactions.is_empty(),
        }
    }
}
