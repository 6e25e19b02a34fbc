//! Model and thinking level: what may be chosen, what was chosen, and what that comes to.
//!
//! There is one resolution ([`ModelPolicy::resolve`]). State shows it, a command is checked
//! against it, and a run uses it, so the three cannot differ.

use super::run::RunSettings;

/// A model that an agent may use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    /// What `set_model` and state call it. Never a credential or an address.
    pub spec: String,
    /// The thinking levels that it accepts, lowest first; empty if it has none.
    pub thinking_levels: Vec<String>,
    /// The level it uses unless another is chosen; read only where there are levels.
    pub default_level: Option<String>,
}

impl Model {
    fn accepts(&self, level: &str) -> bool {
        self.thinking_levels.iter().any(|it| it == level)
    }
}

/// What an agent may use, and what it uses unless told otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModelPolicy {
    /// The models that it may use. Empty: the engine has no model that could be named.
    pub models: Vec<Model>,
    /// What a run uses unless overridden.
    pub default: RunSettings,
}

/// What people chose for a session, as against its agent's default. Null until somebody does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SettingsOverride {
    /// The model.
    pub model: Option<String>,
    /// The thinking level.
    pub thinking_level: Option<String>,
}

/// What the next model call uses, and what could be chosen instead.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resolved {
    /// Model and level.
    pub settings: RunSettings,
    /// Every level that the model accepts, lowest first.
    pub available_levels: Vec<String>,
}

impl ModelPolicy {
    /// What overrides come to. One that is no longer allowed counts as absent: a session outlives
    /// its agent's configuration.
    #[must_use]
    pub fn resolve(&self, chosen: &SettingsOverride) -> Resolved {
        let model = chosen
            .model
            .as_deref()
            .and_then(|spec| self.model(spec))
            .or_else(|| self.model(self.default.model.as_deref()?));
        let Some(model) = model else {
            return Resolved {
                settings: self.default.clone(),
                available_levels: Vec::new(),
            };
        };
        let wished = [
            chosen.thinking_level.as_deref(),
            self.default.thinking_level.as_deref(),
            model.default_level.as_deref(),
            model.thinking_levels.first().map(String::as_str),
        ];
        let level = wished
            .into_iter()
            .flatten()
            .find(|level| model.accepts(level));
        Resolved {
            settings: RunSettings {
                model: Some(model.spec.clone()),
                thinking_level: level.map(str::to_owned),
            },
            available_levels: model.thinking_levels.clone(),
        }
    }

    /// The model of that name, if it is allowed.
    #[must_use]
    pub fn model(&self, spec: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.spec == spec)
    }

    /// Whether there is anything to choose between.
    #[must_use]
    pub fn selects_models(&self) -> bool {
        self.models.len() > 1
    }

    /// Whether any model has thinking levels.
    #[must_use]
    pub fn thinks(&self) -> bool {
        self.models
            .iter()
            .any(|model| !model.thinking_levels.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> ModelPolicy {
        let model = |spec: &str, levels: &[&str], default: Option<&str>| Model {
            spec: spec.to_owned(),
            thinking_levels: levels.iter().map(|&it| it.to_owned()).collect(),
            default_level: default.map(str::to_owned),
        };
        ModelPolicy {
            models: vec![
                model("swift", &[], None),
                model("deep", &["low", "medium", "high"], Some("medium")),
            ],
            default: RunSettings {
                model: Some("deep".to_owned()),
                thinking_level: None,
            },
        }
    }

    fn resolved(model: Option<&str>, level: Option<&str>) -> (Option<String>, Option<String>) {
        let chosen = SettingsOverride {
            model: model.map(str::to_owned),
            thinking_level: level.map(str::to_owned),
        };
        let settings = policy().resolve(&chosen).settings;
        (settings.model, settings.thinking_level)
    }

    #[test]
    fn c23_without_overrides_the_agents_default_is_used() {
        assert_eq!(
            resolved(None, None),
            (Some("deep".into()), Some("medium".into()))
        );
    }

    #[test]
    fn c23_a_level_the_model_lacks_is_not_used() {
        assert_eq!(
            resolved(Some("swift"), Some("high")),
            (Some("swift".into()), None)
        );
        assert_eq!(
            resolved(None, Some("high")),
            (Some("deep".into()), Some("high".into()))
        );
    }

    #[test]
    fn c23_a_model_that_is_no_longer_allowed_counts_as_absent() {
        assert_eq!(
            resolved(Some("retired"), Some("low")),
            (Some("deep".into()), Some("low".into()))
        );
    }

    #[test]
    fn an_engine_without_models_uses_what_it_says() {
        let none = ModelPolicy::default();
        assert_eq!(
            none.resolve(&SettingsOverride::default()),
            Resolved::default()
        );
    }
}
