//! What an engine can do. No code outside an engine's adapter asks for its name; it asks here.

use super::command::CommandKind;

/// When a steer reaches the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steering {
    /// After the current turn's tool calls, before the next model call. Always so.
    pub after_tools: bool,
    /// It also interrupts text that is being written.
    pub preempts_text: bool,
}

/// What an engine can do, told honestly: what is absent is refused before anything else.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// Whether and how a run can be steered.
    pub steering: Option<Steering>,
    /// Whether a run can be given a follow-up.
    pub follow_up: bool,
    /// Whether tools report progress.
    pub tool_progress: bool,
    /// Whether usage is reported.
    pub usage: bool,
}

impl Capabilities {
    /// Whether a command is in what the engine can do. `abort` always is.
    #[must_use]
    pub fn allows(&self, kind: CommandKind) -> bool {
        match kind {
            CommandKind::Steer => self.steering.is_some(),
            CommandKind::FollowUp => self.follow_up,
            CommandKind::Abort => true,
        }
    }
}
