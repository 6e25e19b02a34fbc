//! The questions that are open where somebody is, and which one a line answers. Values only.

use std::collections::BTreeMap;

use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::InteractionId;
use sessionplane_core::domain::interaction::Interaction;
use sessionplane_core::domain::view::SessionView;

use super::typing::Named;
use crate::cli::answering::from_text;
use crate::watch::WatchItem;

/// What is open, as far as was told. A run may have a few open only.
#[derive(Debug, Default)]
pub(super) struct Questions(BTreeMap<InteractionId, Interaction>);

impl Questions {
    /// Keeps in mind what an item tells; the questions that no event will show.
    pub(super) fn note(&mut self, item: &WatchItem) -> Vec<Interaction> {
        match item {
            WatchItem::Snapshot(state) => return self.replace(&state.view),
            WatchItem::Event(envelope) => match &envelope.event.body {
                EventBody::InteractionRequested { interaction } => {
                    self.0.insert(interaction.id, (**interaction).clone());
                }
                EventBody::InteractionResolved { id, .. } => {
                    self.0.remove(id);
                }
                EventBody::RunSettled { .. } => self.0.clear(),
                _ => {}
            },
            _ => {}
        }
        Vec::new()
    }

    fn replace(&mut self, view: &SessionView) -> Vec<Interaction> {
        let open = view.open_interactions().map(|it| (it.id, it.clone()));
        let before = std::mem::replace(&mut self.0, open.collect());
        let new = self.0.values().filter(|it| !before.contains_key(&it.id));
        new.cloned().collect()
    }

    /// The command that gives an answer.
    ///
    /// # Errors
    /// Why there is none, for a person.
    pub(super) fn answer(&self, named: Option<Named>, text: &str) -> Result<Command, String> {
        let meant = |it: &&Interaction| match named {
            None => true,
            Some(Named::Id(id)) => it.id == id,
            Some(Named::Ordinal(ordinal)) => it.id.ordinal == ordinal,
        };
        let mut meant = self.0.values().filter(meant);
        let question = match (meant.next(), meant.next()) {
            (Some(question), None) => question,
            (Some(_), Some(_)) => return Err(self.several()),
            (None, _) if self.0.is_empty() => return Err("no question is open".to_owned()),
            (None, _) => return Err(format!("no such question is open; {}", self.several())),
        };
        let answer = from_text(&question.question, text)?;
        Ok(Command::Respond {
            interaction: question.id,
            answer,
        })
    }

    fn several(&self) -> String {
        let open = self.0.values().map(|it| {
            let title = &it.question.title;
            format!("\n  /answer q{} ...   {title}", it.id.ordinal)
        });
        open.fold("say which one is answered:".to_owned(), |all, one| {
            all + &one
        })
    }
}
