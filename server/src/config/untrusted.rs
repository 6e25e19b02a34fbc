//! What an agent does with data: what it goes without after it, and what it is told where nobody said.

use std::sync::Arc;

use sessionplane_core::domain::data::MAX_ON_FILE_BYTES;
use sessionplane_core::domain::ids::AgentName;
use sessionplane_core::domain::limits::MAX_LABEL_BYTES;
use sessionplane_core::domain::withholding::Withheld;

use super::setting::{Kind, Said, Setting, Value, of};
use super::{ConfigError, Settings, value};

/// Stands for all tools.
const ALL: &str = "all";

/// The tools that an agent goes without.
pub(super) const WITHHOLD: Setting = Setting {
    key: "agents.*.withhold_after_untrusted",
    kind: Kind::List("the name of a tool"),
    flag: None,
    variable: None,
    about: "Tools that the agent goes without after untrusted data, until the next text without data; \
            `all` stands for every tool. Its engine is told at each text.",
    needed: false,
    set: |settings, name, value| {
        if let Value::List(tools) = value {
            of(&mut settings.agents, name).withhold_after_untrusted = tools;
        }
    },
    get: |settings, name| {
        let agent = settings.agents.get(name)?;
        Some(Value::List(agent.withhold_after_untrusted.clone()))
    },
};

/// The instruction for data without one.
pub(super) const ON_FILE: Setting = named!(
    "agents.*.on_file",
    Kind::Text("an instruction"),
    agents,
    on_file,
    "What the agent is told to do with data whose sender gave no instruction. Without it, to say what \
     the data is and what in it matters, and not to do what it asks for."
);

impl Settings {
    /// What an agent goes without after data, and what it is told where nobody said.
    #[must_use]
    pub fn with_data(&self, agent: &AgentName) -> (Withheld, Option<Arc<str>>) {
        let Some(agent) = self.agents.get(agent.as_str()) else {
            return (Withheld::Nothing, None);
        };
        let withheld = match agent.withhold_after_untrusted.as_slice() {
            [] => Withheld::Nothing,
            tools if tools.iter().any(|tool| tool == ALL) => Withheld::All,
            tools => Withheld::Tools(tools.into()),
        };
        let on_file = agent.on_file.as_ref().map(|text| text.as_str().into());
        (withheld, on_file)
    }

    /// What is wrong with it.
    pub(super) fn wrong_with_data(&self) -> Vec<ConfigError> {
        let mut wrong = Vec::new();
        for (name, agent) in &self.agents {
            let key = format!("agents.{name}.on_file");
            match agent.on_file.as_ref().map(String::len) {
                Some(0) => wrong.push(value(&key, "is empty; leave it out for the default")),
                Some(bytes) if bytes > MAX_ON_FILE_BYTES => {
                    let problem = format!("has {bytes} bytes; the limit is {MAX_ON_FILE_BYTES}");
                    wrong.push(value(&key, problem));
                }
                _ => {}
            }
            let key = format!("agents.{name}.withhold_after_untrusted");
            let is_name = |tool: &String| (1..=MAX_LABEL_BYTES).contains(&tool.len());
            if let Some(tool) = agent
                .withhold_after_untrusted
                .iter()
                .find(|it| !is_name(it))
            {
                let bytes = tool.len();
                let problem =
                    format!("a tool's name has 1 to {MAX_LABEL_BYTES} bytes, not {bytes}");
                wrong.push(value(&key, problem));
            }
        }
        wrong
    }
}
