//! Which tools an agent goes without while it is under the influence of data.
//!
//! A fence is a mitigation; this is a control. It follows from the newest text that a sender brought:
//! data takes the tools, a text without data gives them back.

use std::sync::Arc;

use super::data::Data;
use super::provenance::{Origin, Trust};

/// Tools that an engine may not use, by the names under which it reports them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Withheld {
    /// It may use all that it has.
    #[default]
    Nothing,
    /// These, at least one.
    Tools(Arc<[String]>),
    /// Whatever it has.
    All,
}

impl Withheld {
    /// What is withheld from the moment on that a text is shown, where `self` is what the agent's
    /// configuration withholds after data.
    #[must_use]
    pub fn from_here(&self, origin: &Origin, data: Option<&Data>) -> Self {
        if influences(origin, data) {
            self.clone()
        } else {
            Self::Nothing
        }
    }

    /// Whether a tool is withheld.
    #[must_use]
    pub fn withholds(&self, tool: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Tools(tools) => tools.iter().any(|withheld| withheld == tool),
            Self::All => true,
        }
    }
}

/// Whether a text brings what is not to be trusted.
#[must_use]
pub fn influences(origin: &Origin, data: Option<&Data>) -> bool {
    data.is_some() || origin.trust == Trust::Untrusted
}
